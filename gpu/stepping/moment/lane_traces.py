"""Lane traces: lanes that go through a kernel together, whole batches, or warps or single lanes that run apart."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from gpu.simulator.trace.packing import Array
from gpu.simulator.trace.trace import Trace

NEVER = np.iinfo(np.int64).max
_AT_ONCE = 64


class LaneTrace:
    """Lanes `start` to `stop` of the launch's (all blocks' lanes, one after the other), and what they executed.

    Parameters
    ----------
    start, stop : int
    events : int array
        The events, ascending.
    sets : int array
        For each event the number of the set of lanes that executed it.
    lanes : bool array, shape (sets, stop - start)
        The sets.
    returns : int array
        The events by which lanes returned from the kernel.
    barriers : int array
        The events that are barriers.
    """

    def __init__(
        self, start: int, stop: int, events: Array, sets: Array, lanes: Array, returns: Array, barriers: Array
    ) -> None:
        self.start, self.stop = start, stop
        self.events, self.sets, self.lanes = events, sets, lanes
        self.barriers = barriers
        self.ended = np.full(stop - start, NEVER)
        for place in np.searchsorted(events, returns):
            self.ended[lanes[sets[place]]] = events[place]
        # By set and then by place in `events`, so that one search finds the last place of every set.
        self._runs = np.sort(sets.astype(np.int64) * (events.size + 1) + np.arange(events.size))

    def next(self, event: int) -> int:
        """Return the place in `events` of the first one that is not before an event."""
        return int(np.searchsorted(self.events, event))

    def active(self, place: int) -> Array:
        """Return which lanes execute an event: bool."""
        mask: Array = self.lanes[self.sets[place]]
        return mask

    def parted(self, place: int) -> Array:
        """Return for each lane the last event before a place that it executed with any of those who execute that one.

        It is what parted them, because a lane that is excluded executes nothing until it is with them again. -1 where
        there is none.
        """
        active = self.active(place)
        found = np.full(active.size, -1, np.int64)
        starts = np.arange(len(self.lanes)) * (self.events.size + 1)
        runs = self._runs[np.maximum(np.searchsorted(self._runs, starts + place) - 1, 0)] - starts
        earlier = np.flatnonzero((runs >= 0) & (runs < place))
        last = runs[earlier]
        newest = np.argsort(-last)
        missing = np.ones(found.size, bool)
        for start in range(0, newest.size, _AT_ONCE):
            few = newest[start : start + _AT_ONCE]
            inside = self.lanes[earlier[few]]
            inside = inside & inside[:, active].any(axis=1, keepdims=True)
            first = inside.argmax(axis=0)
            fresh = missing & inside[first, np.arange(found.size)]
            found[fresh] = self.events[last[few[first[fresh]]]]
            missing &= ~fresh
            if not missing.any():
                break
        return found


def lane_traces(trace: Trace, launch: int, *, together: int | None) -> list[LaneTrace]:
    """Return the lane_traces of a launch of a trace that executed anything, each of so many lanes; None for all."""
    batches, masks = trace.data.events["batch"], trace.data.events["mask"]
    # A batch that launches a kernel waits, and goes on when that has ended.
    order = np.argsort(batches, kind="stable")
    borders = [*np.flatnonzero(np.diff(batches[order], prepend=-1)).tolist(), batches.size]
    found = []
    for begin, end in pairwise(borders):
        events = order[begin:end]
        batch = int(batches[events[0]])
        if trace.lanes.launch(batch).number != launch:
            continue
        start = trace.lanes.first_block(batch) * trace.lanes.per_block(batch)
        if together is None:
            found.append(_lane_trace(trace, start, 0, trace.lanes.count(batch), events))
            continue
        own = np.unique(masks[events])
        part_of = np.array([trace.lanes.of_mask(mask)[0] // together for mask in own.tolist()])
        parts = part_of[np.searchsorted(own, masks[events])]
        found += [
            _lane_trace(trace, start, int(part) * together, together, events[parts == part])
            for part in np.unique(parts)
        ]
    return found


def _lane_trace(trace: Trace, start: int, first: int, width: int, events: Array) -> LaneTrace:
    """Return the lane_trace of `width` lanes from `first` on in a batch whose own first lane is `start`."""
    masks = trace.data.events["mask"][events]
    # Equal sets of lanes may have been recorded more than once.
    numbers: dict[bytes, int] = {}
    sets: list[Array] = []
    own, places = np.unique(masks, return_inverse=True)
    set_of = np.empty(own.size, np.int64)
    for place, mask in enumerate(own.tolist()):
        lanes = trace.lanes.of_mask(mask)
        set_of[place] = numbers.setdefault(lanes.tobytes(), len(numbers))
        if set_of[place] == len(sets):
            bits = np.zeros(width, bool)
            bits[lanes - first] = True
            sets.append(bits)
    frames = trace.data.events["frame"][events]
    returns = events[trace.is_kind("return", events) & (frames == frames[0])]
    barriers = events[trace.is_kind("barrier", events)]
    return LaneTrace(start + first, start + first + width, events, set_of[places], np.array(sets), returns, barriers)
