"""Compilation of expressions for the lockstep executor to closures that map a frame and a mask to a value."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from gpu.base.errors import SourcePosition
from gpu.base.lane_mask import LaneMask
from gpu.simulator import ir
from gpu.simulator.executor.async_copies import ByteCopy, TensorBoxCopy, get_async_copies, group_by_value
from gpu.simulator.executor.bare_expressions import BareExpressions
from gpu.simulator.executor.barriers import pass_barrier
from gpu.simulator.executor.effects import report_exchange
from gpu.simulator.executor.operation_counter import OperationCounter
from gpu.simulator.executor.phases import PhaseOperation, get_phases
from gpu.simulator.executor.state.atomics import AtomicOperation
from gpu.simulator.executor.state.call_frame import Callee, CallFrame, Evaluator
from gpu.simulator.executor.state.memory import AccessSite, LocalMemory
from gpu.simulator.executor.state.observer import OperatorSite
from gpu.simulator.executor.state.pointers import PointerValue, select_lane
from gpu.simulator.executor.switch_points import SwitchPoint
from gpu.simulator.executor.values import PlainValues
from gpu.simulator.ir.contraction import get_fused_operation, is_exact_product
from gpu.simulator.ir.intrinsics import BLOCK_VOTES, CONVERSIONS, INTRINSICS, MATRIX_PRODUCTS
from gpu.simulator.ir.operations import UNARY, get_binary_operation, get_cast
from gpu.simulator.ir.value_uses import ValueUse, ValueUses
from gpu.simulator.ir.waits import adds_zero
from gpu.simulator.ir.walking import Visitor, walk
from gpu.simulator.types import VOID, Pointer, Scalar, has_union, leaves, vector_size

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


def _report_condition(frame: CallFrame, mask: LaneMask, true_mask: LaneMask | None) -> None:
    """Notify the observer of a condition within an expression that decides about accesses or effects."""
    if frame.batch.observer is not None:
        frame.batch.observer.inner_branch(frame.batch, mask, true_mask)


def _has_checked_operator(expression: ir.Expression) -> bool:
    """Return whether the observer is notified of operands in an expression, so that it runs only where it has to."""
    return any(isinstance(part, ir.Binary) and part.position is not None for part in walk(expression))


_ORDERING = ("acquire", "release", "acq_rel")


def _order_accesses(run: Evaluator, order: str) -> Evaluator:
    """Order the delayed accesses of a thread before an access that orders others, as by a fence."""

    def order_and_run(frame: CallFrame, mask: LaneMask) -> Any:
        if frame.batch.registers is not None:
            frame.batch.registers.order_accesses(order, mask, is_fence=False)
        return run(frame, mask)

    return order_and_run


# Expressions with side effects are compiled with full values even where only bare values are needed.
_STORES = (
    ir.Assign
    | ir.Update
    | ir.Atomic
    | ir.AsyncCopy
    | ir.BulkCopy
    | ir.TensorCopy
    | ir.BarrierPhase
    | ir.Call
    | ir.IndirectCall
    | ir.Temporary
)


class ExpressionCompiler(Visitor):
    """Compiles expressions over an algebra of values.

    Parameters
    ----------
    values : PlainValues
        The algebra.
    function : callable
        Returns a function compiled to closures.
    operation_counter : OperationCounter
        Counts the operations of the conditional operands of `?:`, `&&` and `||`.
    value_uses : ValueUses
        Determines what the values of strong reads decide.
    effect_compiler : ExpressionCompiler or None
        The compiler for expressions with side effects, if this one compiles the bare values of another algebra.
    """

    def __init__(
        self,
        values: PlainValues,
        function: Callable[[ir.Function], Callee],
        operation_counter: OperationCounter,
        value_uses: ValueUses,
        effect_compiler: ExpressionCompiler | None = None,
    ) -> None:
        self.values = values
        self._function = function
        self._operation_counter = operation_counter
        self._value_uses = value_uses
        self._effect_compiler = effect_compiler
        # The compiler for addresses and conditions.
        self.bare_compiler = (
            self
            if values.bare is values
            else ExpressionCompiler(values.bare, function, operation_counter, value_uses, self)
        )
        self._bare = BareExpressions(self.bare_compiler.compile_expression)

    def compile_expression(self, expression: ir.Expression) -> Evaluator:
        """Compile an expression to a closure."""
        if self._effect_compiler is not None and isinstance(expression, _STORES):
            return self._effect_compiler.values.strip_closure(self._effect_compiler.compile_expression(expression))
        evaluator: Evaluator = self.visit(expression)
        return evaluator

    def _compile_bare(self, *expressions: ir.Expression) -> Iterator[Evaluator]:
        """Compile expressions to closures that return values with nothing attached."""
        return map(self.bare_compiler.compile_expression, expressions)

    def visit_local(self, node: ir.Local) -> Evaluator:
        return self.values.variable(node.slot)

    def visit_unary(self, node: ir.Unary) -> Evaluator:
        assert isinstance(node.operand.type, Scalar)
        return self._apply(node.op, UNARY[node.op].get_function(node.operand.type), node.operand)

    def visit_binary(self, node: ir.Binary) -> Evaluator:
        assert isinstance(node.left.type, Scalar)
        product_first = is_exact_product(node.left)
        if node.position is not None:
            return self._compile_checked(node, node.position)
        if not product_first and not is_exact_product(node.right):
            return self._apply(node.op, get_binary_operation(node.op, node.left.type), node.left, node.right)
        left, right = self._compile_operand(node.left), self._compile_operand(node.right)
        function = get_fused_operation(node.op, product_first=product_first)
        combine = self.values.fused_operation(node.op, function, product_first=product_first)
        return lambda frame, mask: combine(mask, left(frame, mask), right(frame, mask))

    def _compile_checked(self, node: ir.Binary, position: SourcePosition) -> Evaluator:
        """Compile an integer operation of whose operands the observer is notified."""
        assert isinstance(node.left.type, Scalar)
        left, right = self.compile_expression(node.left), self.compile_expression(node.right)
        combine = self.values.operation(node.op, get_binary_operation(node.op, node.left.type))
        site, strip = OperatorSite(position, node.op, node.left.type), self.values.strip

        def run(frame: CallFrame, mask: LaneMask) -> Any:
            first, second = left(frame, mask), right(frame, mask)
            if frame.batch.observer is not None:
                frame.batch.observer.operands(frame.batch, site, strip(first), strip(second), mask)
            return combine(mask, first, second)

        return run

    def _compile_operand(self, operand: ir.Expression) -> Evaluator:
        """Compile an operand, which may be an exact product."""
        if not is_exact_product(operand):
            return self.compile_expression(operand)
        left, right = self.compile_expression(operand.left), self.compile_expression(operand.right)
        return self.values.exact_product(get_binary_operation("*", operand.type), left, right)

    def visit_cast(self, node: ir.Cast) -> Evaluator:
        if isinstance(node.type, Scalar) and isinstance(node.operand.type, Scalar):
            return self.values.conversion(get_cast(node.operand.type, node.type), self.compile_expression(node.operand))
        return self.visit_other(node)

    def visit_sequence(self, node: ir.Sequence) -> Evaluator:
        before, after = self.bare_compiler.compile_expression(node.first), self.compile_expression(node.second)
        return lambda frame, mask: (before(frame, mask), after(frame, mask))[1]

    def visit_construct(self, node: ir.Construct) -> Evaluator:
        return self._construct(node.parts)

    def visit_extract(self, node: ir.Extract) -> Evaluator:
        last = node.first + len(leaves(node.type))
        index = node.first if isinstance(node.type, Scalar | Pointer) else slice(node.first, last)
        return self.values.part(self.compile_expression(node.operand), index)

    def visit_load(self, node: ir.Load) -> Evaluator:
        if node.is_async:
            return self._async_read(node.place)
        return self._compile_ordered(node.place.order, lambda order: self._load(node.place, order))

    def visit_assign(self, node: ir.Assign) -> Evaluator:
        value, reads = self.compile_expression(node.value), not _runs_in_any_lane(node.value)
        place = node.place
        if isinstance(place, ir.Local):
            return self._assign_variable(place.slot, value)
        return self._compile_ordered(place.order, lambda order: self._assign(place, value, order, reads=reads))

    def visit_warp(self, node: ir.Warp) -> Evaluator:
        if node.op in MATRIX_PRODUCTS:
            operands = [self.compile_expression(argument) for argument in node.arguments]
            return self.values.product(node.op, node.type.dtype, operands)
        return self._exchange(node) if node.arguments else self.visit_other(node)

    def visit_other(self, node: ir.Expression) -> Evaluator:
        return self.values.lift_closure(self._bare.visit(node))

    def _apply(self, op: str, function: Callable[..., Any], *operands: ir.Expression) -> Evaluator:
        return self.values.apply(op, function, [self.compile_expression(operand) for operand in operands])

    def visit_intrinsic(self, node: ir.Intrinsic) -> Evaluator:
        name, arguments, dtype = node.name, node.arguments, node.type.dtype
        function = intrinsic = INTRINSICS[name].get_function(node.type)
        if any(argument.type != node.type for argument in arguments):
            function = lambda *values: intrinsic(*values).astype(dtype)  # noqa: E731
        if name in CONVERSIONS:
            return self.values.conversion(function, self.compile_expression(arguments[0]))
        return self._apply(name, function, *arguments)

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

    def visit_logical(self, node: ir.Logical) -> Evaluator:
        op, values = node.op, self.values
        left, right = self.compile_expression(node.left), self.compile_expression(node.right)
        report = None if _runs_in_any_lane(node.right) else _report_condition
        lazy = values.logical(op, left, self._count_operand(node.right, right), report)
        if not values.allows_speculation or not _runs_in_any_lane(node.right):
            return lazy
        eager = values.apply(op, np.logical_and if op == "&&" else np.logical_or, [left, right])
        if self._operation_counter.find_operand_count(node.right) is None and not _has_checked_operator(node.right):
            return eager
        return lambda frame, mask: (eager if frame.batch.observer is None else lazy)(frame, mask)

    def visit_select(self, node: ir.Select) -> Evaluator:
        match node:
            case ir.Select(_, decision, ir.Const(_, yes), ir.Const(_, no)):
                # With two constants, the value derives from the condition.
                return self._apply("?:", lambda condition: _select_constant(condition, yes, no), decision)
        sides = (node.chosen, node.other)
        condition = self.bare_compiler.compile_expression(node.condition)
        if self._operation_counter.is_choice(node):
            return self.values.choice(condition, *map(self.compile_expression, sides))
        chosen, other = (self._count_operand(side, self.compile_expression(side)) for side in sides)
        eager = self.values.allows_speculation and isinstance(node.type, Scalar) and all(map(_runs_in_any_lane, sides))
        is_counted = any(
            self._operation_counter.find_operand_count(side) is not None or _has_checked_operator(side)
            for side in sides
        )
        merged, branches = self.values.merge, not all(map(_runs_in_any_lane, sides))

        def run(frame: CallFrame, mask: LaneMask) -> Any:
            decision = condition(frame, mask)
            if eager and isinstance(decision, np.ndarray) and (not is_counted or frame.batch.observer is None):
                return np.where(decision, chosen(frame, mask), other(frame, mask))
            true, false = mask.split(decision)
            if branches:
                _report_condition(frame, mask, true)
            if false is None:
                return chosen(frame, mask)
            if true is None:
                return other(frame, mask)
            return merged(other(frame, false), chosen(frame, true), true)

        return run

    def _construct(self, parts: tuple[ir.Expression, ...]) -> Evaluator:
        evaluators, composed = [self.compile_expression(part) for part in parts], self.values.compose
        return lambda frame, mask: composed([evaluate(frame, mask) for evaluate in evaluators])

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
            list(self._compile_bare(*others)),
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

    def _compile_ordered(
        self, order: ir.MemoryOrder | ir.Expression | None, build: Callable[[ir.MemoryOrder | None], Evaluator]
    ) -> Evaluator:
        """Compile an access with a memory order; an order that the kernel computes selects among several evaluators."""
        if order is None or isinstance(order, str):
            return _order_accesses(build(order), order) if order in _ORDERING else build(order)
        number = self.bare_compiler.compile_expression(order)
        evaluators = [self._compile_ordered(each, build) for each in ir.MEMORY_ORDERS]

        def run(frame: CallFrame, mask: LaneMask) -> Any:
            numbers = number(frame, mask)
            # If the orders of lanes differ, all lanes have the strongest.
            chosen = numbers[mask.lanes].max() if isinstance(numbers, np.ndarray) else numbers
            return evaluators[int(chosen)](frame, mask)

        return run

    def _site(self, place: ir.Element, action: str, order: ir.MemoryOrder | None = None) -> AccessSite:
        """Return the site of a read or a write; a guess is a relaxed read, and decides nothing."""
        is_guess = self._value_uses.is_guess(place)
        weak: ir.MemoryOrder = "relaxed" if is_guess else "weak"
        return AccessSite(
            place.position,
            action,
            place.volatile,
            bool(vector_size(place.type)),
            place.is_accumulator,
            order=order or ("volatile" if place.volatile else weak),
            scope=place.scope,
            use=ValueUse.DATA if is_guess else self._value_uses.find_use(place),
            read_only=place.is_read_only,
        )

    def _load(self, place: ir.Element, order: ir.MemoryOrder | None = None) -> Evaluator:
        pointer, index = self._address_and_index(place)
        type, values, vector = place.type, self.values, vector_size(place.type)
        site = self._site(place, "read", order)
        if isinstance(type, Scalar):
            dtype, read = type.dtype, values.read
            if site.is_strong:
                point = SwitchPoint(site, dtype, writes=False, is_tested=site.use > ValueUse.DATA)

                def run(frame: CallFrame, mask: LaneMask) -> Any:
                    address, at = pointer(frame, mask), index(frame, mask)
                    point.yield_before_access(frame.batch, address, at, mask)
                    return read(address, frame.batch, at, dtype, mask, site)

                return run
            return lambda frame, mask: read(pointer(frame, mask), frame.batch, index(frame, mask), dtype, mask, site)
        if isinstance(type, Pointer):
            return lambda frame, mask: values.load_leaf(frame.batch, pointer(frame, mask), None, type, mask, site)
        parts, load = leaves(type), values.load
        return lambda frame, mask: load(frame.batch, pointer(frame, mask), parts, vector, mask, site)

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

    def _assign(self, place: ir.Element, value: Evaluator, order: ir.MemoryOrder | None, *, reads: bool) -> Evaluator:
        """Compile an assignment.

        With `reads`, a schedule of independent lanes may switch lanes between the evaluation of the value and the
        write.
        """
        pointer, index = self._address_and_index(place)
        type, values, vector = place.type, self.values, vector_size(place.type)
        site = self._site(place, "write", order)
        if isinstance(type, Scalar):
            dtype, write = type.dtype, values.write
            point = SwitchPoint(site, dtype, writes=True, is_tested=False) if site.is_strong else None

            def run_scalar(frame: CallFrame, mask: LaneMask) -> Any:
                new = value(frame, mask)
                if reads and frame.batch.scheduler is not None:
                    frame.batch.scheduler.yield_before_write()
                address, at = pointer(frame, mask), index(frame, mask)
                if point is not None:
                    point.yield_before_access(frame.batch, address, at, mask)
                write(address, frame.batch, at, dtype, new, mask, site)
                if site.sum and frame.batch.observer is not None:
                    address = address if at is None else address.offset_by(at, dtype.itemsize)
                    get_async_copies(frame.batch, "product").start_write(address, dtype.itemsize, mask, site)
                return new

            return run_scalar
        parts, store = leaves(type), values.store

        def run(frame: CallFrame, mask: LaneMask) -> Any:
            new = value(frame, mask)
            store(frame.batch, pointer(frame, mask), parts, vector, new, mask, site)
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

    def visit_update(self, node: ir.Update) -> Evaluator:
        """Compile a compound assignment; as in C++, the right side is evaluated first."""
        change, value, check = self._change(node), self._compile_operand(node.value), self._check_update(node)
        gives_old, place, values = node.returns_old, node.place, self.values
        if isinstance(place, ir.Local):
            slot, merged, noted = place.slot, values.merge, values.on_assign

            def run_local(frame: CallFrame, mask: LaneMask) -> Any:
                operand = value(frame, mask)
                old = frame.values[slot]
                if check is not None:
                    check(frame, old, operand, mask)
                new = change(mask, old, operand)
                frame.values[slot] = new if frame.declaration_masks[slot] is mask else merged(old, new, mask)
                if noted is not None:
                    noted(slot, new, mask)
                return old if gives_old else new

            return run_local
        pointer, index = self._address_and_index(place)
        reading, writing = self._site(place, "read"), self._site(place, "write")
        ((_, leaf),) = leaves(place.type)

        def run(frame: CallFrame, mask: LaneMask) -> Any:
            operand = value(frame, mask)
            address, at = pointer(frame, mask), index(frame, mask)
            old = values.load_leaf(frame.batch, address, at, leaf, mask, reading)
            if check is not None:
                check(frame, old, operand, mask)
            new = change(mask, old, operand)
            if frame.batch.scheduler is not None:
                frame.batch.scheduler.yield_before_write()
            values.store_leaf(frame.batch, address, at, leaf, new, mask, writing)
            return old if gives_old else new

        return run

    def _check_update(self, node: ir.Update) -> Callable[[CallFrame, Any, Any, LaneMask], None] | None:
        """Return a function that notifies the observer of an update's operands; None if the result is defined."""
        if node.position is None:
            return None
        assert isinstance(node.compute_type, Scalar)
        site, strip = OperatorSite(node.position, node.op, node.compute_type), self.values.strip

        def check(frame: CallFrame, old: Any, operand: Any, mask: LaneMask) -> None:
            if frame.batch.observer is not None:
                frame.batch.observer.operands(frame.batch, site, strip(old), strip(operand), mask)

        return check

    def _change(self, expression: ir.Update) -> Callable[[LaneMask, Any, Any], Any]:
        """Return a function that computes the new value of an update from the old value and the right side."""
        op, compute, stored = expression.op, expression.compute_type, expression.type
        if isinstance(compute, Pointer):
            size = compute.element.size
            return self.values.operation(op, lambda old, operand: old.offset_by(operand, size))
        assert isinstance(stored, Scalar)
        widen, narrow = get_cast(stored, compute), get_cast(compute, stored)
        if is_exact_product(expression.value):
            fused = get_fused_operation(op, product_first=False)
            function = fused if stored == compute else lambda x, y, old: narrow(fused(x, y, widen(old)))
            return self.values.fused_operation(op, function, product_first=False)
        operation = get_binary_operation(op, compute)
        if stored == compute:
            return self.values.operation(op, operation)
        return self.values.operation(op, lambda old, operand: narrow(operation(widen(old), operand)))

    def visit_atomic(self, node: ir.Atomic) -> Evaluator:
        return self._compile_ordered(node.order, lambda order: self._compile_atomic(node, order or "relaxed"))

    def _compile_atomic(self, node: ir.Atomic, order: ir.MemoryOrder) -> Evaluator:
        pointer, index = self._address_and_index(node.place)
        evaluators = [self.compile_expression(argument) for argument in node.arguments]
        site = AccessSite(
            node.place.position,
            "atomic",
            order=order,
            scope=node.scope,
            op=node.op,
            use=self._value_uses.find_use(node.place),
        )
        atomic = self.values.atomic
        op, used, dtype = node.op, node.used, node.type.dtype
        is_tested = used and site.use > ValueUse.DATA
        point = SwitchPoint(site, dtype, writes=not adds_zero(node), is_tested=is_tested)

        def run(frame: CallFrame, mask: LaneMask) -> Any:
            address, at = pointer(frame, mask), index(frame, mask)
            operation = AtomicOperation(op, [evaluate(frame, mask) for evaluate in evaluators], used)
            compared = operation.operands[0] if op == "cas" else None
            point.yield_before_access(frame.batch, address, at, mask, compared)
            return atomic(address, frame.batch, at, dtype, operation, mask, site)

        return run

    def visit_temporary(self, node: ir.Temporary) -> Evaluator:
        type, values = node.type.element, self.values
        parts, punned = leaves(type), has_union(type)
        value = self.compile_expression(node.value) if node.value is not None else None
        site = AccessSite(SourcePosition("", 0), "write")

        def run(frame: CallFrame, mask: LaneMask) -> Any:
            address = PointerValue(
                LocalMemory("a temporary value", type.size, frame.batch.geometry.lanes, punned=punned)
            )
            if value is not None:
                values.store(frame.batch, address, parts, 0, value(frame, mask), mask, site)
            return values.lift(address)

        return run

    def visit_async_copy(self, node: ir.AsyncCopy) -> Evaluator:
        to, source, size = self._compile_bare(node.destination, node.source, node.bytes)
        source_bytes = self.bare_compiler.compile_expression(node.read_bytes) if node.read_bytes is not None else None
        position, values = node.position, self.values

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

    def visit_bulk_copy(self, node: ir.BulkCopy) -> Evaluator:
        to, source, size = self._compile_bare(node.destination, node.source, node.bytes)
        barrier = self.bare_compiler.compile_expression(node.barrier) if node.barrier is not None else None
        position, values = node.position, self.values

        def run(frame: CallFrame, mask: LaneMask) -> None:
            batch = frame.batch
            copy = ByteCopy(values, batch, to(frame, mask), source(frame, mask), None, position, bulk=True)
            copies, at = get_async_copies(batch, "bulk"), barrier and barrier(frame, mask)
            for count, lanes in group_by_value(size(frame, mask), mask):
                complete = copies.start_copy(
                    copy.destination, copy.source, count, lanes, position, partial(copy.perform, count)
                )
                if at is not None:
                    get_phases(batch).bind_copy(PhaseOperation(at, lanes, position, values), complete, size=count)

        return values.lift_closure(run)

    def visit_tensor_copy(self, node: ir.TensorCopy) -> Evaluator:
        to, matrix, barrier = self._compile_bare(node.destination, node.matrix, node.barrier)
        numbers = list(self._compile_bare(*node.numbers))
        position, values = node.position, self.values

        def run(frame: CallFrame, mask: LaneMask) -> None:
            batch = frame.batch
            copies, shape = get_async_copies(batch, "bulk"), mask.bits.shape
            pointers, at = (to(frame, mask), matrix(frame, mask)), barrier(frame, mask)
            evaluated = [np.broadcast_to(number(frame, mask), shape) for number in numbers]
            for lane in mask.lanes.tolist():
                destination, source = (each.select_lane(lane) for each in pointers)
                own = mask.split(batch.geometry.lane_numbers == lane)[0]
                assert own is not None
                box = TensorBoxCopy(
                    values, batch, position, destination, source, *(int(each[lane]) for each in evaluated)
                )
                operation = PhaseOperation(at, own, position, values)
                get_phases(batch).bind_copy(operation, copies.start_box(box, own), size=box.size)

        return values.lift_closure(run)

    def visit_barrier_phase(self, node: ir.BarrierPhase) -> Evaluator:
        op, values = node.op, self.values
        pointer, argument = self._compile_bare(node.pointer, node.argument)

        def run(frame: CallFrame, mask: LaneMask) -> Any:
            operation = PhaseOperation(pointer(frame, mask), mask, node.position, values, node.is_relaxed)
            phases, operand = get_phases(frame.batch), argument(frame, mask)
            match op:
                case "init":
                    return phases.init(operation, operand)
                case "test":
                    return phases.is_complete(operation, operand)
                case "bind":
                    arrive = get_async_copies(frame.batch).bind_completion(mask)
                    return phases.bind_copy(operation, arrive, arrivals=1, extra_arrivals=int(operand))
            return phases.change(operation, op, operand)

        return values.lift_closure(run)

    # Functions.

    def visit_call(self, node: ir.Call) -> Evaluator:
        function, position = node.function, node.position
        compiled = self._function(function)
        evaluators = [self.compile_expression(argument) for argument in node.arguments]

        def run(frame: CallFrame, mask: LaneMask) -> Any:
            _check_call(frame, mask, function, position)
            return compiled.call(frame, mask, [evaluate(frame, mask) for evaluate in evaluators])

        return self.values.lift_closure(run) if function.type == VOID else run

    def visit_indirect_call(self, node: ir.IndirectCall) -> Evaluator:
        number, values = self.bare_compiler.compile_expression(node.function), self.values
        evaluators = [self.compile_expression(argument) for argument in node.arguments]

        def run(frame: CallFrame, mask: LaneMask) -> Any:
            numbers = number(frame, mask)
            arguments = [evaluate(frame, mask) for evaluate in evaluators]
            result: Any = None
            for function, lanes in _called_functions(frame, mask, numbers, node):
                _check_call(frame, lanes, function, node.position)
                this = [values.lift(each) for each in _this_argument(function)]
                returned = self._function(function).call(frame, lanes, [*this, *arguments])
                result = values.merge(result, returned, lanes)
            return result

        return values.lift_closure(run) if node.type == VOID else run


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
        number = select_lane(numbers, int(remaining.lanes[0]))
        lanes, remaining = remaining.split(numbers == number)
        assert lanes is not None
        if int(number) not in expression.functions:
            sentence = "{thread} calls through a pointer that does not point to a function."
            raise frame.batch.thread_error(lanes, expression.position, sentence, kind="null-pointer")
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
        kind = "unfinished"
        error = f"{function.name} is still called after {frame.batch.time_limit.elapsed_text}: its calls did not end."
    else:
        return
    advice = "Check the condition that ends the recursion."
    raise frame.batch.thread_error(mask, position, error, kind=kind, advice=advice)
