"""Execution orders: all lanes in lockstep, or parts that a chooser selects."""

from __future__ import annotations

from dataclasses import dataclass

from gpu.base.schedules import Schedule
from gpu.base.warp import WARP
from gpu.simulator.executor.scheduling.choosers import Chooser, DriftingChooser, ShuffledChooser
from gpu.simulator.executor.scheduling.preemption import PreemptingChooser

# Lanes per batch, by lanes per part: the time per statement of a part is proportional to the lanes of the batch.
_INTERLEAVED_LANES = {WARP: 1 << 11, 1: 1 << 8}


@dataclass(frozen=True)
class ExecutionOrder:
    """The execution order of a launch.

    Parameters
    ----------
    chooser : Chooser or None
        Selects the next part; None if all lanes run in lockstep.
    register_seed : int or None
        The seed for caching values in registers; None for no caching.
    """

    chooser: Chooser | None = None
    lanes_per_part: int = WARP
    register_seed: int | None = None

    @property
    def has_long_waits(self) -> bool:
        """Whether waits in loops are prolonged."""
        return self.chooser is not None and self.chooser.long_waits is not None

    @property
    def batch_lanes(self) -> int:
        """The target number of lanes per batch; a batch has at least one block."""
        return _INTERLEAVED_LANES[self.lanes_per_part]


def create_order(schedule: str | Chooser) -> ExecutionOrder:
    """Return the execution order for a schedule.

    Parameters
    ----------
    schedule : str or Chooser
        One of `gpu.base.schedules.NAMES`, or a chooser of the next warp.

    Raises
    ------
    InputError
        The schedule is unknown.
    """
    if isinstance(schedule, Chooser):
        return ExecutionOrder(schedule)
    parsed = Schedule.parse(schedule)
    match parsed.kind.name:
        case "shuffle":
            return ExecutionOrder(ShuffledChooser(parsed.seed))
        case "lanes":
            return ExecutionOrder(DriftingChooser(parsed.seed), lanes_per_part=1)
        case "preempt":
            return ExecutionOrder(PreemptingChooser(parsed.seed))
        case "cached":
            return ExecutionOrder(register_seed=parsed.seed)
    return ExecutionOrder()
