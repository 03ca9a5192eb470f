"""What every lane of a launch does at a moment: works, idles by a branch, waits at a barrier, or is gone.

Nothing of this is recorded as such. A lane that does not take part was excluded by the last statement that it executed
together with those that do: the branch that parted them, or the loop that it left.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from math import prod

import numpy as np

from gpu.simulator.trace.packing import Array
from gpu.simulator.trace.trace import Trace
from gpu.stepping.moment.lane_traces import lane_traces
from gpu.stepping.recording import Recording
from gpu.warp import WARP


class LaneState(IntEnum):
    """What a lane does.

    ABSENT: the block has no such thread. ACTIVE: it executes the statement. IDLE: a branch or a loop excludes it.
    WAITING: it is at a barrier. FINISHED: it has returned. READY: its warp's or its block's turn is another time.
    """

    ABSENT = 0
    ACTIVE = 1
    IDLE = 2
    WAITING = 3
    FINISHED = 4
    READY = 5


@dataclass(frozen=True)
class LaneGroup:
    """Lanes that are in the same state for the same reason.

    Parameters
    ----------
    state : LaneState
    count : int
    line : int
        Of IDLE lanes that of the branch, of WAITING ones that of the barrier; else 0.
    text : str
        Such as "7 idle by the branch at line 66".
    """

    state: LaneState
    count: int
    line: int
    text: str


@dataclass(frozen=True, eq=False)
class Lanes:
    """The lanes of a launch at a moment.

    Parameters
    ----------
    state : uint8 array, shape (blocks, warps of a block, 32)
        A LaneState each.
    cause : int array, same shape
        The event of the launch that put the lane there, of IDLE lanes the branch, of WAITING ones the barrier; else -1.
    lines, loops : arrays
        The line of each event of the launch, and whether it is a loop's.
    """

    state: Array
    cause: Array
    lines: Array
    loops: Array

    @property
    def line(self) -> Array:
        """The line of each lane's cause, 0 where there is none; the shape is that of `state`."""
        return np.where(self.cause >= 0, self.lines[self.cause], 0)

    def groups(self, block: int | None = None) -> tuple[LaneGroup, ...]:
        """Return the lanes of a block, or of all, by what they do."""
        where = slice(None) if block is None else block
        states, causes = self.state[where].ravel(), self.cause[where].ravel()
        # Of a large grid almost all blocks have not begun yet.
        busy = np.flatnonzero(states != LaneState.READY)
        ready = states.size - busy.size
        states, causes = states[busy], causes[busy]
        # The statements that a loop repeats are one and the same reason.
        keys = np.where(causes >= 0, self.lines[causes] * 4 + self.loops[causes], 0)
        # As one number each: pairs are compared far more slowly.
        pairs, counts = np.unique(keys.astype(np.int64) * len(LaneState) + states, return_counts=True)
        found = [
            ((pair % len(LaneState), pair // len(LaneState)), count)
            for pair, count in zip(pairs.tolist(), counts.tolist(), strict=True)
        ]
        found += [((LaneState.READY, 0), ready)] if ready else []
        order = (1, 2, 3, 5, 4, 0)
        return tuple(
            LaneGroup(LaneState(state), count, key // 4, _text(LaneState(state), count, key // 4, bool(key % 4)))
            for (state, key), count in sorted(found, key=lambda item: (order.index(item[0][0]), item[0][1]))
        )

    def summary(self, block: int | None = None) -> str:
        """Return the groups in words: "1 active, 7 idle by the branch at line 66, 24 not in the block"."""
        return ", ".join(group.text for group in self.groups(block))


def _text(state: LaneState, count: int, line: int, loop: bool) -> str:
    match state:
        case LaneState.ABSENT:
            return f"{count} not in the block"
        case LaneState.ACTIVE:
            return f"{count} active"
        case LaneState.IDLE:
            return f"{count} idle by the {'loop' if loop else 'branch'} at line {line}"
        case LaneState.WAITING:
            return f"{count} waiting at the barrier at line {line}"
        case LaneState.FINISHED:
            return f"{count} finished"
        case LaneState.READY:
            return f"{count} ready, not running"


class LaneStates:
    """The lanes of a recording, moment by moment.

    Parameters
    ----------
    recording : Recording
    """

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._launches: dict[tuple[int, int], LaunchLanes] = {}

    def at(self, moment: int) -> Lanes:
        """Return the lanes of the launch that runs at a moment, which another kernel's may be within one of the host's.

        Raises
        ------
        InputError
            There is no such moment.
        """
        launch, event = self._recording.at(moment)
        trace = launch.trace
        batches = trace.data.events["batch"]
        within = trace.lanes.launch(int(batches[event])).number if event < batches.size else 0
        key = (launch.number, within)
        if key not in self._launches:
            self._launches[key] = LaunchLanes(trace, within)
        return self._launches[key].at(event)


class LaunchLanes:
    """The lanes of one launch.

    Parameters
    ----------
    trace : Trace
    number : int
        Which launch of the trace: 0 for the host's own, others for those by kernels.
    """

    def __init__(self, trace: Trace, number: int = 0) -> None:
        launch = trace.launches[number]
        self._lanes_per_block = launch.lanes_per_block
        self._count = len(trace.events)
        # A mistake, or the end of the recording, leaves everybody at the last statement.
        self._broken = bool(trace.failure or trace.stopped)
        self._shape = (prod(launch.grid), launch.lanes_per_block // WARP, WARP)
        self._absent = np.zeros(self._shape, bool)
        self._absent.reshape(self._shape[0], -1)[:, prod(launch.block) :] = True
        self._apart = trace.together is not None
        self._lane_traces = lane_traces(trace, number, together=trace.together)
        self._first = np.array([lane_trace.events[0] for lane_trace in self._lane_traces], np.int64)
        self._last = np.array([lane_trace.events[-1] for lane_trace in self._lane_traces], np.int64)
        lines = np.array([position.line for position in trace.data.positions], np.int64)
        self._lines: Array = lines[trace.data.events["position"]]
        self._kinds: Array = np.array(trace.data.kinds, str)[trace.data.events["kind"]]
        self._loops = np.isin(self._kinds, ("loop", "advance"))
        self._kept: dict[int, tuple[int, Array, Array]] = {}

    def at(self, event: int) -> Lanes:
        """Return the lanes just before an event of the launch, or after its last one."""
        if self._broken:
            event = min(event, self._count - 1)
        state = np.full(self._shape, LaneState.READY, np.uint8)
        cause = np.full(self._shape, -1, np.int64)
        flat, causes = state.reshape(-1), cause.reshape(-1)
        for number in np.flatnonzero(self._last < event).tolist():
            lane_trace = self._lane_traces[number]
            flat[lane_trace.start : lane_trace.stop] = LaneState.FINISHED
        running = np.flatnonzero((self._first <= event) & (self._last >= event))
        for number in running.tolist():
            own = slice(self._lane_traces[number].start, self._lane_traces[number].stop)
            flat[own], causes[own] = self._of_lane_trace(number, event)
        if self._apart:
            self._wait(running, event, flat, causes)
        state[self._absent], cause[self._absent] = LaneState.ABSENT, -1
        return Lanes(state, cause, self._lines, self._loops)

    def _of_lane_trace(self, number: int, event: int) -> tuple[Array, Array]:
        """Return the states and causes of a lane_trace's lanes."""
        lane_trace = self._lane_traces[number]
        place = lane_trace.next(event)
        kept = self._kept.get(number)
        if kept is None or kept[0] != place:
            active = lane_trace.active(place)
            state = np.where(active, np.uint8(LaneState.READY), np.uint8(LaneState.IDLE))
            cause = lane_trace.parted(place)
            state[~active & (lane_trace.ended <= event)] = LaneState.FINISHED
            cause[state != LaneState.IDLE] = -1
            kept = self._kept[number] = (place, state, cause)
        _, state, cause = kept
        if lane_trace.events[place] != event:
            return state, cause
        at_barrier = self._kinds[event] == "barrier"
        now = LaneState.WAITING if at_barrier else LaneState.ACTIVE
        runs = state == LaneState.READY
        return np.where(runs, np.uint8(now), state), np.where(runs & at_barrier, event, cause)

    def _wait(self, running: Array, event: int, state: Array, cause: Array) -> None:
        """Let the warps wait that have come to a barrier that others of their block have not come to."""
        reached: dict[int, int] = {}
        arrived = [int(np.searchsorted(lane_trace.barriers, event)) for lane_trace in self._lane_traces]
        for number, lane_trace in enumerate(self._lane_traces):
            if self._last[number] >= event:
                block = lane_trace.start // self._lanes_per_block
                reached[block] = min(reached.get(block, arrived[number]), arrived[number])
        for number in running.tolist():
            lane_trace = self._lane_traces[number]
            place, block = lane_trace.next(event), lane_trace.start // self._lanes_per_block
            if (
                arrived[number] > reached[block]
                and lane_trace.events[place - 1] == lane_trace.barriers[arrived[number] - 1]
            ):
                own = slice(lane_trace.start, lane_trace.stop)
                waits = state[own] == LaneState.READY
                state[own][waits], cause[own][waits] = LaneState.WAITING, lane_trace.events[place - 1]
