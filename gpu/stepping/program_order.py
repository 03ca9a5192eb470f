"""Where in the program each event is: the same place for every warp, whatever the order in which warps ran."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu.stepping.flat import Array, FlatTrace

_LAST = 2**30


def program_order(flat: FlatTrace) -> tuple[Array, Array]:
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
    if not flat.events.size:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    frames, events = flat.event("frame").astype(np.int64), np.arange(len(flat.events))
    stream = _streams(flat)
    keys, rounds = _local_keys(flat, stream)
    local = _dense(keys)
    callers = np.array(flat.trace.about["callers"], np.int64).reshape(-1, 2)
    present = np.isin(callers[:, 0], frames)
    called, calling = callers[present].T
    # A call takes place just after the last event of its caller before its own first.
    order = np.argsort(frames, kind="stable")
    first = order[np.searchsorted(frames[order], called)]
    key = frames[order] * events.size + order
    at = np.searchsorted(key, calling * events.size + first) - 1
    valid = (at >= 0) & (frames[order[at]] == calling) if called.size else np.zeros(0, bool)
    called, first, site = called[valid], first[valid], order[at[valid]]
    # What has the same place in a stream follows in the order of time: calls, the rest of a statement after a call.
    place = np.concatenate((stream[events], stream[site])) * (local.max() + 1)
    place += np.concatenate((local, local[site]))
    ordinal = _ordinals(place, np.concatenate((events, first)))
    paths = [np.stack((local, ordinal[: events.size]), axis=1)]
    parent = np.full(int(frames.max()) + 1, -1)
    parent[called] = np.arange(called.size)
    step = parent[frames]
    while (step >= 0).any():
        above = np.full((events.size, 2), -1)
        inside = step >= 0
        above[inside] = np.stack((local[site], ordinal[events.size :]), axis=1)[step[inside]]
        paths.append(above)
        step = np.where(inside, parent[frames[site[step]]], -1)
    gang = _one_by_one(flat)
    steps = _dense(np.concatenate([gang, _outermost_first(paths)], axis=1))
    paths[0] = np.stack((_dense(rounds), np.zeros(events.size, np.int64)), axis=1)
    return steps, _dense(np.concatenate([gang, _outermost_first(paths)], axis=1))


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


def _streams(flat: FlatTrace) -> Array:
    """Return a number for what runs in sequence: a frame, or, where warps take turns, a warp in a frame."""
    stream = flat.event("frame").astype(np.int64)
    if flat.trace.about["schedule"] == "round-robin":
        return stream
    masks, which = np.unique(flat.event("mask"), return_inverse=True)
    warps = np.array([flat.trace.lanes_of_mask(int(mask))[0] // 32 for mask in masks])
    shuffled: Array = stream * (int(warps.max()) + 1) + warps[which]
    return shuffled


def _one_by_one(flat: FlatTrace) -> Array:
    """Return the gang of each event where blocks ran one after the other, though several would have fitted."""
    gangs = np.array([gang[:2] for gang in flat.trace.about["gangs"]])
    alone = len(gangs) > 1 and bool((gangs[:, 1] == 1).all())
    return flat.event("gang")[:, None] * (1 if alone else 0)


def _local_keys(flat: FlatTrace, stream: Array) -> tuple[Array, Array]:
    """Return the place of each event in its function, loops with their rounds and the statement; and loops alone."""
    functions: list[dict[str, Any]] = flat.trace.about["functions"]
    positions = len(flat.trace.about["positions"])
    depth = max((len(loops) for each in functions for _, loops in each["statements"]), default=0)
    # For each position in each function the number of the statement and of the loops around it.
    number = np.full((len(functions), positions), _LAST)
    around = np.full((len(functions), positions, depth), -1)
    rounds: list[tuple[int, int, int, bool]] = []
    for of, function in enumerate(functions):
        for statement, (position, loops) in reversed(list(enumerate(function["statements"]))):
            if position >= 0:
                number[of, position] = statement
                around[of, position, : len(loops)] = loops
                around[of, position, len(loops) :] = -1
        for loop, marker in function["rounds"].items():
            position = function["statements"][int(loop)][0] if marker < 0 else marker
            rounds.append((of, int(loop), position, marker < 0))
    functions_of, position = flat.event("function"), flat.event("position")
    own, loops = number[functions_of, position], around[functions_of, position]
    kinds = flat.trace.about["kinds"]
    test, advance = (kinds.index(kind) if kind in kinds else -1 for kind in ("loop", "advance"))
    kind = flat.event("kind")
    own = np.where(kind == advance, _LAST, own)
    counters = _Rounds(
        stream,
        [
            (
                loop,
                np.flatnonzero(
                    (functions_of == function)
                    & (position == marker)
                    & (flat.event("resumed") == 0)
                    & ((kind == test) if tested else (kind != advance))
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
