"""Lane traces: the events of lanes that execute together, as whole batches, warps or single lanes."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from gpu.recording.packing import Array
from gpu.recording.trace import Trace

NEVER = np.iinfo(np.int64).max
_CHUNK = 64


class LaneTrace:
    """The events of lanes `start` to `stop` of a launch, numbered over all blocks.

    Parameters
    ----------
    events : int array
        The events, ascending.
    set_indices : int array
        For each event the index of the set of lanes that executed it.
    lane_sets : bool array, shape (sets, stop - start)
        The distinct sets of lanes.
    returns : int array
        The events at which lanes returned from the kernel.
    barriers : int array
        The events that are barriers.
    """

    def __init__(
        self,
        start: int,
        stop: int,
        events: Array,
        set_indices: Array,
        lane_sets: Array,
        returns: Array,
        barriers: Array,
    ) -> None:
        self.start, self.stop = start, stop
        self.events, self.set_indices, self.lane_sets = events, set_indices, lane_sets
        self.barriers = barriers
        self.return_events = np.full(stop - start, NEVER)
        for index in np.searchsorted(events, returns):
            self.return_events[lane_sets[set_indices[index]]] = events[index]
        # Sorted by set and then by index in `events`, so that one search finds the last index of every set.
        self._runs = np.sort(set_indices.astype(np.int64) * (events.size + 1) + np.arange(events.size))

    def next_index(self, event: int) -> int:
        """Return the index in `events` of the first one at or after an event."""
        return int(np.searchsorted(self.events, event))

    def active_lanes(self, index: int) -> Array:
        """Return a bool array of the lanes that execute an event."""
        mask: Array = self.lane_sets[self.set_indices[index]]
        return mask

    def find_divergence(self, index: int) -> Array:
        """Return for each lane the last event before an index that it executed together with a lane active there.

        At that event they diverged, because an excluded lane executes nothing until it reconverges. -1 if there is no
        such event.
        """
        active = self.active_lanes(index)
        events = np.full(active.size, -1, np.int64)
        starts = np.arange(len(self.lane_sets)) * (self.events.size + 1)
        runs = self._runs[np.maximum(np.searchsorted(self._runs, starts + index) - 1, 0)] - starts
        earlier = np.flatnonzero((runs >= 0) & (runs < index))
        last = runs[earlier]
        newest = np.argsort(-last)
        missing = np.ones(events.size, bool)
        for start in range(0, newest.size, _CHUNK):
            chunk = newest[start : start + _CHUNK]
            inside = self.lane_sets[earlier[chunk]]
            inside = inside & inside[:, active].any(axis=1, keepdims=True)
            first = inside.argmax(axis=0)
            newly_found = missing & inside[first, np.arange(events.size)]
            events[newly_found] = self.events[last[chunk[first[newly_found]]]]
            missing &= ~newly_found
            if not missing.any():
                break
        return events


def build_lane_traces(trace: Trace, launch: int, *, group_size: int | None) -> list[LaneTrace]:
    """Return a launch's lane traces, of `group_size` lanes each, or one per batch for None; empty ones are omitted."""
    batches, masks = trace.data.events["batch"], trace.data.events["mask"]
    # A batch that launches a kernel waits until that has ended, so its events are not contiguous.
    order = np.argsort(batches, kind="stable")
    borders = [*np.flatnonzero(np.diff(batches[order], prepend=-1)).tolist(), batches.size]
    traces = []
    for begin, end in pairwise(borders):
        events = order[begin:end]
        batch = int(batches[events[0]])
        if trace.lanes.launch(batch).number != launch:
            continue
        start = trace.lanes.first_block(batch) * trace.lanes.per_block(batch)
        if group_size is None:
            traces.append(_build_lane_trace(trace, start, 0, trace.lanes.count(batch), events))
            continue
        batch_masks = np.unique(masks[events])
        part_of = np.array([trace.lanes.mask_lanes(mask)[0] // group_size for mask in batch_masks.tolist()])
        parts = part_of[np.searchsorted(batch_masks, masks[events])]
        traces += [
            _build_lane_trace(trace, start, int(part) * group_size, group_size, events[parts == part])
            for part in np.unique(parts)
        ]
    return traces


def _build_lane_trace(trace: Trace, start: int, first: int, width: int, events: Array) -> LaneTrace:
    """Return the lane trace of `width` lanes, beginning with lane `first` of a batch that begins at lane `start`."""
    masks = trace.data.events["mask"][events]
    # Equal sets of lanes may have been recorded several times.
    numbers: dict[bytes, int] = {}
    sets: list[Array] = []
    unique_masks, set_indices = np.unique(masks, return_inverse=True)
    set_of = np.empty(unique_masks.size, np.int64)
    for index, mask in enumerate(unique_masks.tolist()):
        lanes = trace.lanes.mask_lanes(mask)
        set_of[index] = numbers.setdefault(lanes.tobytes(), len(numbers))
        if set_of[index] == len(sets):
            bits = np.zeros(width, bool)
            bits[lanes - first] = True
            sets.append(bits)
    frames = trace.data.events["frame"][events]
    returns = events[trace.find_events_of_kind("return", events) & (frames == frames[0])]
    barriers = events[trace.find_events_of_kind("barrier", events)]
    return LaneTrace(
        start + first, start + first + width, events, set_of[set_indices], np.array(sets), returns, barriers
    )
