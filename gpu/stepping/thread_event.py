"""An event as one thread saw it: what it read and wrote, and its variables before and after."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gpu.simulator.trace.events import Event
from gpu.simulator.trace.trace import Trace

Value = Any
"""A NumPy scalar, a tuple of such for a value of several parts, or None where it is not known."""

_AXES = {"x": 0, "y": 1, "z": 2}


def as_text(value: Value) -> str:
    """Return a value as C would write it, floats with six digits; of a vector all parts; "" where it is not known."""
    if value is None:
        return ""
    if isinstance(value, tuple):
        return "(" + ", ".join(map(as_text, value)) + ")"
    kind = np.asarray(value).dtype.kind
    if kind == "b":
        return "true" if value else "false"
    return f"{float(value):.6g}" if kind == "f" else str(int(value))


@dataclass(frozen=True)
class ThreadAccess:
    """One access by the thread: what it found or left; `value` is a tuple for a vector."""

    action: str
    array: str
    element: int
    value: Value
    after: Value


@dataclass
class ThreadEvent:
    """An event as one thread saw it.

    Parameters
    ----------
    trace : Trace
    event : Event
    lane : int
        The thread's number in the batch.
    accesses : list of ThreadAccess
        Those of the whole statement, also where it went on after a call.
    before, after : dict of str to value
        The variables before and after the event.
    changed : dict of str to value
        Those that the event changed.
    """

    trace: Trace
    event: Event
    lane: int
    accesses: list[ThreadAccess]
    before: dict[str, Value]
    after: dict[str, Value]
    changed: dict[str, Value] = field(default_factory=dict)

    @classmethod
    def of(cls, trace: Trace, number: int, block: int, thread: int) -> ThreadEvent | None:
        """Return an event as a thread saw it; None where the thread does not take part."""
        if number >= len(trace.events):
            return None
        event = trace.events[number]
        here = np.flatnonzero((event.blocks == block) & (event.threads == thread))
        if not here.size:
            return None
        lane = int(event.lanes[here[0]])
        parts = _parts(trace, number, lane)
        accesses = [access for part in parts for access in _thread_accesses(trace, part, lane)]
        before = _of_lane(trace.registers(parts[0].number), lane)
        changed: dict[str, Value] = {}
        for part in parts:
            changed.update(_of_lane(part.registers, lane))
        return cls(trace, event, lane, accesses, before, {**before, **changed}, changed)

    @property
    def variables(self) -> tuple[tuple[str, str], ...]:
        """The variables after the event, in words."""
        return tuple((name, as_text(value)) for name, value in self.after.items())

    @property
    def taken(self) -> bool | None:
        """Of a branch, whether the condition held."""
        taken = self.event.taken
        return None if taken is None else bool(np.isin(self.lane, taken))

    def written(self, name: str) -> Value:
        """Return what a variable got; None where it got nothing."""
        return self.changed.get(name)

    def stored(self) -> Value:
        """Return what was stored; None where nothing was."""
        found = [access.after for access in self.accesses if access.action == "write"]
        return tuple(found) if len(found) > 1 else found[0] if found else None

    def effects(self, *, atomics_only: bool = False) -> str:
        """Return in words what memory and variables got."""
        told = []
        for access in self.accesses:
            if access.action == "atomic":
                told.append(f"{access.array}[{access.element}] from {as_text(access.value)} to {as_text(access.after)}")
            elif access.action == "write" and not atomics_only:
                told.append(f"{access.array}[{access.element}] = {as_text(access.after)}")
        if not atomics_only:
            told += [f"{name} = {as_text(value)}" for name, value in self.changed.items()]
        return ", ".join(told)

    def of_lane(self, lane: int) -> ThreadEvent | None:
        """Return the same event as another lane of the batch saw it; None where that does not take part."""
        block, thread = self.trace.lanes.threads(self.event.batch, np.array([lane]))
        return ThreadEvent.of(self.trace, self.event.number, int(block[0]), int(thread[0]))

    def special(self, name: str) -> Value:
        """Return threadIdx.x and its like; None for any other name."""
        kind, _, axis = name.partition(".")
        if axis not in _AXES:
            return None
        launch = self.trace.lanes.launch(self.event.batch)
        extent = {"blockDim": launch.block, "gridDim": launch.grid}.get(kind)
        if extent is not None:
            return np.uint32(extent[_AXES[axis]])
        whole = {"threadIdx": launch.block, "blockIdx": launch.grid}.get(kind)
        if whole is None:
            return None
        number = self.lane % launch.lanes_per_block
        if kind == "blockIdx":
            number = int(self.trace.lanes.block(self.event.batch, self.lane))
        x, y, _ = whole
        return np.uint32((number % x, number // x % y, number // (x * y))[_AXES[axis]])


def _parts(trace: Trace, number: int, lane: int) -> list[Event]:
    """Return the events of the statement that an event is a part of, as the thread saw them."""
    event, first = trace.events[number], number
    while trace.events[first].resumed and first > 0:
        first -= 1
        while first > 0 and not _same(trace.events[first], event, lane):
            first -= 1
    found = [trace.events[first]]
    rows = trace.data.events[first + 1 :]
    # A call that has ended has no event any more, and most others are not of this call: they are not looked at.
    for each in np.flatnonzero((rows["frame"] == event.frame) & (rows["batch"] == event.batch)).tolist():
        following = trace.events[first + 1 + each]
        if bool(np.isin(lane, following.lanes)):
            if not following.resumed:
                break
            found.append(following)
    return found


def _same(one: Event, other: Event, lane: int) -> bool:
    return one.batch == other.batch and one.frame == other.frame and bool(np.isin(lane, one.lanes))


def _of_lane(registers: dict[str, Any], lane: int) -> dict[str, Value]:
    return {name: each.values[lane] for name, each in registers.items() if each.defined[lane]}


def _thread_accesses(trace: Trace, event: Event, lane: int) -> list[ThreadAccess]:
    parts = trace.data.accesses["part"]
    first = int(np.searchsorted(trace.data.accesses["event"], event.number))
    found: list[ThreadAccess] = []
    for place, access in enumerate(event.accesses):
        (here,) = np.nonzero(access.lanes == lane)
        if not here.size:
            continue
        at = int(here[0])
        value, after = access.values[at], access.after[at]
        if int(parts[first + place]) and found:
            last = found[-1]
            value, after = (_more(last.value, value), _more(last.after, after))
            found[-1] = ThreadAccess(last.action, last.array, last.element, value, after)
            continue
        array = trace.arrays[int(access.arrays[at])].name
        found.append(ThreadAccess(access.action, array, int(access.elements[at]), value, after))
    return found


def _more(value: Value, part: Value) -> Value:
    return (*value, part) if isinstance(value, tuple) else (value, part)
