"""The algebra of values with nodes, which the compiler uses while a launch is recorded.

The nodes of a value are one number, one number per lane, or for a struct a tuple with those of each leaf. Addresses and
conditions are bare values: their provenance is not recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gpu.base.errors import LaunchError
from gpu.base.lane_mask import LaneMask
from gpu.simulator import ir
from gpu.simulator.executor import exchanges
from gpu.simulator.executor.state.atomics import AtomicOperation
from gpu.simulator.executor.state.call_frame import CallFrame, Evaluator, Executable, assign_local
from gpu.simulator.executor.state.memory import AccessSite
from gpu.simulator.executor.state.observer import Access
from gpu.simulator.executor.state.pointers import PointerValue
from gpu.simulator.executor.state.running_batch import RunningBatch, WarpOperation
from gpu.simulator.executor.values import Barrier, ConditionNotifier, ExchangeNotifier, PlainValues, synchronize_warps
from gpu.simulator.trace.recorded_memory import NO_NODE
from gpu.simulator.trace.recorder import Recorder
from gpu.simulator.trace.warp_nodes import record_block_vote, record_matrix_product, record_reduction


class TracedValue:
    """A value with its nodes."""

    __slots__ = ("node", "value")

    def __init__(self, value: Any, node: Any = NO_NODE) -> None:
        self.value = value
        self.node = node


class BareValues(PlainValues):
    """The algebra of bare values in a recorded launch, in which variables contain traced values."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def variable(self, slot: int) -> Evaluator:
        return lambda frame, mask: frame.values[slot].value

    def wrap_barrier(self, barrier: Barrier) -> Barrier:
        return _wrap_resuming_barrier(self._recorder, barrier)


class TracedValues(PlainValues):
    """The algebra of values with nodes.

    Parameters
    ----------
    recorder : Recorder
        The recorder, which must also be an observer of the launch.
    """

    # The recording would show operations that a lane does not need.
    allows_speculation = False

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._bare = BareValues(recorder)
        # For each block of a batch, by its first lane: the votes at the last barrier, and the nodes of their result.
        self._votes: dict[int, tuple[Any, Any]] = {}

    @property
    def bare(self) -> PlainValues:
        return self._bare

    def lift(self, value: Any) -> TracedValue:
        return TracedValue(value)

    def lift_closure(self, run: Evaluator) -> Evaluator:
        return lambda frame, mask: TracedValue(run(frame, mask))

    def strip(self, value: TracedValue) -> Any:
        return value.value

    def strip_closure(self, run: Evaluator) -> Evaluator:
        return lambda frame, mask: run(frame, mask).value

    # Operations on values.

    def apply(self, op: str, function: Callable[..., Any], operands: Sequence[Evaluator]) -> Evaluator:
        def run(frame: CallFrame, mask: LaneMask) -> TracedValue:
            return self._operate(op, function, mask, [evaluate(frame, mask) for evaluate in operands])

        return run

    def operation(self, op: str, function: Callable[[Any, Any], Any]) -> Callable[[LaneMask, Any, Any], TracedValue]:
        return lambda mask, left, right: self._operate(op, function, mask, (left, right))

    def _operate(
        self, op: str, function: Callable[..., Any], mask: LaneMask, operands: Sequence[TracedValue]
    ) -> TracedValue:
        values = [operand.value for operand in operands]
        result = function(*values)
        if isinstance(result, PointerValue):
            return TracedValue(result)
        nodes = [operand.node for operand in operands]
        return TracedValue(result, self._recorder.record_operation(op, mask, result, nodes, values))

    def exact_product(self, multiply: Callable[[Any, Any], Any], left: Evaluator, right: Evaluator) -> Evaluator:
        """Return a closure of the factors and the rounded product, which the recording shows."""

        def run(frame: CallFrame, mask: LaneMask) -> tuple[Any, Any, TracedValue]:
            factors = left(frame, mask), right(frame, mask)
            return factors[0].value, factors[1].value, self._operate("*", multiply, mask, factors)

        return run

    def fused_operation(
        self, op: str, function: Callable[..., Any], *, product_first: bool
    ) -> Callable[[LaneMask, Any, Any], TracedValue]:
        def run(mask: LaneMask, first: Any, second: Any) -> TracedValue:
            (x, y, product), other = (first, second) if product_first else (second, first)
            operands = (product, other) if product_first else (other, product)
            return self._operate(op, lambda *rounded: function(x, y, other.value), mask, operands)

        return run

    def convert(self, function: Callable[[Any], Any], value: TracedValue) -> TracedValue:
        return TracedValue(function(value.value), value.node)

    def conversion(self, function: Callable[[Any], Any], operand: Evaluator) -> Evaluator:
        return lambda frame, mask: self.convert(function, operand(frame, mask))

    def logical(self, op: str, left: Evaluator, right: Evaluator, report: ConditionNotifier | None = None) -> Evaluator:
        conjunction = op == "&&"
        combine = np.logical_and if conjunction else np.logical_or

        def run(frame: CallFrame, mask: LaneMask) -> TracedValue:
            first, second = left(frame, mask), TracedValue(np.bool_(conjunction))
            true, false = mask.split(first.value)
            needed = true if conjunction else false
            if report is not None:
                report(frame, mask, needed)
            if needed is not None:
                second = self.merge(second, right(frame, needed), needed)
            return self._operate(op, combine, mask, (first, second))

        return run

    def merge(self, old: TracedValue | None, new: Any, mask: LaneMask) -> Any:
        if old is None:
            return new
        return TracedValue(assign_local(old.value, new.value, mask), merge_nodes(old.node, new.node, mask))

    def choice(self, condition: Evaluator, chosen: Evaluator, other: Evaluator) -> Evaluator:
        def run(frame: CallFrame, mask: LaneMask) -> TracedValue:
            decision = condition(frame, mask)
            sides = (chosen(frame, mask), other(frame, mask))
            return self._operate("?:", lambda one, two: np.asarray(np.where(decision, one, two))[()], mask, sides)

        return run

    def compose(self, parts: Sequence[TracedValue]) -> TracedValue:
        values: list[Any] = []
        nodes: list[Any] = []
        for part in parts:
            part_values = part.value if isinstance(part.value, tuple) else (part.value,)
            values += part_values
            nodes += _leaf_nodes(part.node, len(part_values))
        return TracedValue(tuple(values), tuple(nodes))

    def part(self, aggregate: Evaluator, selection: int | slice) -> Evaluator:
        def run(frame: CallFrame, mask: LaneMask) -> TracedValue:
            struct = aggregate(frame, mask)
            return TracedValue(struct.value[selection], _leaf_nodes(struct.node, len(struct.value))[selection])

        return run

    def parts(self, value: TracedValue) -> Sequence[TracedValue]:
        if not isinstance(value.value, tuple):
            return (value,)
        return [*map(TracedValue, value.value, _leaf_nodes(value.node, len(value.value)))]

    # Memory.

    def read(
        self,
        address: PointerValue,
        batch: RunningBatch,
        index: Any,
        dtype: np.dtype[Any],
        mask: LaneMask,
        site: AccessSite,
    ) -> TracedValue:
        loaded = self._recorder.loaded_nodes = []
        try:
            value = address.load(batch, index, dtype, mask, site)
        except LaunchError:
            self.report_failed_access(batch, address, index, dtype, mask, site)
            raise
        self._recorder.loaded_nodes = None
        node: Any = NO_NODE
        for number, (lanes, (each, *_)) in enumerate(loaded):  # several if lanes point into different memories
            node = merge_nodes(node, each, lanes) if number else each
        return TracedValue(value, node)

    def write(
        self,
        address: PointerValue,
        batch: RunningBatch,
        index: Any,
        dtype: np.dtype[Any],
        value: TracedValue,
        mask: LaneMask,
        site: AccessSite,
    ) -> None:
        self._recorder.stored_nodes = (value.node,)
        try:
            address.store(batch, index, dtype, value.value, mask, site)
        except LaunchError:
            self.report_failed_access(batch, address, index, dtype, mask, site)
            raise

    def atomic(
        self,
        address: PointerValue,
        batch: RunningBatch,
        index: Any,
        dtype: np.dtype[Any],
        operation: AtomicOperation,
        mask: LaneMask,
        site: AccessSite,
    ) -> TracedValue:
        op, operands, _ = operation
        values, nodes = [operand.value for operand in operands], [operand.node for operand in operands]
        try:
            old = address.atomic(batch, index, dtype, AtomicOperation(op, values, used=True), mask, site)
        except LaunchError:
            self.report_failed_access(batch, address, index, dtype, mask, site)
            raise
        return TracedValue(old, self._recorder.record_atomic(batch, op, values, nodes, old))

    def report_read(self, batch: RunningBatch, access: Access) -> TracedValue:
        loaded = self._recorder.loaded_nodes = []
        super().report_read(batch, access)
        self._recorder.loaded_nodes = None
        return TracedValue(access.values, loaded[0][1][: len(access.values)])

    def report_failed_access(
        self,
        batch: RunningBatch,
        address: PointerValue,
        index: Any,
        dtype: np.dtype[Any],
        mask: LaneMask,
        site: AccessSite,
        count: int = 1,
    ) -> None:
        self._recorder.record_failed_access(batch, address, index, dtype, mask, site.action, count)

    def report_write(self, batch: RunningBatch, access: Access, value: TracedValue) -> None:
        self._recorder.stored_nodes = _leaf_nodes(value.node, len(value.value))
        super().report_write(batch, access, value)

    # Between lanes.

    def exchange(
        self,
        op: str,
        dtype: np.dtype[Any],
        mask_argument: Evaluator,
        operand: Evaluator,
        others: Sequence[Evaluator],
        notify: ExchangeNotifier,
    ) -> Evaluator:
        def run(frame: CallFrame, mask: LaneMask) -> TracedValue:
            members, traced = mask_argument(frame, mask), operand(frame, mask)
            arguments = [other(frame, mask) for other in others]
            sync = WarpOperation(mask, members, [traced.value, traced.node, *arguments])
            if frame.batch.scheduler is not None:
                sync = frame.batch.scheduler.wait_for_lanes(op, mask, members, sync.operands)
            result: TracedValue = sync.compute_once(lambda: exchange(frame, sync))
            return result

        def exchange(frame: CallFrame, sync: WarpOperation) -> TracedValue:
            value, node, *arguments = sync.operands
            notify(frame, sync.mask, sync.member_mask, arguments)
            if op.startswith("__shfl"):
                node = exchanges.run_warp_operation(op, frame.batch, sync.mask, [sync.member_mask, node, *arguments])
            else:
                node = record_reduction(self._recorder, op, frame.batch, sync.mask, sync.member_mask, value, node)
            result = exchanges.run_warp_operation(op, frame.batch, sync.mask, [sync.member_mask, value, *arguments])
            return TracedValue(result.astype(dtype, copy=False), node)

        return run

    def product(self, op: str, dtype: np.dtype[Any], operands: Sequence[Evaluator]) -> Evaluator:
        def run(frame: CallFrame, mask: LaneMask) -> TracedValue:
            traced = [operand(frame, mask) for operand in operands]
            sync = synchronize_warps(op, frame, mask, [part for each in traced for part in (each.value, each.node)])
            result: TracedValue = sync.compute_once(lambda: multiply(frame, sync))
            return result

        def multiply(frame: CallFrame, sync: WarpOperation) -> TracedValue:
            values, nodes = sync.operands[::2], sync.operands[1::2]
            result = exchanges.run_warp_operation(op, frame.batch, sync.mask, [*values])
            return TracedValue(result, record_matrix_product(self._recorder, frame.batch, sync.mask, values, nodes))

        return run

    def vote(self, op: str, predicate: Evaluator, barrier: Barrier) -> Evaluator:
        barrier = self.wrap_barrier(barrier)

        def run(frame: CallFrame, mask: LaneMask) -> TracedValue:
            operand = predicate(frame, mask)
            vote = np.not_equal(operand.value, 0)
            node = self._recorder.record_operation(op, mask, vote.astype(np.int32), [operand.node], [operand.value])
            # A lane's vote is in the lowest bit, its node in the bits above.
            arrived, votes = barrier(frame, mask, np.asarray(node, np.int64) << 1 | vote)
            return TracedValue(
                exchanges.block_vote(op, frame.batch, arrived, votes & 1),
                self._vote_nodes(op, frame.batch, arrived, votes),
            )

        return run

    def _vote_nodes(self, op: str, batch: RunningBatch, arrived_mask: LaneMask, votes: Any) -> Any:
        """Return the nodes of a vote's result; the first warp that continues records the vote for the block."""
        first = int(arrived_mask.lanes[0])
        recorded, nodes = self._votes.get(first, (None, None))
        if recorded is not votes:
            lanes = np.broadcast_to(votes, batch.geometry.lanes)
            nodes = record_block_vote(self._recorder, op, batch, arrived_mask, lanes & 1, (lanes >> 1).astype(np.int32))
            self._votes[first] = (votes, nodes)
        return nodes

    def wrap_barrier(self, barrier: Barrier) -> Barrier:
        return _wrap_resuming_barrier(self._recorder, barrier)

    # Functions and variables.

    def on_assign(self, slot: int, value: TracedValue, mask: LaneMask) -> None:
        self._recorder.record_variable(slot, value.value, value.node, mask)

    def bind_arguments(
        self, function: ir.Function, arguments: Sequence[Any], variables: dict[str, PointerValue]
    ) -> Sequence[Any]:
        self._recorder.record_arguments(function.parameters, arguments, variables)
        return [TracedValue(argument) for argument in arguments]

    def body(self, function: ir.Function, body: Executable) -> Executable:
        recorder, parameters = self._recorder, len(function.parameters)

        def run(frame: CallFrame, mask: LaneMask) -> LaneMask | None:
            caller = recorder.enter_function(function, is_kernel=frame.kernel is None)
            for slot, argument in enumerate(frame.values[:parameters]):
                recorder.record_parameter(slot, argument.value, argument.node, mask)
            through = body(frame, mask)
            recorder.leave_function(caller)
            return through

        return run


def merge_nodes(old: Any, new: Any, mask: LaneMask) -> Any:
    """Return nodes that are `new` in the lanes of the mask and `old` in the others."""
    if isinstance(new, tuple) or isinstance(old, tuple):
        size = len(new) if isinstance(new, tuple) else len(old)
        pairs = zip(_leaf_nodes(old, size), _leaf_nodes(new, size), strict=True)
        return tuple(merge_nodes(before, after, mask) for before, after in pairs)
    if new is old:
        return new
    return np.where(mask.bits, new, old)


def _leaf_nodes(node: Any, count: int) -> tuple[Any, ...]:
    """Return a tuple with the nodes of each leaf of a value."""
    return node if isinstance(node, tuple) else (node,) * count


def _wrap_resuming_barrier(recorder: Recorder, barrier: Barrier) -> Barrier:
    """Return a barrier after which the recorder resumes the statement that contains it."""

    def wait(frame: CallFrame, mask: LaneMask, votes: Any) -> tuple[LaneMask, Any]:
        statement = recorder.suspend_statement()
        passed = barrier(frame, mask, votes)
        recorder.leave_function(statement)
        return passed

    return wait
