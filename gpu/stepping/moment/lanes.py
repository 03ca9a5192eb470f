"""The state of every lane of a launch at a moment: active, inactive, waiting at a barrier, or finished.

States are not recorded but derived. An inactive lane was excluded by the last statement that it executed together with
the active lanes: the branch at which they diverged, or the loop that it left.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from math import prod

import numpy as np

from gpu.base.warp import WARP
from gpu.recording.packing import Array
from gpu.recording.recording import Recording
from gpu.recording.trace import Trace
from gpu.stepping.moment.lane_traces import build_lane_traces


class LaneState(IntEnum):
    """The state of a lane.

    ABSENT: the block has no such thread. ACTIVE: executes the statement. IDLE: excluded by a branch or a loop.
    WAITING: at a barrier. FINISHED: has returned. READY: another warp or block runs now.
    """

    ABSENT = 0
    ACTIVE = 1
    IDLE = 2
    WAITING = 3
    FINISHED = 4
    READY = 5


@dataclass(frozen=True)
class LaneGroup:
    """Lanes in the same state with the same cause.

    Parameters
    ----------
    line : int
        For IDLE lanes the line of the branch, for WAITING lanes that of the barrier; otherwise 0.
    text : str
        A text such as "7 inactive (branch at line 66)".
    """

    state: LaneState
    count: int
    line: int
    text: str

    @property
    def short_text(self) -> str:
        """A text such as "7 inactive (line 66)"."""
        words = {LaneState.IDLE: "inactive", LaneState.WAITING: "waiting"}
        return f"{self.count} {words[self.state]} (line {self.line})" if self.state in words else self.text


@dataclass(frozen=True, eq=False)
class Lanes:
    """The lanes of a launch at a moment.

    Parameters
    ----------
    state : uint8 array, shape (blocks, warps of a block, 32)
        A LaneState for each lane.
    cause : int array, same shape
        The event that caused the state, in IDLE lanes the branch, in WAITING lanes the barrier; otherwise -1.
    lines, loops : arrays
        The line of each event of the launch, and whether the event belongs to a loop.
    block_shape : tuple of int
        Threads of a block in x, y and z.
    """

    state: Array
    cause: Array
    lines: Array
    loops: Array
    block_shape: tuple[int, ...] = (1, 1, 1)

    @property
    def line(self) -> Array:
        """The line of each lane's cause, 0 where there is none; same shape as `state`."""
        return np.where(self.cause >= 0, self.lines[self.cause], 0)

    def groups(self, block: int | None = None) -> tuple[LaneGroup, ...]:
        """Group the lanes of a block, or of all blocks, by state and cause."""
        selection = slice(None) if block is None else block
        states, causes = self.state[selection].ravel(), self.cause[selection].ravel()
        # In a large grid, most blocks have not begun yet; they are excluded from sorting.
        busy = np.flatnonzero(states != LaneState.READY)
        ready = states.size - busy.size
        states, causes = states[busy], causes[busy]
        # All executions of a loop's statement count as one cause.
        keys = np.where(causes >= 0, self.lines[causes] * 4 + self.loops[causes], 0)
        # Encoded as one number each, because np.unique is far slower on pairs.
        pairs, counts = np.unique(keys.astype(np.int64) * len(LaneState) + states, return_counts=True)
        groups = [
            ((pair % len(LaneState), pair // len(LaneState)), count)
            for pair, count in zip(pairs.tolist(), counts.tolist(), strict=True)
        ]
        groups += [((LaneState.READY, 0), ready)] if ready else []
        order = (1, 2, 3, 5, 4, 0)
        return tuple(
            LaneGroup(
                LaneState(state), count, key // 4, _format_group(LaneState(state), count, key // 4, bool(key % 4))
            )
            for (state, key), count in sorted(groups, key=lambda item: (order.index(item[0][0]), item[0][1]))
        )

    def summary(self, block: int | None = None) -> str:
        """Return the groups as text: "1 active, 7 inactive (branch at line 66), 24 not in the block"."""
        return ", ".join(group.text for group in self.groups(block))


def _format_group(state: LaneState, count: int, line: int, loop: bool) -> str:
    match state:
        case LaneState.ABSENT:
            return f"{count} not in the block"
        case LaneState.ACTIVE:
            return f"{count} active"
        case LaneState.IDLE:
            return f"{count} inactive ({'loop' if loop else 'branch'} at line {line})"
        case LaneState.WAITING:
            return f"{count} waiting at the barrier at line {line}"
        case LaneState.FINISHED:
            return f"{count} finished"
        case LaneState.READY:
            return f"{count} ready, not running"


class LaneStates:
    """The lanes of a recording, moment by moment."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._launches: dict[tuple[int, int], LaunchLanes] = {}

    def lanes_at(self, moment: int) -> Lanes:
        """Return the lanes of the launch that runs at a moment, which may be a child launch.

        Raises
        ------
        InputError
            The recording has no such moment.
        """
        launch, event = self._recording.locate_moment(moment)
        trace = launch.trace
        batches = trace.data.events["batch"]
        launch_number = trace.lanes.launch(int(batches[event])).number if event < batches.size else 0
        key = (launch.number, launch_number)
        if key not in self._launches:
            self._launches[key] = LaunchLanes(trace, launch_number)
        return self._launches[key].lanes_at(event)


class LaunchLanes:
    """The lanes of one launch.

    Parameters
    ----------
    number : int
        The launch's number in the trace: 0 for the host's launch, others for child launches.
    """

    def __init__(self, trace: Trace, number: int = 0) -> None:
        launch = trace.launches[number]
        self._lanes_per_block = launch.lanes_per_block
        self._count = len(trace.events)
        # After an error, or at the end of an incomplete recording, lanes stay at their last statement.
        self._is_incomplete = bool(trace.failure or trace.stop_reason)
        self._shape = (prod(launch.grid), launch.lanes_per_block // WARP, WARP)
        self._block_shape = tuple(launch.block)
        self._absent = np.zeros(self._shape, bool)
        self._absent.reshape(self._shape[0], -1)[:, prod(launch.block) :] = True
        self._takes_turns = trace.lanes_per_part is not None
        self._lane_traces = build_lane_traces(trace, number, group_size=trace.lanes_per_part)
        self._first = np.array([lane_trace.events[0] for lane_trace in self._lane_traces], np.int64)
        self._last = np.array([lane_trace.events[-1] for lane_trace in self._lane_traces], np.int64)
        lines = np.array([position.line for position in trace.data.positions], np.int64)
        self._lines: Array = lines[trace.data.events["position"]]
        self._kinds: Array = np.array(trace.data.kinds, str)[trace.data.events["kind"]]
        self._loops = np.isin(self._kinds, ("loop", "advance"))
        self._cache: dict[int, tuple[int, Array, Array]] = {}

    def lanes_at(self, event: int) -> Lanes:
        """Return the lanes just before an event of the launch, or after its last one."""
        if self._is_incomplete:
            event = min(event, self._count - 1)
        state = np.full(self._shape, LaneState.READY, np.uint8)
        cause = np.full(self._shape, -1, np.int64)
        flat, causes = state.reshape(-1), cause.reshape(-1)
        for number in np.flatnonzero(self._last < event).tolist():
            lane_trace = self._lane_traces[number]
            flat[lane_trace.start : lane_trace.stop] = LaneState.FINISHED
        running = np.flatnonzero((self._first <= event) & (self._last >= event))
        for number in running.tolist():
            lane_range = slice(self._lane_traces[number].start, self._lane_traces[number].stop)
            flat[lane_range], causes[lane_range] = self._derive_lane_states(number, event)
        if self._takes_turns:
            self._mark_waiting(running, event, flat, causes)
        state[self._absent], cause[self._absent] = LaneState.ABSENT, -1
        return Lanes(state, cause, self._lines, self._loops, self._block_shape)

    def _derive_lane_states(self, number: int, event: int) -> tuple[Array, Array]:
        """Return the states and causes of the lanes in a lane trace."""
        lane_trace = self._lane_traces[number]
        index = lane_trace.next_index(event)
        cached = self._cache.get(number)
        if cached is None or cached[0] != index:
            active = lane_trace.active_lanes(index)
            state = np.where(active, np.uint8(LaneState.READY), np.uint8(LaneState.IDLE))
            cause = lane_trace.find_divergence(index)
            state[~active & (lane_trace.return_events <= event)] = LaneState.FINISHED
            cause[state != LaneState.IDLE] = -1
            cached = self._cache[number] = (index, state, cause)
        _, state, cause = cached
        if lane_trace.events[index] != event:
            return state, cause
        at_barrier = self._kinds[event] == "barrier"
        now = LaneState.WAITING if at_barrier else LaneState.ACTIVE
        runs = state == LaneState.READY
        return np.where(runs, np.uint8(now), state), np.where(runs & at_barrier, event, cause)

    def _mark_waiting(self, running: Array, event: int, state: Array, cause: Array) -> None:
        """Mark the warps as waiting that have reached a barrier before other warps of their block."""
        reached: dict[int, int] = {}
        arrived = [int(np.searchsorted(lane_trace.barriers, event)) for lane_trace in self._lane_traces]
        for number, lane_trace in enumerate(self._lane_traces):
            if self._last[number] >= event:
                block = lane_trace.start // self._lanes_per_block
                reached[block] = min(reached.get(block, arrived[number]), arrived[number])
        for number in running.tolist():
            lane_trace = self._lane_traces[number]
            index, block = lane_trace.next_index(event), lane_trace.start // self._lanes_per_block
            if (
                arrived[number] > reached[block]
                and lane_trace.events[index - 1] == lane_trace.barriers[arrived[number] - 1]
            ):
                lane_range = slice(lane_trace.start, lane_trace.stop)
                waits = state[lane_range] == LaneState.READY
                state[lane_range][waits], cause[lane_range][waits] = LaneState.WAITING, lane_trace.events[index - 1]
