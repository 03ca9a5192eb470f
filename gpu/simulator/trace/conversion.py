"""Conversion of a recorder's tables, and of the IR that they refer to, to the data of a trace."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from gpu.errors import SourcePosition
from gpu.recording.data import LaunchRecord, TraceData, TraceMemory
from gpu.recording.statements import ExecutedStatement, Statement, Term, TraceFunction
from gpu.simulator import ir
from gpu.simulator.ir.intrinsics import ATOMICS
from gpu.simulator.trace.recorded_memory import RecordedMemory
from gpu.simulator.trace.recorder import Recorder
from gpu.simulator.types import INT64, ArrayOf, Pointer, Scalar, Struct, Type, Void, leaves, vector_size

_ATOMIC_NAMES = {op: name for name, op in reversed(ATOMICS.items())}
_NAMES = {
    "int8": "char", "uint8": "unsigned char", "int16": "short", "uint16": "unsigned short", "int32": "int",
    "uint32": "unsigned int", "int64": "long long", "uint64": "unsigned long long", "float32": "float",
    "float64": "double",
}  # fmt: skip


def gather_trace_data(recorder: Recorder, launch: LaunchRecord) -> TraceData:
    """Gather the data of a recorder after a launch."""
    return TraceData(
        launch,
        recorder.stop_reason,
        recorder.lane_events,
        tuple(recorder.launches),
        tuple(describe_function(function, recorder.positions.numbers) for function in recorder.functions),
        tuple(map(convert_statement, recorder.statements)),
        tuple(map(_memory, recorder.memories)),
        recorder.positions.objects,
        recorder.kinds.objects,
        recorder.operators.objects,
        recorder.pointer_names.objects,
        recorder.events.array(),
        recorder.accesses.array(),
        recorder.registers.array(),
        recorder.pointers.array(),
        recorder.operations.array(),
        recorder.barriers.array(),
        recorder.batches.array(),
        recorder.calls.array(),
        recorder.inputs.array(),
        recorder.integers.pack(),
        recorder.values.pack(),
        recorder.masks.pack(),
    )


def _memory(memory: RecordedMemory) -> TraceMemory:
    unit = memory.unit or 1
    return TraceMemory(
        memory.name,
        memory.space,
        memory.size,
        memory.dtype if memory.dtype is not None else np.dtype(np.uint8),
        memory.blocks,
        memory.stride,
        memory.lanes,
        memory.batch,
        unit,
        bool(memory.unit),
        memory.base,
        memory.fill,
        memory.initial,
        memory.index.array().copy(),
        memory.nodes.array().copy(),
        memory.values.array().copy().reshape(-1, unit),
        np.array(memory.borders, np.int32),
    )


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
        for inner in _inner_statements(statement):
            visit(inner, loops)

    visit(function.body, ())
    return TraceFunction(function.name, names, pointers, tuple(statements), rounds)


def _inner_statements(statement: ir.Statement) -> Iterator[ir.Statement]:
    """Yield the direct inner statements of a statement."""
    match statement:
        case ir.Block(statements):
            yield from statements
        case ir.If(_, then, orelse):
            yield then
            if orelse is not None:
                yield orelse
        case ir.Loop():
            yield statement.body
        case ir.Switch(_, sections):
            yield from (section.body for section in sections)


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
        waiting += reversed(list(_inner_statements(statement)))
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
    match expression:
        case ir.Const(type, value):
            return Term("constant", "", type.name, value=value.item())
        case ir.Null():
            return Term("other", "nullptr")
        case ir.Local(type, _, name):
            return Term("variable", name, _type_name(type))
        case ir.Global(_, name):
            return Term("global", name)
        case ir.Special(type, name, axis):
            return Term("special", f"{name}.{'xyz'[axis]}", type.name)
        case ir.Unary(type, op, operand):
            return Term("unary", op, type.name, _convert_all(operand))
        case ir.Binary(_, op, left, right):
            return Term("binary", op, _type_name(left.type), _convert_all(left, right))
        case ir.Logical(type, op, left, right):
            return Term("logical", op, type.name, _convert_all(left, right))
        case ir.Select(type, condition, chosen, other):
            return Term("choice", "?:", _type_name(type), _convert_all(condition, chosen, other))
        case ir.Sequence(_, ir.Sequence(_, ir.Assign(_, ir.Local(), ir.Temporary()), ir.Call(_, function, values))):
            return Term("call", function.name, "", _convert_all(*values[1:]))  # a constructor's
        case ir.Sequence(type, first, second):
            return Term("comma", ",", _type_name(type), _convert_all(first, second))
        case ir.Cast(Scalar(name), operand) if isinstance(operand.type, Scalar):
            return Term("cast", "", name, _convert_all(operand))
        case ir.Cast(_, operand) | ir.SharedAddress(_, operand):
            return _convert_expression(operand)
        case ir.Offset(_, pointer, index, rows):
            return Term("sum", "+", "", _convert_all(pointer, index), rows=rows)
        case ir.Distance(type, left, right):
            return Term("difference", "-", type.name, _convert_all(left, right))
        case ir.Member(_, pointer, offset):
            assert isinstance(pointer.type, Pointer)
            return Term(
                "member", _find_member_name(pointer.type.element, offset, expression.type), "", _convert_all(pointer)
            )
        case ir.Extract(type, operand, first):
            offset = leaves(operand.type)[first][0] if leaves(operand.type) else 0
            text = _find_member_name(operand.type, offset, Pointer(type))
            return Term("part", text, _type_name(type), _convert_all(operand), value=[first, len(leaves(type))])
        case ir.Construct(_, parts):
            return Term("construct", "", "", _convert_all(*parts))
        case ir.Temporary(type, value):
            return Term("temporary", "", "", _convert_all(value), value=_count_accesses(type.element))
        case ir.Element():
            return _convert_place(expression)
        case ir.Load(type, place):
            return Term("load", "", _type_name(type), (_convert_place(place),), value=_count_accesses(type))
        case ir.Assign(type, place, value):
            return Term("assign", "=", _type_name(type), _convert_all(place, value), value=_count_accesses(type))
        case ir.Update(type, place, op, value, compute, gives_old):
            return Term("update", op, _type_name(compute), _convert_all(place, value), value=int(gives_old))
        case ir.Intrinsic(type, name, arguments):
            return Term("function", name, type.name, _convert_all(*arguments))
        case ir.Atomic(type, op, place, arguments):
            return Term("atomic", _ATOMIC_NAMES[op], type.name, _convert_all(place, *arguments))
        case ir.Warp(type, op, arguments):
            return Term("warp", op, type.name, _convert_all(*arguments))
        case ir.Call(type, function, arguments):
            return _convert_call(function, arguments)
        case ir.IndirectCall(type, function, _, arguments):
            return Term("call", "(*@)", "", _convert_all(function, *arguments))
        case ir.LaunchCall(_, function, grid, block, _, _, arguments):
            return Term("call", f"{function.name}<<<@, @>>>", "", _convert_all(grid, block, *arguments))
        case ir.Print(_, format, arguments):
            texts = [
                Term("other", f'"{each}"') if isinstance(each, str) else _convert_expression(each)
                for each in (format, *arguments)
            ]
            return Term("call", "printf", "", tuple(texts))
        case ir.Assertion(_, condition):
            return Term("call", "assert", "", _convert_all(condition))
        case ir.Fence(_, name, _, lanes):
            return Term("call", name, "", _convert_all(lanes))
        case ir.AsyncCopy(_, to, source):
            return Term("call", "copy_async", "", _convert_all(to, source))
        case ir.BulkCopy(_, to, source):
            return Term("call", "copy_async", "", _convert_all(to, source))
        case ir.BarrierPhase(_, op, pointer, argument):
            return Term("call", op, "", _convert_all(pointer, argument))
        case ir.AsyncCommit():
            return Term("call", "commit", "", ())
        case ir.AsyncWait(_, left):
            return Term("call", "wait", "", _convert_all(left))
        case ir.HeapChange(_, pointer, size):
            return Term("call", "free" if size is None else "malloc", "", _convert_all(pointer))
        case ir.ClusterBarrier(_, part):
            return Term("other", f"cluster.barrier_{part}()")
        case ir.ClusterAddress(_, pointer, rank):
            return Term("call", "map_shared_rank", "", _convert_all(pointer, rank))
        case ir.GridBarrier():
            return Term("other", "grid.sync()")
        case ir.Texel(_, _, places):
            return Term("call", "texel", "", _convert_all(*places))
        case ir.TexelWeight(_, _, _, place):
            return Term("call", "weight", "", _convert_all(*(() if place is None else (place,))))
        case ir.Clock():
            return Term("other", "clock()")
        case ir.WaitForChildren():
            return Term("other", "cudaDeviceSynchronize()")


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
        if member.offset == offset and not member.is_anonymous and target in (member.type, _innermost(member.type)):
            return member.name
    for member in within:
        inner = _find_member_name(member.type, offset - member.offset, pointer)
        if inner:
            return inner if member.is_anonymous else f"{member.name}.{inner}"
    return within[0].name if within and not within[0].is_anonymous else ""


def _innermost(type: Type) -> Type:
    return type.innermost if isinstance(type, ArrayOf) else type


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
