"""What has been counted of a recording: work, steps, and how well lanes and memory were used."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gpu.simulator.trace.tables import NOBODY, NOT_A_BRANCH
from gpu.simulator.trace.trace import Trace
from gpu.stepping.moment.lane_traces import LaneTrace, lane_traces
from gpu.stepping.moment.traffic import measure
from gpu.stepping.recording import Recording
from gpu.warp import WARP

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Counts:
    """Counts of a stretch of a recording. Fractions are None where there is nothing to divide by.

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
    peak : int
        The most operations of one step.
    idle_fraction : float or None
        Of the lanes of those warps that execute statements which operate on data: how many do nothing. A warp takes all
        of its 32 lanes through a statement, so lanes that a branch excludes, that have ended or that the block does
        not have are idle alike, and a warp none of whose lanes takes part does not come to the statement at all.
    lanes_per_warp : float or None
        Active lanes when a warp executes a statement or tests a condition, whatever it is, on average, of 32.
    branches, divergent_branches : int
        Conditions that a warp tested, and those where some of its lanes went one way and some the other.
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
    peak: int
    idle_fraction: float | None
    lanes_per_warp: float | None
    branches: int
    divergent_branches: int
    sectors: int
    ideal_sectors: int
    bank_conflicts: int
    barriers: int

    @classmethod
    def of(cls, sums: Mapping[str, int], peak: int) -> Counts:
        """Make them of the sums of `_COLUMNS`."""
        return cls(
            operations=sums["operations"],
            steps=sums["steps"],
            parallelism=_ratio(sums["operations"], sums["steps"]),
            peak=peak,
            idle_fraction=1 - sums["busy"] / sums["slots"] if sums["slots"] else None,
            lanes_per_warp=_ratio(sums["active"], sums["warps"]),
            branches=sums["branches"],
            divergent_branches=sums["divergent"],
            sectors=sums["sectors"],
            ideal_sectors=sums["ideal_sectors"],
            bank_conflicts=sums["conflicts"],
            barriers=sums["barriers"],
        )


class Tally:
    """Counts of a recording at any moment, and of the step that was done last.

    Parameters
    ----------
    recording : Recording
    """

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        columns = len(_COLUMNS)
        parts, steps, known = [np.zeros((0, columns), np.int64)], [np.zeros(0, np.int64)], 0
        for launch in recording.launches:
            counted, step = _count(launch.trace)
            parts.append(counted)
            steps.append(np.where(step >= 0, step + known, -1))
            known += int(step.max(initial=-1)) + 1
        counted, step = np.concatenate(parts), np.concatenate(steps)
        self._sums = np.concatenate([np.zeros((1, columns), np.int64), np.cumsum(counted, axis=0)])
        # The last event before each moment that operated on data, counted from 1; 0 where there was none.
        numbers = np.where(step >= 0, np.arange(1, step.size + 1), 0)
        self._latest = np.concatenate([[0], np.maximum.accumulate(numbers)])
        self._of_step = np.concatenate([np.zeros((1, columns), np.int64), _within_steps(counted, step)])
        self._done = np.where(step >= 0, self._of_step[1:, _COLUMNS.index("operations")], 0)
        self._peak = np.concatenate([[0], np.maximum.accumulate(self._done)])

    def at(self, moment: int) -> Counts:
        """Return what had been counted from the beginning until just before an event, or the end.

        Raises
        ------
        InputError
            There is no such moment.
        """
        self._recording.at(moment)
        return Counts.of(dict(zip(_COLUMNS, self._sums[moment].tolist(), strict=True)), int(self._peak[moment]))

    def between(self, first: int, last: int) -> Counts:
        """Return what was counted from one moment to another.

        Raises
        ------
        InputError
            There is no such moment.
        """
        for moment in (first, last):
            self._recording.at(moment)
        sums = dict(zip(_COLUMNS, (self._sums[last] - self._sums[first]).tolist(), strict=True))
        return Counts.of(sums, int(self._done[first:last].max(initial=0)))

    def step_at(self, moment: int) -> Counts:
        """Return what was counted in the step that was done last, with all that led to it since the step before.

        It is that of the last statement before a moment which operates on data, as far as it was done by then; before
        the first step all is 0.

        Raises
        ------
        InputError
            There is no such moment.
        """
        self._recording.at(moment)
        sums = dict(zip(_COLUMNS, self._of_step[self._latest[moment]].tolist(), strict=True))
        return Counts.of({**sums, "steps": int(sums["operations"] > 0)}, sums["operations"])


_COLUMNS = (
    "operations",
    "steps",
    "active",
    "warps",
    "busy",
    "slots",
    "branches",
    "divergent",
    "sectors",
    "ideal_sectors",
    "conflicts",
    "barriers",
)


def _ratio(above: int, below: int) -> float | None:
    return above / below if below else None


def _within_steps(counted: Array, step: Array) -> Array:
    """Return for each event what its step has counted by then; the events between two steps lead to the later one."""
    later = np.minimum.accumulate(np.where(step >= 0, np.arange(step.size), step.size)[::-1])[::-1]
    owner = np.append(step, step.max(initial=-1) + 1)[later]
    order = np.argsort(owner, kind="stable")
    sums = np.cumsum(counted[order], axis=0)
    first = np.flatnonzero(np.diff(owner[order], prepend=-1))
    before = np.concatenate([np.zeros((1, counted.shape[1]), np.int64), sums])[first]
    found = np.empty_like(sums)
    found[order] = sums - np.repeat(before, np.diff(np.append(first, step.size)), axis=0)
    return found


def _count(trace: Trace) -> tuple[Array, Array]:
    """Return what each event adds, shape (events, columns), and the number of its step, -1 for none."""
    made = {name: np.zeros(len(trace.events), np.int64) for name in _COLUMNS}
    made["operations"] += trace.data.events["work"]
    busy = made["operations"] > 0
    # A statement is one, though a call in it splits it into several events; the step of a `for` is part of the loop.
    whole = (trace.data.events["resumed"] == 0) & ~trace.is_kind("advance", np.arange(len(trace.events)))
    together = None if trace.together is None else WARP
    own = [lane_trace for each in trace.launches for lane_trace in lane_traces(trace, each.number, together=together)]
    for lane_trace in own:
        events = lane_trace.events
        active = lane_trace.lanes.sum(axis=1)[lane_trace.sets]
        warps = lane_trace.lanes.reshape(len(lane_trace.lanes), -1, WARP).any(axis=2).sum(axis=1)[lane_trace.sets]
        made["active"][events], made["warps"][events] = active * whole[events], warps * whole[events]
        made["busy"][events], made["slots"][events] = active * busy[events], WARP * warps * busy[events]
    step = _count_steps(trace, own, made)
    _count_branches(trace, made)
    accesses = trace.data.accesses
    measured = measure(trace, 0, len(accesses))
    events = accesses["event"][measured.rows]
    for name in ("sectors", "ideal_sectors", "conflicts"):
        np.add.at(made[name], events, getattr(measured, name))
    for before, batch, mask in trace.data.barriers.tolist():
        blocks = np.unique(trace.lanes.of_mask(mask) // trace.lanes.per_block(batch))
        made["barriers"][before - 1] += blocks.size
    return np.stack([made[name] for name in _COLUMNS], axis=1), step


def _count_branches(trace: Trace, made: dict[str, Array]) -> None:
    """Count the branches that warps come to, and those that part their lanes."""
    masks, taken = trace.data.events["mask"], trace.data.events["taken"]
    tests = np.flatnonzero(taken != NOT_A_BRANCH)
    # Loops test with the same lanes again and again.
    pairs, which = np.unique(np.stack((masks[tests], taken[tests])), axis=1, return_inverse=True)
    counts = np.zeros((pairs.shape[1], 2), np.int64)
    for number, (mask, through) in enumerate(pairs.T.tolist()):
        warps, lanes = np.unique(trace.lanes.of_mask(mask) // WARP, return_counts=True)
        counts[number, 0] = warps.size
        if through != NOBODY:
            some, of_them = np.unique(trace.lanes.of_mask(through) // WARP, return_counts=True)
            counts[number, 1] = np.count_nonzero(of_them < lanes[np.searchsorted(warps, some)])
    made["branches"][tests], made["divergent"][tests] = counts[which.reshape(-1)].T


def _count_steps(trace: Trace, own: list[LaneTrace], made: dict[str, Array]) -> Array:
    """Count an event as a step where a warp executes its statement for a time that no other has come to before.

    Returns the number of each event's step, -1 for one that does not operate on data.
    """
    statements, offsets = (
        statements_of(trace),
        np.cumsum([0] + [lane_trace.stop - lane_trace.start for lane_trace in own]) // WARP,
    )
    times: dict[int, Array] = {}
    most: dict[int, int] = {}
    numbers: dict[tuple[int, int], int] = {}
    found = np.full(len(trace.events), -1)
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
        found[event] = numbers.setdefault((statement, now), len(numbers))
        if now > most.get(statement, 0):
            most[statement] = now
            made["steps"][event] = 1
    return found


def statements_of(trace: Trace) -> Array:
    """Return a number for each event's statement: its function and its place in the source."""
    functions, positions = trace.data.events["function"], trace.data.events["position"]
    numbers: Array = functions.astype(np.int64) * (int(positions.max(initial=0)) + 1) + positions
    return numbers
