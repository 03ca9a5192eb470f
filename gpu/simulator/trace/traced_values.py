"""The algebra of values with nodes, which the compiler uses while a launch is recorded.

The nodes of a value are one number, one number per lane, or for a struct a tuple with those of each leaf. Addresses and
conditions are bare values: their provenance is not recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gpu.simulator import ir
from gpu.simulator.executor import exchanges
from gpu.simulator.executor.call_frame import CallFrame, Evaluator, Executable, assign_local
from gpu.simulator.executor.masks import LaneMask
from gpu.simulator.executor.memory import AccessSite
from gpu.simulator.executor.observe import Access
from gpu.simulator.executor.pointers import PointerValue
from gpu.simulator.executor.running import Meeting, RunningBatch
from gpu.simulator.executor.values import Barrier, PlainValues, TellExchange, meet_all
from gpu.simulator.trace.recorded_memory import NONE
from gpu.simulator.trace.recorder import Recorder
from gpu.simulator.trace.warp_nodes import combined_nodes, product_nodes, voted_nodes


class Traced:
    """A value with its nodes."""

    __slots__ = ("node", "value")

    def __init__(self, value: Any, node: Any = NONE) -> None:
        self.value = value
        self.node = node


class BareValues(PlainValues):
    """The algebra of bare values in a recorded launch, in which variables contain traced values."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def variable(self, slot: int) -> Evaluator:
        return lambda frame, mask: frame.values[slot].value

    def interrupting(self, barrier: Barrier) -> Barrier:
        return _resuming(self._recorder, barrier)


class TracedValues(PlainValues):
    """The algebra of values with nodes.

    Parameters
    ----------
    recorder : Recorder
        The recorder, which must also be an observer of the launch.
    """

    # The recording would show operations that a lane does not need.
    speculates = False

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._bare = BareValues(recorder)
        # For each block of a batch, by its first lane: the votes at the last barrier, and the nodes of their result.
        self._votes: dict[int, tuple[Any, Any]] = {}

    @property
    def bare(self) -> PlainValues:
        return self._bare

    def lift(self, value: Any) -> Traced:
        return Traced(value)

    def lifted(self, run: Evaluator) -> Evaluator:
        return lambda frame, mask: Traced(run(frame, mask))

    def strip(self, value: Traced) -> Any:
        return value.value

    def stripped(self, run: Evaluator) -> Evaluator:
        return lambda frame, mask: run(frame, mask).value

    # Operations on values.

    def apply(self, op: str, function: Callable[..., Any], operands: Sequence[Evaluator]) -> Evaluator:
        def run(frame: CallFrame, mask: LaneMask) -> Traced:
            return self._operate(op, function, mask, [evaluate(frame, mask) for evaluate in operands])

        return run

    def operation(self, op: str, function: Callable[[Any, Any], Any]) -> Callable[[LaneMask, Any, Any], Traced]:
        return lambda mask, left, right: self._operate(op, function, mask, (left, right))

    def _operate(self, op: str, function: Callable[..., Any], mask: LaneMask, operands: Sequence[Traced]) -> Traced:
        values = [operand.value for operand in operands]
        result = function(*values)
        if isinstance(result, PointerValue):
            return Traced(result)
        nodes = [operand.node for operand in operands]
        return Traced(result, self._recorder.operation(op, mask, result, nodes, values))

    def converted(self, function: Callable[[Any], Any], value: Traced) -> Traced:
        return Traced(function(value.value), value.node)

    def conversion(self, function: Callable[[Any], Any], operand: Evaluator) -> Evaluator:
        return lambda frame, mask: self.converted(function, operand(frame, mask))

    def logical(self, op: str, left: Evaluator, right: Evaluator) -> Evaluator:
        conjunction = op == "&&"
        combine = np.logical_and if conjunction else np.logical_or

        def run(frame: CallFrame, mask: LaneMask) -> Traced:
            first, second = left(frame, mask), Traced(np.bool_(conjunction))
            true, false = mask.split(first.value)
            needed = true if conjunction else false
            if needed is not None:
                second = self.merged(second, right(frame, needed), needed)
            return self._operate(op, combine, mask, (first, second))

        return run

    def merged(self, old: Traced | None, new: Any, mask: LaneMask) -> Any:
        if old is None:
            return new
        return Traced(assign_local(old.value, new.value, mask), merged_nodes(old.node, new.node, mask))

    def choice(self, condition: Evaluator, chosen: Evaluator, other: Evaluator) -> Evaluator:
        def run(frame: CallFrame, mask: LaneMask) -> Traced:
            decision = condition(frame, mask)
            sides = (chosen(frame, mask), other(frame, mask))
            return self._operate("?:", lambda one, two: np.asarray(np.where(decision, one, two))[()], mask, sides)

        return run

    def composed(self, parts: Sequence[Traced]) -> Traced:
        values: list[Any] = []
        nodes: list[Any] = []
        for part in parts:
            own = part.value if isinstance(part.value, tuple) else (part.value,)
            values += own
            nodes += _leaf_nodes(part.node, len(own))
        return Traced(tuple(values), tuple(nodes))

    def part(self, whole: Evaluator, which: int | slice) -> Evaluator:
        def run(frame: CallFrame, mask: LaneMask) -> Traced:
            struct = whole(frame, mask)
            return Traced(struct.value[which], _leaf_nodes(struct.node, len(struct.value))[which])

        return run

    def parts(self, value: Traced) -> Sequence[Traced]:
        if not isinstance(value.value, tuple):
            return (value,)
        return [*map(Traced, value.value, _leaf_nodes(value.node, len(value.value)))]

    # Memory.

    def read(
        self,
        address: PointerValue,
        batch: RunningBatch,
        index: Any,
        dtype: np.dtype[Any],
        mask: LaneMask,
        site: AccessSite,
    ) -> Traced:
        loaded = self._recorder.outgoing = []
        value = address.load(batch, index, dtype, mask, site)
        self._recorder.outgoing = None
        node: Any = NONE
        for number, (lanes, (each, *_)) in enumerate(loaded):  # several if lanes point into different memories
            node = merged_nodes(node, each, lanes) if number else each
        return Traced(value, node)

    def write(
        self,
        address: PointerValue,
        batch: RunningBatch,
        index: Any,
        dtype: np.dtype[Any],
        value: Traced,
        mask: LaneMask,
        site: AccessSite,
    ) -> None:
        self._recorder.incoming = (value.node,)
        address.store(batch, index, dtype, value.value, mask, site)

    def atomic(
        self,
        address: PointerValue,
        batch: RunningBatch,
        index: Any,
        dtype: np.dtype[Any],
        op: str,
        operands: Sequence[Traced],
        mask: LaneMask,
        site: AccessSite,
        used: bool,
    ) -> Traced:
        values, nodes = [operand.value for operand in operands], [operand.node for operand in operands]
        old = address.atomic(batch, index, dtype, op, values, mask, site, True)
        return Traced(old, self._recorder.atomic(batch, op, values, nodes, old))

    def tell_read(self, batch: RunningBatch, access: Access) -> Traced:
        loaded = self._recorder.outgoing = []
        super().tell_read(batch, access)
        self._recorder.outgoing = None
        return Traced(access.values, loaded[0][1][: len(access.values)])

    def tell_write(self, batch: RunningBatch, access: Access, value: Traced) -> None:
        self._recorder.incoming = _leaf_nodes(value.node, len(value.value))
        super().tell_write(batch, access, value)

    # Between lanes.

    def exchange(
        self,
        op: str,
        dtype: np.dtype[Any],
        named: Evaluator,
        given: Evaluator,
        others: Sequence[Evaluator],
        tell: TellExchange,
    ) -> Evaluator:
        def run(frame: CallFrame, mask: LaneMask) -> Traced:
            members, own = named(frame, mask), given(frame, mask)
            arguments = [other(frame, mask) for other in others]
            sync = Meeting(mask, members, [own.value, own.node, *arguments])
            if frame.batch.scheduler is not None:
                sync = frame.batch.scheduler.meet(op, mask, members, sync.brought)
            result: Traced = sync.outcome(lambda: exchange(frame, sync))
            return result

        def exchange(frame: CallFrame, sync: Meeting) -> Traced:
            value, node, *arguments = sync.brought
            tell(frame, sync.mask, sync.named, arguments)
            if op.startswith("__shfl"):
                node = exchanges.run(op, frame.batch, sync.mask, [sync.named, node, *arguments])
            else:
                node = combined_nodes(self._recorder, op, frame.batch, sync.mask, sync.named, value, node)
            result = exchanges.run(op, frame.batch, sync.mask, [sync.named, value, *arguments])
            return Traced(result.astype(dtype, copy=False), node)

        return run

    def product(self, op: str, dtype: np.dtype[Any], operands: Sequence[Evaluator]) -> Evaluator:
        def run(frame: CallFrame, mask: LaneMask) -> Traced:
            traced = [operand(frame, mask) for operand in operands]
            sync = meet_all(op, frame, mask, [part for each in traced for part in (each.value, each.node)])
            result: Traced = sync.outcome(lambda: multiply(frame, sync))
            return result

        def multiply(frame: CallFrame, sync: Meeting) -> Traced:
            values, nodes = sync.brought[::2], sync.brought[1::2]
            result = exchanges.run(op, frame.batch, sync.mask, [*values])
            return Traced(result, product_nodes(self._recorder, frame.batch, sync.mask, values, nodes))

        return run

    def vote(self, op: str, predicate: Evaluator, barrier: Barrier) -> Evaluator:
        barrier = self.interrupting(barrier)

        def run(frame: CallFrame, mask: LaneMask) -> Traced:
            operand = predicate(frame, mask)
            vote = np.not_equal(operand.value, 0)
            node = self._recorder.operation(op, mask, vote.astype(np.int32), [operand.node], [operand.value])
            # A lane's vote is in the lowest bit, its node in the bits above.
            arrived, votes = barrier(frame, mask, np.asarray(node, np.int64) << 1 | vote)
            return Traced(
                exchanges.block_vote(op, frame.batch, arrived, votes & 1),
                self._vote_nodes(op, frame.batch, arrived, votes),
            )

        return run

    def _vote_nodes(self, op: str, batch: RunningBatch, arrived: LaneMask, votes: Any) -> Any:
        """Return the nodes of a vote's result; the first warp that continues records the vote for the block."""
        first = int(arrived.lanes[0])
        recorded, nodes = self._votes.get(first, (None, None))
        if recorded is not votes:
            lanes = np.broadcast_to(votes, batch.geometry.lanes)
            nodes = voted_nodes(self._recorder, op, batch, arrived, lanes & 1, (lanes >> 1).astype(np.int32))
            self._votes[first] = (votes, nodes)
        return nodes

    def interrupting(self, barrier: Barrier) -> Barrier:
        return _resuming(self._recorder, barrier)

    # Functions and variables.

    def noted(self, slot: int, value: Traced, mask: LaneMask) -> None:
        self._recorder.register(slot, value.value, value.node, mask)

    def launched(
        self, function: ir.Function, arguments: Sequence[Any], variables: dict[str, PointerValue]
    ) -> Sequence[Any]:
        self._recorder.arguments(function.parameters, arguments, variables)
        return [Traced(argument) for argument in arguments]

    def body(self, function: ir.Function, body: Executable) -> Executable:
        recorder, parameters = self._recorder, len(function.parameters)

        def run(frame: CallFrame, mask: LaneMask) -> LaneMask | None:
            caller = recorder.enter(function, is_kernel=frame.kernel is None)
            for slot, argument in enumerate(frame.values[:parameters]):
                recorder.parameter(slot, argument.value, argument.node, mask)
            through = body(frame, mask)
            recorder.leave(caller)
            return through

        return run


def merged_nodes(old: Any, new: Any, mask: LaneMask) -> Any:
    """Return nodes that are `new` in the lanes of the mask and `old` in the others."""
    if isinstance(new, tuple) or isinstance(old, tuple):
        size = len(new) if isinstance(new, tuple) else len(old)
        pairs = zip(_leaf_nodes(old, size), _leaf_nodes(new, size), strict=True)
        return tuple(merged_nodes(before, after, mask) for before, after in pairs)
    if new is old:
        return new
    return np.where(mask.bits, new, old)


def _leaf_nodes(node: Any, count: int) -> tuple[Any, ...]:
    """Return a tuple with the nodes of each leaf of a value."""
    return node if isinstance(node, tuple) else (node,) * count


def _resuming(recorder: Recorder, barrier: Barrier) -> Barrier:
    """Return a barrier after which the recorder resumes the statement that contains it."""

    def wait(frame: CallFrame, mask: LaneMask, votes: Any) -> tuple[LaneMask, Any]:
        statement = recorder.suspend()
        passed = barrier(frame, mask, votes)
        recorder.leave(statement)
        return passed

    return wait
