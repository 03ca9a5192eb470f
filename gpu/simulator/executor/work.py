"""How many operations on data a statement does: the one definition that all counts of operations go by.

It is what a textbook counts as the operations of an algorithm, each by every lane that does it:

- arithmetic on floats, by an operator or a function (`sqrtf`, `fmaxf`);
- arithmetic on whole numbers whose result flows into memory or an atomic, over any number of variables, exchanges
  between lanes and calls;
- an atomic that computes, whatever for; one that exchanges, or swaps after comparing, moves a value;
- a reduction over a warp (`__reduce_add_sync`) whose result flows there: one for each lane that takes part;
- each multiplication and each addition of a product of tiles by a warp, whose results are divided among its lanes;
- a comparison of two values from memory neither of which leads to a subscript: what a compare-exchange, a merge or a
  search for the greatest consists of, whatever comes of it. That of a value with itself, which only asks for NaN, is
  none.

Which of two variables is taken by such a comparison is made of both of them: a comparator of a sorting network is one
operation, and has both keys as its sources, whether or not it exchanges them (`is_choice`).

What flows into subscripts, addresses and conditions only is no operation on data, nor is the step of a `for`, any other
comparison, a copy, a conversion, a shuffle (what is added to what it brings is) or a vote: they say where and whether
something is done. A side of `?:`, `&&` and `||` counts in the lanes that need it.

All of this follows from a kernel's text, not from what a run happens to make of it. So a statement counts for the same
in every run, in whichever order its warps take turns, and whoever counts comes to the same number: `Counters` and a
recording are told of it by the executor. Traced values alone would not say so much: where one of a statement's results
ends in an array they cannot tell its other results from indices, and what is made of thread numbers has no trace.
"""

from __future__ import annotations

from collections.abc import Iterator

from gpu.errors import SourcePosition
from gpu.simulator import ir
from gpu.simulator.intrinsics import MATRIX_PRODUCTS, OF_TEXTURES
from gpu.simulator.types import BOOL, Pointer, Scalar

NOTHING, DATA, INDEX = 0, 1, 2
"""What a value may be used for, as flags: nothing that counts, data, and subscripts or addresses."""

Uses = Iterator[tuple[ir.Expression, int]]
"""Expressions, and what their values are used for."""

_COMPARISONS = frozenset(("<", ">", "<=", ">=", "==", "!="))


class OperationCounter:
    """The operations on data of a kernel, and of all that it calls and launches.

    A function that kernels share is data's in the one and an index's in the other: each kernel has its own.
    """

    def __init__(self) -> None:
        # Of each function, by its id: what its variables are used for, by slot, and which were read from memory.
        self._uses: dict[int, dict[int, int]] = {}
        self._read: dict[int, set[int]] = {}
        # What functions' results are used for, and whose were read from memory.
        self._uses_of_result: dict[int, int] = {}
        self._gives_read: set[int] = set()
        # The variables and the functions' results that say how elements compare, and the choices that are made by that.
        self._compared: set[tuple[int, int]] = set()
        self._gives_compared: set[int] = set()
        self._choices: set[int] = set()
        # The operations of statements and of sides, by id.
        self._operations: dict[int, int] = {}
        self._positions: dict[int, SourcePosition] = {}
        self._function = 0
        self._position = SourcePosition("", 0)

    def enter(self, kernel: ir.Function) -> None:
        """Count a kernel and all that it calls, if that was not done."""
        if id(kernel) in self._uses:
            return
        functions = [kernel]
        self._uses[id(kernel)], self._read[id(kernel)] = {}, set()
        known = None
        while known != (known := self._known()):
            for function in functions:
                self._function = id(function)
                for whole, use in self._expressions(function.body):
                    for part, use_of_part in self._parts(whole, use):
                        functions += self._find(part, use_of_part)
                self._follow_reads(function.body)
        found = None
        while found != (found := (len(self._compared), len(self._gives_compared))):
            for function in functions:
                self._function = id(function)
                self._follow_comparisons(function.body)
        for function in functions:
            self._function = id(function)
            self._count_statement(function.body)

    def of(self, statement: ir.Statement) -> int:
        """Return how many operations one lane does in a statement, those of its sides and inner statements left out."""
        return self._operations.get(id(statement), 0)

    def of_side(self, side: ir.Expression) -> tuple[SourcePosition, int] | None:
        """Return of a side of `?:`, `&&` or `||` the statement and the operations; None where nothing in it is one."""
        return (self._positions[id(side)], self._operations[id(side)]) if id(side) in self._positions else None

    def is_choice(self, select: ir.Select) -> bool:
        """Whether `?:` takes one of two variables, numbers, by how elements of arrays compare."""
        return id(select) in self._choices

    # What values are used for.

    def _known(self) -> tuple[int, ...]:
        """Return how much is known: it only grows."""
        return (
            len(self._uses),
            sum(map(sum, map(dict.values, self._uses.values()))),
            sum(map(len, self._read.values())),
            sum(self._uses_of_result.values()),
            len(self._gives_read),
        )

    def _find(self, expression: ir.Expression, use: int) -> list[ir.Function]:
        """Note what an expression says of variables and results; return functions that were not known."""
        called: list[ir.Function] = []
        match expression:
            case ir.Local(_, slot) | ir.Update(_, ir.Local(_, slot)):
                uses = self._uses[self._function]
                uses[slot] = uses.get(slot, NOTHING) | use
            case ir.Call(_, function):
                called = [function]
            case ir.IndirectCall(_, _, functions):
                called = list(functions.values())
            case ir.LaunchCall(_, function):
                called = [function]
                use = NOTHING
            case _:
                pass
        for function in called:
            self._uses_of_result[id(function)] = self._uses_of_result.get(id(function), NOTHING) | use
        new = [function for function in called if id(function) not in self._uses]
        for function in new:
            self._uses[id(function)], self._read[id(function)] = {}, set()
        return new

    def _use_of(self, slot: int) -> int:
        return self._uses[self._function].get(slot, NOTHING)

    def _parts(self, expression: ir.Expression, use: int) -> Uses:
        """Yield an expression and all that it is made of."""
        use = _of_floats(expression, use)
        yield expression, use
        for part, use_of_part in self._direct_parts(expression, use):
            yield from self._parts(part, use_of_part)

    def _direct_parts(self, expression: ir.Expression, use: int) -> Uses:
        match expression:
            case ir.Binary(_, _, left, right) | ir.Logical(_, _, left, right):
                yield from ((left, use), (right, use))
            case ir.Unary(_, _, operand) | ir.Cast(_, operand) | ir.Extract(_, operand, _):
                yield operand, use
            case ir.Select(_, condition, chosen, other):
                yield from ((condition, NOTHING), (chosen, use), (other, use))
            case ir.Sequence(_, first, second):
                yield from ((first, NOTHING), (second, use))
            case ir.Construct(_, parts) | ir.Intrinsic(_, _, parts):
                yield from ((part, use) for part in parts)
            case ir.Offset(_, pointer, index):
                yield from ((pointer, INDEX), (index, INDEX))
            case ir.Distance(_, left, right):
                yield from ((left, INDEX), (right, INDEX))
            case ir.Member(_, pointer, _) | ir.SharedAddress(_, pointer):
                yield pointer, INDEX
            case ir.Texel(_, pointer, places):
                yield from ((part, INDEX) for part in (pointer, *places))
            case ir.TexelWeight(_, pointer, _, place):
                yield from ((part, INDEX) for part in (pointer, place) if part is not None)
            case ir.Load(_, place):
                yield from _subscripts(place)
            case ir.Temporary(_, value) if value is not None:
                yield value, DATA
            case ir.Assign(_, place, value) | ir.Update(_, place, _, value):
                yield from _subscripts(place)
                yield value, use | self._use_of_place(place)
            case ir.Atomic(_, _, place, arguments):
                yield from _subscripts(place)
                yield from ((argument, DATA) for argument in arguments)
            case ir.Warp(_, op, arguments) if op in MATRIX_PRODUCTS:
                yield from ((argument, use if at else NOTHING) for at, argument in enumerate(arguments))
            case ir.Warp(_, op, arguments):
                # The lanes that are named come first, the value second; a shuffle's other lane and width follow.
                of_value = use if op.startswith(("__shfl", "__reduce")) else NOTHING
                yield from ((argument, of_value if at == 1 else NOTHING) for at, argument in enumerate(arguments))
            case ir.Call(_, function, arguments):
                within = self._uses.get(id(function), {})
                yield from ((argument, within.get(slot, NOTHING)) for slot, argument in enumerate(arguments))
            case ir.IndirectCall(_, function, _, arguments):
                yield function, NOTHING
                yield from ((argument, DATA) for argument in arguments)
            case ir.LaunchCall():
                within = self._uses.get(id(expression.function), {})
                yield from ((each, NOTHING) for each in (expression.grid, expression.block, expression.shared_bytes))
                yield from ((each, within.get(slot, NOTHING)) for slot, each in enumerate(expression.arguments))
            case ir.Print(_, _, arguments):
                yield from ((argument, NOTHING) for argument in arguments if not isinstance(argument, str))
            case ir.Assertion(_, condition):
                yield condition, NOTHING
            case ir.BulkCopy(_, to, source, size, barrier):
                yield from ((part, INDEX) for part in (to, source, size, barrier) if part is not None)
            case ir.BarrierPhase(_, _, pointer, argument):
                yield from ((part, INDEX) for part in (pointer, argument))
            case ir.ClusterAddress(_, pointer, rank):
                yield from ((part, INDEX) for part in (pointer, rank))
            case ir.AsyncCopy(_, to, source, size, given):
                yield from ((part, INDEX) for part in (to, source, size, given) if part is not None)
            case _:
                pass

    def _use_of_place(self, place: ir.Place) -> int:
        return DATA if isinstance(place, ir.Element) else self._use_of(place.slot)

    def _expressions(self, statement: ir.Statement) -> Uses:
        """Yield all expressions that statements hold."""
        yield from self._own_expressions(statement)
        if isinstance(statement, ir.Loop) and statement.step is not None:
            yield statement.step, NOTHING
        for inner in _inner(statement):
            yield from self._expressions(inner)

    def _own_expressions(self, statement: ir.Statement) -> Uses:
        """Yield what a statement evaluates before anything in it runs."""
        match statement:
            case ir.Evaluate(expression):
                yield expression, NOTHING
            case ir.Declare(slot, _, value) if value is not None:
                yield value, self._use_of(slot)
            case ir.DeclareMemory(_, _, values):
                yield from ((value, DATA) for _, value in values)
            case ir.If(condition) | ir.Loop(condition) | ir.Switch(condition) if condition is not None:
                yield condition, NOTHING
            case ir.Return(value) if value is not None:
                yield value, self._uses_of_result.get(self._function, NOTHING)
            case _:
                pass

    # What was read from memory.

    def _follow_reads(self, statement: ir.Statement) -> None:
        """Note which variables, parameters and results get what was read from memory."""
        match statement:
            case ir.Declare(slot, _, value) if value is not None and self._is_read(value):
                self._read[self._function].add(slot)
            case ir.Return(value) if value is not None and self._is_read(value):
                self._gives_read.add(self._function)
            case _:
                pass
        for whole, use in self._own_expressions(statement):
            for part, _ in self._parts(whole, use):
                match part:
                    case ir.Assign(_, ir.Local(_, slot), value) | ir.Update(_, ir.Local(_, slot), _, value):
                        if self._is_read(value):
                            self._read[self._function].add(slot)
                    case ir.Call(_, function, arguments):
                        self._read[id(function)].update(at for at, each in enumerate(arguments) if self._is_read(each))
                    case _:
                        pass
        for inner in _inner(statement):
            self._follow_reads(inner)

    def _is_read(self, expression: ir.Expression) -> bool:
        """Whether a value was read from memory, or is made of one that was."""
        match expression:
            case ir.Load() | ir.Atomic():
                return True
            case ir.Local(_, slot):
                return slot in self._read[self._function]
            case ir.Unary(type, _, operand):
                return type != BOOL and self._is_read(operand)
            case ir.Cast(_, operand) | ir.Extract(_, operand, _):
                return self._is_read(operand)
            case ir.Binary(type, _, left, right):
                return type != BOOL and (self._is_read(left) or self._is_read(right))
            case ir.Select(_, _, one, other) | ir.Sequence(_, other, one):
                return self._is_read(one) or (isinstance(expression, ir.Select) and self._is_read(other))
            case ir.Construct(_, parts) | ir.Intrinsic(_, _, parts):
                return any(map(self._is_read, parts))
            case ir.Assign(_, _, value):
                return self._is_read(value)
            case ir.Update(_, place, _, value):
                return isinstance(place, ir.Element) or self._is_read(place) or self._is_read(value)
            case ir.Warp(_, op, arguments):
                return op.startswith("__shfl") and self._is_read(arguments[1])
            case ir.Call(_, function):
                return id(function) in self._gives_read
            case _:
                return False

    def _leads_to_an_index(self, expression: ir.Expression) -> bool:
        """Whether a variable that a value is made of is used for a subscript."""
        if isinstance(expression, ir.Local):
            return bool(self._use_of(expression.slot) & INDEX)
        if isinstance(expression, ir.Load):
            return False
        return any(self._leads_to_an_index(part) for part, _ in self._direct_parts(expression, NOTHING))

    # What is decided by comparisons of elements.

    def _follow_comparisons(self, statement: ir.Statement) -> None:
        """Note which variables and results say how elements compare."""
        match statement:
            case ir.Declare(slot, _, value) if value is not None and self._is_compared(value):
                self._compared.add((self._function, slot))
            case ir.Return(value) if value is not None and self._is_compared(value):
                self._gives_compared.add(self._function)
            case _:
                pass
        for whole, use in self._own_expressions(statement):
            for part, _ in self._parts(whole, use):
                if isinstance(part, ir.Assign) and isinstance(part.place, ir.Local) and self._is_compared(part.value):
                    self._compared.add((self._function, part.place.slot))
        for inner in _inner(statement):
            self._follow_comparisons(inner)

    def _is_compared(self, expression: ir.Expression) -> bool:
        """Whether a value says how elements compare."""
        match expression:
            case ir.Local(_, slot):
                return (self._function, slot) in self._compared
            case ir.Call(_, function):
                return id(function) in self._gives_compared
            case ir.Unary(_, _, operand) | ir.Cast(_, operand):
                return self._is_compared(operand)
            case ir.Logical(_, _, left, right):
                return self._is_compared(left) or self._is_compared(right)
            case ir.Binary(_, op, left, right):
                if op in _COMPARISONS and self._own(expression, NOTHING):
                    return True
                return self._is_compared(left) or self._is_compared(right)
            case _:
                return False

    # Counting.

    def _count_statement(self, statement: ir.Statement) -> None:
        if not isinstance(statement, ir.Block):
            self._position = statement.position
        own = [self._count(each, use)[0] for each, use in self._own_expressions(statement)]
        if any(own):
            self._operations[id(statement)] = sum(own)
        for inner in _inner(statement):
            self._count_statement(inner)

    def _count(self, expression: ir.Expression, use: int) -> tuple[int, int]:
        """Return the operations of an expression, without those of its sides and with them."""
        use = _of_floats(expression, use)
        if isinstance(expression, ir.Select) and self._chooses(expression):
            self._choices.add(id(expression))
        own = whole = self._own(expression, use)
        sides = _sides(expression)
        for part, use_of_part in self._direct_parts(expression, use):
            of_part, with_sides = self._count(part, use_of_part)
            whole += with_sides
            if not any(part is side for side in sides):
                own += of_part
            elif with_sides:
                self._operations[id(part)], self._positions[id(part)] = of_part, self._position
        return own, whole

    def _chooses(self, select: ir.Select) -> bool:
        sides = (select.chosen, select.other)
        elements = all(isinstance(each, ir.Local) and self._is_read(each) for each in sides)
        return elements and isinstance(select.type, Scalar) and self._is_compared(select.condition)

    def _own(self, expression: ir.Expression, use: int) -> int:
        """Return how many operations an expression is, its parts left out."""
        match expression:
            case ir.Binary(_, op, left, right) if op in _COMPARISONS:
                if left == right:
                    return 0
                return int(not any(self._leads_to_an_index(each) or not self._is_read(each) for each in (left, right)))
            case ir.Binary(type) | ir.Unary(type):
                return int(use & DATA != 0 and type != BOOL)
            case ir.Intrinsic(_, name):
                return int(use & DATA != 0 and name != OF_TEXTURES)
            case ir.Warp(_, op, arguments) if op in MATRIX_PRODUCTS:
                # Of the row that 4 lanes hold: each product, and its sum.
                return 4 * (len(arguments) - 2) * int(use & DATA != 0)
            case ir.Warp(_, op):
                return int(use & DATA != 0 and op.startswith("__reduce"))
            case ir.Atomic(_, op):
                return int(op not in ("exch", "cas"))
            case ir.Update(_, place, _, _, compute):
                return int(not isinstance(compute, Pointer) and (use | self._use_of_place(place)) & DATA != 0)
            case _:
                return 0


def _of_floats(expression: ir.Expression, use: int) -> int:
    """Return what an expression is used for: floats are data, whatever is done with them."""
    # Every expression but a place has a type.
    type = getattr(expression, "type", None)
    return use | DATA if isinstance(type, Scalar) and type.is_float else use


def _sides(expression: ir.Expression) -> tuple[ir.Expression, ...]:
    """Return the parts that run only in the lanes that need them."""
    match expression:
        case ir.Select(_, _, chosen, other):
            return chosen, other
        case ir.Logical(_, _, _, right):
            return (right,)
        case _:
            return ()


def _inner(statement: ir.Statement) -> Iterator[ir.Statement]:
    """Yield the statements in a statement."""
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


def _subscripts(place: ir.Place) -> Uses:
    if isinstance(place, ir.Element):
        yield place.pointer, INDEX
        if place.index is not None:
            yield place.index, INDEX
