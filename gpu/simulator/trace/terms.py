"""Terms of a trace: the IR of executed statements and functions as plain data."""

from __future__ import annotations

from collections.abc import Mapping

from gpu.base.errors import SourcePosition
from gpu.recording.statements import ExecutedStatement, Statement, Term, TraceFunction
from gpu.simulator import ir
from gpu.simulator.ir.intrinsics import ATOMICS
from gpu.simulator.ir.walking import Visitor, inner_statements
from gpu.simulator.types import INT64, ArrayOf, Pointer, Scalar, Struct, Type, Void, decay, leaves, vector_size

_ATOMIC_NAMES = {op: name for name, op in reversed(ATOMICS.items())}
_NAMES = {
    "int8": "char", "uint8": "unsigned char", "int16": "short", "uint16": "unsigned short", "int32": "int",
    "uint32": "unsigned int", "int64": "long long", "uint64": "unsigned long long", "float32": "float",
    "float64": "double",
}  # fmt: skip


def describe_function(function: ir.Function, positions: Mapping[SourcePosition, int]) -> TraceFunction:
    """Return the description of a function for a trace; `positions` numbers the positions of executed statements."""
    names = dict(enumerate(name for name, _ in function.parameters))
    types = dict(enumerate(type for _, type in function.parameters))
    _find_names(function.body, names, types)
    pointers = {slot: max(type.element.size, 1) for slot, type in types.items() if isinstance(type, Pointer)}
    statements: list[Statement] = []
    rounds: dict[int, int] = {}

    def visit(statement: ir.Statement, loops: tuple[int, ...]) -> None:
        position = _position_number(statement, positions)
        if isinstance(statement, ir.Loop):
            loops = (*loops, len(statements))
            rounds[len(statements)] = (
                -1 if statement.condition is not None else _find_first_position(statement, positions)
            )
        if position >= 0 or isinstance(statement, ir.Loop):
            statements.append(Statement(position, loops))
        for inner in inner_statements(statement):
            visit(inner, loops)

    visit(function.body, ())
    return TraceFunction(function.name, names, pointers, tuple(statements), rounds)


def _position_number(statement: ir.Statement, positions: Mapping[SourcePosition, int]) -> int:
    return -1 if isinstance(statement, ir.Block) else positions.get(statement.position, -1)


def _find_first_position(loop: ir.Loop, positions: Mapping[SourcePosition, int]) -> int:
    """Return the position of the first statement of a loop's body that ran."""
    waiting: list[ir.Statement] = [loop.body]
    while waiting:
        statement = waiting.pop()
        position = _position_number(statement, positions)
        if position >= 0:
            return position
        waiting += reversed(list(inner_statements(statement)))
    return -1


def _find_names(node: object, names: dict[int, str], types: dict[int, Type]) -> None:
    """Collect the names and types of a function's variables, by slot."""
    if isinstance(node, ir.Local):
        names.setdefault(node.slot, node.name)
        types.setdefault(node.slot, node.type)
    elif isinstance(node, tuple):
        for each in node:
            _find_names(each, names, types)
    elif hasattr(node, "__dataclass_fields__") and not isinstance(node, ir.Function | Type):
        for each in vars(node).values():
            _find_names(each, names, types)


def convert_statement(executed: ir.Statement | ir.Expression) -> ExecutedStatement:
    """Convert a statement, or the step of a `for`, of the IR."""
    match executed:
        case ir.Declare(_, type, value, _, name, text):
            return ExecutedStatement(text, name, _format_type(type), _convert_all(value))
        case ir.DeclareMemory(_, _, values, zeroed, name, _, _, type):
            text = _format_type(type) + (" = {}" if zeroed else "")
            return ExecutedStatement("", name, text, _convert_all(*(value for _, value in values)))
        case ir.If(value) | ir.Loop(value) | ir.Switch(value) | ir.Evaluate(value):
            return ExecutedStatement(executed.text, terms=_convert_all(value))
        case ir.Return(value):
            return ExecutedStatement(terms=_convert_all(value))
        case ir.Block() | ir.Jump() | ir.Barrier():
            return ExecutedStatement()
    return ExecutedStatement(terms=_convert_all(executed))


def _convert_all(*expressions: ir.Expression | ir.Place | None) -> tuple[Term, ...]:
    return tuple(_convert_expression(expression) for expression in expressions if expression is not None)


def _convert_expression(expression: ir.Expression | ir.Place) -> Term:
    term: Term = _CONVERTER.visit(expression)
    return term


class _TermConverter(Visitor):
    """Converts expressions of each class."""

    def visit_const(self, node: ir.Const) -> Term:
        return Term("constant", "", node.type.name, value=node.value.item())

    def visit_null(self, node: ir.Null) -> Term:
        return Term("other", "nullptr")

    def visit_local(self, node: ir.Local) -> Term:
        return Term("variable", node.name, _type_name(node.type))

    def visit_global(self, node: ir.Global) -> Term:
        return Term("global", node.name)

    def visit_special(self, node: ir.Special) -> Term:
        return Term("special", f"{node.name}.{'xyz'[node.axis]}", node.type.name)

    def visit_unary(self, node: ir.Unary) -> Term:
        return Term("unary", node.op, node.type.name, _convert_all(node.operand))

    def visit_binary(self, node: ir.Binary) -> Term:
        operands = _convert_all(node.left, node.right)
        return Term("binary", node.op, _type_name(node.left.type), operands, value=1 if node.is_exact else None)

    def visit_logical(self, node: ir.Logical) -> Term:
        return Term("logical", node.op, node.type.name, _convert_all(node.left, node.right))

    def visit_select(self, node: ir.Select) -> Term:
        return Term("choice", "?:", _type_name(node.type), _convert_all(node.condition, node.chosen, node.other))

    def visit_sequence(self, node: ir.Sequence) -> Term:
        match node.first:
            case ir.Sequence(_, ir.Assign(_, ir.Local(), ir.Temporary()), ir.Call(_, function, values)):
                return Term("call", function.name, "", _convert_all(*values[1:]))  # a constructor's
        return Term("comma", ",", _type_name(node.type), _convert_all(node.first, node.second))

    def visit_cast(self, node: ir.Cast) -> Term:
        if isinstance(node.type, Scalar) and isinstance(node.operand.type, Scalar):
            return Term("cast", "", node.type.name, _convert_all(node.operand))
        return _convert_expression(node.operand)

    def visit_shared_address(self, node: ir.SharedAddress) -> Term:
        return _convert_expression(node.operand)

    def visit_offset(self, node: ir.Offset) -> Term:
        return Term("sum", "+", "", _convert_all(node.pointer, node.index), rows=node.rows)

    def visit_distance(self, node: ir.Distance) -> Term:
        return Term("difference", "-", node.type.name, _convert_all(node.left, node.right))

    def visit_member(self, node: ir.Member) -> Term:
        assert isinstance(node.pointer.type, Pointer)
        return Term(
            "member",
            _find_member_name(node.pointer.type.element, node.offset, node.type),
            "",
            _convert_all(node.pointer),
        )

    def visit_extract(self, node: ir.Extract) -> Term:
        offset = leaves(node.operand.type)[node.first][0] if leaves(node.operand.type) else 0
        text = _find_member_name(node.operand.type, offset, Pointer(node.type))
        return Term(
            "part", text, _type_name(node.type), _convert_all(node.operand), value=[node.first, len(leaves(node.type))]
        )

    def visit_construct(self, node: ir.Construct) -> Term:
        return Term("construct", "", "", _convert_all(*node.parts))

    def visit_temporary(self, node: ir.Temporary) -> Term:
        return Term("temporary", "", "", _convert_all(node.value), value=_count_accesses(node.type.element))

    def visit_element(self, node: ir.Element) -> Term:
        return _convert_place(node)

    def visit_load(self, node: ir.Load) -> Term:
        return Term("load", "", _type_name(node.type), (_convert_place(node.place),), value=_count_accesses(node.type))

    def visit_assign(self, node: ir.Assign) -> Term:
        return Term(
            "assign", "=", _type_name(node.type), _convert_all(node.place, node.value), value=_count_accesses(node.type)
        )

    def visit_update(self, node: ir.Update) -> Term:
        return Term(
            "update",
            node.op,
            _type_name(node.compute_type),
            _convert_all(node.place, node.value),
            value=int(node.returns_old),
        )

    def visit_intrinsic(self, node: ir.Intrinsic) -> Term:
        return Term("function", node.name, node.type.name, _convert_all(*node.arguments))

    def visit_atomic(self, node: ir.Atomic) -> Term:
        return Term("atomic", _ATOMIC_NAMES[node.op], node.type.name, _convert_all(node.place, *node.arguments))

    def visit_warp(self, node: ir.Warp) -> Term:
        return Term("warp", node.op, node.type.name, _convert_all(*node.arguments))

    def visit_call(self, node: ir.Call) -> Term:
        return _convert_call(node.function, node.arguments)

    def visit_indirect_call(self, node: ir.IndirectCall) -> Term:
        return Term("call", "(*@)", "", _convert_all(node.function, *node.arguments))

    def visit_launch_call(self, node: ir.LaunchCall) -> Term:
        return Term("call", f"{node.function.name}<<<@, @>>>", "", _convert_all(node.grid, node.block, *node.arguments))

    def visit_print(self, node: ir.Print) -> Term:
        texts = [
            Term("other", f'"{each}"') if isinstance(each, str) else _convert_expression(each)
            for each in (node.format, *node.arguments)
        ]
        return Term("call", "printf", "", tuple(texts))

    def visit_assertion(self, node: ir.Assertion) -> Term:
        return Term("call", "assert", "", _convert_all(node.condition))

    def visit_fence(self, node: ir.Fence) -> Term:
        return Term("call", node.name, "", _convert_all(node.lanes))

    def visit_async_copy(self, node: ir.AsyncCopy) -> Term:
        return Term("call", "copy_async", "", _convert_all(node.destination, node.source))

    def visit_bulk_copy(self, node: ir.BulkCopy) -> Term:
        return Term("call", "copy_async", "", _convert_all(node.destination, node.source))

    def visit_tensor_copy(self, node: ir.TensorCopy) -> Term:
        return Term("call", "copy_async", "", _convert_all(node.destination, node.matrix))

    def visit_barrier_phase(self, node: ir.BarrierPhase) -> Term:
        return Term("call", node.op, "", _convert_all(node.pointer, node.argument))

    def visit_async_commit(self, node: ir.AsyncCommit) -> Term:
        return Term("call", "commit", "", ())

    def visit_async_wait(self, node: ir.AsyncWait) -> Term:
        return Term("call", "wait", "", _convert_all(node.pending_groups))

    def visit_heap_change(self, node: ir.HeapChange) -> Term:
        return Term("call", "free" if node.size is None else "malloc", "", _convert_all(node.pointer))

    def visit_named_barrier(self, node: ir.NamedBarrier) -> Term:
        operands = (node.number,) if node.count is None else (node.number, node.count)
        return Term("call", f"bar.{node.part}", "", _convert_all(*operands))

    def visit_cluster_barrier(self, node: ir.ClusterBarrier) -> Term:
        return Term("other", f"cluster.barrier_{node.part}()")

    def visit_cluster_address(self, node: ir.ClusterAddress) -> Term:
        return Term("call", "map_shared_rank", "", _convert_all(node.pointer, node.rank))

    def visit_grid_barrier(self, node: ir.GridBarrier) -> Term:
        return Term("other", "grid.sync()")

    def visit_texel(self, node: ir.Texel) -> Term:
        return Term("call", "texel", "", _convert_all(*node.coordinates))

    def visit_texel_weight(self, node: ir.TexelWeight) -> Term:
        return Term("call", "weight", "", _convert_all(*(() if node.coordinate is None else (node.coordinate,))))

    def visit_clock(self, node: ir.Clock) -> Term:
        return Term("other", "clock()")

    def visit_wait_for_children(self, node: ir.WaitForChildren) -> Term:
        return Term("other", "cudaDeviceSynchronize()")


_CONVERTER = _TermConverter()


def _convert_call(function: ir.Function, arguments: tuple[ir.Expression, ...]) -> Term:
    """Return a call; for a method the object comes first, and "@" in the name marks its position."""
    is_method = bool(function.parameters) and function.parameters[0][0] == "this"
    if not is_method:
        return Term("call", function.name, "", _convert_all(*arguments))
    return Term("call", "@" if function.name == "operator()" else f"@.{function.name}", "", _convert_all(*arguments))


def _convert_place(place: ir.Element) -> Term:
    text = "[]" if place.index is not None else "*" if place.is_dereferenced else ""
    return Term("place", text, _type_name(place.type), _convert_all(place.pointer, place.index), rows=place.rows)


def _type_name(type: Type) -> str:
    return type.name if isinstance(type, Scalar) else INT64.name if isinstance(type, Pointer) else ""


def _count_accesses(type: Type) -> int:
    """Return the number of accesses to load or store a value of a type."""
    return 1 if vector_size(type) else len(leaves(type))


def _find_member_name(type: Type, offset: int, pointer: Type) -> str:
    """Return the name of a struct's member at an offset in bytes: the outermost one of the pointer's element type."""
    if not isinstance(type, Struct):
        return ""
    target = pointer.element if isinstance(pointer, Pointer) else None
    within = [member for member in type.fields if member.offset <= offset < member.offset + max(member.type.size, 1)]
    for member in within:
        if member.offset == offset and not member.is_anonymous and target in (member.type, decay(member.type)):
            return member.name
    for member in within:
        inner = _find_member_name(member.type, offset - member.offset, pointer)
        if inner:
            return inner if member.is_anonymous else f"{member.name}.{inner}"
    return within[0].name if within and not within[0].is_anonymous else ""


def _format_type(type: Type) -> str:
    """Return a type in C notation for a declaration, with "@" in place of the name."""
    match type:
        case ArrayOf():
            return _format_type(type.innermost) + "".join(f"[{length}]" for length in type.shape)
        case Pointer(Scalar() | Struct() | Void() as element):
            return _format_type(element).replace("@", "*@")
        case Pointer(element):
            return _format_type(element).replace("@", "(*@)")
        case Scalar(name):
            return f"{_NAMES.get(name, name)} @"
    return f"{type} @"
