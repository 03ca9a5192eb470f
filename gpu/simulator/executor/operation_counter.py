"""Operations on data per statement: the definition that all operation counts use.

It counts what textbooks count as an algorithm's operations, each for every lane that executes it:

- floating-point arithmetic, by an operator or a function (`sqrtf`, `fmaxf`);
- integer arithmetic whose result flows into memory or an atomic operation, through any number of variables, exchanges
  between lanes and calls;
- an atomic operation that computes; an exchange or compare-and-swap only moves a value and does not count;
- a warp reduction (`__reduce_add_sync`) whose result flows into memory: one for each participating lane;
- each multiplication and each addition of a warp's matrix product, divided among its lanes;
- a comparison of two values from memory neither of which is used for a subscript, as in a compare-exchange, a merge or
  a maximum search. A comparison of a value with itself, which only tests for NaN, does not count.

If such a comparison selects one of two variables, the result derives from both: a comparator of a sorting network is
one operation with both keys as sources, whether or not it exchanges them (`is_choice`).

Computations of subscripts, addresses and conditions do not count, nor do the step of a `for`, other comparisons,
copies, conversions, shuffles (but additions to their results do) and votes: they determine where and whether data is
processed. A conditional operand of `?:`, `&&` and `||` counts in the lanes that need it.

All of this follows from the kernel's source alone. So a statement has the same count in every run and in every
schedule, and the counters and recordings, which the executor notifies, agree. The provenance of recorded values would
not suffice: if one result of a statement ends in an array, its other results cannot be distinguished from indices, and
values computed from thread indices have no provenance.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gpu.base.errors import SourcePosition
from gpu.simulator import ir
from gpu.simulator.ir.intrinsics import MATRIX_PRODUCTS, TEXTURE_INTERPOLATION
from gpu.simulator.ir.walking import Visitor, child_nodes, inner_statements, query_cache, walk
from gpu.simulator.types import BOOL, Pointer, Scalar

NO_USE, DATA_USE, INDEX_USE = 0, 1, 2
"""Flags for the uses of a value: none that counts, data, and subscripts or addresses."""

Uses = Sequence[tuple[ir.Expression, int]]
"""Expressions with the uses of their values."""

_COMPARISONS = frozenset(("<", ">", "<=", ">=", "==", "!="))


class OperationCounter(Visitor):
    """Counts the operations on data of a kernel and of all functions that it calls and kernels that it launches.

    A function that kernels share can process data in one and indices in another, so each kernel has its own copy.
    """

    def __init__(self) -> None:
        # For each function, by its id: the uses of its variables, by slot, and the variables read from memory.
        self._uses: dict[int, dict[int, int]] = {}
        self._variables_from_memory: dict[int, set[int]] = {}
        # The uses of functions' results, and the functions that return values read from memory.
        self._uses_of_result: dict[int, int] = {}
        self._functions_from_memory: set[int] = set()
        # Variables with results of comparisons of elements, functions that return such, and selections by those.
        self._compared_variables: set[tuple[int, int]] = set()
        self._compared_functions: set[int] = set()
        self._choices: set[int] = set()
        # The operations of statements and of conditional operands, by id.
        self._operations: dict[int, int] = {}
        self._positions: dict[int, SourcePosition] = {}
        self._function = 0
        self._position = SourcePosition("", 0)

    def analyze_kernel(self, kernel: ir.Function) -> None:
        """Analyze a kernel and all functions that it calls, unless that is done already."""
        if id(kernel) not in self._uses:
            with query_cache():
                self._analyze(kernel)

    def _analyze(self, kernel: ir.Function) -> None:
        functions = [kernel]
        definitions: dict[int, list[Any]] = {}
        self._uses[id(kernel)], self._variables_from_memory[id(kernel)] = {}, set()
        state = None
        while state != (state := self._analysis_size()):
            for function in functions:
                self._function = id(function)
                for part, use in self._list_parts(self._expressions(function.body)):
                    functions += self._add_uses(part, use)
                if id(function) not in definitions:
                    definitions[id(function)] = self._find_definitions(function.body)
                self._propagate_reads(definitions[id(function)])
        counts = None
        while counts != (counts := (len(self._compared_variables), len(self._compared_functions))):
            for function in functions:
                self._function = id(function)
                self._propagate_comparisons(definitions[id(function)])
        for function in functions:
            self._function = id(function)
            self._count_statement(function.body)

    def count_operations(self, statement: ir.Statement) -> int:
        """Return the operations per lane of a statement, without its conditional operands and inner statements."""
        return self._operations.get(id(statement), 0)

    def find_operand_count(self, operand: ir.Expression) -> tuple[SourcePosition, int] | None:
        """Return the statement's position and the operations of a conditional operand of `?:`, `&&` or `||`.

        Return None if it contains no operation.
        """
        return (self._positions[id(operand)], self._operations[id(operand)]) if id(operand) in self._positions else None

    def is_choice(self, select: ir.Select) -> bool:
        """Return whether `?:` selects one of two scalar variables by a comparison of array elements."""
        return id(select) in self._choices

    # Uses of values.

    def _analysis_size(self) -> tuple[int, ...]:
        """Return sizes of the analysis results, which only grow; the analysis ends when they stay the same."""
        return (
            len(self._uses),
            sum(map(sum, map(dict.values, self._uses.values()))),
            sum(map(len, self._variables_from_memory.values())),
            sum(self._uses_of_result.values()),
            len(self._functions_from_memory),
        )

    def _add_uses(self, expression: Any, use: int) -> list[ir.Function]:
        """Add an expression's uses of variables and results; return functions that are new."""
        kind = type(expression)
        if kind is ir.Update:
            expression, kind = expression.place, type(expression.place)
        if kind is ir.Local:
            uses = self._uses[self._function]
            uses[expression.slot] = uses.get(expression.slot, NO_USE) | use
        if kind not in (ir.Call, ir.IndirectCall, ir.LaunchCall):
            return []
        called = list(expression.functions.values()) if kind is ir.IndirectCall else [expression.function]
        if kind is ir.LaunchCall:
            use = NO_USE
        for function in called:
            self._uses_of_result[id(function)] = self._uses_of_result.get(id(function), NO_USE) | use
        new = [function for function in called if id(function) not in self._uses]
        for function in new:
            self._uses[id(function)], self._variables_from_memory[id(function)] = {}, set()
        return new

    def _get_use(self, slot: int) -> int:
        return self._uses[self._function].get(slot, NO_USE)

    def _list_parts(self, expressions: Uses) -> list[tuple[ir.Expression, int]]:
        """Return expressions and all their subexpressions, with their uses."""
        parts = []
        pending = list(expressions)
        while pending:
            expression, use = pending.pop()
            use = _add_float_use(expression, use)
            parts.append((expression, use))
            pending += self.visit(expression, use)
        return parts

    # The parts of each class of expressions, with their uses.

    def visit_other(self, node: Any, use: int) -> Uses:
        return ()

    def _parts_with_same_use(self, node: Any, use: int) -> Uses:
        return [(part, use) for part in child_nodes(node)]

    visit_binary = visit_logical = visit_unary = visit_cast = visit_extract = _parts_with_same_use
    visit_construct = visit_intrinsic = _parts_with_same_use

    def _addresses(self, node: Any, use: int) -> Uses:
        return [(part, INDEX_USE) for part in child_nodes(node)]

    visit_offset = visit_distance = visit_member = visit_shared_address = visit_texel = visit_texel_weight = _addresses
    visit_bulk_copy = visit_tensor_copy = visit_barrier_phase = visit_cluster_address = visit_async_copy = _addresses

    def _unused_parts(self, node: Any, use: int) -> Uses:
        return [(part, NO_USE) for part in child_nodes(node)]

    visit_print = visit_assertion = _unused_parts

    def visit_temporary(self, node: ir.Temporary, use: int) -> Uses:
        return [(part, DATA_USE) for part in child_nodes(node)]

    def visit_select(self, node: ir.Select, use: int) -> Uses:
        return (node.condition, NO_USE), (node.chosen, use), (node.other, use)

    def visit_sequence(self, node: ir.Sequence, use: int) -> Uses:
        return (node.first, NO_USE), (node.second, use)

    def visit_load(self, node: ir.Load, use: int) -> Uses:
        return _subscripts(node.place)

    def visit_assign(self, node: ir.Assign | ir.Update, use: int) -> Uses:
        return [*_subscripts(node.place), (node.value, use | self._get_place_use(node.place))]

    visit_update = visit_assign

    def visit_atomic(self, node: ir.Atomic, use: int) -> Uses:
        return [*_subscripts(node.place), *((argument, DATA_USE) for argument in node.arguments)]

    def visit_warp(self, node: ir.Warp, use: int) -> Uses:
        if node.op in MATRIX_PRODUCTS:
            return [(argument, use if at else NO_USE) for at, argument in enumerate(node.arguments)]
        # The mask comes first, the value second; of a shuffle the source lane and width follow.
        value_use = use if node.op.startswith(("__shfl", "__reduce")) else NO_USE
        return [(argument, value_use if at == 1 else NO_USE) for at, argument in enumerate(node.arguments)]

    def _arguments(self, node: ir.Call | ir.LaunchCall) -> Uses:
        within = self._uses.get(id(node.function), {})
        return [(argument, within.get(slot, NO_USE)) for slot, argument in enumerate(node.arguments)]

    def visit_call(self, node: ir.Call, use: int) -> Uses:
        return self._arguments(node)

    def visit_indirect_call(self, node: ir.IndirectCall, use: int) -> Uses:
        return [(node.function, NO_USE), *((argument, DATA_USE) for argument in node.arguments)]

    def visit_launch_call(self, node: ir.LaunchCall, use: int) -> Uses:
        configuration = (node.grid, node.block, node.shared_bytes)
        return [*((each, NO_USE) for each in configuration), *self._arguments(node)]

    def _get_place_use(self, place: ir.Place) -> int:
        return DATA_USE if isinstance(place, ir.Element) else self._get_use(place.slot)

    def _expressions(self, statement: ir.Statement) -> list[tuple[ir.Expression, int]]:
        """Return all expressions in a statement and its inner statements, with their uses."""
        found = list(self._own_expressions(statement))
        if isinstance(statement, ir.Loop) and statement.step is not None:
            found.append((statement.step, NO_USE))
        for inner in inner_statements(statement):
            found += self._expressions(inner)
        return found

    def _own_expressions(self, statement: ir.Statement) -> Uses:
        """Return the expressions that a statement evaluates before its inner statements run."""
        match statement:
            case ir.Evaluate(expression):
                return [(expression, NO_USE)]
            case ir.Declare(slot, _, value) if value is not None:
                return [(value, self._get_use(slot))]
            case ir.DeclareMemory(_, _, values):
                return [(value, DATA_USE) for _, value in values]
            case ir.If(condition) | ir.Loop(condition) | ir.Switch(condition) if condition is not None:
                return [(condition, NO_USE)]
            case ir.Return(value) if value is not None:
                return [(value, self._uses_of_result.get(self._function, NO_USE))]
        return ()

    # Values read from memory.

    def _find_definitions(self, body: ir.Block) -> list[Any]:
        """Return the declarations, assignments, calls and returns of a function's body, by which values spread."""
        found: list[Any] = []
        pending: list[ir.Statement] = [body]
        while pending:
            statement = pending.pop()
            if isinstance(statement, ir.Declare | ir.Return) and statement.value is not None:
                found.append(statement)
            for expression, _ in self._own_expressions(statement):
                found += [node for node in walk(expression) if isinstance(node, ir.Assign | ir.Update | ir.Call)]
            pending += inner_statements(statement)
        return found

    def _propagate_reads(self, definitions: Sequence[Any]) -> None:
        """Mark variables, parameters and results with values that derive from memory."""
        variables = self._variables_from_memory[self._function]
        for each in definitions:
            if isinstance(each, ir.Call):
                if id(each.function) in self._uses:  # not so for calls in the arguments of fences
                    self._variables_from_memory[id(each.function)].update(
                        at for at, argument in enumerate(each.arguments) if self._is_from_memory(argument)
                    )
            elif isinstance(each, ir.Return):
                if self._is_from_memory(each.value):
                    self._functions_from_memory.add(self._function)
            else:
                slot = _find_changed_variable(each)
                if slot is not None and slot not in variables and self._is_from_memory(each.value):
                    variables.add(slot)

    def _is_from_memory(self, expression: Any) -> bool:
        """Return whether a value derives from memory."""
        match expression:
            case ir.Load() | ir.Atomic():
                return True
            case ir.Local(_, slot):
                return slot in self._variables_from_memory[self._function]
            case ir.Unary(type, _, operand):
                return type != BOOL and self._is_from_memory(operand)
            case ir.Cast(_, operand) | ir.Extract(_, operand, _):
                return self._is_from_memory(operand)
            case ir.Binary(type, _, left, right):
                return type != BOOL and (self._is_from_memory(left) or self._is_from_memory(right))
            case ir.Select(_, _, one, other) | ir.Sequence(_, other, one):
                return self._is_from_memory(one) or (isinstance(expression, ir.Select) and self._is_from_memory(other))
            case ir.Construct(_, parts) | ir.Intrinsic(_, _, parts):
                return any(map(self._is_from_memory, parts))
            case ir.Assign(_, _, value):
                return self._is_from_memory(value)
            case ir.Update(_, place, _, value):
                return isinstance(place, ir.Element) or self._is_from_memory(place) or self._is_from_memory(value)
            case ir.Warp(_, op, arguments):
                return op.startswith("__shfl") and self._is_from_memory(arguments[1])
            case ir.Call(_, function):
                return id(function) in self._functions_from_memory
            case _:
                return False

    def _uses_index_variable(self, expression: ir.Expression) -> bool:
        """Return whether an expression contains a variable that is used for a subscript."""
        if isinstance(expression, ir.Local):
            return bool(self._get_use(expression.slot) & INDEX_USE)
        if isinstance(expression, ir.Load):
            return False
        return any(self._uses_index_variable(part) for part, _ in self.visit(expression, NO_USE))

    # Results of comparisons of elements.

    def _propagate_comparisons(self, definitions: Sequence[Any]) -> None:
        """Mark variables and results with values that result from comparisons of elements."""
        for each in definitions:
            if isinstance(each, ir.Return):
                if self._is_from_comparison(each.value):
                    self._compared_functions.add(self._function)
            elif isinstance(each, ir.Declare | ir.Assign):
                slot = _find_changed_variable(each)
                if slot is not None and self._is_from_comparison(each.value):
                    self._compared_variables.add((self._function, slot))

    def _is_from_comparison(self, expression: Any) -> bool:
        """Return whether a value results from a comparison of elements."""
        match expression:
            case ir.Local(_, slot):
                return (self._function, slot) in self._compared_variables
            case ir.Call(_, function):
                return id(function) in self._compared_functions
            case ir.Unary(_, _, operand) | ir.Cast(_, operand):
                return self._is_from_comparison(operand)
            case ir.Logical(_, _, left, right):
                return self._is_from_comparison(left) or self._is_from_comparison(right)
            case ir.Binary(_, op, left, right):
                if op in _COMPARISONS and self._count_own(expression, NO_USE):
                    return True
                return self._is_from_comparison(left) or self._is_from_comparison(right)
            case _:
                return False

    # Counting.

    def _count_statement(self, statement: ir.Statement) -> None:
        if not isinstance(statement, ir.Block):
            self._position = statement.position
        counts = [self._count(each, use)[0] for each, use in self._own_expressions(statement)]
        if any(counts):
            self._operations[id(statement)] = sum(counts)
        for inner in inner_statements(statement):
            self._count_statement(inner)

    def _count(self, expression: ir.Expression, use: int) -> tuple[int, int]:
        """Return the operations of an expression, without and with those of its conditional operands."""
        use = _add_float_use(expression, use)
        if isinstance(expression, ir.Select) and self._selects_by_comparison(expression):
            self._choices.add(id(expression))
        unconditional = total = self._count_own(expression, use)
        sides = _conditional_operands(expression)
        for part, part_use in self.visit(expression, use):
            part_own, part_total = self._count(part, part_use)
            total += part_total
            if not any(part is side for side in sides):
                unconditional += part_own
            elif part_total:
                self._operations[id(part)], self._positions[id(part)] = part_own, self._position
        return unconditional, total

    def _selects_by_comparison(self, select: ir.Select) -> bool:
        sides = (select.chosen, select.other)
        elements = all(isinstance(side, ir.Local) and self._is_from_memory(side) for side in sides)
        return elements and isinstance(select.type, Scalar) and self._is_from_comparison(select.condition)

    def _count_own(self, expression: ir.Expression, use: int) -> int:
        """Return the operations of an expression without its subexpressions."""
        match expression:
            case ir.Binary(_, op, left, right) if op in _COMPARISONS:
                if left == right:
                    return 0
                return int(
                    not any(self._uses_index_variable(each) or not self._is_from_memory(each) for each in (left, right))
                )
            case ir.Binary(type) | ir.Unary(type):
                return int(use & DATA_USE != 0 and type != BOOL)
            case ir.Intrinsic(_, name):
                return int(use & DATA_USE != 0 and name != TEXTURE_INTERPOLATION)
            case ir.Warp(_, op, arguments) if op in MATRIX_PRODUCTS:
                # 4 lanes hold a row: for each of them and each factor, a multiplication and an addition.
                return 4 * (len(arguments) - 2) * int(use & DATA_USE != 0)
            case ir.Warp(_, op):
                return int(use & DATA_USE != 0 and op.startswith("__reduce"))
            case ir.Atomic(_, op):
                return int(op not in ("exch", "cas"))
            case ir.Update(_, place, _, _, compute):
                return int(not isinstance(compute, Pointer) and (use | self._get_place_use(place)) & DATA_USE != 0)
            case _:
                return 0


def _add_float_use(expression: ir.Expression, use: int) -> int:
    """Add the use as data if an expression is a float: floats are data, whatever they are used for."""
    type = expression.type
    return use | DATA_USE if isinstance(type, Scalar) and type.is_float else use


def _conditional_operands(expression: ir.Expression) -> tuple[ir.Expression, ...]:
    """Return the operands that are evaluated only in the lanes that need them."""
    match expression:
        case ir.Select(_, _, chosen, other):
            return chosen, other
        case ir.Logical(_, _, _, right):
            return (right,)
        case _:
            return ()


def _find_changed_variable(definition: ir.Declare | ir.Assign | ir.Update) -> int | None:
    """Return the variable that a declaration or assignment changes; None for an element."""
    if isinstance(definition, ir.Declare):
        return definition.slot
    return definition.place.slot if isinstance(definition.place, ir.Local) else None


def _subscripts(place: ir.Place) -> Uses:
    if isinstance(place, ir.Local):
        return ()
    index = [] if place.index is None else [(place.index, INDEX_USE)]
    return [(place.pointer, INDEX_USE), *index]
