"""The data of a trace: its tables and descriptions, the contents of its memories, and the positions of its lanes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from gpu.base.errors import SourcePosition
from gpu.base.findings import Finding
from gpu.base.warp import WARP
from gpu.recording.packing import Array, PackedIntegers, PackedMasks, PackedValues
from gpu.recording.statements import ExecutedStatement, TraceFunction
from gpu.recording.tables import BatchRow

# The number of written units between two cached states.
_BETWEEN = 1 << 18


@dataclass(frozen=True, eq=False)
class TraceMemory:
    """A global array, a `__shared__` array of all blocks of a batch, or a local array of all its threads; with writes.

    Parameters
    ----------
    name : str
        The array's name.
    space : str
        "global", "constant", "shared" or "local".
    size : int
        Bytes of the array, per block or thread.
    dtype : numpy.dtype
        The type of its elements if it is known, else uint8.
    blocks : int
        The number of blocks with such an array; 1 for global and local memory.
    stride : int
        The distance in bytes between the arrays of consecutive blocks, or of consecutive threads of a local array; 0 if
        the elements of a local array are interleaved by thread.
    lanes : int
        The number of lanes with such an array; 0 if the memory is not local.
    batch : int
        The batch that it belongs to; -1 for an array of the launch.
    unit : int
        Bytes per unit of the write log: the size of the smallest element that was accessed.
    is_accessed : bool
        Whether any element was accessed.
    base : int
        The node of the first unit's initial value, 0 for none.
    fill : int
        The initial value of all bytes if `initial` is None.
    initial : uint8 array or None
        The initial content.
    index, nodes : int32 arrays
        The unit and the node of each logged unit, oldest first.
    values : uint8 array, shape (units, unit)
        The bytes written to each.
    borders : int32 array
        The number of logged units before each write.
    """

    name: str
    space: str
    size: int
    dtype: np.dtype[Any]
    blocks: int
    stride: int
    lanes: int
    batch: int
    unit: int
    is_accessed: bool
    base: int
    fill: int
    initial: Array | None
    index: Array
    nodes: Array
    values: Array
    borders: Array
    _states: dict[int, Array] = field(default_factory=dict, repr=False)

    @property
    def total_bytes(self) -> int:
        """The size for all blocks or threads, in bytes."""
        return (self.lanes or self.blocks) * (self.stride or self.size)

    def lane_element_index(self, lane: Any, element: Any, size: int) -> Any:
        """Return the index of a lane's element of `size` bytes, counted over the local memory of all lanes."""
        return lane * (self.stride // size) + element if self.stride else element * self.lanes + lane

    def content(self, write: int) -> Array:
        """Return a copy of all bytes just before a write, by its number."""
        end = self._end(write)
        start = end // _BETWEEN * _BETWEEN
        state = self._at(start).copy()
        self._apply(state, start, end)
        return state

    def find_last_writes(self, places: Array, write: int) -> Array:
        """Return for each unit the index of its last log entry before a write; -1 for none."""
        end = self._end(write)
        if places.size == 1:
            entries = np.flatnonzero(self.index[:end] == places[0])
            return entries[-1:] if entries.size else np.array([-1])
        newest = np.full(self.total_bytes // self.unit, -1)
        newest[self.index[:end]] = np.arange(end)
        return newest[places]

    def find_nodes(self, places: Array, write: int) -> Array:
        """Return the nodes of some units just before a write."""
        last = self.find_last_writes(places, write)
        before = places + self.base if self.base else np.zeros_like(places)
        return np.where(last >= 0, self.nodes[last] if self.nodes.size else 0, before).astype(np.int64)

    def read_write(self, write: int, size: int) -> tuple[Array, Array]:
        """Return the bytes, shape (elements, size), and the nodes of a write of elements of `size` bytes."""
        start, end = self._end(write), self._end(write + 1)
        return self.values[start:end].reshape(-1, size), self.nodes[start : end : size // self.unit]

    def _end(self, write: int) -> int:
        return int(self.borders[write]) if write < self.borders.size else self.index.size

    @cached_property
    def _initial(self) -> Array:
        return np.full(self.total_bytes, self.fill, np.uint8) if self.initial is None else self.initial

    def _at(self, position: int) -> Array:
        if position == 0:
            return self._initial
        if position not in self._states:
            state = self._at(position - _BETWEEN).copy()
            self._apply(state, position - _BETWEEN, position)
            self._states[position] = state
        return self._states[position]

    def _apply(self, state: Array, start: int, end: int) -> None:
        size = state.size // self.unit * self.unit
        kind = f"V{self.unit}" if self.unit not in (1, 2, 4, 8) else f"u{self.unit}"
        values = np.ascontiguousarray(self.values[start:end]).ravel().view(kind)
        state[:size].view(kind)[self.index[start:end]] = values


@dataclass(frozen=True)
class TraceLaunch:
    """The host's launch, or a child launch.

    Parameters
    ----------
    number : int
        Its number; 0 for the host's launch.
    grid, block : tuple of int
        Extents in x, y and z.
    parent : int
        The number of the parent launch; -1 for the host's.
    event : int
        The event that launched it; -1 for the host's launch, and if the recording had ended.
    by_block, by_thread : int
        The launching thread: the number of the block in the parent's grid, and of the thread in the block; else -1.
    """

    number: int
    kernel: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    parent: int = -1
    event: int = -1
    by_block: int = -1
    by_thread: int = -1

    @property
    def lanes_per_block(self) -> int:
        """The threads per block, padded to whole warps."""
        return -(-self.block[0] * self.block[1] * self.block[2] // WARP) * WARP


@dataclass(frozen=True)
class FailedAccess:
    """The access that ended a launch, with the lanes whose elements are out of bounds or misaligned.

    Memory is unchanged, so that the access is not among those of its event.

    Parameters
    ----------
    action : str
        "read", "write" or "atomic".
    memory : int
        The number of the recorded memory.
    size : int
        The bytes that each lane accesses.
    offsets : tuple of int
        The first byte of each lane, counted from the beginning of the array; in shared memory, of the lane's block.
    blocks, threads : tuple of int
        The number of each lane's block in the grid, and of its thread in the block.
    """

    action: str
    memory: int
    size: int
    offsets: tuple[int, ...]
    blocks: tuple[int, ...]
    threads: tuple[int, ...]


@dataclass(frozen=True)
class TraceFinding:
    """A finding of a checker, and the event of its first occurrence.

    If the recording had ended by then, the event is the number of events in the trace. `access` is the access that
    ended the launch, if it is what the finding reports.
    """

    event: int
    finding: Finding
    access: FailedAccess | None = None


@dataclass(frozen=True)
class LaunchRecord:
    """The description of a launch, and its outcome.

    Parameters
    ----------
    kernel : str
        The name as requested, such as "fill<int, 3>".
    defines : mapping of str to str
        The macros of the compilation.
    schedule : str
        The schedule, one of `gpu.base.schedules.NAMES`.
    failure : str
        The error that ended the launch; "" if it succeeded.
    findings : tuple of TraceFinding
        The findings of the checkers.
    """

    kernel: str
    source: str
    file: str
    defines: Mapping[str, str]
    schedule: str
    failure: str
    findings: tuple[TraceFinding, ...]


@dataclass(frozen=True, eq=False)
class TraceData:
    """The data of a trace.

    Parameters
    ----------
    launch : LaunchRecord
        The description of the launch.
    stop_reason : str
        Why the recording ended before the launch did; "" if it did not.
    lane_events : int
        The number of recorded statements of single lanes.
    launches : tuple of TraceLaunch
        The host's launch, and the child launches.
    functions, statements, memories, positions, kinds, operators, pointer_names : tuple
        The objects that the tables refer to by number.
    events, accesses, registers, pointers, operations, barriers, batches, calls, inputs : arrays
        The tables, of the types in `gpu.recording.tables`.
    integers, values, masks : PackedIntegers, PackedValues, PackedMasks
        The vectors and masks that the tables refer to by number.
    """

    launch: LaunchRecord
    stop_reason: str
    lane_events: int
    launches: tuple[TraceLaunch, ...]
    functions: tuple[TraceFunction, ...]
    statements: tuple[ExecutedStatement, ...]
    memories: tuple[TraceMemory, ...]
    positions: tuple[SourcePosition, ...]
    kinds: tuple[str, ...]
    operators: tuple[str, ...]
    pointer_names: tuple[str, ...]
    events: Array
    accesses: Array
    registers: Array
    pointers: Array
    operations: Array
    barriers: Array
    batches: Array
    calls: Array
    inputs: Array
    integers: PackedIntegers
    values: PackedValues
    masks: PackedMasks


class TraceLanes:
    """The lanes of a trace, numbered within their batch, block by block."""

    def __init__(self, data: TraceData) -> None:
        self._data = data
        self._batches = [BatchRow(*row) for row in data.batches.tolist()]

    def mask_lanes(self, number: int) -> Array:
        """Return the lanes of a recorded mask, ascending."""
        return self._data.masks.lanes(number)

    def launch(self, batch: int) -> TraceLaunch:
        """Return the launch that a batch belongs to."""
        return self._data.launches[self._batches[batch].launch]

    def count(self, batch: int) -> int:
        """Return the number of lanes of a batch."""
        return self._batches[batch].blocks * self.per_block(batch)

    def per_block(self, batch: int) -> int:
        """Return the number of lanes per block of a batch: its threads, padded to whole warps."""
        return self.launch(batch).lanes_per_block

    def first_block(self, batch: int) -> int:
        """Return the number of a batch's first block in the grid."""
        return self._batches[batch].first

    def block(self, batch: int, lanes: Any) -> Any:
        """Return the numbers in the grid of the blocks of a batch's lanes."""
        return self._batches[batch].first + lanes // self.per_block(batch)

    def threads(self, batch: int, lanes: Array) -> tuple[Array, Array]:
        """Return the block numbers in the grid, and the thread numbers in the block, of a batch's lanes."""
        return self.block(batch, lanes), lanes % self.per_block(batch)
