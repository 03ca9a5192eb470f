"""Where in the program each event is: the same place for every warp, whatever the order in which warps ran."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu.simulator.trace.packing import Array
from gpu.simulator.trace.trace import Trace

_LAST = 2**30


def program_order(trace: Trace) -> tuple[Array, Array]:
    """Return a number for each event of a trace: equal for the same statement in the same rounds of its loops.

    Numbers ascend in the order of the program, round after round; what a called function does comes within the
    statement that calls it. Blocks that ran one after the other, because they wait for each other, stay so.

    Returns
    -------
    steps : int64 array
        0, 1, ... without gaps.
    scopes : int64 array
        A number for the call and the rounds of its loops: equal for the statements of one round.
    """
    if not len(trace.events):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    warp, warps = _warps(trace)
    frame = trace.data.events["frame"].astype(np.int64)
    stream = frame * warps + warp
    keys, rounds = _local_keys(trace, stream)
    local = _dense(keys)
    calls = _Calls(trace, stream, warp, warps)
    # What has the same place in a stream follows in the order of time: calls, the rest of a statement after a call.
    place = np.concatenate((stream, stream[calls.site])) * (int(local.max()) + 1)
    place += np.concatenate((local, local[calls.site]))
    begun = _begun(trace, frame, warp)
    counted = np.concatenate((begun == np.arange(frame.size), np.ones(calls.site.size, bool)))
    ordinal = np.zeros(place.size, np.int64)
    ordinal[counted] = _ordinals(place[counted], np.concatenate((np.arange(frame.size), calls.first))[counted])
    ordinal[: frame.size] = ordinal[begun]
    own = np.stack((local, ordinal[: frame.size]), axis=1)
    above = calls.paths(frame, np.stack((local[calls.site], ordinal[frame.size :]), axis=1))
    round_only = np.stack((_dense(rounds), np.zeros_like(frame)), axis=1)
    batch = _one_by_one(trace)
    steps, scopes = (
        _dense(np.concatenate([batch, _outermost_first([last, *above])], axis=1)) for last in (own, round_only)
    )
    return steps, scopes


class _Calls:
    """The calls of functions that left a trace.

    Parameters
    ----------
    trace : Trace
    stream, warp : arrays
        Of each event.
    warps : int
    """

    def __init__(self, trace: Trace, stream: Array, warp: Array, warps: int) -> None:
        frame = trace.data.events["frame"].astype(np.int64)
        calls = trace.data.calls[np.isin(trace.data.calls["frame"], frame)]
        called, calling = calls["frame"].astype(np.int64), calls["caller"].astype(np.int64)
        order = np.argsort(frame, kind="stable")
        first = order[np.searchsorted(frame[order], called)]
        # A call takes place just after the last event of its caller before its own first.
        by_stream = np.argsort(stream, kind="stable")
        keys = stream[by_stream] * frame.size + by_stream
        calling_stream = calling * warps + warp[first]
        at = np.searchsorted(keys, calling_stream * frame.size + first) - 1
        known = (at >= 0) & (stream[by_stream[at]] == calling_stream)
        self.first: Array = first[known]
        self.site: Array = by_stream[at[known]]
        self._of_frame = np.full(int(frame.max()) + 1, -1)
        self._of_frame[called[known]] = np.arange(self.first.size)

    def paths(self, frame: Array, places: Array) -> list[Array]:
        """Return the places of the calls that each frame is in, innermost first; -1 where there is none."""
        found = []
        call = self._of_frame[frame]
        while (call >= 0).any():
            inside = call >= 0
            above = np.full((frame.size, 2), -1)
            above[inside] = places[call[inside]]
            found.append(above)
            call = np.where(inside, self._of_frame[frame[self.site[call]]], -1)
        return found


def _outermost_first(paths: list[Array]) -> Array:
    """Let every path begin with its outermost call: shorter ones are filled up at their end."""
    stacked = np.stack(paths[::-1], axis=1)
    missing = (stacked[:, :, 0] < 0).sum(axis=1)
    depth = len(paths)
    places = (np.arange(depth) + missing[:, None]) % depth
    aligned = stacked[np.arange(len(stacked))[:, None], places]
    aligned[np.arange(depth) >= (depth - missing)[:, None]] = -1
    whole: Array = aligned.reshape(len(stacked), -1)
    return whole


def _warps(trace: Trace) -> tuple[Array, int]:
    """Return the warp (or lane) of each event, where they take turns, and how many there are; one in lockstep."""
    if trace.together is None:
        return np.zeros(len(trace.events), np.int64), 1
    masks, which = np.unique(trace.data.events["mask"], return_inverse=True)
    warps = np.array([trace.lanes.of_mask(mask)[0] // trace.together for mask in masks.tolist()])
    return warps[which], int(warps.max()) + 1


def _begun(trace: Trace, frame: Array, lane: Array) -> Array:
    """Return for each event the one that began its statement: itself, but where a lane only let others go on."""
    begun = np.arange(frame.size)
    if trace.together != 1:
        return begun
    order = np.argsort(lane, kind="stable")
    events = trace.data.events
    same = (np.diff(lane[order], prepend=-1) == 0) & (events["resumed"][order] != 0)
    same &= (frame[order] == np.roll(frame[order], 1)) & ~np.roll(trace.is_kind("barrier")[order], 1)
    same &= events["position"][order] == np.roll(events["position"][order], 1)
    starts = np.maximum.accumulate(np.where(same, 0, np.arange(order.size)))
    begun[order] = order[starts]
    return begun


def _one_by_one(trace: Trace) -> Array:
    """Return the batch of each event where blocks ran one after the other, as those do that wait for each other."""
    _, which = np.unique(trace.data.batches["launch"], return_inverse=True)
    count, blocks = np.bincount(which), np.bincount(which, trace.data.batches["blocks"])
    number = np.where(((count == blocks) & (count > 1))[which], np.arange(which.size), 0)
    found: Array = number[trace.data.events["batch"]][:, None]
    return found


def _local_keys(trace: Trace, stream: Array) -> tuple[Array, Array]:
    """Return the place of each event in its function, loops with their rounds and the statement; and loops alone."""
    functions = trace.data.functions
    positions = len(trace.data.positions)
    depth = max((len(each.loops) for function in functions for each in function.statements), default=0)
    # For each position in each function the number of the statement and of the loops around it.
    number = np.full((len(functions), positions), _LAST)
    around = np.full((len(functions), positions, depth), -1)
    rounds: list[tuple[int, int, int, bool]] = []
    for of, function in enumerate(functions):
        for statement, (position, loops) in reversed(list(enumerate(function.statements))):
            if position >= 0:
                number[of, position] = statement
                around[of, position, : len(loops)] = loops
                around[of, position, len(loops) :] = -1
        for loop, marker in function.rounds.items():
            position = function.statements[loop].position if marker < 0 else marker
            rounds.append((of, loop, position, marker < 0))
    functions_of, positions_of = trace.data.events["function"], trace.data.events["position"]
    own, loops = number[functions_of, positions_of], around[functions_of, positions_of]
    test, advance, resumed = trace.is_kind("loop"), trace.is_kind("advance"), trace.data.events["resumed"] != 0
    own = np.where(advance, _LAST, own)
    counters = _Rounds(
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
    since = np.full(own.size, -1)
    for level in range(depth):
        loop = loops[:, level]
        inside = loop >= 0
        done, last = counters.count(loop, since, np.arange(own.size))
        columns += [np.where(inside, loop, own), np.where(inside, done, -1)]
        scope += [loop, np.where(inside, done, -1)]
        since = np.where(inside, last, since)
    return np.stack([*columns, own], axis=1), np.stack(scope, axis=1)


class _Rounds:
    """Counts the rounds of loops, stream by stream."""

    def __init__(self, stream: Array, marks: list[tuple[int, Array]]) -> None:
        self._stream, self._events = stream, stream.size + 1
        self._loops = max((loop for loop, _ in marks), default=0) + 1
        keys = [self._key(stream[events], loop, events) for loop, events in marks]
        self._keys = np.sort(np.concatenate([*keys, np.zeros(0, np.int64)]))

    def _key(self, stream: Array, loop: Any, event: Array) -> Array:
        key: Array = (stream * self._loops + loop) * self._events + event + 1
        return key

    def count(self, loop: Array, since: Array, until: Array) -> tuple[Array, Array]:
        """Return how many rounds of its loop each event has seen since another, and the event that began the last."""
        known = np.maximum(loop, 0)
        end = np.searchsorted(self._keys, self._key(self._stream, known, until), side="right")
        start = np.searchsorted(self._keys, self._key(self._stream, known, since), side="right")
        if not self._keys.size:
            return end - start, since
        last = self._keys[np.maximum(end - 1, 0)] % self._events - 1
        return end - start, np.where(end > start, last, since)


def _ordinals(place: Array, time: Array) -> Array:
    """Return how many of the same place come before each, in the order of time."""
    order = np.lexsort((time, place))
    fresh = np.concatenate(([True], place[order][1:] != place[order][:-1]))
    starts = np.flatnonzero(fresh)
    ordinal = np.empty(place.size, np.int64)
    ordinal[order] = np.arange(place.size) - np.repeat(starts, np.diff(np.append(starts, place.size)))
    return ordinal


def _dense(rows: Array) -> Array:
    """Return the rank of each row among the different ones."""
    if not len(rows):
        return np.zeros(0, np.int64)
    order = np.lexsort(rows.T[::-1])
    changes = (rows[order][1:] != rows[order][:-1]).any(axis=1)
    rank = np.empty(len(rows), np.int64)
    rank[order] = np.concatenate(([0], np.cumsum(changes)))
    return rank
