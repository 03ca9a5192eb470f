"""A recorded launch: every statement that ran, everything that memories and variables held, and what made each value.

Moments are numbered by events: event k is the k-th statement that the lanes of a batch (blocks that run in lockstep)
executed, and "at step k" means just before it. A step of `len(trace.events)` is the end.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import cached_property
from pathlib import Path
from typing import IO

from gpu.schedules import Schedule
from gpu.simulator.trace import file
from gpu.simulator.trace.ancestry import Ancestry, NodeTable
from gpu.simulator.trace.arrays import TraceArrays
from gpu.simulator.trace.data import TraceData
from gpu.simulator.trace.events import Events
from gpu.simulator.trace.lanes import TraceLanes
from gpu.simulator.trace.packing import Array
from gpu.simulator.trace.types import Register, TraceArray, TraceFinding, TraceLaunch, TraceNode, Write
from gpu.simulator.trace.variables import TraceVariables


class Trace:
    """A recorded launch.

    Parameters
    ----------
    data : TraceData
        Its tables.

    Attributes
    ----------
    lanes : TraceLanes
    memory : TraceArrays
    events : Events
    """

    def __init__(self, data: TraceData) -> None:
        self.data = data
        self.lanes = TraceLanes(data)
        self.memory = TraceArrays(data, self.lanes)
        self._variables = TraceVariables(data, self.lanes)
        self.events = Events(data, self.lanes, self.memory, self._variables)

    @classmethod
    def load(cls, path: str | Path) -> Trace:
        """Read a trace from a file.

        Raises
        ------
        InputError
            It cannot be read, is damaged, or was written by another version.
        """
        return cls(file.load(path))

    def save(self, path: str | Path | IO[bytes]) -> None:
        """Write everything to one file."""
        file.save(self.data, path)

    @property
    def nbytes(self) -> int:
        """The bytes that the trace takes in memory."""
        return sum(each.nbytes for each in file.arrays_of(self.data).values())

    # What was launched.

    @property
    def kernel(self) -> str:
        """The name of the kernel, as it was asked for."""
        return self.data.launch.kernel

    @property
    def source(self) -> str:
        """The text that it was compiled from."""
        return self.data.launch.source

    @property
    def launches(self) -> tuple[TraceLaunch, ...]:
        """The host's launch, and those by kernels."""
        return self.data.launches

    @property
    def grid(self) -> tuple[int, ...]:
        """The blocks of the host's launch in x, y and z."""
        return self.launches[0].grid

    @property
    def block(self) -> tuple[int, ...]:
        """The threads of each of these blocks."""
        return self.launches[0].block

    @property
    def schedule(self) -> str:
        """The order in which it ran, one of `gpu.schedules.NAMES`."""
        return self.data.launch.schedule

    @property
    def together(self) -> int | None:
        """How many lanes went together, rather than take turns: those of a warp, or one; None for all of a batch."""
        return Schedule.of(self.schedule).kind.together

    @property
    def failure(self) -> str:
        """The mistake at which the launch ended; "" where it did not."""
        return self.data.launch.failure

    @property
    def findings(self) -> tuple[TraceFinding, ...]:
        """The kernel's mistakes."""
        return self.data.launch.findings

    @property
    def stopped(self) -> str:
        """Why the recording ended before the launch did; "" where it did not."""
        return self.data.stopped

    @property
    def lane_events(self) -> int:
        """How many statements of single lanes were recorded."""
        return self.data.lane_events

    # Events, arrays and variables.

    def is_kind(self, kind: str, events: Array | slice = slice(None)) -> Array:
        """Return whether each of some events, or of all, is of a kind such as "barrier": bool."""
        kinds = self.data.kinds
        found: Array = self.data.events["kind"][events] == (kinds.index(kind) if kind in kinds else -1)
        return found

    @property
    def arrays(self) -> tuple[TraceArray, ...]:
        """All arrays: those of the launch first, then shared and local ones in the order in which they were used."""
        return self.memory.all

    def array(self, array: str | int, step: int, block: int | None = None) -> Array:
        """Return what an array holds at a step: shape (count,), of a thread's own array (lanes of the batch, count).

        Raises
        ------
        InputError
            There is no such array, by its number or by its name and its block, or no such step.
        """
        return self.memory.content(self.memory.find(array, block), step)

    def registers(self, step: int, names: Collection[str] | None = None) -> dict[str, Register]:
        """Return the variables of the running function just before event `step`, by name; all, or those named."""
        return self._variables.registers(step, names)

    def pointers(self, step: int) -> dict[str, Register]:
        """Return the pointers of the running function just before event `step`, by name."""
        return self._variables.pointers(step)

    # Provenance.

    def node_of(self, array: str | int, element: int, step: int, block: int | None = None) -> int:
        """Return the node of an element's value at a step; 0 where nothing made it."""
        return self.memory.node(self.memory.find(array, block), element, step)

    def writer(self, array: str | int, element: int, step: int, block: int | None = None) -> Write | None:
        """Return who wrote an element last before a step; None where nobody did."""
        return self.memory.writer(self.memory.find(array, block), element, step)

    @cached_property
    def _nodes(self) -> NodeTable:
        return NodeTable(self.data, self.lanes, self.memory)

    def node(self, number: int) -> TraceNode:
        """Return what a node stands for."""
        return next(self._nodes.group(number).nodes())

    def ancestry(self, node: int) -> Ancestry:
        """Return all that made a value, given its node."""
        return self._nodes.ancestry(node)
