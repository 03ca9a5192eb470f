"""How much arithmetic is done on data: what a textbook counts as the operations of an algorithm.

Arithmetic on floats is, and so is arithmetic on whole numbers whose result flows into memory or an atomic, over any
number of variables, exchanges between lanes and calls. What flows into subscripts, addresses and conditions only is
not, nor is the step of a `for`.
"""

from __future__ import annotations

from collections.abc import Iterator

from gpu.simulator import ir
from gpu.simulator.types import BOOL, Pointer, Scalar

Flow = Iterator[tuple[ir.Expression, bool]]
"""Expressions, and whether their value flows into data."""


class Work:
    """Counts the operations of functions' expressions: those of the function that was entered last."""

    def __init__(self) -> None:
        # Of each function, by its id: the slots of the variables that hold data; and those whose result is data.
        self._data: dict[int, set[int]] = {}
        self._results: set[int] = set()

    def enter(self, function: ir.Function) -> None:
        """Turn to a function. What one that nothing else has called yet gives back is not data."""
        if id(function) not in self._data:
            self._follow(function)
        self._slots, self._returns = self._data[id(function)], id(function) in self._results

    def of(self, expression: ir.Expression | None, *, is_data: bool = False) -> int:
        """Count the operations of one lane. A lazy side counts as if it were taken.

        Parameters
        ----------
        expression : Expression or None
        is_data : bool
            Whether the value goes where data goes, rather than nowhere.
        """
        if expression is None:
            return 0
        return sum(self._own(part, flows) for part, flows in self._parts(expression, is_data))

    def of_variable(self, slot: int, value: ir.Expression | None) -> int:
        """Count the operations of a variable's first value."""
        return self.of(value, is_data=slot in self._slots)

    def of_result(self, value: ir.Expression | None) -> int:
        """Count the operations of what the function gives back."""
        return self.of(value, is_data=self._returns)

    def _follow(self, root: ir.Function) -> None:
        """Find what holds data in a function, and in all that it calls, until nothing more is found."""
        functions = [root]
        self._data[id(root)] = set()
        known = -1
        while self._known() != known:
            known = self._known()
            for function in functions:
                self._slots, self._returns = self._data[id(function)], id(function) in self._results
                for whole, flows in self._expressions(function.body):
                    for part, is_data in self._parts(whole, flows):
                        functions += self._find(part, is_data)

    def _known(self) -> int:
        return len(self._results) + len(self._data) + sum(map(len, self._data.values()))

    def _find(self, expression: ir.Expression, is_data: bool) -> list[ir.Function]:
        """Note what an expression says of variables and results; return functions that were not known."""
        called: list[ir.Function] = []
        match expression:
            case ir.Local(_, slot) | ir.Update(_, ir.Local(_, slot)) if is_data:
                self._slots.add(slot)
            case ir.Call(_, function):
                called = [function]
            case ir.IndirectCall(_, _, functions):
                called = list(functions.values())
            case _:
                pass
        if is_data:
            self._results.update(map(id, called))
        new = [function for function in called if id(function) not in self._data]
        self._data.update((id(function), set()) for function in new)
        return new

    def _own(self, expression: ir.Expression, is_data: bool) -> int:
        """Return how many operations an expression is, its parts left out."""
        match expression:
            case ir.Binary(type) | ir.Unary(type):
                return int(is_data and type != BOOL)
            case ir.Intrinsic():
                return int(is_data)
            case ir.Atomic(_, op):
                return int(op not in ("exch", "cas"))
            case ir.Update(_, place, _, _, compute):
                return int(not isinstance(compute, Pointer) and (is_data or self._holds_data(place)))
            case _:
                return 0

    def _parts(self, expression: ir.Expression, is_data: bool) -> Flow:
        """Yield an expression and all that it is made of."""
        # Every expression but a place has a type.
        type = getattr(expression, "type", None)
        is_data = is_data or (isinstance(type, Scalar) and type.is_float)
        yield expression, is_data
        for part, flows in self._direct_parts(expression, is_data):
            yield from self._parts(part, flows)

    def _direct_parts(self, expression: ir.Expression, is_data: bool) -> Flow:
        match expression:
            case ir.Binary(_, _, left, right) | ir.Logical(_, _, left, right):
                yield from ((left, is_data), (right, is_data))
            case ir.Unary(_, _, operand) | ir.Cast(_, operand) | ir.Extract(_, operand, _):
                yield operand, is_data
            case ir.Select(_, condition, chosen, other):
                yield from ((condition, False), (chosen, is_data), (other, is_data))
            case ir.Sequence(_, first, second):
                yield from ((first, False), (second, is_data))
            case ir.Construct(_, parts) | ir.Intrinsic(_, _, parts):
                yield from ((part, is_data) for part in parts)
            case ir.Offset(_, pointer, index):
                yield from ((pointer, False), (index, False))
            case ir.Distance(_, left, right):
                yield from ((left, False), (right, False))
            case ir.Member(_, pointer, _):
                yield pointer, False
            case ir.Load(_, place):
                yield from _subscripts(place)
            case ir.Temporary(_, value) if value is not None:
                yield value, True
            case ir.Assign(_, place, value) | ir.Update(_, place, _, value):
                yield from _subscripts(place)
                yield value, is_data or self._holds_data(place)
            case ir.Atomic(_, _, place, arguments):
                yield from _subscripts(place)
                yield from ((argument, True) for argument in arguments)
            case ir.Warp(_, op, arguments):
                # The lanes that are named come first, the value second; a shuffle's other lane and width follow.
                is_exchange = op.startswith(("__shfl", "__reduce"))
                yield from ((argument, is_data and is_exchange and at == 1) for at, argument in enumerate(arguments))
            case ir.Call(_, function, arguments):
                within = self._data.get(id(function), set())
                yield from ((argument, slot in within) for slot, argument in enumerate(arguments))
            case ir.IndirectCall(_, function, _, arguments):
                yield function, False
                yield from ((argument, True) for argument in arguments)
            case _:
                pass

    def _expressions(self, statement: ir.Statement) -> Flow:
        """Yield all expressions that statements hold."""
        match statement:
            case ir.Evaluate(expression):
                yield expression, False
            case ir.Declare(slot, _, value) if value is not None:
                yield value, slot in self._slots
            case ir.DeclareMemory(_, _, values):
                yield from ((value, True) for _, value in values)
            case ir.Block(statements):
                for inner in statements:
                    yield from self._expressions(inner)
            case ir.If(condition, then, orelse):
                yield condition, False
                yield from self._expressions(then)
                if orelse is not None:
                    yield from self._expressions(orelse)
            case ir.Loop(condition, step, body):
                yield from ((each, False) for each in (condition, step) if each is not None)
                yield from self._expressions(body)
            case ir.Switch(value, sections):
                yield value, False
                for section in sections:
                    yield from self._expressions(section.body)
            case ir.Return(value) if value is not None:
                yield value, self._returns
            case _:
                pass

    def _holds_data(self, place: ir.Place) -> bool:
        return isinstance(place, ir.Element) or place.slot in self._slots


def _subscripts(place: ir.Place) -> Flow:
    if isinstance(place, ir.Element):
        yield place.pointer, False
        if place.index is not None:
            yield place.index, False
