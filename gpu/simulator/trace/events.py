"""The events of a trace."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gpu.errors import SourcePosition
from gpu.simulator.trace.packing import Array
from gpu.simulator.trace.recorder import EVENT, NOBODY, NOT_A_BRANCH
from gpu.simulator.trace.types import Register, TraceAccess

if TYPE_CHECKING:
    from gpu.simulator.trace.trace import Trace


class Event:
    """One executed statement, in all lanes that executed it."""

    def __init__(self, trace: Trace, number: int) -> None:
        self._trace = trace
        self._row = trace.data.arrays["events"][number]
        self.number = number

    def _of(self, column: str) -> int:
        return int(self._row[EVENT.index(column)])

    @property
    def kind(self) -> str:
        """The kind of step, as `observe.Step` has it, or "advance": the step of a for loop."""
        return str(self._trace.about["kinds"][self._of("kind")])

    @property
    def position(self) -> SourcePosition:
        """Where in the source."""
        return SourcePosition(*self._trace.about["positions"][self._of("position")])

    @property
    def function(self) -> str:
        """The name of the running function."""
        return str(self._trace.about["functions"][self._of("function")]["name"])

    @property
    def frame(self) -> int:
        """The number of the running call."""
        return self._of("frame")

    @property
    def batch(self) -> int:
        """The number of the batch."""
        return self._of("batch")

    @property
    def resumed(self) -> bool:
        """Whether this is the rest of a statement that called a function."""
        return bool(self._of("resumed"))

    @property
    def lanes(self) -> Array:
        """The active lanes, ascending; numbers within the batch."""
        return self._trace.lanes_of_mask(self._of("mask"))

    @property
    def blocks(self) -> Array:
        """The number of each active lane's block in the grid."""
        blocks: Array = self._trace.block_of(self.batch, self.lanes)
        return blocks

    @property
    def threads(self) -> Array:
        """The number of each active lane's thread in its block, x fastest; its warp is that over 32."""
        return self.lanes % self._trace.lanes_per_block_of(self.batch)

    @property
    def launch(self) -> int:
        """The number of the launch: 0 for the host's, others for those by kernels."""
        return self._trace.launch_of(self.batch).number

    @property
    def taken(self) -> Array | None:
        """Of a branch, the lanes where the condition holds; None where this is none."""
        mask = self._of("taken")
        if mask == NOT_A_BRANCH:
            return None
        return np.zeros(0, np.int64) if mask == NOBODY else self._trace.lanes_of_mask(mask)

    @property
    def accesses(self) -> list[TraceAccess]:
        """The accesses to memory, in order."""
        return [self._trace.access(row) for row in self._rows("access", len(self._trace.data.arrays["accesses"]))]

    @property
    def registers(self) -> dict[str, Register]:
        """The variables that this event wrote, by name; `defined` is where."""
        return self._trace.registers_written(
            self._rows("register", len(self._trace.data.arrays["registers"])), self.number
        )

    @property
    def pointers(self) -> dict[str, Register]:
        """The pointers that this event wrote, by name; `defined` is where."""
        return self._trace.pointers_written(self.number)

    def _rows(self, column: str, end: int) -> range:
        events = self._trace.data.arrays["events"]
        last = int(events[self.number + 1, EVENT.index(column)]) if self.number + 1 < len(events) else end
        return range(self._of(column), last)


class Events(Sequence[Event]):
    """The events of a trace, oldest first."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace

    def __len__(self) -> int:
        return len(self._trace.data.arrays["events"])

    def __getitem__(self, number: Any) -> Any:
        if isinstance(number, slice):
            return [self[each] for each in range(*number.indices(len(self)))]
        if not -len(self) <= number < len(self):
            raise IndexError(number)
        return Event(self._trace, number % len(self))

    def __iter__(self) -> Iterator[Event]:
        return (Event(self._trace, number) for number in range(len(self)))
