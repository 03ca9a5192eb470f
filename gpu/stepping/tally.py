"""What has been counted of a recording up to a moment: work, steps, and how well lanes and memory were used."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from gpu.simulator.trace.trace import Trace
from gpu.stepping.moment.lane_traces import LaneTrace, lane_traces
from gpu.stepping.moment.traffic import measure
from gpu.stepping.recording import Recording
from gpu.warp import WARP

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Counts:
    """Counts from the beginning of a recording to a moment. Fractions are None where there is nothing to divide by.

    Parameters
    ----------
    operations : int
        Operations on data, by every lane that did one, as `gpu.simulator.executor.work` defines them. Arithmetic on
        indices is left out.
    steps : int
        How many times one after the other such statements were executed: lanes, warps and blocks that execute the same
        statement for the same time do so in one step.
    parallelism : float or None
        Operations a step.
    lane_use : float or None
        Active lanes in all statements, of the threads of those warps that have not ended.
    idle_fraction : float or None
        Of the same threads those that did nothing in statements that operate on data.
    step_idle_fraction : float or None
        The same, of the last such statement alone.
    lanes_per_warp : float or None
        Active lanes when a warp executes a statement, on average, of 32.
    sectors, ideal_sectors : int
        The 32-byte sectors of global memory that were moved, and as many as would have done.
    bank_conflicts : int
        Passes over the banks of shared memory beyond the least possible.
    barriers : int
        Barriers passed, each once for every block.
    """

    operations: int
    steps: int
    parallelism: float | None
    lane_use: float | None
    idle_fraction: float | None
    step_idle_fraction: float | None
    lanes_per_warp: float | None
    sectors: int
    ideal_sectors: int
    bank_conflicts: int
    barriers: int


class Tally:
    """Counts of a recording at any moment.

    Parameters
    ----------
    recording : Recording
    """

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        parts = [_count(launch.trace) for launch in recording.launches]
        columns = len(_COLUMNS)
        counted = np.concatenate([*parts, np.zeros((0, columns), np.int64)])
        self._sums = np.concatenate([np.zeros((1, columns), np.int64), np.cumsum(counted, axis=0)])
        # The last event before each moment that operated on data.
        busy = np.where(counted[:, _COLUMNS.index("operations")] > 0, np.arange(len(counted)), -1)
        self._latest = np.concatenate([[-1], np.maximum.accumulate(busy)]) if busy.size else np.array([-1])
        self._counted = counted

    def at(self, moment: int) -> Counts:
        """Return what had been counted just before an event, or at the end.

        Raises
        ------
        InputError
            There is no such moment.
        """
        self._recording.at(moment)
        sums = dict(zip(_COLUMNS, self._sums[moment].tolist(), strict=True))
        latest = dict(zip(_COLUMNS, self._counted[max(self._latest[moment], 0)].tolist(), strict=True))
        return Counts(
            operations=sums["operations"],
            steps=sums["steps"],
            parallelism=_ratio(sums["operations"], sums["steps"]),
            lane_use=_ratio(sums["active"], sums["resident"]),
            idle_fraction=_rest(_ratio(sums["busy"], sums["busy_resident"])),
            step_idle_fraction=_rest(_ratio(latest["busy"], latest["busy_resident"])) if sums["operations"] else None,
            lanes_per_warp=_ratio(sums["active"], sums["warps"]),
            sectors=sums["sectors"],
            ideal_sectors=sums["ideal_sectors"],
            bank_conflicts=sums["conflicts"],
            barriers=sums["barriers"],
        )


_COLUMNS = (
    "operations",
    "steps",
    "active",
    "resident",
    "busy",
    "busy_resident",
    "warps",
    "sectors",
    "ideal_sectors",
    "conflicts",
    "barriers",
)


def _ratio(above: int, below: int) -> float | None:
    return above / below if below else None


def _rest(fraction: float | None) -> float | None:
    return None if fraction is None else 1 - fraction


def _count(trace: Trace) -> Array:
    """Return what each event adds: shape (events, columns)."""
    made = {name: np.zeros(len(trace.events), np.int64) for name in _COLUMNS}
    made["operations"] += trace.data.events["work"]
    together = None if trace.together is None else WARP
    own = [
        (launch.number, lane_trace)
        for launch in trace.launches
        for lane_trace in lane_traces(trace, launch.number, together=together)
    ]
    for number, lane_trace in own:
        threads = np.arange(lane_trace.start, lane_trace.stop) % trace.launches[number].lanes_per_block
        active = lane_trace.lanes.sum(axis=1)
        warps = lane_trace.lanes.reshape(len(active), -1, WARP).any(axis=2).sum(axis=1)
        made["active"][lane_trace.events] = active[lane_trace.sets]
        made["warps"][lane_trace.events] = warps[lane_trace.sets]
        made["resident"][lane_trace.events] = _resident(lane_trace, threads < prod(trace.launches[number].block))
    busy = made["operations"] > 0
    made["busy"][busy], made["busy_resident"][busy] = made["active"][busy], made["resident"][busy]
    _count_steps(trace, [lane_trace for _, lane_trace in own], made)
    accesses = trace.data.accesses
    measured = measure(trace, 0, len(accesses))
    events = accesses["event"][measured.rows]
    for name in ("sectors", "ideal_sectors", "conflicts"):
        np.add.at(made[name], events, getattr(measured, name))
    for before, batch, mask in trace.data.barriers.tolist():
        blocks = np.unique(trace.lanes.of_mask(mask) // trace.lanes.per_block(batch))
        made["barriers"][before - 1] += blocks.size
    return np.stack([made[name] for name in _COLUMNS], axis=1)


def _resident(lane_trace: LaneTrace, exists: Array) -> Array:
    """Return for each event how many threads the warps have that have not ended."""
    threads = exists.reshape(-1, WARP).sum(axis=1)
    ended = np.where(exists, lane_trace.ended, -1).reshape(-1, WARP).max(axis=1)
    order = np.argsort(ended)
    gone = np.concatenate([[0], np.cumsum(threads[order])])
    # A warp's last return is still its own.
    left: Array = threads.sum() - gone[np.searchsorted(ended[order], lane_trace.events)]
    return left


def _count_steps(trace: Trace, own: list[LaneTrace], made: dict[str, Array]) -> None:
    """Count an event as a step where a warp executes its statement for a time that no other has come to before."""
    statements, offsets = (
        statements_of(trace),
        np.cumsum([0] + [lane_trace.stop - lane_trace.start for lane_trace in own]) // WARP,
    )
    times: dict[int, Array] = {}
    most: dict[int, int] = {}
    where = {}
    for number, lane_trace in enumerate(own):
        warps: Array = np.any(lane_trace.lanes.reshape(len(lane_trace.lanes), -1, WARP), axis=2)
        for place in np.flatnonzero(made["operations"][lane_trace.events] > 0).tolist():
            where[int(lane_trace.events[place])] = offsets[number] + np.flatnonzero(warps[lane_trace.sets[place]])
    for event in sorted(where):
        statement = int(statements[event])
        counts = times.setdefault(statement, np.zeros(offsets[-1], np.int64))
        counts[where[event]] += 1
        now = int(counts[where[event]].max())
        if now > most.get(statement, 0):
            most[statement] = now
            made["steps"][event] = 1


def statements_of(trace: Trace) -> Array:
    """Return a number for each event's statement: its function and its place in the source."""
    functions, positions = trace.data.events["function"], trace.data.events["position"]
    numbers: Array = functions.astype(np.int64) * (int(positions.max(initial=0)) + 1) + positions
    return numbers
