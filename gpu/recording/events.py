"""The events of a trace."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from gpu.base.errors import SourcePosition
from gpu.recording.arrays import TraceAccess, TraceArrays
from gpu.recording.data import TraceData, TraceLanes
from gpu.recording.packing import Array
from gpu.recording.statements import ExecutedStatement
from gpu.recording.tables import NO_LANES, NO_STATEMENT, NOT_A_BRANCH, EventRow
from gpu.recording.variables import RegisterState, TraceVariables


class Event:
    """A statement that lanes executed together."""

    def __init__(self, events: Events, number: int) -> None:
        self._events = events
        self._row = EventRow(*events.data.events[number].tolist())
        self.number = number

    @property
    def kind(self) -> str:
        """The kind of step, as of `observe.IssuedStep`, or "advance" for the step of a for loop."""
        return self._events.data.kinds[self._row.kind]

    @property
    def position(self) -> SourcePosition:
        """The source position."""
        return self._events.data.positions[self._row.position]

    @property
    def function(self) -> str:
        """The name of the running function."""
        return self._events.data.functions[self._row.function].name

    @property
    def statement(self) -> ExecutedStatement:
        """The executed statement; empty at a barrier."""
        number = self._row.statement
        return ExecutedStatement() if number == NO_STATEMENT else self._events.data.statements[number]

    @property
    def frame(self) -> int:
        """The number of the running call."""
        return self._row.frame

    @property
    def batch(self) -> int:
        """The number of the batch."""
        return self._row.batch

    @property
    def is_resumed(self) -> bool:
        """Return whether this is the rest of a statement that called a function."""
        return bool(self._row.resumed)

    @property
    def lanes(self) -> Array:
        """The active lanes, ascending; numbers within the batch."""
        return self._events.lanes.mask_lanes(self._row.mask)

    @property
    def blocks(self) -> Array:
        """The number of each active lane's block in the grid."""
        return self._events.lanes.threads(self.batch, self.lanes)[0]

    @property
    def threads(self) -> Array:
        """The number of each active lane's thread in its block, x fastest."""
        return self._events.lanes.threads(self.batch, self.lanes)[1]

    @property
    def launch(self) -> int:
        """The number of the launch: 0 for the host's, larger for child launches."""
        return self._events.lanes.launch(self.batch).number

    @property
    def true_lanes(self) -> Array | None:
        """The lanes in which a branch's condition is true; None if this is not a branch, or a `switch`."""
        mask = self._row.taken
        if mask == NOT_A_BRANCH or self.kind == "switch":
            return None
        return np.empty(0, np.int64) if mask == NO_LANES else self._events.lanes.mask_lanes(mask)

    @property
    def accesses(self) -> list[TraceAccess]:
        """The memory accesses, in order."""
        data = self._events.data
        next_event = self.number + 1
        last = int(data.events["access"][next_event]) if next_event < len(data.events) else len(data.accesses)
        return [self._events.arrays.access(row) for row in range(self._row.access, last)]

    @property
    def registers(self) -> dict[str, RegisterState]:
        """The variables that this event wrote, by name; `defined` marks the lanes that wrote."""
        return self._events.variables.registers_written(self.number)

    @property
    def pointers(self) -> dict[str, RegisterState]:
        """The pointers that this event wrote, by name; `defined` marks the lanes that wrote."""
        return self._events.variables.pointers_written(self.number)


class Events(Sequence[Event]):
    """The events of a trace, oldest first."""

    def __init__(self, data: TraceData, lanes: TraceLanes, arrays: TraceArrays, variables: TraceVariables) -> None:
        self.data, self.lanes, self.arrays, self.variables = data, lanes, arrays, variables

    def __len__(self) -> int:
        return len(self.data.events)

    def __getitem__(self, number: Any) -> Any:
        if isinstance(number, slice):
            return [self[index] for index in range(*number.indices(len(self)))]
        if not -len(self) <= number < len(self):
            raise IndexError(number)
        return Event(self, number % len(self))

    def __iter__(self) -> Iterator[Event]:
        return (Event(self, number) for number in range(len(self)))
