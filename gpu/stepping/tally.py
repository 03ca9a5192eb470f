"""Counts of a recording: operations, steps, and the efficiency of lanes and memory accesses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gpu.base.warp import WARP
from gpu.recording.recording import Recording
from gpu.recording.tables import NO_LANES, NOT_A_BRANCH
from gpu.recording.trace import Trace
from gpu.stepping.moment.lane_traces import LaneTrace, build_lane_traces
from gpu.stepping.moment.traffic import count_traffic

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Counts:
    """Counts of an interval of a recording. A ratio is None if its denominator is 0.

    Parameters
    ----------
    operations : int
        Operations on data, one per executing lane, as `gpu.simulator.executor.operation_counter` defines them. Index
        arithmetic is excluded.
    steps : int
        The number of sequential executions of such statements. Lanes, warps and blocks that execute the same statement
        for the same time count as one step.
    parallelism : float or None
        Operations per step.
    peak : int
        The most operations of one step.
    idle_fraction : float or None
        The share of idle lanes in warps that execute statements with operations on data. A warp issues a statement for
        all its 32 lanes, so lanes that a branch excludes, that have returned or that the block does not have are all
        idle. A warp without any active lane does not execute the statement.
    lanes_per_warp : float or None
        The average number of active lanes, of 32, when a warp executes any statement or tests a condition.
    branches, divergent_branches : int
        Conditions that warps tested, and those at which the lanes of a warp diverged.
    sectors, ideal_sectors : int
        The 32-byte sectors of global memory that were transferred, and the fewest that would have sufficed.
    bank_conflicts : int
        Wavefronts over the banks of shared memory beyond the minimum.
    barriers : int
        Barriers passed, each counted once per block.
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
    def from_sums(cls, sums: Mapping[str, int], peak: int) -> Counts:
        """Create counts from sums by the names of `_COLUMNS`."""
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
    """Counts of a recording at any moment, and of its latest step."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        columns = len(_COLUMNS)
        parts, steps, offset = [np.zeros((0, columns), np.int64)], [np.zeros(0, np.int64)], 0
        for launch in recording.launches:
            event_counts, step = _count_events(launch.trace)
            parts.append(event_counts)
            steps.append(np.where(step >= 0, step + offset, -1))
            offset += int(step.max(initial=-1)) + 1
        event_counts, step = np.concatenate(parts), np.concatenate(steps)
        self._sums = np.concatenate([np.zeros((1, columns), np.int64), np.cumsum(event_counts, axis=0)])
        # The last event on data before each moment, counted from 1; 0 if there is none.
        numbers = np.where(step >= 0, np.arange(1, step.size + 1), 0)
        self._latest = np.concatenate([[0], np.maximum.accumulate(numbers)])
        self._step_counts = np.concatenate(
            [np.zeros((1, columns), np.int64), _accumulate_step_counts(event_counts, step)]
        )
        self._step_operations = np.where(step >= 0, self._step_counts[1:, _COLUMNS.index("operations")], 0)
        self._peak = np.concatenate([[0], np.maximum.accumulate(self._step_operations)])

    def counts_at(self, moment: int) -> Counts:
        """Return the counts from the beginning to a moment.

        Raises
        ------
        InputError
            The recording has no such moment.
        """
        self._recording.locate_moment(moment)
        return Counts.from_sums(dict(zip(_COLUMNS, self._sums[moment].tolist(), strict=True)), int(self._peak[moment]))

    def counts_between(self, first: int, last: int) -> Counts:
        """Return the counts between two moments.

        Raises
        ------
        InputError
            The recording has no such moment.
        """
        for moment in (first, last):
            self._recording.locate_moment(moment)
        sums = dict(zip(_COLUMNS, (self._sums[last] - self._sums[first]).tolist(), strict=True))
        return Counts.from_sums(sums, int(self._step_operations[first:last].max(initial=0)))

    def step_counts_at(self, moment: int) -> Counts:
        """Return the counts of the latest step, including all events since the previous step.

        The latest step is that of the last statement with operations on data before the moment, as far as it has been
        executed. Before the first step, all counts are 0.

        Raises
        ------
        InputError
            The recording has no such moment.
        """
        self._recording.locate_moment(moment)
        sums = dict(zip(_COLUMNS, self._step_counts[self._latest[moment]].tolist(), strict=True))
        return Counts.from_sums({**sums, "steps": int(sums["operations"] > 0)}, sums["operations"])


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


def _ratio(numerator: int, denominator: int) -> float | None:
    return numerator / denominator if denominator else None


def _accumulate_step_counts(event_counts: Array, step: Array) -> Array:
    """Return for each event the running counts of its step; events between two steps belong to the later one."""
    later = np.minimum.accumulate(np.where(step >= 0, np.arange(step.size), step.size)[::-1])[::-1]
    owner = np.append(step, step.max(initial=-1) + 1)[later]
    order = np.argsort(owner, kind="stable")
    sums = np.cumsum(event_counts[order], axis=0)
    first = np.flatnonzero(np.diff(owner[order], prepend=-1))
    before = np.concatenate([np.zeros((1, event_counts.shape[1]), np.int64), sums])[first]
    running = np.empty_like(sums)
    running[order] = sums - np.repeat(before, np.diff(np.append(first, step.size)), axis=0)
    return running


def _count_events(trace: Trace) -> tuple[Array, Array]:
    """Return each event's counts, shape (events, columns), and the number of its step, or -1."""
    columns = {name: np.zeros(len(trace.events), np.int64) for name in _COLUMNS}
    columns["operations"] += trace.data.events["work"]
    busy = columns["operations"] > 0
    # A call splits its statement into several events, of which one counts; the step of a `for` belongs to the loop.
    is_counted = (trace.data.events["resumed"] == 0) & ~trace.find_events_of_kind(
        "advance", np.arange(len(trace.events))
    )
    lanes_together = None if trace.lanes_per_part is None else WARP
    traces = [
        lane_trace
        for launch in trace.launches
        for lane_trace in build_lane_traces(trace, launch.number, group_size=lanes_together)
    ]
    for lane_trace in traces:
        events = lane_trace.events
        active = lane_trace.lane_sets.sum(axis=1)[lane_trace.set_indices]
        warps = (
            lane_trace.lane_sets.reshape(len(lane_trace.lane_sets), -1, WARP)
            .any(axis=2)
            .sum(axis=1)[lane_trace.set_indices]
        )
        columns["active"][events], columns["warps"][events] = active * is_counted[events], warps * is_counted[events]
        columns["busy"][events], columns["slots"][events] = active * busy[events], WARP * warps * busy[events]
    step = _count_steps(trace, traces, columns)
    _count_branches(trace, columns)
    accesses = trace.data.accesses
    measured = count_traffic(trace, 0, len(accesses))
    events = accesses["event"][measured["row"]]
    for name in ("sectors", "ideal_sectors", "conflicts"):
        np.add.at(columns[name], events, measured[name])
    for before, batch, mask in trace.data.barriers.tolist():
        blocks = np.unique(trace.lanes.mask_lanes(mask) // trace.lanes.per_block(batch))
        columns["barriers"][before - 1] += blocks.size
    return np.stack([columns[name] for name in _COLUMNS], axis=1), step


def _count_branches(trace: Trace, columns: dict[str, Array]) -> None:
    """Count the branches that warps test, and those that diverge."""
    masks, taken_masks = trace.data.events["mask"], trace.data.events["taken"]
    tests = np.flatnonzero(taken_masks != NOT_A_BRANCH)
    # Loops repeat tests with the same lanes, so each combination is evaluated once.
    pairs, pair_index = np.unique(np.stack((masks[tests], taken_masks[tests])), axis=1, return_inverse=True)
    counts = np.zeros((pairs.shape[1], 2), np.int64)
    for number, (mask, taken_mask) in enumerate(pairs.T.tolist()):
        warps, lanes = np.unique(trace.lanes.mask_lanes(mask) // WARP, return_counts=True)
        counts[number, 0] = warps.size
        if taken_mask != NO_LANES:
            diverging_warps, lanes_through = np.unique(trace.lanes.mask_lanes(taken_mask) // WARP, return_counts=True)
            counts[number, 1] = np.count_nonzero(lanes_through < lanes[np.searchsorted(warps, diverging_warps)])
    columns["branches"][tests], columns["divergent"][tests] = counts[pair_index.reshape(-1)].T


def _count_steps(trace: Trace, traces: list[LaneTrace], columns: dict[str, Array]) -> Array:
    """Count an event as a step if it is the first in which any warp executes its statement for the nth time.

    Returns the number of each event's step, or -1 for an event without operations on data.
    """
    statements, offsets = (
        number_statements(trace),
        np.cumsum([0] + [lane_trace.stop - lane_trace.start for lane_trace in traces]) // WARP,
    )
    times: dict[int, Array] = {}
    maximum: dict[int, int] = {}
    numbers: dict[tuple[int, int], int] = {}
    steps = np.full(len(trace.events), -1)
    warps_by_event = {}
    for number, lane_trace in enumerate(traces):
        warps: Array = np.any(lane_trace.lane_sets.reshape(len(lane_trace.lane_sets), -1, WARP), axis=2)
        for index in np.flatnonzero(columns["operations"][lane_trace.events] > 0).tolist():
            warps_by_event[int(lane_trace.events[index])] = offsets[number] + np.flatnonzero(
                warps[lane_trace.set_indices[index]]
            )
    for event in sorted(warps_by_event):
        statement = int(statements[event])
        counts = times.setdefault(statement, np.zeros(offsets[-1], np.int64))
        counts[warps_by_event[event]] += 1
        now = int(counts[warps_by_event[event]].max())
        steps[event] = numbers.setdefault((statement, now), len(numbers))
        if now > maximum.get(statement, 0):
            maximum[statement] = now
            columns["steps"][event] = 1
    return steps


def number_statements(trace: Trace) -> Array:
    """Return a number for each event's statement: its function and its place in the source."""
    functions, positions = trace.data.events["function"], trace.data.events["position"]
    numbers: Array = functions.astype(np.int64) * (int(positions.max(initial=0)) + 1) + positions
    return numbers
