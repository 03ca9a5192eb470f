"""An event from the view of one thread: its accesses, and its variables before and after."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gpu.recording.events import Event
from gpu.recording.trace import Trace

Value = Any
"""A NumPy scalar, a tuple of scalars for a vector value, or None if unknown."""

_AXES = {"x": 0, "y": 1, "z": 2}


def format_value(value: Value) -> str:
    """Format a value as in C, floats with six digits; a vector lists all parts, an unknown value is "".

    Whole floats have all digits up to ten: the step from 16777216 to 16777217, which float32 cannot represent, is
    the subject of a lesson.
    """
    if value is None:
        return ""
    if isinstance(value, tuple):
        return "(" + ", ".join(map(format_value, value)) + ")"
    kind = np.asarray(value).dtype.kind
    if kind == "b":
        return "true" if value else "false"
    if kind != "f":
        return str(int(value))
    number = float(value)
    return f"{number:.0f}" if 1e6 <= abs(number) < 1e10 and number.is_integer() else f"{number:.6g}"


@dataclass(frozen=True)
class ThreadAccess:
    """One access by a thread, with the values before and after it; a vector's values are tuples."""

    action: str
    array: str
    element: int
    value: Value
    after: Value


@dataclass
class ThreadEvent:
    """An event from the view of one thread.

    Parameters
    ----------
    lane : int
        The thread's number in the batch.
    accesses : list of ThreadAccess
        The accesses of the whole statement, including those after a call in it.
    before, after : dict of str to value
        The variables before and after the event.
    changed : dict of str to value
        The variables that the event changed.
    call : str
        The function that the statement calls after this event, before it continues; "" if it does not.
    """

    trace: Trace
    event: Event
    lane: int
    accesses: list[ThreadAccess]
    before: dict[str, Value]
    after: dict[str, Value]
    changed: dict[str, Value] = field(default_factory=dict)
    call: str = ""

    @classmethod
    def from_trace(cls, trace: Trace, number: int, block: int, thread: int) -> ThreadEvent | None:
        """Return an event from the view of a thread.

        Parameters
        ----------
        trace : Trace
            The trace of a launch.
        number : int
            The number of the event.
        block, thread : int
            The thread's block and its number in the block, both linear with x fastest.

        Returns
        -------
        ThreadEvent or None
            None if the thread is not active in the event, or there is no such event.
        """
        if number >= len(trace.events):
            return None
        event = trace.events[number]
        matches = np.flatnonzero((event.blocks == block) & (event.threads == thread))
        if not matches.size:
            return None
        lane = int(event.lanes[matches[0]])
        parts = _find_statement_events(trace, number, lane)
        accesses = [access for part in parts for access in _collect_thread_accesses(trace, part, lane)]
        before = _lane_values(trace.registers(parts[0].number), lane)
        changed: dict[str, Value] = {}
        for part in parts:
            changed.update(_lane_values(part.registers, lane))
        call = _find_called_function(trace, number, parts[-1].number, lane)
        return cls(trace, event, lane, accesses, before, {**before, **changed}, changed, call)

    @property
    def variables(self) -> tuple[tuple[str, str], ...]:
        """The formatted variables after the event."""
        values = self.before if self.call else self.after
        return tuple((name, format_value(value)) for name, value in values.items())

    @property
    def branch_taken(self) -> bool | None:
        """For a branch, whether the condition was true."""
        taken = self.event.true_lanes
        return None if taken is None else bool(np.isin(self.lane, taken))

    def find_written_value(self, name: str) -> Value:
        """Return the value written to a variable; None if none was."""
        return self.changed.get(name)

    def find_stored_value(self) -> Value:
        """Return the value stored to memory; None if none was."""
        values = [access.after for access in self.accesses if access.action == "write"]
        return tuple(values) if len(values) > 1 else values[0] if values else None

    def format_effects(self, *, atomics_only: bool = False) -> str:
        """Describe the changes of memory and variables."""
        effects = []
        for access in self.accesses:
            if access.action == "atomic":
                change = f"from {format_value(access.value)} to {format_value(access.after)}"
                effects.append(f"{access.array}[{access.element}] {change}")
            elif access.action == "write" and not atomics_only:
                effects.append(f"{access.array}[{access.element}] = {format_value(access.after)}")
        if not atomics_only:
            effects += [f"{name} = {format_value(value)}" for name, value in self.changed.items()]
        return ", ".join(effects)

    def find_lane_event(self, lane: int) -> ThreadEvent | None:
        """Return the same event from the view of another lane of the batch; None if that lane is not active."""
        block, thread = self.trace.lanes.threads(self.event.batch, np.array([lane]))
        return ThreadEvent.from_trace(self.trace, self.event.number, int(block[0]), int(thread[0]))

    def find_builtin_value(self, name: str) -> Value:
        """Return the value of threadIdx.x or another built-in variable; None for any other name."""
        kind, _, axis = name.partition(".")
        if axis not in _AXES:
            return None
        launch = self.trace.lanes.launch(self.event.batch)
        extent = {"blockDim": launch.block, "gridDim": launch.grid}.get(kind)
        if extent is not None:
            return np.uint32(extent[_AXES[axis]])
        extents = {"threadIdx": launch.block, "blockIdx": launch.grid}.get(kind)
        if extents is None:
            return None
        number = self.lane % launch.lanes_per_block
        if kind == "blockIdx":
            number = int(self.trace.lanes.block(self.event.batch, self.lane))
        x, y, _ = extents
        return np.uint32((number % x, number // x % y, number // (x * y))[_AXES[axis]])


def _find_statement_events(trace: Trace, number: int, lane: int) -> list[Event]:
    """Return all events of the statement to which an event belongs, from the view of the thread."""
    event, first = trace.events[number], number
    while trace.events[first].is_resumed and first > 0:
        first -= 1
        while first > 0 and not _is_same_call(trace.events[first], event, lane):
            first -= 1
    events = [trace.events[first]]
    rows = trace.data.events[first + 1 :]
    # Calls that have returned have no more events, and most events belong to other calls; both are skipped.
    for index in np.flatnonzero((rows["frame"] == event.frame) & (rows["batch"] == event.batch)).tolist():
        following = trace.events[first + 1 + index]
        if bool(np.isin(lane, following.lanes)):
            if not following.is_resumed:
                break
            events.append(following)
    return events


def _find_called_function(trace: Trace, number: int, last: int, lane: int) -> str:
    """Return the function of a thread's next event, up to the statement's last event; "" for none."""
    batch = trace.events[number].batch
    for following in range(number + 1, last):
        event = trace.events[following]
        if event.batch == batch and bool(np.isin(lane, event.lanes)):
            return str(event.function)
    return ""


def _is_same_call(one: Event, other: Event, lane: int) -> bool:
    return one.batch == other.batch and one.frame == other.frame and bool(np.isin(lane, one.lanes))


def _lane_values(registers: dict[str, Any], lane: int) -> dict[str, Value]:
    return {name: register.values[lane] for name, register in registers.items() if register.defined[lane]}


def _collect_thread_accesses(trace: Trace, event: Event, lane: int) -> list[ThreadAccess]:
    parts = trace.data.accesses["part"]
    first = int(np.searchsorted(trace.data.accesses["event"], event.number))
    accesses: list[ThreadAccess] = []
    for index, access in enumerate(event.accesses):
        (matches,) = np.nonzero(access.lanes == lane)
        if not matches.size:
            continue
        at = int(matches[0])
        value, after = access.values[at], access.results[at]
        if int(parts[first + index]) and accesses:
            last = accesses[-1]
            value, after = (_append_part(last.value, value), _append_part(last.after, after))
            accesses[-1] = ThreadAccess(last.action, last.array, last.element, value, after)
            continue
        array = trace.arrays[int(access.arrays[at])].name
        accesses.append(ThreadAccess(access.action, array, int(access.elements[at]), value, after))
    return accesses


def _append_part(value: Value, part: Value) -> Value:
    return (*value, part) if isinstance(value, tuple) else (value, part)
