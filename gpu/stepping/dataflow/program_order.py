"""The position of each event in program order, which is the same for every warp and in every schedule."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu.recording.packing import Array
from gpu.recording.trace import Trace

_LAST = 2**30


def compute_program_order(trace: Trace) -> tuple[Array, Array]:
    """Number the events of a trace: equal numbers mean the same statement in the same iterations of its loops.

    Numbers ascend in program order, iteration after iteration; a called function's events are within the statement of
    the call. Blocks that ran one after the other, because they wait for each other, stay in that order.

    Returns
    -------
    steps : int64 array
        0, 1, ... without gaps.
    scopes : int64 array
        A number for the call and its loop iterations: equal for all statements of one iteration.
    """
    if not len(trace.events):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    warp, warps = _find_event_warps(trace)
    frame = trace.data.events["frame"].astype(np.int64)
    stream = frame * warps + warp
    keys, rounds = _compute_local_keys(trace, stream)
    local = _rank_rows(keys)
    calls = _CallTable(trace, stream, warp, warps)
    # Events at the same place of a stream are ordered by time: calls, and the rest of a statement after a call.
    stream_key = np.concatenate((stream, stream[calls.site])) * (int(local.max()) + 1)
    stream_key += np.concatenate((local, local[calls.site]))
    first_events = _find_statement_starts(trace, frame, warp)
    is_first = np.concatenate((first_events == np.arange(frame.size), np.ones(calls.site.size, bool)))
    ordinal = np.zeros(stream_key.size, np.int64)
    ordinal[is_first] = _count_earlier_entries(
        stream_key[is_first], np.concatenate((np.arange(frame.size), calls.first))[is_first]
    )
    ordinal[: frame.size] = ordinal[first_events]
    local_places = np.stack((local, ordinal[: frame.size]), axis=1)
    call_places = calls.find_call_paths(frame, np.stack((local[calls.site], ordinal[frame.size :]), axis=1))
    round_only = np.stack((_rank_rows(rounds), np.zeros_like(frame)), axis=1)
    batch = _find_sequential_batches(trace)
    steps, scopes = (
        _rank_rows(np.concatenate([batch, _align_call_paths([last, *call_places])], axis=1))
        for last in (local_places, round_only)
    )
    return steps, scopes


class _CallTable:
    """The recorded calls of functions.

    Parameters
    ----------
    stream, warp : arrays
        The stream and the warp of each event.
    """

    def __init__(self, trace: Trace, stream: Array, warp: Array, warps: int) -> None:
        frame = trace.data.events["frame"].astype(np.int64)
        calls = trace.data.calls[np.isin(trace.data.calls["frame"], frame)]
        callee, caller = calls["frame"].astype(np.int64), calls["caller"].astype(np.int64)
        order = np.argsort(frame, kind="stable")
        first = order[np.searchsorted(frame[order], callee)]
        # A call's site is the last event of the caller before the callee's first event.
        by_stream = np.argsort(stream, kind="stable")
        keys = stream[by_stream] * frame.size + by_stream
        caller_stream = caller * warps + warp[first]
        index = np.searchsorted(keys, caller_stream * frame.size + first) - 1
        has_site = (index >= 0) & (stream[by_stream[index]] == caller_stream)
        self.first: Array = first[has_site]
        self.site: Array = by_stream[index[has_site]]
        self._call_of_frame = np.full(int(frame.max()) + 1, -1)
        self._call_of_frame[callee[has_site]] = np.arange(self.first.size)

    def find_call_paths(self, frame: Array, places: Array) -> list[Array]:
        """Return the places of the calls around each frame, innermost first; -1 where there are no more."""
        paths = []
        call = self._call_of_frame[frame]
        while (call >= 0).any():
            inside = call >= 0
            call_places = np.full((frame.size, 2), -1)
            call_places[inside] = places[call[inside]]
            paths.append(call_places)
            call = np.where(inside, self._call_of_frame[frame[self.site[call]]], -1)
        return paths


def _align_call_paths(paths: list[Array]) -> Array:
    """Align paths to start at the outermost call; shorter paths are padded at the end."""
    stacked = np.stack(paths[::-1], axis=1)
    missing = (stacked[:, :, 0] < 0).sum(axis=1)
    depth = len(paths)
    places = (np.arange(depth) + missing[:, None]) % depth
    aligned = stacked[np.arange(len(stacked))[:, None], places]
    aligned[np.arange(depth) >= (depth - missing)[:, None]] = -1
    result: Array = aligned.reshape(len(stacked), -1)
    return result


def _find_event_warps(trace: Trace) -> tuple[Array, int]:
    """Return the warp (or lane) of each event if they take turns, and their number; in lockstep a single one."""
    if trace.lanes_per_part is None:
        return np.zeros(len(trace.events), np.int64), 1
    masks, mask_number = np.unique(trace.data.events["mask"], return_inverse=True)
    warps = np.array([trace.lanes.mask_lanes(mask)[0] // trace.lanes_per_part for mask in masks.tolist()])
    return warps[mask_number], int(warps.max()) + 1


def _find_statement_starts(trace: Trace, frame: Array, lane: Array) -> Array:
    """Return for each event the first event of its statement; it differs only where a lane yielded to others."""
    first_events = np.arange(frame.size)
    if trace.lanes_per_part != 1:
        return first_events
    order = np.argsort(lane, kind="stable")
    events = trace.data.events
    same = (np.diff(lane[order], prepend=-1) == 0) & (events["resumed"][order] != 0)
    same &= (frame[order] == np.roll(frame[order], 1)) & ~np.roll(trace.find_events_of_kind("barrier")[order], 1)
    same &= events["position"][order] == np.roll(events["position"][order], 1)
    starts = np.maximum.accumulate(np.where(same, 0, np.arange(order.size)))
    first_events[order] = order[starts]
    return first_events


def _find_sequential_batches(trace: Trace) -> Array:
    """Return the batch of each event if blocks ran one after the other, as those that wait for each other do."""
    _, launch_index = np.unique(trace.data.batches["launch"], return_inverse=True)
    count, blocks = np.bincount(launch_index), np.bincount(launch_index, trace.data.batches["blocks"])
    number = np.where(((count == blocks) & (count > 1))[launch_index], np.arange(launch_index.size), 0)
    batch: Array = number[trace.data.events["batch"]][:, None]
    return batch


def _compute_local_keys(trace: Trace, stream: Array) -> tuple[Array, Array]:
    """Return each event's place in its function (loops, iterations and statement), and its loop iterations alone."""
    functions = trace.data.functions
    positions = len(trace.data.positions)
    depth = max((len(each.loops) for function in functions for each in function.statements), default=0)
    # For each position in each function, the statement's number and the loops around it.
    number = np.full((len(functions), positions), _LAST)
    loops_around = np.full((len(functions), positions, depth), -1)
    rounds: list[tuple[int, int, int, bool]] = []
    for function_number, function in enumerate(functions):
        for statement, (position, loops) in reversed(list(enumerate(function.statements))):
            if position >= 0:
                number[function_number, position] = statement
                loops_around[function_number, position, : len(loops)] = loops
                loops_around[function_number, position, len(loops) :] = -1
        for loop, marker in function.rounds.items():
            position = function.statements[loop].position if marker < 0 else marker
            rounds.append((function_number, loop, position, marker < 0))
    functions_of, positions_of = trace.data.events["function"], trace.data.events["position"]
    statement_number, loops = number[functions_of, positions_of], loops_around[functions_of, positions_of]
    test, advance, resumed = (
        trace.find_events_of_kind("loop"),
        trace.find_events_of_kind("advance"),
        trace.data.events["resumed"] != 0,
    )
    statement_number = np.where(advance, _LAST, statement_number)
    counters = _IterationCounter(
        stream,
        [
            (
                loop,
                np.flatnonzero(
                    (functions_of == function) & (positions_of == marker) & ~resumed & (test if tested else ~advance)
                ),
            )
            for function, loop, marker, tested in rounds
        ],
    )
    columns: list[Array] = [functions_of.astype(np.int64)]
    scope: list[Array] = [functions_of.astype(np.int64)]
    since_event = np.full(statement_number.size, -1)
    for level in range(depth):
        loop = loops[:, level]
        inside = loop >= 0
        iterations, last = counters.count(loop, since_event, np.arange(statement_number.size))
        columns += [np.where(inside, loop, statement_number), np.where(inside, iterations, -1)]
        scope += [loop, np.where(inside, iterations, -1)]
        since_event = np.where(inside, last, since_event)
    return np.stack([*columns, statement_number], axis=1), np.stack(scope, axis=1)


class _IterationCounter:
    """Count loop iterations, stream by stream."""

    def __init__(self, stream: Array, marks: list[tuple[int, Array]]) -> None:
        self._stream, self._events = stream, stream.size + 1
        self._loops = max((loop for loop, _ in marks), default=0) + 1
        keys = [self._key(stream[events], loop, events) for loop, events in marks]
        self._keys = np.sort(np.concatenate([*keys, np.zeros(0, np.int64)]))

    def _key(self, stream: Array, loop: Any, event: Array) -> Array:
        key: Array = (stream * self._loops + loop) * self._events + event + 1
        return key

    def count(self, loop: Array, since: Array, until: Array) -> tuple[Array, Array]:
        """Return each event's number of loop iterations since another event, and the event that began the last one."""
        loop_number = np.maximum(loop, 0)
        end = np.searchsorted(self._keys, self._key(self._stream, loop_number, until), side="right")
        start = np.searchsorted(self._keys, self._key(self._stream, loop_number, since), side="right")
        if not self._keys.size:
            return end - start, since
        last = self._keys[np.maximum(end - 1, 0)] % self._events - 1
        return end - start, np.where(end > start, last, since)


def _count_earlier_entries(place: Array, time: Array) -> Array:
    """Return for each entry the number of earlier ones with the same place, in time order."""
    order = np.lexsort((time, place))
    fresh = np.concatenate(([True], place[order][1:] != place[order][:-1]))
    starts = np.flatnonzero(fresh)
    ordinal = np.empty(place.size, np.int64)
    ordinal[order] = np.arange(place.size) - np.repeat(starts, np.diff(np.append(starts, place.size)))
    return ordinal


def _rank_rows(rows: Array) -> Array:
    """Return the rank of each row among the unique rows."""
    if not len(rows):
        return np.zeros(0, np.int64)
    order = np.lexsort(rows.T[::-1])
    changes = (rows[order][1:] != rows[order][:-1]).any(axis=1)
    rank = np.empty(len(rows), np.int64)
    rank[order] = np.concatenate(([0], np.cumsum(changes)))
    return rank
