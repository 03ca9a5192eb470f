"""Expressions of the lockstep executor: each becomes a closure from a frame and a mask to a value."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from gpu.errors import LaunchError
from gpu.simulator import ir
from gpu.simulator.intrinsics import INTRINSICS
from gpu.simulator.lanes import Gang, Mask
from gpu.simulator.memory import Address, Site
from gpu.simulator.operations import UNARY, binary, cast
from gpu.simulator.types import BOOL, INT32, INT64, Pointer, Scalar, Type

MAXIMUM_DEPTH = 64


class Frame:
    """The variables of one running call.

    `owners[slot]` is the mask under which a variable came to life: an assignment under the same mask needs no merge,
    since nobody else can see the variable.
    """

    __slots__ = ("continued", "depth", "gang", "globals", "kernel", "owners", "result", "returned", "values")

    def __init__(self, gang: Gang, slots: int, kernel: Frame | None, variables: dict[str, Address], depth: int) -> None:
        self.gang = gang
        self.values: list[Any] = [None] * slots
        self.owners: list[Mask | None] = [None] * slots
        self.kernel = kernel
        self.globals = variables
        self.depth = depth
        self.returned: Mask | None = None
        self.continued: Mask | None = None
        self.result: Any = None


Evaluator = Callable[[Frame, Mask], Any]


def assign_local(old: Any, new: Any, mask: Mask) -> Any:
    """Return a variable's value after an assignment in some lanes only."""
    if mask.full:
        return new
    if not isinstance(new, Address):
        return np.where(mask.bits, new, old)
    if old.memory is not new.memory and old.memory is not None:
        raise LaunchError(
            "Lanes of one warp point into different arrays through one variable, which the simulator does not support.",
            advice="Use an index instead of a pointer, or a branch for each array.",
        )
    return Address(new.memory, np.where(mask.bits, new.offset, old.offset))


def _runs_in_any_lane(expression: ir.Expression) -> bool:
    """Whether an expression can run in lanes that do not need it: it touches no memory, and changes nothing."""
    match expression:
        case ir.Const() | ir.Null() | ir.Local() | ir.Global() | ir.Special():
            return True
        case ir.Unary(_, _, operand) | ir.Cast(_, operand):
            return _runs_in_any_lane(operand)
        case ir.Binary(_, _, left, right) | ir.Logical(_, _, left, right) | ir.Distance(_, left, right):
            return _runs_in_any_lane(left) and _runs_in_any_lane(right)
        case ir.Offset(_, pointer, index):
            return _runs_in_any_lane(pointer) and _runs_in_any_lane(index)
        case ir.Select(_, condition, chosen, other):
            return all(map(_runs_in_any_lane, (condition, chosen, other)))
        case ir.Intrinsic(_, _, arguments):
            return all(map(_runs_in_any_lane, arguments))
        case _:
            return False


class ExpressionCompiler(ABC):
    """Compiles expressions; how functions are compiled is left to the compiler of statements."""

    @abstractmethod
    def function(self, function: ir.Function) -> Any:
        """Return a function, ready to be called."""

    def expression(self, expression: ir.Expression) -> Evaluator:
        """Return the closure of an expression."""
        match expression:
            case ir.Const(_, value):
                return lambda frame, mask: value
            case ir.Null():
                null = Address(None)
                return lambda frame, mask: null
            case ir.Local(_, slot, _):
                return lambda frame, mask: frame.values[slot]
            case ir.Global(_, name):
                return lambda frame, mask: frame.globals[name]
            case ir.Special(_, name, axis):
                return lambda frame, mask: frame.gang.special[name][axis]
            case ir.Unary(_, op, operand):
                return self._apply(UNARY[op], operand)
            case ir.Binary(_, op, left, right):
                assert isinstance(left.type, Scalar)
                return self._apply(binary(op, left.type), left, right)
            case ir.Intrinsic(type, name, arguments):
                return self._intrinsic(type, name, arguments)
            case ir.Cast(type, operand):
                return self._cast(type, operand)
            case ir.Logical():
                return self._logical(expression)
            case ir.Select():
                return self._select(expression)
            case ir.Sequence(_, first, second):
                before, after = self.expression(first), self.expression(second)
                return lambda frame, mask: (before(frame, mask), after(frame, mask))[1]
            case ir.Offset(type, pointer, index):
                start, by, size = self.expression(pointer), self.expression(index), type.element.size
                return lambda frame, mask: start(frame, mask).moved(by(frame, mask), size)
            case ir.Distance():
                return self._distance(expression)
            case ir.Load(_, place):
                return self._load(place)
            case ir.Assign(_, place, value):
                return self._assign(place, self.expression(value))
            case ir.Update():
                return self._update(expression)
            case ir.Atomic():
                return self._atomic(expression)
            case ir.Call(_, function, arguments):
                return self._call(function, arguments)

    def _apply(self, operation: Callable[..., Any], *operands: ir.Expression) -> Evaluator:
        evaluators = [self.expression(operand) for operand in operands]
        if len(evaluators) == 1:
            (only,) = evaluators
            return lambda frame, mask: operation(only(frame, mask))
        if len(evaluators) == 2:
            left, right = evaluators
            return lambda frame, mask: operation(left(frame, mask), right(frame, mask))
        return lambda frame, mask: operation(*(run(frame, mask) for run in evaluators))

    def _intrinsic(self, type: Scalar, name: str, arguments: tuple[ir.Expression, ...]) -> Evaluator:
        function, dtype = INTRINSICS[name], type.dtype
        run = self._apply(function, *arguments)
        if all(argument.type == type for argument in arguments):
            return run
        return lambda frame, mask: run(frame, mask).astype(dtype)

    def _cast(self, type: Type, operand: ir.Expression) -> Evaluator:
        run = self.expression(operand)
        if isinstance(operand.type, Scalar) and isinstance(type, Scalar):
            convert = cast(operand.type, type)
            return lambda frame, mask: convert(run(frame, mask))
        if isinstance(operand.type, Pointer) and isinstance(type, Scalar):
            return lambda frame, mask: np.int64(run(frame, mask).memory is not None)
        return run

    def _logical(self, expression: ir.Logical) -> Evaluator:
        left, right = self.expression(expression.left), self.expression(expression.right)
        conjunction = expression.op == "&&"
        if _runs_in_any_lane(expression.right):
            combine = np.logical_and if conjunction else np.logical_or
            return lambda frame, mask: combine(left(frame, mask), right(frame, mask))

        def run(frame: Frame, mask: Mask) -> Any:
            first = left(frame, mask)
            true, false = mask.split(first)
            needed = true if conjunction else false
            if needed is None:
                return np.bool_(not conjunction)
            second = right(frame, needed)
            if needed is mask:
                return second
            return first & second if conjunction else first | (second & needed.bits)

        return run

    def _select(self, expression: ir.Select) -> Evaluator:
        condition = self.expression(expression.condition)
        chosen, other = self.expression(expression.chosen), self.expression(expression.other)
        eager = _runs_in_any_lane(expression.chosen) and _runs_in_any_lane(expression.other)
        eager = eager and isinstance(expression.type, Scalar)

        def run(frame: Frame, mask: Mask) -> Any:
            decided = condition(frame, mask)
            if eager and isinstance(decided, np.ndarray):
                return np.where(decided, chosen(frame, mask), other(frame, mask))
            true, false = mask.split(decided)
            if false is None:
                return chosen(frame, mask)
            if true is None:
                return other(frame, mask)
            return assign_local(other(frame, false), chosen(frame, true), true)

        return run

    def _distance(self, expression: ir.Distance) -> Evaluator:
        left, right = self.expression(expression.left), self.expression(expression.right)
        assert isinstance(expression.left.type, Pointer)
        size = expression.left.type.element.size

        def run(frame: Frame, mask: Mask) -> Any:
            difference = (left(frame, mask).offset - right(frame, mask).offset) // size
            return difference if isinstance(difference, np.ndarray) else np.int64(difference)

        return run

    def _element(self, place: ir.Element) -> tuple[Evaluator, Evaluator | None, np.dtype[Any], int]:
        if not isinstance(place.type, Scalar):
            raise LaunchError(f"{place.position}: the simulator does not support pointers that are kept in arrays.")
        index = self.expression(place.index) if place.index is not None else None
        return self.expression(place.pointer), index, place.type.dtype, place.type.size

    def _load(self, place: ir.Element) -> Evaluator:
        pointer, index, dtype, size = self._element(place)
        site = Site(place.position, "read")

        def run(frame: Frame, mask: Mask) -> Any:
            address = pointer(frame, mask)
            element = address.element(index(frame, mask) if index is not None else None, size, site)
            return address.memory.load(frame.gang, element, dtype, mask, site)

        return run

    def _assign(self, place: ir.Place, value: Evaluator) -> Evaluator:
        if isinstance(place, ir.Local):
            slot = place.slot

            def run_local(frame: Frame, mask: Mask) -> Any:
                new = value(frame, mask)
                if frame.owners[slot] is mask:
                    frame.values[slot] = new
                else:
                    frame.values[slot] = assign_local(frame.values[slot], new, mask)
                return new

            return run_local
        pointer, index, dtype, size = self._element(place)
        site = Site(place.position, "write")

        def run(frame: Frame, mask: Mask) -> Any:
            new = value(frame, mask)
            address = pointer(frame, mask)
            element = address.element(index(frame, mask) if index is not None else None, size, site)
            address.memory.store(frame.gang, element, dtype, new, mask, site)
            return new

        return run

    def _update(self, expression: ir.Update) -> Evaluator:
        change = self._change(expression)
        gives_old, place = expression.gives_old, expression.place
        if isinstance(place, ir.Local):
            slot = place.slot

            def run_local(frame: Frame, mask: Mask) -> Any:
                old = frame.values[slot]
                new = change(old, frame, mask)
                frame.values[slot] = new if frame.owners[slot] is mask else assign_local(old, new, mask)
                return old if gives_old else new

            return run_local
        pointer, index, dtype, size = self._element(place)
        read, write = Site(place.position, "read"), Site(place.position, "write")

        def run(frame: Frame, mask: Mask) -> Any:
            address = pointer(frame, mask)
            element = address.element(index(frame, mask) if index is not None else None, size, read)
            old = address.memory.load(frame.gang, element, dtype, mask, read)
            new = change(old, frame, mask)
            address.memory.store(frame.gang, element, dtype, new, mask, write)
            return old if gives_old else new

        return run

    def _change(self, expression: ir.Update) -> Callable[[Any, Frame, Mask], Any]:
        """Return what computes the new value of an update from the old one."""
        value, compute, held = self.expression(expression.value), expression.compute, expression.type
        if isinstance(compute, Pointer):
            size = compute.element.size
            return lambda old, frame, mask: old.moved(value(frame, mask), size)
        assert isinstance(held, Scalar)
        operation = binary(expression.op, compute)
        if held == compute:
            return lambda old, frame, mask: operation(old, value(frame, mask))
        widen, narrow = cast(held, compute), cast(compute, held)
        return lambda old, frame, mask: narrow(operation(widen(old), value(frame, mask)))

    def _atomic(self, expression: ir.Atomic) -> Evaluator:
        pointer, index, dtype, size = self._element(expression.place)
        values = [self.expression(argument) for argument in expression.arguments]
        site = Site(expression.place.position, "atomic")
        op, used = expression.op, expression.used

        def run(frame: Frame, mask: Mask) -> Any:
            address = pointer(frame, mask)
            element = address.element(index(frame, mask) if index is not None else None, size, site)
            operands = [value(frame, mask) for value in values]
            return address.memory.atomic(frame.gang, element, dtype, op, operands, mask, site, used)

        return run

    def _call(self, function: ir.Function, arguments: tuple[ir.Expression, ...]) -> Evaluator:
        compiled = self.function(function)
        evaluators = [self.expression(argument) for argument in arguments]

        def run(frame: Frame, mask: Mask) -> Any:
            if frame.depth >= MAXIMUM_DEPTH:
                raise LaunchError(f"{function.name} calls itself more than {MAXIMUM_DEPTH} levels deep.")
            return compiled.call(frame, mask, [evaluate(frame, mask) for evaluate in evaluators])

        return run


__all__ = ["BOOL", "INT32", "INT64", "Evaluator", "ExpressionCompiler", "Frame", "assign_local"]
