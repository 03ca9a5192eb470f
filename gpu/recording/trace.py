"""Traces: every executed statement of a launch, the contents of memories and variables, and the provenance of values.

Event k is the k-th statement that lanes of a batch executed. Step k is the moment just before event k; step
`len(trace.events)` is the end.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import cached_property
from pathlib import Path
from typing import IO

from gpu.base.schedules import Schedule
from gpu.recording import file
from gpu.recording.ancestry import Ancestry, NodeTable, TraceNode
from gpu.recording.arrays import TraceArray, TraceArrays, Write
from gpu.recording.data import TraceData, TraceFinding, TraceLanes, TraceLaunch
from gpu.recording.events import Events
from gpu.recording.packing import Array
from gpu.recording.variables import RegisterState, TraceVariables


class Trace:
    """The trace of a launch.

    Parameters
    ----------
    data : TraceData
        The tables.

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
            The file cannot be read, is damaged, or was written by another version.
        """
        return cls(file.load_trace(path))

    def save(self, path: str | Path | IO[bytes]) -> None:
        """Save the trace to a file."""
        file.save_trace(self.data, path)

    @property
    def nbytes(self) -> int:
        """The size of the trace in memory, in bytes."""
        return sum(array.nbytes for array in file.collect_arrays(self.data).values())

    # The launch.

    @property
    def kernel(self) -> str:
        """The name of the kernel as requested, with template arguments."""
        return self.data.launch.kernel

    @property
    def source(self) -> str:
        """The source text."""
        return self.data.launch.source

    @property
    def launches(self) -> tuple[TraceLaunch, ...]:
        """The host's launch, and the child launches."""
        return self.data.launches

    @property
    def grid(self) -> tuple[int, ...]:
        """The blocks of the host's launch in x, y and z."""
        return self.launches[0].grid

    @property
    def block(self) -> tuple[int, ...]:
        """The threads of each block of the host's launch in x, y and z."""
        return self.launches[0].block

    @property
    def schedule(self) -> str:
        """The schedule, one of `gpu.base.schedules.NAMES`."""
        return self.data.launch.schedule

    @property
    def lanes_per_part(self) -> int | None:
        """The number of lanes that run in lockstep: those of a warp, or one; None for all lanes of a batch."""
        return Schedule.parse(self.schedule).kind.group_size

    @property
    def failure(self) -> str:
        """The error that ended the launch; "" if it succeeded."""
        return self.data.launch.failure

    @property
    def findings(self) -> tuple[TraceFinding, ...]:
        """The findings of the checkers."""
        return self.data.launch.findings

    @property
    def stop_reason(self) -> str:
        """Why the recording ended before the launch did; "" if it did not."""
        return self.data.stop_reason

    @property
    def lane_events(self) -> int:
        """The number of recorded statements of single lanes."""
        return self.data.lane_events

    # Events, arrays and variables.

    def find_events_of_kind(self, kind: str, events: Array | slice = slice(None)) -> Array:
        """Return a bool mask of the events that have a kind, such as "barrier"."""
        kinds = self.data.kinds
        mask: Array = self.data.events["kind"][events] == (kinds.index(kind) if kind in kinds else -1)
        return mask

    @property
    def arrays(self) -> tuple[TraceArray, ...]:
        """All arrays: those of the launch first, then shared and local arrays in order of first use."""
        return self.memory.all_arrays

    def array(self, array: str | int, step: int, block: int | None = None) -> Array:
        """Return an array's content at a step: shape (count,), or (lanes of the batch, count) for a local array.

        Raises
        ------
        InputError
            There is no array with this number, or name and block, or no such step.
        """
        return self.memory.content(self.memory.find(array, block), step)

    def registers(self, step: int, names: Collection[str] | None = None) -> dict[str, RegisterState]:
        """Return the variables of the running function just before event `step`, by name; all, or those in `names`."""
        return self._variables.registers(step, names)

    def pointers(self, step: int) -> dict[str, RegisterState]:
        """Return the pointers of the running function just before event `step`, by name."""
        return self._variables.pointers(step)

    # Provenance.

    def find_node(self, array: str | int, element: int, step: int, block: int | None = None) -> int:
        """Return the node of an element's value at a step; 0 if it has none.

        Parameters
        ----------
        array : str or int
            The name or the number of an array.
        element : int
            The element; in a local array, elements are numbered lane by lane.
        step : int
            The number of events before the value is read.
        block : int or None
            For a shared or local array given by name, its block; None for the first array of this name.

        Raises
        ------
        InputError
            There is no such array.
        """
        return self.memory.node(self.memory.find(array, block), element, step)

    def find_writer(self, array: str | int, element: int, step: int, block: int | None = None) -> Write | None:
        """Return the last write of an element before a step; None if there is none.

        Parameters
        ----------
        array, element, step, block
            As of `find_node`.

        Raises
        ------
        InputError
            There is no such array.
        """
        return self.memory.find_writer(self.memory.find(array, block), element, step)

    @cached_property
    def _nodes(self) -> NodeTable:
        return NodeTable(self.data, self.lanes, self.memory)

    def node(self, number: int) -> TraceNode:
        """Return a node by its number."""
        return next(self._nodes.group(number).nodes())

    def ancestry(self, node: int) -> Ancestry:
        """Return the ancestry of a value, given its node."""
        return self._nodes.ancestry(node)
