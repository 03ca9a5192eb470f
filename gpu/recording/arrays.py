"""The arrays of a trace: their contents at any step, their accesses, and the writers of elements."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from gpu.base.errors import InputError
from gpu.recording.data import TraceData, TraceLanes
from gpu.recording.packing import Array
from gpu.recording.tables import ACTIONS, AccessRow


@dataclass(frozen=True)
class TraceArray:
    """An array of a trace.

    Parameters
    ----------
    number : int
        Its index in `Trace.arrays`.
    space : str
        "global", "constant", "shared" or "local".
    dtype : numpy.dtype
        The type of its elements.
    count : int
        The number of elements; for a local array, per thread.
    block : int or None
        The block that a shared array belongs to.
    memory : int
        The number of the recorded memory that contains it.
    """

    number: int
    name: str
    space: str
    dtype: np.dtype[Any]
    count: int
    block: int | None
    memory: int


@dataclass(frozen=True)
class TraceAccess:
    """One access of an event.

    Parameters
    ----------
    action : str
        "read", "write" or "atomic".
    lanes : array
        The lanes that access memory: numbers within the batch, ascending.
    arrays : array
        The number of the array that each lane accesses; in shared memory each block has its own.
    elements : array
        The element of each lane, in elements of the type of `values`.
    values : array
        The value that each lane read or wrote; for an atomic operation, the old value.
    results : array
        For an atomic operation, the value after each lane's operation; else the same as `values`.
    nodes : array
        The node of each lane's value; for an atomic operation that of `results`.
    """

    action: str
    lanes: Array
    arrays: Array
    elements: Array
    values: Array
    results: Array
    nodes: Array


@dataclass(frozen=True)
class Write:
    """A write of an element: its event, the lane in the batch, and the numbers of the block and of the thread."""

    event: int
    lane: int
    block: int
    thread: int


class TraceArrays:
    """The arrays of a trace."""

    def __init__(self, data: TraceData, lanes: TraceLanes) -> None:
        self._data, self._lanes = data, lanes
        # A cache for memories with an array per block: the number of writes of the last query, and the content then.
        self._contents: dict[int, tuple[int, Array]] = {}
        self._accessed_elements: dict[int, Array] = {}

    @cached_property
    def all_arrays(self) -> tuple[TraceArray, ...]:
        """All arrays: those of the launch first, then shared and local arrays in order of first use."""
        arrays: list[TraceArray] = []
        for number, memory in enumerate(self._data.memories):
            count = memory.size // memory.dtype.itemsize
            first = self._lanes.first_block(memory.batch) if memory.space == "shared" else None
            for block in range(memory.blocks):
                own_block = None if first is None else first + block
                arrays.append(
                    TraceArray(len(arrays), memory.name, memory.space, memory.dtype, count, own_block, number)
                )
        return tuple(arrays)

    @cached_property
    def first_arrays(self) -> list[int]:
        """The number of the first array of each memory; a shared memory has one array per block."""
        firsts: list[int] = np.cumsum([0, *(memory.blocks for memory in self._data.memories)])[:-1].tolist()
        return firsts

    def find(self, array: str | int, block: int | None = None) -> TraceArray:
        """Return an array by its number, or the first one with a name and, if given, a block.

        Raises
        ------
        InputError
            The trace has no such array.
        """
        if isinstance(array, int):
            if 0 <= array < len(self.all_arrays):
                return self.all_arrays[array]
        else:
            for each in self.all_arrays:
                if each.name == array and (block is None or each.block == block):
                    return each
        raise InputError(f"The trace has no array {array!r}" + (f" of block {block}." if block is not None else "."))

    # Contents.

    def content(self, array: TraceArray, step: int) -> Array:
        """Return an array's content at a step: shape (count,), or (lanes of the batch, count) for a local array."""
        memory = self._data.memories[array.memory]
        writes = self.count_writes_before(array.memory, step)
        if memory.blocks > 1:
            return self._block_content(array, writes)
        content = memory.content(writes)
        if array.space == "local":
            if memory.stride:
                rows = content.reshape(memory.lanes, memory.stride)
                return np.ascontiguousarray(rows[:, : array.count * array.dtype.itemsize]).view(array.dtype)
            parts: Array = content[: memory.lanes * array.count * array.dtype.itemsize].view(array.dtype)
            return parts.reshape(array.count, memory.lanes).T
        return content[: array.count * array.dtype.itemsize].view(array.dtype)

    def _block_content(self, array: TraceArray, writes: int) -> Array:
        """Return the content of one block's array after a number of writes by all blocks."""
        if self._contents.get(array.memory, (-1,))[0] != writes:
            self._contents[array.memory] = (writes, self._data.memories[array.memory].content(writes))
        content = self._contents[array.memory][1]
        start = self._start_byte(array)
        return content[start : start + array.count * array.dtype.itemsize].view(array.dtype).copy()

    def _start_byte(self, array: TraceArray) -> int:
        """Return the byte at which an array starts in its memory."""
        return (array.number - self.first_arrays[array.memory]) * self._data.memories[array.memory].stride

    @cached_property
    def write_rows(self) -> list[Array]:
        """The rows of `accesses` that wrote, for each memory."""
        accesses = self._data.accesses
        changes = np.flatnonzero(accesses["action"] != ACTIONS.index("read"))
        memories = accesses["memory"][changes]
        order = np.argsort(memories, kind="stable")
        borders = np.searchsorted(memories[order], np.arange(len(self._data.memories) + 1))
        return [changes[order[start:end]] for start, end in pairwise(borders)]

    def count_writes_before(self, memory: int, step: int) -> int:
        """Return the number of writes to a memory before a step."""
        events = len(self._data.events)
        if not 0 <= step <= events:
            raise InputError(f"The trace has {events} events; there is no step {step}.")
        return int(np.searchsorted(self._data.accesses["event"][self.write_rows[memory]], step))

    def find_written(self, array: TraceArray, step: int) -> Array:
        """Return a bool mask of the elements that the launch has written before a step; not for local arrays."""
        memory = self._data.memories[array.memory]
        units = (self._start_byte(array) + np.arange(array.count) * array.dtype.itemsize) // memory.unit
        is_written: Array = memory.find_last_writes(units, self.count_writes_before(array.memory, step)) >= 0
        return is_written

    def find_accessed(self, array: TraceArray) -> Array:
        """Return a bool mask of the elements of a global array that were read or written at any time."""
        if array.number not in self._accessed_elements:
            is_accessed = np.zeros(array.count, bool)
            accesses = self._data.accesses
            for row in np.flatnonzero(accesses["memory"] == array.memory).tolist():
                access = AccessRow(*accesses[row].tolist())
                size = self._data.values.dtypes[access.dtype].itemsize
                elements = np.unique(self.elements(access)[1])
                for part in range(max(1, size // array.dtype.itemsize)):
                    is_accessed[elements * size // array.dtype.itemsize + part] = True
            self._accessed_elements[array.number] = is_accessed
        return self._accessed_elements[array.number]

    # Accesses.

    def access(self, row: int) -> TraceAccess:
        """Return an access by its row."""
        data = self._data
        access = AccessRow(*data.accesses[row].tolist())
        action, write = ACTIONS[access.action], access.write
        lanes, element = self.elements(access)
        memory = data.memories[access.memory]
        dtype = data.values.dtypes[access.dtype]
        flat, array = element, np.full(lanes.size, self.first_arrays[access.memory])
        if memory.space == "local":
            flat = memory.lane_element_index(lanes, element, dtype.itemsize)
        elif memory.space == "shared":
            within = lanes // self._lanes.per_block(memory.batch)
            flat, array = element + within * (memory.stride // dtype.itemsize), array + within
        if action == "read":
            content = memory.content(write)
            values = content[: content.size // dtype.itemsize * dtype.itemsize].view(dtype)[flat]
            if access.value >= 0:  # some lanes read it from a register
                values = data.values.vector(access.value, lanes.size)
            nodes = memory.find_nodes(flat * dtype.itemsize // memory.unit, write)
            return TraceAccess(action, lanes, array, element, values, values, nodes)
        raw, nodes = memory.read_write(write, dtype.itemsize)
        after = np.ascontiguousarray(raw).view(dtype).ravel()
        values = data.values.vector(access.value, lanes.size) if access.value >= 0 else after
        return TraceAccess(action, lanes, array, element, values, after, nodes.astype(np.int64))

    def elements(self, access: AccessRow) -> tuple[Array, Array]:
        """Return the lanes of an access and the element of each."""
        lanes = self._lanes.mask_lanes(access.mask)
        return lanes, self._data.integers.vector(access.elements, lanes.size)

    def are_accessed(self, memory: int) -> bool:
        """Return whether any element of a memory was accessed; constants may belong to other kernels of the file."""
        return memory in self._mark_accessed

    @cached_property
    def _mark_accessed(self) -> frozenset[int]:
        return frozenset(np.unique(self._data.accesses["memory"]).tolist())

    # Provenance.

    def _unit_index(self, array: TraceArray, element: int) -> Array:
        """Return the unit of an element in its memory; in a local array elements are numbered lane by lane."""
        memory, size = self._data.memories[array.memory], array.dtype.itemsize
        if array.space == "local":
            lane, element_of_lane = divmod(element, array.count)
            return np.array([memory.lane_element_index(lane, element_of_lane, size) * size // memory.unit])
        return np.array([(self._start_byte(array) + element * size) // memory.unit])

    def node(self, array: TraceArray, element: int, step: int) -> int:
        """Return the node of an element's value at a step; 0 if it has none."""
        write = self.count_writes_before(array.memory, step)
        return int(self._data.memories[array.memory].find_nodes(self._unit_index(array, element), write)[0])

    def nodes(self, array: TraceArray, step: int) -> Array:
        """Return the nodes of all elements of an array at a step; its memory must have no other array."""
        memory = self._data.memories[array.memory]
        units = np.arange(array.count) * array.dtype.itemsize // memory.unit
        return memory.find_nodes(units, self.count_writes_before(array.memory, step))

    def find_writer(self, array: TraceArray, element: int, step: int) -> Write | None:
        """Return the last write of an element before a step; None if there is none."""
        memory = self._data.memories[array.memory]
        (last,) = memory.find_last_writes(
            self._unit_index(array, element), self.count_writes_before(array.memory, step)
        ).tolist()
        if last < 0:
            return None
        write = int(np.searchsorted(memory.borders, last, side="right")) - 1
        access = AccessRow(*self._data.accesses[self.write_rows[array.memory][write]].tolist())
        size = self._data.values.dtypes[access.dtype].itemsize
        rank = (last - int(memory.borders[write])) // (size // memory.unit)
        lane = int(self._lanes.mask_lanes(access.mask)[rank])
        blocks, threads = self._lanes.threads(int(self._data.events["batch"][access.event]), np.array([lane]))
        return Write(access.event, lane, int(blocks[0]), int(threads[0]))
