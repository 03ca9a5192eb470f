"""Compilation of expressions for the lockstep executor to closures that map a frame and a mask to a value."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from gpu.errors import LaunchError, SourcePosition
from gpu.lane_mask import LaneMask
from gpu.simulator import ir
from gpu.simulator.executor import exchanges
from gpu.simulator.executor.async_copies import ByteCopy, get_async_copies, group_by_value
from gpu.simulator.executor.barriers import pass_barrier, pass_grid_barrier
from gpu.simulator.executor.call_frame import Callee, CallFrame, Evaluator
from gpu.simulator.executor.children import add_child_launches
from gpu.simulator.executor.clusters import pass_cluster_barrier
from gpu.simulator.executor.effects import (
    check_assertion,
    print_lanes,
    read_clock,
    report_exchange,
    report_fence,
    report_heap_call,
    require_full_warp,
)
from gpu.simulator.executor.memory import AccessSite, LocalMemory
from gpu.simulator.executor.operation_counter import OperationCounter
from gpu.simulator.executor.phases import get_phases
from gpu.simulator.executor.pointers import PointerValue, to_pointer
from gpu.simulator.executor.shared_addresses import from_shared_address, map_to_cluster, to_shared_address
from gpu.simulator.executor.textures import compute_texel_weight, find_texel
from gpu.simulator.executor.values import PlainValues, load, load_leaf, store, store_leaf
from gpu.simulator.ir.intrinsics import BLOCK_VOTES, CONVERSIONS, FULL_WARP_SYNC, INTRINSICS, MATRIX_PRODUCTS
from gpu.simulator.ir.operations import UNARY, get_binary_operation, get_cast
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
    operation_counter : OperationCounter
        Counts the operations of the conditional operands of `?:`, `&&` and `||`.
    effect_compiler : ExpressionCompiler or None
        The compiler for expressions with side effects, if this one compiles the bare values of another algebra.
    """

    def __init__(
        self,
        values: PlainValues,
        function: Callable[[ir.Function], Callee],
        operation_counter: OperationCounter,
        effect_compiler: ExpressionCompiler | None = None,
    ) -> None:
        self.values = values
        self._function = function
        self._operation_counter = operation_counter
        self._effect_compiler = effect_compiler
        # The compiler for addresses and conditions.
        self.bare_compiler = (
            self if values.bare is values else ExpressionCompiler(values.bare, function, operation_counter, self)
        )

    def compile_expression(self, expression: ir.Expression) -> Evaluator:
        """Compile an expression to a closure."""
        if self._effect_compiler is not None and isinstance(expression, _STORES):
            return self._effect_compiler.values.strip_closure(self._effect_compiler.compile_expression(expression))
        match expression:
            case ir.Local(_, slot, _):
                return self.values.variable(slot)
            case ir.Unary(_, op, operand):
                assert isinstance(operand.type, Scalar)
                return self._apply(op, UNARY[op].get_function(operand.type), operand)
            case ir.Binary(_, op, left, right):
                assert isinstance(left.type, Scalar)
                return self._apply(op, get_binary_operation(op, left.type), left, right)
            case ir.Intrinsic():
                return self._intrinsic(expression)
            case ir.Cast(type, operand) if isinstance(type, Scalar) and isinstance(operand.type, Scalar):
                return self.values.conversion(get_cast(operand.type, type), self.compile_expression(operand))
            case ir.Logical():
                return self._logical(expression)
            case ir.Select():
                return self._select(expression)
            case ir.Sequence(_, first, second):
                before, after = self.bare_compiler.compile_expression(first), self.compile_expression(second)
                return lambda frame, mask: (before(frame, mask), after(frame, mask))[1]
            case ir.Construct(_, parts):
                return self._construct(parts)
            case ir.Extract(type, operand, first):
                last = first + len(leaves(type))
                index = first if isinstance(type, Scalar | Pointer) else slice(first, last)
                return self.values.part(self.compile_expression(operand), index)
            case ir.Load(_, place, is_async=True):
                return self._async_read(place)
            case ir.Load(_, place):
                return self._load(place)
            case ir.Assign(_, place, value):
                return self._assign(place, self.compile_expression(value), reads=not _runs_in_any_lane(value))
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
                return self.values.product(
                    op, type.dtype, [self.compile_expression(argument) for argument in arguments]
                )
            case ir.Warp(_, _, arguments) if arguments:
                return self._exchange(expression)
        return self.values.lift_closure(self.bare_compiler._compile_bare(expression))  # noqa: SLF001

    def _compile_bare(self, expression: ir.Expression) -> Evaluator:
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
                return lambda frame, mask: frame.batch.builtin_values[name][axis]
            case ir.Cast(type, operand):
                return self._pointer_cast(type, operand)
            case ir.ClusterAddress(_, own_pointer, block_rank, position):
                own, rank = self.compile_expression(own_pointer), self.compile_expression(block_rank)
                return lambda frame, mask: map_to_cluster(
                    frame.batch, own(frame, mask), rank(frame, mask), mask, position
                )
            case ir.SharedAddress(type, operand, position):
                return self._shared_address(type, self.compile_expression(operand), position)
            case ir.Offset(type, pointer, index):
                start, by, size = self.compile_expression(pointer), self.compile_expression(index), type.element.size
                return lambda frame, mask: start(frame, mask).offset_by(by(frame, mask), size)
            case ir.Member(_, pointer, offset):
                start = self.compile_expression(pointer)
                return lambda frame, mask: start(frame, mask).offset_by(offset, 1)
            case ir.Distance():
                return self._distance(expression)
            case ir.Warp(_, op, _, position) if op == FULL_WARP_SYNC:
                return lambda frame, mask: require_full_warp(frame, mask, position)
            case ir.Warp(scalar, op):
                dtype = scalar.dtype
                return lambda frame, mask: exchanges.run_warp_operation(op, frame.batch, mask, []).astype(
                    dtype, copy=False
                )
            case ir.Fence(_, name, position, lanes):
                named = self.compile_expression(lanes) if lanes is not None else None
                return lambda frame, mask: report_fence(frame, name, mask, named and named(frame, mask), position)
            case ir.AsyncCommit(_, kind):
                return lambda frame, mask: get_async_copies(frame.batch, kind).commit(mask)
            case ir.AsyncWait(_, left, kind):
                pending = self.compile_expression(left) if left is not None else None
                return lambda frame, mask: get_async_copies(frame.batch, kind).complete_groups(
                    mask, pending and pending(frame, mask)
                )
            case ir.HeapChange(_, pointer, size, position):
                return self._heap_call(pointer, size, position)
            case ir.Print(_, text, arguments):
                return self._print(text, arguments)
            case ir.Assertion(_, condition, text, position):
                holds = self.compile_expression(condition)
                return lambda frame, mask: check_assertion(frame, mask, holds(frame, mask), text, position)
            case ir.GridBarrier(_, position):
                return lambda frame, mask: pass_grid_barrier(frame, mask, position)
            case ir.ClusterBarrier(_, part, position):
                return lambda frame, mask: pass_cluster_barrier(frame, mask, part, position)
            case ir.Clock(scalar):
                dtype = scalar.dtype
                return lambda frame, mask: read_clock(frame, dtype)
            case ir.Texel(_, pointer, places):
                address, at = self.compile_expression(pointer), [self.compile_expression(place) for place in places]
                return lambda frame, mask: find_texel(
                    expression, frame.batch, address(frame, mask), [place(frame, mask) for place in at], mask
                )
            case ir.TexelWeight(_, pointer, _, along):
                texture = self.compile_expression(pointer)
                coordinate = self.compile_expression(along) if along is not None else None
                return lambda frame, mask: compute_texel_weight(
                    expression, frame.batch, texture(frame, mask), coordinate and coordinate(frame, mask), mask
                )
            case ir.LaunchCall():
                return self._launch(expression)
            case ir.WaitForChildren():
                return lambda frame, mask: frame.batch.wait_for_children()
        raise AssertionError(expression)

    def _apply(self, op: str, function: Callable[..., Any], *operands: ir.Expression) -> Evaluator:
        return self.values.apply(op, function, [self.compile_expression(operand) for operand in operands])

    def _intrinsic(self, expression: ir.Intrinsic) -> Evaluator:
        name, arguments, dtype = expression.name, expression.arguments, expression.type.dtype
        function = intrinsic = INTRINSICS[name].get_function(expression.type)
        if any(argument.type != expression.type for argument in arguments):
            function = lambda *values: intrinsic(*values).astype(dtype)  # noqa: E731
        if name in CONVERSIONS:
            return self.values.conversion(function, self.compile_expression(arguments[0]))
        return self._apply(name, function, *arguments)

    def _pointer_cast(self, type: Type, operand: ir.Expression) -> Evaluator:
        run = self.compile_expression(operand)
        if isinstance(operand.type, Pointer) and isinstance(type, Scalar):
            narrow = get_cast(INT64, type)
            return lambda frame, mask: narrow(run(frame, mask).number())
        if isinstance(operand.type, Scalar) and isinstance(type, Pointer):
            widen = get_cast(operand.type, INT64)
            return lambda frame, mask: to_pointer(widen(run(frame, mask)))
        return run

    def _shared_address(self, type: Scalar | Pointer, run: Evaluator, position: SourcePosition) -> Evaluator:
        if isinstance(type, Pointer):
            return lambda frame, mask: from_shared_address(frame.batch, run(frame, mask))
        narrow = get_cast(INT64, type)
        return lambda frame, mask: narrow(to_shared_address(frame.batch, run(frame, mask), mask, position))

    def _count_operand(self, side: ir.Expression, run: Evaluator) -> Evaluator:
        """Return a closure that also notifies the observer of the operations of a conditional operand."""
        count = self._operation_counter.find_operand_count(side)
        if count is None:
            return run
        position, operations = count

        def counting(frame: CallFrame, mask: LaneMask) -> Any:
            if frame.batch.observer is not None:
                frame.batch.observer.conditional_operand(frame.batch, position, operations, mask)
            return run(frame, mask)

        return counting

    def _logical(self, expression: ir.Logical) -> Evaluator:
        op, values = expression.op, self.values
        left, right = self.compile_expression(expression.left), self.compile_expression(expression.right)
        lazy = values.logical(op, left, self._count_operand(expression.right, right))
        if not values.allows_speculation or not _runs_in_any_lane(expression.right):
            return lazy
        eager = values.apply(op, np.logical_and if op == "&&" else np.logical_or, [left, right])
        if self._operation_counter.find_operand_count(expression.right) is None:
            return eager
        return lambda frame, mask: (eager if frame.batch.observer is None else lazy)(frame, mask)

    def _select(self, expression: ir.Select) -> Evaluator:
        match expression:
            case ir.Select(_, decision, ir.Const(_, yes), ir.Const(_, no)):
                # With two constants, the value derives from the condition.
                return self._apply("?:", lambda condition: _select_constant(condition, yes, no), decision)
        sides = (expression.chosen, expression.other)
        condition = self.bare_compiler.compile_expression(expression.condition)
        if self._operation_counter.is_choice(expression):
            return self.values.choice(condition, *map(self.compile_expression, sides))
        chosen, other = (self._count_operand(side, self.compile_expression(side)) for side in sides)
        eager = (
            self.values.allows_speculation
            and isinstance(expression.type, Scalar)
            and all(map(_runs_in_any_lane, sides))
        )
        is_counted = any(self._operation_counter.find_operand_count(side) is not None for side in sides)
        merged = self.values.merge

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
        evaluators, composed = [self.compile_expression(part) for part in parts], self.values.compose
        return lambda frame, mask: composed([evaluate(frame, mask) for evaluate in evaluators])

    def _distance(self, expression: ir.Distance) -> Evaluator:
        left, right = self.compile_expression(expression.left), self.compile_expression(expression.right)
        assert isinstance(expression.left.type, Pointer)
        size = expression.left.type.element.size

        def run(frame: CallFrame, mask: LaneMask) -> Any:
            difference = (left(frame, mask).offset - right(frame, mask).offset) // size
            return difference if isinstance(difference, np.ndarray) else np.int64(difference)

        return run

    def _heap_call(self, pointer: ir.Expression, size: ir.Expression | None, position: SourcePosition) -> Evaluator:
        address, byte_count = (
            self.compile_expression(pointer),
            self.compile_expression(size) if size is not None else None,
        )
        return lambda frame, mask: report_heap_call(
            frame, mask, address(frame, mask), byte_count and byte_count(frame, mask), position
        )

    def _print(self, text: str, arguments: tuple[ir.Expression | str, ...]) -> Evaluator:
        values = [
            argument if isinstance(argument, str) else self.compile_expression(argument) for argument in arguments
        ]

        def run(frame: CallFrame, mask: LaneMask) -> Any:
            results = [value if isinstance(value, str) else value(frame, mask) for value in values]
            return print_lanes(frame, mask, text, results)

        return run

    def _exchange(self, expression: ir.Warp) -> Evaluator:
        op, position = expression.op, expression.position
        if op in BLOCK_VOTES:
            (predicate,) = expression.arguments
            return self.values.vote(
                op,
                self.compile_expression(predicate),
                lambda frame, mask, votes: pass_barrier(frame, mask, position, votes),
            )
        members, value, *others = expression.arguments
        return self.values.exchange(
            op,
            expression.type.dtype,
            self.bare_compiler.compile_expression(members),
            self.compile_expression(value),
            [self.bare_compiler.compile_expression(other) for other in others],
            partial(report_exchange, op, position),
        )

    # Memory.

    def _address_and_index(self, place: ir.Element) -> tuple[Evaluator, Evaluator]:
        """Compile the address of an element, and its index if it is a scalar; for other types the index is None."""
        pointer = self.bare_compiler.compile_expression(place.pointer)
        if place.index is None:
            return pointer, lambda frame, mask: None
        index, size = self.bare_compiler.compile_expression(place.index), place.type.size
        if isinstance(place.type, Scalar):
            return pointer, index
        return (lambda frame, mask: pointer(frame, mask).offset_by(index(frame, mask), size)), lambda frame, mask: None

    def _load(self, place: ir.Element) -> Evaluator:
        pointer, index = self._address_and_index(place)
        type, values, vector = place.type, self.values, vector_size(place.type)
        site = AccessSite(place.position, "read", place.volatile, bool(vector), place.is_accumulator)
        if isinstance(type, Scalar):
            dtype, read = type.dtype, values.read
            return lambda frame, mask: read(pointer(frame, mask), frame.batch, index(frame, mask), dtype, mask, site)
        if isinstance(type, Pointer):
            return lambda frame, mask: load_leaf(values, frame.batch, pointer(frame, mask), None, type, mask, site)
        parts = leaves(type)
        return lambda frame, mask: load(values, frame.batch, pointer(frame, mask), parts, vector, mask, site)

    def _async_read(self, place: ir.Element) -> Evaluator:
        """Compile an asynchronous read, which is performed now; observers are notified of its start and of the wait."""
        load, pointer = self._load(place), self.bare_compiler.compile_expression(place.pointer)

        def run(frame: CallFrame, mask: LaneMask) -> Any:
            if frame.batch.observer is not None:
                get_async_copies(frame.batch, "product").start_read(
                    pointer(frame, mask), place.type.size, mask, place.position
                )
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
        site = AccessSite(place.position, "write", place.volatile, bool(vector), place.is_accumulator)
        if isinstance(type, Scalar):
            dtype, write = type.dtype, values.write

            def run_scalar(frame: CallFrame, mask: LaneMask) -> Any:
                new = value(frame, mask)
                if reads and frame.batch.scheduler is not None:
                    frame.batch.scheduler.yield_before_write()
                address, at = pointer(frame, mask), index(frame, mask)
                write(address, frame.batch, at, dtype, new, mask, site)
                if site.sum and frame.batch.observer is not None:
                    address = address if at is None else address.offset_by(at, dtype.itemsize)
                    get_async_copies(frame.batch, "product").start_write(address, dtype.itemsize, mask, site)
                return new

            return run_scalar
        parts = leaves(type)

        def run(frame: CallFrame, mask: LaneMask) -> Any:
            new = value(frame, mask)
            store(values, frame.batch, pointer(frame, mask), parts, vector, new, mask, site)
            return new

        return run

    def _assign_variable(self, slot: int, value: Evaluator) -> Evaluator:
        merged, noted = self.values.merge, self.values.on_assign

        def run(frame: CallFrame, mask: LaneMask) -> Any:
            new = value(frame, mask)
            frame.values[slot] = new if frame.declaration_masks[slot] is mask else merged(frame.values[slot], new, mask)
            if noted is not None:
                noted(slot, new, mask)
            return new

        return run

    def _update(self, expression: ir.Update) -> Evaluator:
        """Compile a compound assignment, whose right side C++ evaluates first."""
        change, value = self._change(expression), self.compile_expression(expression.value)
        gives_old, place, values = expression.returns_old, expression.place, self.values
        if isinstance(place, ir.Local):
            slot, merged, noted = place.slot, values.merge, values.on_assign

            def run_local(frame: CallFrame, mask: LaneMask) -> Any:
                operand = value(frame, mask)
                old = frame.values[slot]
                new = change(mask, old, operand)
                frame.values[slot] = new if frame.declaration_masks[slot] is mask else merged(old, new, mask)
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
                frame.batch.scheduler.yield_before_write()
            store_leaf(values, frame.batch, address, at, leaf, new, mask, writing)
            return old if gives_old else new

        return run

    def _change(self, expression: ir.Update) -> Callable[[LaneMask, Any, Any], Any]:
        """Return a function that computes the new value of an update from the old value and the right side."""
        op, compute, stored = expression.op, expression.compute_type, expression.type
        if isinstance(compute, Pointer):
            size = compute.element.size
            return self.values.operation(op, lambda old, operand: old.offset_by(operand, size))
        assert isinstance(stored, Scalar)
        operation = get_binary_operation(op, compute)
        if stored == compute:
            return self.values.operation(op, operation)
        widen, narrow = get_cast(stored, compute), get_cast(compute, stored)
        return self.values.operation(op, lambda old, operand: narrow(operation(widen(old), operand)))

    def _atomic(self, expression: ir.Atomic) -> Evaluator:
        pointer, index = self._address_and_index(expression.place)
        evaluators = [self.compile_expression(argument) for argument in expression.arguments]
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
        value = self.compile_expression(expression.value) if expression.value is not None else None
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
        to, source, size = (
            self.bare_compiler.compile_expression(each)
            for each in (expression.destination, expression.source, expression.bytes)
        )
        source_bytes = (
            self.bare_compiler.compile_expression(expression.read_bytes) if expression.read_bytes is not None else None
        )
        position, values = expression.position, self.values

        def run(frame: CallFrame, mask: LaneMask) -> None:
            copy = ByteCopy(
                values,
                frame.batch,
                to(frame, mask),
                source(frame, mask),
                source_bytes and source_bytes(frame, mask),
                position,
            )
            for count, lanes in group_by_value(size(frame, mask), mask):
                perform = partial(copy.perform, count)
                get_async_copies(frame.batch).start_copy(
                    copy.destination, copy.source, count, lanes, position, perform, copy.read_bytes
                )

        return values.lift_closure(run)

    def _bulk_copy(self, expression: ir.BulkCopy) -> Evaluator:
        to, source, size = (
            self.bare_compiler.compile_expression(each)
            for each in (expression.destination, expression.source, expression.bytes)
        )
        barrier = self.bare_compiler.compile_expression(expression.barrier) if expression.barrier is not None else None
        position, values = expression.position, self.values

        def run(frame: CallFrame, mask: LaneMask) -> None:
            batch = frame.batch
            copy = ByteCopy(values, batch, to(frame, mask), source(frame, mask), None, position, bulk=True)
            copies, at = get_async_copies(batch, "bulk"), barrier and barrier(frame, mask)
            for count, lanes in group_by_value(size(frame, mask), mask):
                copies.start_copy(copy.destination, copy.source, count, lanes, position, partial(copy.perform, count))
                if at is not None:
                    get_phases(batch).bind_copy(at, lanes, position, copies.bind_completion(lanes), size=count)

        return values.lift_closure(run)

    def _phase(self, expression: ir.BarrierPhase) -> Evaluator:
        op, position, values = expression.op, expression.position, self.values
        pointer, argument = (
            self.bare_compiler.compile_expression(expression.pointer),
            self.bare_compiler.compile_expression(expression.argument),
        )

        def run(frame: CallFrame, mask: LaneMask) -> Any:
            phases, at, operand = get_phases(frame.batch), pointer(frame, mask), argument(frame, mask)
            match op:
                case "init":
                    return phases.init(values, at, operand, mask, position)
                case "test":
                    return phases.is_complete(values, at, operand, mask, position)
                case "bind":
                    arrive = get_async_copies(frame.batch).bind_completion(mask)
                    return phases.bind_copy(at, mask, position, arrive, arrivals=1, extra_arrivals=int(operand))
            return phases.change(op, values, at, operand, mask, position)

        return values.lift_closure(run)

    # Functions.

    def _call(self, expression: ir.Call) -> Evaluator:
        function, position = expression.function, expression.position
        compiled = self._function(function)
        evaluators = [self.compile_expression(argument) for argument in expression.arguments]

        def run(frame: CallFrame, mask: LaneMask) -> Any:
            _check_call(frame, mask, function, position)
            return compiled.call(frame, mask, [evaluate(frame, mask) for evaluate in evaluators])

        return self.values.lift_closure(run) if function.type == VOID else run

    def _indirect_call(self, expression: ir.IndirectCall) -> Evaluator:
        number, values = self.bare_compiler.compile_expression(expression.function), self.values
        evaluators = [self.compile_expression(argument) for argument in expression.arguments]

        def run(frame: CallFrame, mask: LaneMask) -> Any:
            numbers = number(frame, mask)
            arguments = [evaluate(frame, mask) for evaluate in evaluators]
            result: Any = None
            for function, lanes in _called_functions(frame, mask, numbers, expression):
                _check_call(frame, lanes, function, expression.position)
                this = [values.lift(each) for each in _this_argument(function)]
                returned = self._function(function).call(frame, lanes, [*this, *arguments])
                result = values.merge(result, returned, lanes)
            return result

        return values.lift_closure(run) if expression.type == VOID else run

    def _launch(self, expression: ir.LaunchCall) -> Evaluator:
        function, position = expression.function, expression.position
        parts = (expression.grid, expression.block, expression.shared_bytes, expression.stream)
        configuration = [self.compile_expression(part) for part in parts]
        arguments = [self.compile_expression(argument) for argument in expression.arguments]
        return lambda frame, mask: add_child_launches(frame, mask, function, configuration, arguments, position)


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
    elif frame.batch.time_limit.is_exceeded:
        kind = "endless"
        error = f"{function.name} is still called after {frame.batch.time_limit.elapsed_text}: its calls do not end."
    else:
        return
    raise LaunchError(
        f"{position}: {error}",
        position=position,
        advice="Check the condition that ends the recursion.",
        kind=kind,
        thread=frame.batch.describe(int(mask.lanes[0])),
    )
