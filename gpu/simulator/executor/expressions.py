"""Compilation of expressions for the lockstep executor to closures that map a frame and a mask to a value."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from gpu.errors import LaunchError, SourcePosition
from gpu.simulator import ir
from gpu.simulator.executor import exchanges
from gpu.simulator.executor.async_copies import CopiedBytes, of_each_value, started
from gpu.simulator.executor.barriers import pass_barrier, pass_grid_barrier
from gpu.simulator.executor.call_frame import Callee, CallFrame, Evaluator
from gpu.simulator.executor.children import launch_lanes
from gpu.simulator.executor.clusters import pass_cluster_barrier
from gpu.simulator.executor.effects import (
    assert_lanes,
    meet_whole_warp,
    print_lanes,
    read_clock,
    tell_exchange,
    tell_fence,
    tell_heap_call,
)
from gpu.simulator.executor.masks import LaneMask
from gpu.simulator.executor.memory import AccessSite, LocalMemory
from gpu.simulator.executor.phases import phases_of
from gpu.simulator.executor.pointers import PointerValue, from_number
from gpu.simulator.executor.shared_addresses import from_shared, in_cluster, to_shared
from gpu.simulator.executor.textures import texel, texel_weight
from gpu.simulator.executor.values import PlainValues, load, load_leaf, store, store_leaf
from gpu.simulator.executor.work import OperationCounter
from gpu.simulator.intrinsics import BLOCK_VOTES, CONVERSIONS, INTRINSICS, MATRIX_PRODUCTS, WHOLE_WARP
from gpu.simulator.operations import UNARY, binary, cast
from gpu.simulator.types import INT64, VOID, Pointer, Scalar, Type, has_union, leaves, vector_size

MAXIMUM_DEPTH = 64


def _runs_in_any_lane(expression: ir.Expression) -> bool:
    """Return whether an expression may run in lanes that do not need it: it accesses no memory and has no effects."""
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


# Expressions with side effects are compiled with full values even where only bare values are needed.
_STORES = (
    ir.Assign
    | ir.Update
    | ir.Atomic
    | ir.AsyncCopy
    | ir.BulkCopy
    | ir.BarrierPhase
    | ir.Call
    | ir.IndirectCall
    | ir.Temporary
)


class ExpressionCompiler:
    """Compiles expressions over an algebra of values.

    Parameters
    ----------
    values : PlainValues
        The algebra.
    function : callable
        Returns a function compiled to closures.
    work : OperationCounter
        Counts the operations of the conditional operands of `?:`, `&&` and `||`.
    storing : ExpressionCompiler or None
        The compiler for expressions with side effects, if this one compiles the bare values of another algebra.
    """

    def __init__(
        self,
        values: PlainValues,
        function: Callable[[ir.Function], Callee],
        work: OperationCounter,
        storing: ExpressionCompiler | None = None,
    ) -> None:
        self.values = values
        self._function = function
        self._work = work
        self._storing = storing
        # The compiler for addresses and conditions.
        self.bare = self if values.bare is values else ExpressionCompiler(values.bare, function, work, self)

    def expression(self, expression: ir.Expression) -> Evaluator:
        """Compile an expression to a closure."""
        if self._storing is not None and isinstance(expression, _STORES):
            return self._storing.values.stripped(self._storing.expression(expression))
        match expression:
            case ir.Local(_, slot, _):
                return self.values.variable(slot)
            case ir.Unary(_, op, operand):
                return self._apply(op, UNARY[op], operand)
            case ir.Binary(_, op, left, right):
                assert isinstance(left.type, Scalar)
                return self._apply(op, binary(op, left.type), left, right)
            case ir.Intrinsic():
                return self._intrinsic(expression)
            case ir.Cast(type, operand) if isinstance(type, Scalar) and isinstance(operand.type, Scalar):
                return self.values.conversion(cast(operand.type, type), self.expression(operand))
            case ir.Logical():
                return self._logical(expression)
            case ir.Select():
                return self._select(expression)
            case ir.Sequence(_, first, second):
                before, after = self.bare.expression(first), self.expression(second)
                return lambda frame, mask: (before(frame, mask), after(frame, mask))[1]
            case ir.Construct(_, parts):
                return self._construct(parts)
            case ir.Extract(type, operand, first):
                last = first + len(leaves(type))
                index = first if isinstance(type, Scalar | Pointer) else slice(first, last)
                return self.values.part(self.expression(operand), index)
            case ir.Load(_, place, reads_on=True):
                return self._async_read(place)
            case ir.Load(_, place):
                return self._load(place)
            case ir.Assign(_, place, value):
                return self._assign(place, self.expression(value), reads=not _runs_in_any_lane(value))
            case ir.Update():
                return self._update(expression)
            case ir.Atomic():
                return self._atomic(expression)
            case ir.Temporary():
                return self._temporary(expression)
            case ir.AsyncCopy():
                return self._async_copy(expression)
            case ir.BulkCopy():
                return self._bulk_copy(expression)
            case ir.BarrierPhase():
                return self._phase(expression)
            case ir.Call():
                return self._call(expression)
            case ir.IndirectCall():
                return self._indirect_call(expression)
            case ir.Warp(type, op, arguments) if op in MATRIX_PRODUCTS:
                return self.values.product(op, type.dtype, [self.expression(argument) for argument in arguments])
            case ir.Warp(_, _, arguments) if arguments:
                return self._exchange(expression)
        return self.values.lifted(self.bare._sourceless(expression))  # noqa: SLF001

    def _sourceless(self, expression: ir.Expression) -> Evaluator:
        """Compile an expression whose result does not derive from other values: constants, addresses, effects."""
        match expression:
            case ir.Const(_, value):
                return lambda frame, mask: value
            case ir.Null():
                null = PointerValue(None)
                return lambda frame, mask: null
            case ir.Global(_, name):
                return lambda frame, mask: frame.globals[name]
            case ir.Special(_, name, axis):
                return lambda frame, mask: frame.batch.special[name][axis]
            case ir.Cast(type, operand):
                return self._pointer_cast(type, operand)
            case ir.ClusterAddress(_, own_pointer, block_rank, position):
                own, rank = self.expression(own_pointer), self.expression(block_rank)
                return lambda frame, mask: in_cluster(frame.batch, own(frame, mask), rank(frame, mask), mask, position)
            case ir.SharedAddress(type, operand, position):
                return self._shared_address(type, self.expression(operand), position)
            case ir.Offset(type, pointer, index):
                start, by, size = self.expression(pointer), self.expression(index), type.element.size
                return lambda frame, mask: start(frame, mask).moved(by(frame, mask), size)
            case ir.Member(_, pointer, offset):
                start = self.expression(pointer)
                return lambda frame, mask: start(frame, mask).moved(offset, 1)
            case ir.Distance():
                return self._distance(expression)
            case ir.Warp(_, op, _, position) if op == WHOLE_WARP:
                return lambda frame, mask: meet_whole_warp(frame, mask, position)
            case ir.Warp(scalar, op):
                dtype = scalar.dtype
                return lambda frame, mask: exchanges.run(op, frame.batch, mask, []).astype(dtype, copy=False)
            case ir.Fence(_, name, position, lanes):
                named = self.expression(lanes) if lanes is not None else None
                return lambda frame, mask: tell_fence(frame, name, mask, named and named(frame, mask), position)
            case ir.AsyncCommit(_, kind):
                return lambda frame, mask: started(frame.batch, kind).commit(mask)
            case ir.AsyncWait(_, left, kind):
                pending = self.expression(left) if left is not None else None
                return lambda frame, mask: started(frame.batch, kind).wait(mask, pending and pending(frame, mask))
            case ir.HeapChange(_, pointer, size, position):
                return self._heap_call(pointer, size, position)
            case ir.Print(_, text, arguments):
                return self._print(text, arguments)
            case ir.Assertion(_, condition, text, position):
                holds = self.expression(condition)
                return lambda frame, mask: assert_lanes(frame, mask, holds(frame, mask), text, position)
            case ir.GridBarrier(_, position):
                return lambda frame, mask: pass_grid_barrier(frame, mask, position)
            case ir.ClusterBarrier(_, part, position):
                return lambda frame, mask: pass_cluster_barrier(frame, mask, part, position)
            case ir.Clock(scalar):
                dtype = scalar.dtype
                return lambda frame, mask: read_clock(frame, dtype)
            case ir.Texel(_, pointer, places):
                address, at = self.expression(pointer), [self.expression(place) for place in places]
                return lambda frame, mask: texel(
                    expression, frame.batch, address(frame, mask), [place(frame, mask) for place in at], mask
                )
            case ir.TexelWeight(_, pointer, _, along):
                texture = self.expression(pointer)
                coordinate = self.expression(along) if along is not None else None
                return lambda frame, mask: texel_weight(
                    expression, frame.batch, texture(frame, mask), coordinate and coordinate(frame, mask), mask
                )
            case ir.LaunchCall():
                return self._launch(expression)
            case ir.WaitForChildren():
                return lambda frame, mask: frame.batch.wait_for_children()
        raise AssertionError(expression)

    def _apply(self, op: str, function: Callable[..., Any], *operands: ir.Expression) -> Evaluator:
        return self.values.apply(op, function, [self.expression(operand) for operand in operands])

    def _intrinsic(self, expression: ir.Intrinsic) -> Evaluator:
        name, arguments, dtype = expression.name, expression.arguments, expression.type.dtype
        function = intrinsic = INTRINSICS[name]
        if any(argument.type != expression.type for argument in arguments):
            function = lambda *values: intrinsic(*values).astype(dtype)  # noqa: E731
        if name in CONVERSIONS:
            return self.values.conversion(function, self.expression(arguments[0]))
        return self._apply(name, function, *arguments)

    def _pointer_cast(self, type: Type, operand: ir.Expression) -> Evaluator:
        run = self.expression(operand)
        if isinstance(operand.type, Pointer) and isinstance(type, Scalar):
            narrow = cast(INT64, type)
            return lambda frame, mask: narrow(run(frame, mask).number())
        if isinstance(operand.type, Scalar) and isinstance(type, Pointer):
            widen = cast(operand.type, INT64)
            return lambda frame, mask: from_number(widen(run(frame, mask)))
        return run

    def _shared_address(self, type: Scalar | Pointer, run: Evaluator, position: SourcePosition) -> Evaluator:
        if isinstance(type, Pointer):
            return lambda frame, mask: from_shared(frame.batch, run(frame, mask))
        narrow = cast(INT64, type)
        return lambda frame, mask: narrow(to_shared(frame.batch, run(frame, mask), mask, position))

    def _with_count(self, side: ir.Expression, run: Evaluator) -> Evaluator:
        """Return a closure that also notifies the observer of the operations of a conditional operand."""
        count = self._work.of_side(side)
        if count is None:
            return run
        position, operations = count

        def counting(frame: CallFrame, mask: LaneMask) -> Any:
            if frame.batch.observer is not None:
                frame.batch.observer.side(frame.batch, position, operations, mask)
            return run(frame, mask)

        return counting

    def _logical(self, expression: ir.Logical) -> Evaluator:
        op, values = expression.op, self.values
        left, right = self.expression(expression.left), self.expression(expression.right)
        lazy = values.logical(op, left, self._with_count(expression.right, right))
        if not values.speculates or not _runs_in_any_lane(expression.right):
            return lazy
        eager = values.apply(op, np.logical_and if op == "&&" else np.logical_or, [left, right])
        if self._work.of_side(expression.right) is None:
            return eager
        return lambda frame, mask: (eager if frame.batch.observer is None else lazy)(frame, mask)

    def _select(self, expression: ir.Select) -> Evaluator:
        match expression:
            case ir.Select(_, decision, ir.Const(_, yes), ir.Const(_, no)):
                # With two constants, the value derives from the condition.
                return self._apply("?:", lambda condition: _select_constant(condition, yes, no), decision)
        sides = (expression.chosen, expression.other)
        condition = self.bare.expression(expression.condition)
        if self._work.is_choice(expression):
            return self.values.choice(condition, *map(self.expression, sides))
        chosen, other = (self._with_count(side, self.expression(side)) for side in sides)
        eager = self.values.speculates and isinstance(expression.type, Scalar) and all(map(_runs_in_any_lane, sides))
        is_counted = any(self._work.of_side(side) is not None for side in sides)
        merged = self.values.merged

        def run(frame: CallFrame, mask: LaneMask) -> Any:
            decision = condition(frame, mask)
            if eager and isinstance(decision, np.ndarray) and (not is_counted or frame.batch.observer is None):
                return np.where(decision, chosen(frame, mask), other(frame, mask))
            true, false = mask.split(decision)
            if false is None:
                return chosen(frame, mask)
            if true is None:
                return other(frame, mask)
            return merged(other(frame, false), chosen(frame, true), true)

        return run

    def _construct(self, parts: tuple[ir.Expression, ...]) -> Evaluator:
        evaluators, composed = [self.expression(part) for part in parts], self.values.composed
        return lambda frame, mask: composed([evaluate(frame, mask) for evaluate in evaluators])

    def _distance(self, expression: ir.Distance) -> Evaluator:
        left, right = self.expression(expression.left), self.expression(expression.right)
        assert isinstance(expression.left.type, Pointer)
        size = expression.left.type.element.size

        def run(frame: CallFrame, mask: LaneMask) -> Any:
            difference = (left(frame, mask).offset - right(frame, mask).offset) // size
            return difference if isinstance(difference, np.ndarray) else np.int64(difference)

        return run

    def _heap_call(self, pointer: ir.Expression, size: ir.Expression | None, position: SourcePosition) -> Evaluator:
        address, byte_count = self.expression(pointer), self.expression(size) if size is not None else None
        return lambda frame, mask: tell_heap_call(
            frame, mask, address(frame, mask), byte_count and byte_count(frame, mask), position
        )

    def _print(self, text: str, arguments: tuple[ir.Expression | str, ...]) -> Evaluator:
        values = [argument if isinstance(argument, str) else self.expression(argument) for argument in arguments]

        def run(frame: CallFrame, mask: LaneMask) -> Any:
            results = [value if isinstance(value, str) else value(frame, mask) for value in values]
            return print_lanes(frame, mask, text, results)

        return run

    def _exchange(self, expression: ir.Warp) -> Evaluator:
        op, position = expression.op, expression.position
        if op in BLOCK_VOTES:
            (predicate,) = expression.arguments
            return self.values.vote(
                op, self.expression(predicate), lambda frame, mask, votes: pass_barrier(frame, mask, position, votes)
            )
        members, value, *others = expression.arguments
        return self.values.exchange(
            op,
            expression.type.dtype,
            self.bare.expression(members),
            self.expression(value),
            [self.bare.expression(other) for other in others],
            partial(tell_exchange, op, position),
        )

    # Memory.

    def _address_and_index(self, place: ir.Element) -> tuple[Evaluator, Evaluator]:
        """Compile the address of an element, and its index if it is a scalar; for other types the index is None."""
        pointer = self.bare.expression(place.pointer)
        if place.index is None:
            return pointer, lambda frame, mask: None
        index, size = self.bare.expression(place.index), place.type.size
        if isinstance(place.type, Scalar):
            return pointer, index
        return (lambda frame, mask: pointer(frame, mask).moved(index(frame, mask), size)), lambda frame, mask: None

    def _load(self, place: ir.Element) -> Evaluator:
        pointer, index = self._address_and_index(place)
        type, values, vector = place.type, self.values, vector_size(place.type)
        site = AccessSite(place.position, "read", place.volatile, bool(vector), place.sum)
        if isinstance(type, Scalar):
            dtype, read = type.dtype, values.read
            return lambda frame, mask: read(pointer(frame, mask), frame.batch, index(frame, mask), dtype, mask, site)
        if isinstance(type, Pointer):
            return lambda frame, mask: load_leaf(values, frame.batch, pointer(frame, mask), None, type, mask, site)
        parts = leaves(type)
        return lambda frame, mask: load(values, frame.batch, pointer(frame, mask), parts, vector, mask, site)

    def _async_read(self, place: ir.Element) -> Evaluator:
        """Compile an asynchronous read, which is performed now; observers are notified of its start and of the wait."""
        load, pointer = self._load(place), self.bare.expression(place.pointer)

        def run(frame: CallFrame, mask: LaneMask) -> Any:
            if frame.batch.observer is not None:
                started(frame.batch, "product").read_on(pointer(frame, mask), place.type.size, mask, place.position)
            return load(frame, mask)

        return run

    def _assign(self, place: ir.Place, value: Evaluator, *, reads: bool) -> Evaluator:
        """Compile an assignment.

        With `reads`, a schedule of independent lanes may switch lanes between the evaluation of the value and the
        write.
        """
        if isinstance(place, ir.Local):
            return self._assign_variable(place.slot, value)
        pointer, index = self._address_and_index(place)
        type, values, vector = place.type, self.values, vector_size(place.type)
        site = AccessSite(place.position, "write", place.volatile, bool(vector), place.sum)
        if isinstance(type, Scalar):
            dtype, write = type.dtype, values.write

            def run_scalar(frame: CallFrame, mask: LaneMask) -> Any:
                new = value(frame, mask)
                if reads and frame.batch.scheduler is not None:
                    frame.batch.scheduler.part()
                address, at = pointer(frame, mask), index(frame, mask)
                write(address, frame.batch, at, dtype, new, mask, site)
                if site.sum and frame.batch.observer is not None:
                    address = address if at is None else address.moved(at, dtype.itemsize)
                    started(frame.batch, "product").write_on(address, dtype.itemsize, mask, site)
                return new

            return run_scalar
        parts = leaves(type)

        def run(frame: CallFrame, mask: LaneMask) -> Any:
            new = value(frame, mask)
            store(values, frame.batch, pointer(frame, mask), parts, vector, new, mask, site)
            return new

        return run

    def _assign_variable(self, slot: int, value: Evaluator) -> Evaluator:
        merged, noted = self.values.merged, self.values.noted

        def run(frame: CallFrame, mask: LaneMask) -> Any:
            new = value(frame, mask)
            frame.values[slot] = new if frame.owners[slot] is mask else merged(frame.values[slot], new, mask)
            if noted is not None:
                noted(slot, new, mask)
            return new

        return run

    def _update(self, expression: ir.Update) -> Evaluator:
        """Compile a compound assignment, whose right side C++ evaluates first."""
        change, value = self._change(expression), self.expression(expression.value)
        gives_old, place, values = expression.gives_old, expression.place, self.values
        if isinstance(place, ir.Local):
            slot, merged, noted = place.slot, values.merged, values.noted

            def run_local(frame: CallFrame, mask: LaneMask) -> Any:
                operand = value(frame, mask)
                old = frame.values[slot]
                new = change(mask, old, operand)
                frame.values[slot] = new if frame.owners[slot] is mask else merged(old, new, mask)
                if noted is not None:
                    noted(slot, new, mask)
                return old if gives_old else new

            return run_local
        pointer, index = self._address_and_index(place)
        reading, writing = (
            AccessSite(place.position, "read", place.volatile),
            AccessSite(place.position, "write", place.volatile),
        )
        ((_, leaf),) = leaves(place.type)

        def run(frame: CallFrame, mask: LaneMask) -> Any:
            operand = value(frame, mask)
            address, at = pointer(frame, mask), index(frame, mask)
            old = load_leaf(values, frame.batch, address, at, leaf, mask, reading)
            new = change(mask, old, operand)
            if frame.batch.scheduler is not None:
                frame.batch.scheduler.part()
            store_leaf(values, frame.batch, address, at, leaf, new, mask, writing)
            return old if gives_old else new

        return run

    def _change(self, expression: ir.Update) -> Callable[[LaneMask, Any, Any], Any]:
        """Return a function that computes the new value of an update from the old value and the right side."""
        op, compute, stored = expression.op, expression.compute, expression.type
        if isinstance(compute, Pointer):
            size = compute.element.size
            return self.values.operation(op, lambda old, operand: old.moved(operand, size))
        assert isinstance(stored, Scalar)
        operation = binary(op, compute)
        if stored == compute:
            return self.values.operation(op, operation)
        widen, narrow = cast(stored, compute), cast(compute, stored)
        return self.values.operation(op, lambda old, operand: narrow(operation(widen(old), operand)))

    def _atomic(self, expression: ir.Atomic) -> Evaluator:
        pointer, index = self._address_and_index(expression.place)
        evaluators = [self.expression(argument) for argument in expression.arguments]
        site, atomic = AccessSite(expression.place.position, "atomic"), self.values.atomic
        op, used, dtype = expression.op, expression.used, expression.type.dtype

        def run(frame: CallFrame, mask: LaneMask) -> Any:
            address, at = pointer(frame, mask), index(frame, mask)
            operands = [evaluate(frame, mask) for evaluate in evaluators]
            return atomic(address, frame.batch, at, dtype, op, operands, mask, site, used)

        return run

    def _temporary(self, expression: ir.Temporary) -> Evaluator:
        type, values = expression.type.element, self.values
        parts, punned = leaves(type), has_union(type)
        value = self.expression(expression.value) if expression.value is not None else None
        site = AccessSite(SourcePosition("", 0), "write")

        def run(frame: CallFrame, mask: LaneMask) -> Any:
            address = PointerValue(
                LocalMemory("a temporary value", type.size, frame.batch.geometry.lanes, punned=punned)
            )
            if value is not None:
                store(values, frame.batch, address, parts, 0, value(frame, mask), mask, site)
            return values.lift(address)

        return run

    def _async_copy(self, expression: ir.AsyncCopy) -> Evaluator:
        to, source, size = (self.bare.expression(each) for each in (expression.to, expression.source, expression.bytes))
        source_bytes = self.bare.expression(expression.given) if expression.given is not None else None
        position, values = expression.position, self.values

        def run(frame: CallFrame, mask: LaneMask) -> None:
            copy = CopiedBytes(
                values,
                frame.batch,
                to(frame, mask),
                source(frame, mask),
                source_bytes and source_bytes(frame, mask),
                position,
            )
            for count, lanes in of_each_value(size(frame, mask), mask):
                perform = partial(copy.perform, count)
                started(frame.batch).start(copy.to, copy.source, count, lanes, position, perform, copy.given)

        return values.lifted(run)

    def _bulk_copy(self, expression: ir.BulkCopy) -> Evaluator:
        to, source, size = (self.bare.expression(each) for each in (expression.to, expression.source, expression.bytes))
        barrier = self.bare.expression(expression.barrier) if expression.barrier is not None else None
        position, values = expression.position, self.values

        def run(frame: CallFrame, mask: LaneMask) -> None:
            batch = frame.batch
            copy = CopiedBytes(values, batch, to(frame, mask), source(frame, mask), None, position, bulk=True)
            copies, at = started(batch, "bulk"), barrier and barrier(frame, mask)
            for count, lanes in of_each_value(size(frame, mask), mask):
                copies.start(copy.to, copy.source, count, lanes, position, partial(copy.perform, count))
                if at is not None:
                    phases_of(batch).bind(at, lanes, position, copies.started_by(lanes), size=count)

        return values.lifted(run)

    def _phase(self, expression: ir.BarrierPhase) -> Evaluator:
        op, position, values = expression.op, expression.position, self.values
        pointer, argument = self.bare.expression(expression.pointer), self.bare.expression(expression.argument)

        def run(frame: CallFrame, mask: LaneMask) -> Any:
            phases, at, operand = phases_of(frame.batch), pointer(frame, mask), argument(frame, mask)
            match op:
                case "init":
                    return phases.init(values, at, operand, mask, position)
                case "test":
                    return phases.is_over(values, at, operand, mask, position)
                case "bind":
                    arrive = started(frame.batch).started_by(mask)
                    return phases.bind(at, mask, position, arrive, arrivals=1, more=int(operand))
            return phases.change(op, values, at, operand, mask, position)

        return values.lifted(run)

    # Functions.

    def _call(self, expression: ir.Call) -> Evaluator:
        function, position = expression.function, expression.position
        compiled = self._function(function)
        evaluators = [self.expression(argument) for argument in expression.arguments]

        def run(frame: CallFrame, mask: LaneMask) -> Any:
            _check_call(frame, mask, function, position)
            return compiled.call(frame, mask, [evaluate(frame, mask) for evaluate in evaluators])

        return self.values.lifted(run) if function.type == VOID else run

    def _indirect_call(self, expression: ir.IndirectCall) -> Evaluator:
        number, values = self.bare.expression(expression.function), self.values
        evaluators = [self.expression(argument) for argument in expression.arguments]

        def run(frame: CallFrame, mask: LaneMask) -> Any:
            numbers = number(frame, mask)
            arguments = [evaluate(frame, mask) for evaluate in evaluators]
            result: Any = None
            for function, lanes in _called_functions(frame, mask, numbers, expression):
                _check_call(frame, lanes, function, expression.position)
                this = [values.lift(each) for each in _this_argument(function)]
                returned = self._function(function).call(frame, lanes, [*this, *arguments])
                result = values.merged(result, returned, lanes)
            return result

        return values.lifted(run) if expression.type == VOID else run

    def _launch(self, expression: ir.LaunchCall) -> Evaluator:
        function, position = expression.function, expression.position
        parts = (expression.grid, expression.block, expression.shared_bytes, expression.stream)
        configuration = [self.expression(part) for part in parts]
        arguments = [self.expression(argument) for argument in expression.arguments]
        return lambda frame, mask: launch_lanes(frame, mask, function, configuration, arguments, position)


def _select_constant(condition: Any, yes: Any, no: Any) -> Any:
    if isinstance(condition, np.ndarray):
        return np.where(condition, yes, no)
    return yes if condition else no


def _called_functions(
    frame: CallFrame, mask: LaneMask, numbers: Any, expression: ir.IndirectCall
) -> Iterator[tuple[ir.Function, LaneMask]]:
    """Yield the functions that a pointer points to, each with its lanes."""
    remaining: LaneMask | None = mask
    while remaining is not None:
        number = numbers[remaining.lanes[0]] if isinstance(numbers, np.ndarray) else numbers
        lanes, remaining = remaining.split(numbers == number)
        assert lanes is not None
        if int(number) not in expression.functions:
            thread = frame.batch.describe(int(lanes.lanes[0]))
            raise LaunchError(
                f"{expression.position}: {thread} calls through a pointer that does not point to a function.",
                position=expression.position,
                kind="null-pointer",
                thread=thread,
            )
        yield expression.functions[int(number)], lanes


def _this_argument(function: ir.Function) -> list[Any]:
    """Return a null `this` if a function that is called through a pointer is a lambda's, else no argument."""
    return [PointerValue(None)] if function.parameters and function.parameters[0][0] == "this" else []


def _check_call(frame: CallFrame, mask: LaneMask, function: ir.Function, position: SourcePosition) -> None:
    """Raise LaunchError if a call of `function` exceeds the maximum depth or the time limit."""
    if frame.depth >= MAXIMUM_DEPTH:
        kind = "stack-overflow"
        error = f"Stack overflow: {function.name} is called more than {MAXIMUM_DEPTH} levels deep."
    elif frame.batch.patience.is_over:
        kind = "endless"
        error = f"{function.name} is still called after {frame.batch.patience.spent}: its calls do not end."
    else:
        return
    raise LaunchError(
        f"{position}: {error}",
        position=position,
        advice="Check the condition that ends the recursion.",
        kind=kind,
        thread=frame.batch.describe(int(mask.lanes[0])),
    )
