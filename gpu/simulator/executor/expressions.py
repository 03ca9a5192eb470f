"""Expressions of the lockstep executor: each becomes a closure from a frame and a mask to a value."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from gpu.errors import LaunchError, SourcePosition
from gpu.simulator import ir
from gpu.simulator.executor import warp
from gpu.simulator.executor.address import Address, from_number
from gpu.simulator.executor.children import launch_lanes, wait_for_children
from gpu.simulator.executor.effects import assert_lanes, pass_grid_barrier, print_lanes, tell_fence, tell_time
from gpu.simulator.executor.frame import Evaluator, Frame, assign_local, load_value, store_value
from gpu.simulator.executor.lanes import Mask
from gpu.simulator.executor.memory import LocalMemory, Site
from gpu.simulator.executor.work import Work
from gpu.simulator.intrinsics import BLOCK_VOTES, INTRINSICS
from gpu.simulator.operations import UNARY, binary, cast
from gpu.simulator.types import INT64, Pointer, Scalar, Type, has_union, leaves, vector_size

MAXIMUM_DEPTH = 64


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
        case ir.Member(_, pointer, _) | ir.Extract(_, pointer, _):
            return _runs_in_any_lane(pointer)
        case ir.Select(_, condition, chosen, other):
            return all(map(_runs_in_any_lane, (condition, chosen, other)))
        case ir.Intrinsic(_, _, arguments):
            return all(map(_runs_in_any_lane, arguments))
        case _:
            return False


class ExpressionCompiler(ABC):
    """Compiles expressions; how functions are compiled is left to the compiler of statements."""

    def __init__(self) -> None:
        self._work = Work()

    @abstractmethod
    def function(self, function: ir.Function) -> Any:
        """Return a function, ready to be called."""

    @abstractmethod
    def barrier(self, frame: Frame, mask: Mask, position: SourcePosition, votes: Any = False) -> tuple[Mask, Any]:
        """Pass a barrier of the block, and return who met there and how they voted."""

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
                return lambda frame, mask: frame.batch.special[name][axis]
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
            case ir.Member(_, pointer, offset):
                start = self.expression(pointer)
                return lambda frame, mask: start(frame, mask).moved(offset, 1)
            case ir.Temporary():
                return self._temporary(expression)
            case ir.Construct(_, parts):
                return self._construct(parts)
            case ir.Extract(type, operand, first):
                return self._extract(type, self.expression(operand), first)
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
            case ir.Warp():
                return self._warp(expression)
            case ir.Fence(_, name, lanes):
                named = self.expression(lanes) if lanes is not None else None
                return lambda frame, mask: tell_fence(frame, name, mask, named and named(frame, mask))
            case ir.Print(_, text, arguments):
                return self._print(text, arguments)
            case ir.Assertion(_, condition, text, position):
                holds = self.expression(condition)
                return lambda frame, mask: assert_lanes(frame, mask, holds(frame, mask), text, position)
            case ir.Call(_, function, arguments):
                return self._call(function, arguments)
            case ir.IndirectCall():
                return self._indirect_call(expression)
            case ir.GridBarrier(_, position):
                return lambda frame, mask: pass_grid_barrier(frame, mask, position)
            case ir.Clock(type):
                return lambda frame, mask: tell_time(frame, type.dtype)
            case ir.Launch():
                return self._launch(expression)
            case ir.WaitForChildren():
                return lambda frame, mask: wait_for_children(frame.batch)

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
            narrow = cast(INT64, type)
            return lambda frame, mask: narrow(run(frame, mask).number())
        if isinstance(operand.type, Scalar) and isinstance(type, Pointer):
            widen = cast(operand.type, INT64)
            return lambda frame, mask: from_number(widen(run(frame, mask)))
        return run

    def side(self, side: ir.Expression) -> Evaluator:
        """Return the closure of a side of `?:`, `&&` or `||`, which tells of its operations where it is needed."""
        run, counted = self.expression(side), self._work.of_side(side)
        if counted is None:
            return run
        position, operations = counted

        def counting(frame: Frame, mask: Mask) -> Any:
            if frame.batch.observer is not None:
                frame.batch.observer.side(frame.batch, position, operations, mask)
            return run(frame, mask)

        return counting

    def _is_eager(self, *sides: ir.Expression) -> Callable[[Frame], bool]:
        """Return whether sides may run in lanes that do not need them, as nobody counts what they do there."""
        if not all(map(_runs_in_any_lane, sides)):
            return lambda frame: False
        if all(self._work.of_side(side) is None for side in sides):
            return lambda frame: True
        return lambda frame: frame.batch.observer is None

    def _logical(self, expression: ir.Logical) -> Evaluator:
        left, right = self.expression(expression.left), self.side(expression.right)
        conjunction = expression.op == "&&"
        eager, combine = self._is_eager(expression.right), np.logical_and if conjunction else np.logical_or

        def run(frame: Frame, mask: Mask) -> Any:
            first = left(frame, mask)
            if eager(frame):
                return combine(first, right(frame, mask))
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
        chosen, other = self.side(expression.chosen), self.side(expression.other)
        eager, simple = self._is_eager(expression.chosen, expression.other), isinstance(expression.type, Scalar)

        def run(frame: Frame, mask: Mask) -> Any:
            decided = condition(frame, mask)
            if simple and isinstance(decided, np.ndarray) and eager(frame):
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

    def _print(self, text: str, arguments: tuple[ir.Expression | str, ...]) -> Evaluator:
        values = [argument if isinstance(argument, str) else self.expression(argument) for argument in arguments]

        def run(frame: Frame, mask: Mask) -> Any:
            given = [value if isinstance(value, str) else value(frame, mask) for value in values]
            return print_lanes(frame, mask, text, given)

        return run

    def _temporary(self, expression: ir.Temporary) -> Evaluator:
        type = expression.type.element
        parts = leaves(type)
        value = self.expression(expression.value) if expression.value is not None else None
        site, punned = Site(SourcePosition("", 0), "write"), has_union(type)

        def run(frame: Frame, mask: Mask) -> Address:
            address = Address(LocalMemory("a temporary value", type.size, frame.batch.geometry.lanes, punned=punned))
            if value is not None:
                store_value(frame, address, parts, value(frame, mask), mask, site)
            return address

        return run

    def _construct(self, parts: tuple[ir.Expression, ...]) -> Evaluator:
        evaluators = [self.expression(part) for part in parts]

        def run(frame: Frame, mask: Mask) -> Any:
            flat: list[Any] = []
            for evaluate in evaluators:
                value = evaluate(frame, mask)
                if isinstance(value, tuple):
                    flat += value
                else:
                    flat.append(value)
            return tuple(flat)

        return run

    def _extract(self, type: Type, whole: Evaluator, first: int) -> Evaluator:
        if isinstance(type, Scalar | Pointer):
            return lambda frame, mask: whole(frame, mask)[first]
        last = first + len(leaves(type))
        return lambda frame, mask: whole(frame, mask)[first:last]

    def _warp(self, expression: ir.Warp) -> Evaluator:
        values = [self.expression(argument) for argument in expression.arguments]
        op, dtype, position = expression.op, expression.type.dtype, expression.position
        if op in BLOCK_VOTES:
            (predicate,) = values

            def vote(frame: Frame, mask: Mask) -> Any:
                voted = np.not_equal(predicate(frame, mask), 0)
                met, votes = self.barrier(frame, mask, position, voted)
                return warp.block_vote(op, frame.batch, met, votes)

            return vote

        def run(frame: Frame, mask: Mask) -> Any:
            return warp.run(op, frame.batch, mask, [value(frame, mask) for value in values]).astype(dtype, copy=False)

        return run

    def _element(self, place: ir.Element) -> tuple[Evaluator, Callable[[Frame, Mask], Any], int]:
        """Return what gives the address, what gives the index, and the size that the index counts in."""
        pointer = self.expression(place.pointer)
        if place.index is None:
            return pointer, lambda frame, mask: None, place.type.size
        return pointer, self.expression(place.index), place.type.size

    def _load(self, place: ir.Element) -> Evaluator:
        pointer, index, size = self._element(place)
        site = Site(place.position, "read", place.volatile)
        if isinstance(place.type, Scalar):
            dtype = place.type.dtype
            return lambda frame, mask: pointer(frame, mask).load(frame.batch, index(frame, mask), dtype, mask, site)
        parts, vector = leaves(place.type), vector_size(place.type)
        whole = not isinstance(place.type, Pointer)

        def run(frame: Frame, mask: Mask) -> Any:
            address = pointer(frame, mask)
            at = index(frame, mask)
            if at is not None:
                address = address.moved(at, size)
            values = load_value(frame, address, parts, mask, site, vector)
            return values if whole else values[0]

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
        pointer, index, size = self._element(place)
        site = Site(place.position, "write", place.volatile)
        parts, vector = leaves(place.type), vector_size(place.type)

        def run(frame: Frame, mask: Mask) -> Any:
            new = value(frame, mask)
            address = pointer(frame, mask)
            at = index(frame, mask)
            if isinstance(new, tuple | Address):
                address = address.moved(at, size) if at is not None else address
                store_value(frame, address, parts, new, mask, site, vector)
            else:
                address.store(frame.batch, at, dtype, new, mask, site)
            return new

        dtype = place.type.dtype if isinstance(place.type, Scalar) else None
        return run

    def _update(self, expression: ir.Update) -> Evaluator:
        """C++ evaluates the right side of a compound assignment first."""
        change, value = self._change(expression), self.expression(expression.value)
        gives_old, place = expression.gives_old, expression.place
        if isinstance(place, ir.Local):
            slot = place.slot

            def run_local(frame: Frame, mask: Mask) -> Any:
                by = value(frame, mask)
                old = frame.values[slot]
                new = change(old, by)
                frame.values[slot] = new if frame.owners[slot] is mask else assign_local(old, new, mask)
                return old if gives_old else new

            return run_local
        pointer, index, size = self._element(place)
        read, write = Site(place.position, "read", place.volatile), Site(place.position, "write", place.volatile)
        parts = leaves(place.type)

        def run(frame: Frame, mask: Mask) -> Any:
            by = value(frame, mask)
            address = pointer(frame, mask)
            at = index(frame, mask)
            if at is not None:
                address = address.moved(at, size)
            (old,) = load_value(frame, address, parts, mask, read)
            new = change(old, by)
            store_value(frame, address, parts, new, mask, write)
            return old if gives_old else new

        return run

    def _change(self, expression: ir.Update) -> Callable[[Any, Any], Any]:
        """Return what computes the new value of an update from the old one and the right side."""
        compute, held = expression.compute, expression.type
        if isinstance(compute, Pointer):
            size = compute.element.size
            return lambda old, by: old.moved(by, size)
        assert isinstance(held, Scalar)
        operation = binary(expression.op, compute)
        if held == compute:
            return operation
        widen, narrow = cast(held, compute), cast(compute, held)
        return lambda old, by: narrow(operation(widen(old), by))

    def _atomic(self, expression: ir.Atomic) -> Evaluator:
        pointer, index, _ = self._element(expression.place)
        values = [self.expression(argument) for argument in expression.arguments]
        site = Site(expression.place.position, "atomic")
        op, used, dtype = expression.op, expression.used, expression.type.dtype

        def run(frame: Frame, mask: Mask) -> Any:
            address = pointer(frame, mask)
            at = index(frame, mask)
            operands = [value(frame, mask) for value in values]
            return address.atomic(frame.batch, at, dtype, op, operands, mask, site, used)

        return run

    def _indirect_call(self, expression: ir.IndirectCall) -> Evaluator:
        number = self.expression(expression.function)
        evaluators = [self.expression(argument) for argument in expression.arguments]

        def run(frame: Frame, mask: Mask) -> Any:
            numbers = number(frame, mask)
            given = [evaluate(frame, mask) for evaluate in evaluators]
            result: Any = None
            for function, lanes in called_functions(frame, mask, numbers, expression):
                limit_depth(frame, lanes, function)
                made = self.function(function).call(frame, lanes, [*own_object(function), *given])
                result = assign_local(result, made, lanes)
            return result

        return run

    def _launch(self, expression: ir.Launch) -> Evaluator:
        compiled, position = self.function(expression.function), expression.position
        parts = (expression.grid, expression.block, expression.shared_bytes, expression.stream)
        configuration = [self.expression(part) for part in parts]
        arguments = [self.expression(argument) for argument in expression.arguments]
        return lambda frame, mask: launch_lanes(frame, mask, compiled, configuration, arguments, position)

    def _call(self, function: ir.Function, arguments: tuple[ir.Expression, ...]) -> Evaluator:
        compiled = self.function(function)
        evaluators = [self.expression(argument) for argument in arguments]

        def run(frame: Frame, mask: Mask) -> Any:
            limit_depth(frame, mask, function)
            return compiled.call(frame, mask, [evaluate(frame, mask) for evaluate in evaluators])

        return run


def called_functions(
    frame: Frame, mask: Mask, numbers: Any, expression: ir.IndirectCall
) -> Iterator[tuple[ir.Function, Mask]]:
    """Yield the functions that a pointer leads to, each with its lanes."""
    left: Mask | None = mask
    while left is not None:
        number = numbers[left.lanes[0]] if isinstance(numbers, np.ndarray) else numbers
        lanes, left = left.split(numbers == number)
        assert lanes is not None
        if int(number) not in expression.functions:
            who = frame.batch.describe(int(lanes.lanes[0]))
            raise LaunchError(
                f"{expression.position}: {who} calls through a pointer that is no function's.",
                position=expression.position,
                kind="null-pointer",
                thread=who,
            )
        yield expression.functions[int(number)], lanes


def own_object(function: ir.Function) -> list[Any]:
    """Return what a function that is called through a pointer needs before its arguments: a lambda's has no object."""
    return [Address(None)] if function.parameters and function.parameters[0][0] == "this" else []


def limit_depth(frame: Frame, mask: Mask, function: ir.Function) -> None:
    """Refuse a call of `function` from a frame that is too deep already."""
    if frame.depth >= MAXIMUM_DEPTH:
        raise LaunchError(
            f"{function.name} calls itself more than {MAXIMUM_DEPTH} levels deep.",
            kind="endless",
            thread=frame.batch.describe(int(mask.lanes[0])),
        )
