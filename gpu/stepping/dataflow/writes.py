"""Storages, and the operations and writes of launches as columns, with one row per lane, for vectorized analysis.

A storage is an array of a host program or a variable of its threads; it has cells. Atomic operations of one statement
on one element are split into turns, since hardware serializes them.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

import numpy as np

from gpu.base.warp import WARP
from gpu.recording.arrays import TraceArray
from gpu.recording.data import TraceLaunch, TraceMemory
from gpu.recording.packing import Array, compute_ranks
from gpu.recording.recording import LaunchSpan
from gpu.recording.tables import ACTIONS
from gpu.recording.trace import Trace

Space = Literal["global", "constant", "shared", "local", "register"]


@dataclass(frozen=True, eq=False)
class Storage:
    """An array of all blocks, or a variable of all threads.

    Cells are numbered block by block, thread by thread.

    Parameters
    ----------
    space : {"global", "constant", "shared", "local", "register"}
    dtype : numpy.dtype
    count : int
        The number of cells.
    section : int
        The number of cells per block; for a global array, all cells.
    extent : int
        The number of cells per thread, per block of a shared array, or of a global array: the array's own length.
    launch : int
        The number of the launch; for a global array, the first launch that uses it.
    """

    number: int
    name: str
    space: Space
    dtype: np.dtype[Any]
    count: int
    section: int
    extent: int
    launch: int

    @property
    def is_array(self) -> bool:
        """Whether threads share the storage."""
        return self.space in ("global", "constant", "shared")


class Storages:
    """The storages of a recording, numbered in the order of first use."""

    def __init__(self) -> None:
        self.entries: list[Storage] = []
        self._by_key: dict[Hashable, Storage] = {}

    def __getitem__(self, number: int) -> Storage:
        return self.entries[number]

    def register_array(self, launch: LaunchSpan, array: TraceArray) -> Storage:
        """Return the storage of an array; a global array has one storage in all launches."""
        buffer, count = launch.buffers[array.number], array.count
        if buffer is not None:
            space: Space = "constant" if array.space == "constant" else "global"
            storage = Storage(len(self.entries), array.name, space, array.dtype, count, count, count, launch.number)
            return self._register(("buffer", buffer), storage)
        trace = launch.trace
        child, blocks, threads = _launch_extents(trace.lanes.launch(trace.data.memories[array.memory].batch))
        space, section = ("shared", count) if array.space == "shared" else ("local", threads * count)
        key = (launch.number, child, array.space, array.name, count)
        size, number = blocks * section, len(self.entries)
        return self._register(key, Storage(number, array.name, space, array.dtype, size, section, count, launch.number))

    def register_variable(
        self, launch: LaunchSpan, child: int, function: int, slot: int, dtype: np.dtype[Any]
    ) -> Storage:
        """Return the storage of a scalar variable, which has a cell for each thread of a launch.

        Parameters
        ----------
        launch : LaunchSpan
            The launch by the host program.
        child : int
            The number of the launch in its trace: 0 for `launch` itself, others for child launches.
        function : int
            The number of the function in the trace.
        slot : int
            The variable's slot in the function.
        dtype : dtype
            The type of the variable.
        """
        data = launch.trace.data
        _, blocks, threads = _launch_extents(data.launches[child])
        name = data.functions[function].variables.get(slot, "")
        key = (launch.number, child, "register", function, slot)
        size, number = blocks * threads, len(self.entries)
        return self._register(key, Storage(number, name, "register", dtype, size, threads, 1, launch.number))

    def _register(self, key: Hashable, storage: Storage) -> Storage:
        """Return the registered storage of a key: this one if there was none."""
        if key not in self._by_key:
            self._by_key[key] = storage
            self.entries.append(storage)
        return self._by_key[key]


def _launch_extents(launch: TraceLaunch) -> tuple[int, int, int]:
    """Return a launch's number, its number of blocks, and its threads per block."""
    grid, block = launch.grid, launch.block
    return launch.number, grid[0] * grid[1] * grid[2], block[0] * block[1] * block[2]


@dataclass(frozen=True, eq=False)
class Operations:
    """Operations, one row per computed value.

    Parameters
    ----------
    node : array
        The value's node.
    sources : array, shape (values, 3)
        The nodes of the operands, 0 for none.
    statement : array
        The number of the source statement.
    moment : array
        The event number.
    operator : array
        The index of the operator's name.
    """

    node: Array
    sources: Array
    statement: Array
    moment: Array
    operator: Array

    @classmethod
    def from_trace(cls, trace: Trace) -> Operations:
        """Return the operations of a trace, with the trace's own numbers."""
        table = trace.data.operations
        owner, rank, _ = trace.data.masks.expand(table["mask"])
        sources = np.zeros((owner.size, 3), np.int64)
        for operand in range(3):
            numbers = table["nodes"][:, operand]
            present = np.flatnonzero(numbers[owner] >= 0)
            sources[present, operand] = trace.data.integers.gather_items(numbers[owner[present]], rank[present])
        event = table["event"][owner]
        return cls(
            table["first"][owner].astype(np.int64) + rank,
            sources,
            trace.data.events["position"][event].astype(np.int64),
            event,
            table["operator"][owner],
        )

    @classmethod
    def concatenate(cls, parts: list[Operations]) -> Operations:
        """Concatenate several parts, sorted by node."""
        if not parts:
            no_rows = np.zeros(0, np.int64)
            return cls(no_rows, np.zeros((0, 3), np.int64), no_rows, no_rows, no_rows)
        combined = cls(*(np.concatenate([getattr(part, each.name) for part in parts]) for each in fields(cls)))
        order = np.argsort(combined.node, kind="stable")
        return cls(*(getattr(combined, each.name)[order] for each in fields(cls)))


MAX_SCALAR_BYTES = 8
"""The size of the widest scalar, in bytes."""


@dataclass(frozen=True, eq=False)
class Writes:
    """One row per written value, in program order and, within a step, in time order.

    Parameters
    ----------
    storage, cell, node : arrays
        The storage and its cell, and the value's node; 0 for a value without a recorded origin.
    step : array
        The program step, over all launches; all warps execute the same step in their turn.
    moment : array
        The event number over all launches.
    block, thread : arrays
    raw : uint8 array, shape (writes, 8)
        The value's bytes, zero-padded.
    is_parameter : array
        Whether the write passes an argument to a called function.
    is_atomic : array
    """

    storage: Array
    cell: Array
    node: Array
    step: Array
    moment: Array
    block: Array
    thread: Array
    raw: Array
    is_parameter: Array
    is_atomic: Array

    def __len__(self) -> int:
        return int(self.storage.size)

    def select(self, rows: Array) -> Writes:
        """Return a selection of rows."""
        return Writes(*(getattr(self, field.name)[rows] for field in fields(self)))

    @classmethod
    def concatenate(cls, parts: list[Writes]) -> Writes:
        """Concatenate several parts, sorted by step and moment."""
        if not parts:
            no_rows, no_flags = np.zeros(0, np.int64), np.zeros(0, bool)
            return cls(
                no_rows,
                no_rows,
                no_rows,
                no_rows,
                no_rows,
                no_rows,
                no_rows,
                np.zeros((0, MAX_SCALAR_BYTES), np.uint8),
                no_flags,
                no_flags,
            )
        combined = cls(*(np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(cls)))
        return combined.select(np.lexsort((combined.moment, combined.step)))


@dataclass(frozen=True, eq=False)
class LaunchWrites:
    """The writes of a launch.

    Parameters
    ----------
    nodes : array
        The node numbers over all launches, by node number in the launch's trace.
    steps : array
        The step of each event, over all launches.
    """

    launch: LaunchSpan
    storages: Storages
    nodes: Array
    steps: Array

    def build_host_writes(self, storage: Storage, content: Array, element: Array, node: Array, step: int) -> Writes:
        """Return the writes by the host to an array between two launches, or its content of unknown origin.

        Parameters
        ----------
        content : array
            The whole array before the launch.
        element, node : int arrays
            The written elements and the nodes of their values.
        step : int
            The step of the writes, just before the launch.
        """
        raw = np.zeros((element.size, MAX_SCALAR_BYTES), np.uint8)
        size = content.dtype.itemsize
        raw[:, :size] = content[element].view(np.uint8).reshape(-1, size)
        no_thread, all_false = np.full(element.size, -1), np.zeros(element.size, bool)
        storage_number, step_number = np.full(element.size, storage.number), np.full(element.size, step)
        before = np.full(element.size, self.launch.first - 1)
        return Writes(
            storage_number, element, node, step_number, before, no_thread, no_thread, raw, all_false, all_false
        )

    def build_array_writes(self) -> Iterator[Writes]:
        """Yield the writes to each memory, including those by atomic operations."""
        for number, memory in enumerate(self.launch.trace.data.memories):
            if self.launch.trace.memory.write_rows[number].size:
                yield self._build_memory_writes(number, memory)

    def _build_memory_writes(self, number: int, memory: TraceMemory) -> Writes:
        trace, data = self.launch.trace, self.launch.trace.data
        storage = self.storages.register_array(self.launch, trace.arrays[trace.memory.first_arrays[number]])
        rows = data.accesses[trace.memory.write_rows[number]]
        size, unit = memory.dtype.itemsize, memory.unit
        owner, _, lanes = data.masks.expand(rows["mask"])
        # A write of the array's own element size has a fixed number of units; a wider one has several elements' units,
        # a narrower one changes part of an element.
        bytes_written = data.values.sizes[rows["dtype"]][owner]
        units = bytes_written // unit
        pieces = np.maximum(bytes_written // size, 1)
        piece, write_number = compute_ranks(pieces)
        # If all writes are wider than elements, units may be wider too.
        first = (np.cumsum(units) - units)[write_number] + piece * size // unit
        inside = piece * size % unit
        cells = (memory.index[first].astype(np.int64) * unit + inside) // size
        raw = np.zeros((write_number.size, MAX_SCALAR_BYTES), np.uint8)
        if unit > size:
            raw[:, :size] = memory.values[first[:, None], inside[:, None] + np.arange(size)]
        elif (bytes_written >= size).all():
            at = first[:, None] + np.arange(size // unit)
            raw[:, :size] = memory.values[at].reshape(write_number.size, size)
        else:
            _replay_partial_writes(memory, cells, first, units[write_number], raw[:, :size])
        row_of = owner[write_number]
        event = rows["event"][row_of]
        block, thread = self._locate_threads(event, lanes[write_number])
        return Writes(
            np.full(write_number.size, storage.number),
            _locate_cells(memory, storage, cells, block, thread),
            *self._locate_nodes(memory.nodes[first], event),
            block,
            thread,
            raw,
            np.zeros(write_number.size, bool),
            (rows["action"] == ACTIONS.index("atomic"))[row_of],
        )

    def build_variable_writes(self) -> Writes:
        """Return the writes to scalar variables."""
        data = self.launch.trace.data
        events = data.events
        registers = data.registers if len(events) else data.registers[:0]  # without events, nothing uses parameters
        functions = _find_frame_functions(events, int(registers["frame"].max(initial=-1)) + 1)
        # Each variable of a function is a separate storage in each child launch.
        event = np.maximum(registers["event"], 0)
        launch = data.batches["launch"][events["batch"][event]].astype(np.int64)
        keys = np.stack((functions[registers["frame"]], registers["slot"], launch))
        variables, variable_number = np.unique(keys, axis=1, return_inverse=True)
        variable_number = variable_number.reshape(-1)
        dtypes = np.zeros(variables.shape[1], np.int64)
        dtypes[variable_number] = data.values.codes[registers["value"]] // 2
        storages = [
            self.storages.register_variable(self.launch, child, function, slot, data.values.dtypes[dtype])
            for (function, slot, child), dtype in zip(variables.T.tolist(), dtypes.tolist(), strict=True)
        ]
        is_parameter = (registers["event"] < 0) | (events["frame"][event] != registers["frame"])
        owner, rank, lanes = data.masks.expand(registers["mask"])
        storage = np.array([each.number for each in storages], np.int64)[variable_number[owner]]
        section = np.array([each.section for each in storages], np.int64)[variable_number[owner]]
        block, thread = self._locate_threads(event[owner], lanes)
        return Writes(
            storage,
            block * section + thread,
            *self._locate_nodes(data.integers.gather_items(registers["node"][owner], rank), event[owner]),
            block,
            thread,
            data.values.gather_bytes(registers["value"][owner], rank, MAX_SCALAR_BYTES),
            is_parameter[owner],
            np.zeros(owner.size, bool),
        )

    def _locate_nodes(self, node: Array, event: Array) -> tuple[Array, Array, Array]:
        """Return the recording's nodes, steps and moments of nodes and events of the launch."""
        return self.nodes[node], self.steps[event], event.astype(np.int64) + self.launch.first

    def _locate_threads(self, event: Array, lane: Array) -> tuple[Array, Array]:
        """Return the blocks of lanes, and their threads in the blocks."""
        data = self.launch.trace.data
        batch = data.events["batch"][event]
        per_block = np.array([launch.lanes_per_block for launch in data.launches])[data.batches["launch"]][batch]
        return data.batches["first"].astype(np.int64)[batch] + lane // per_block, lane % per_block


def _find_frame_functions(events: Array, frames: int) -> Array:
    """Return each frame's function number; 0 for a frame without events."""
    functions = np.zeros(max(frames, int(events["frame"].max(initial=-1)) + 1), np.int64)
    functions[events["frame"]] = events["function"]
    return functions


def _locate_cells(memory: TraceMemory, storage: Storage, flat: Array, block: Array, thread: Array) -> Array:
    """Return the storage cell of each element, which is numbered over all of a recorded memory."""
    if storage.space == "local":
        return np.asarray(block * storage.section + thread * storage.extent + flat // memory.lanes)
    if storage.space == "shared":
        return np.asarray(block * storage.section + flat % (memory.stride // storage.dtype.itemsize))
    return flat


def _replay_partial_writes(memory: TraceMemory, cells: Array, first: Array, units: Array, raw: Array) -> None:
    """Fill in whole elements' contents after each write that changes only part of an element."""
    content, unit, size = memory.content(0), memory.unit, raw.shape[1]
    for number, (cell, start, count) in enumerate(zip(cells, first, units, strict=True)):
        for entry in range(start, start + min(count, size // unit)):
            content[memory.index[entry] * unit : (memory.index[entry] + 1) * unit] = memory.values[entry]
        raw[number] = content[cell * size : (cell + 1) * size]


MAX_TURNS = WARP
"""The most turns that get separate steps: the queue of one warp's lanes for one element."""


@dataclass(frozen=True, eq=False)
class Turns:
    """The split of a launch's steps into turns: one step for each position in the queue for an element.

    A queue longer than `MAX_TURNS` stays one step, because its rows would fill the picture with repetitions.

    Parameters
    ----------
    first : int
        The launch's first step.
    lengths : array
        The number of turns of each original step.
    """

    first: int
    lengths: Array

    @classmethod
    def from_writes(cls, writes: Sequence[Writes], first: int, steps: int) -> Turns:
        """Return the turns of a launch's writes to its arrays.

        Parameters
        ----------
        first : int
            The launch's first step.
        steps : int
            The launch's number of steps.
        """
        lengths = np.ones(steps, np.int64)
        for array_writes in writes:
            rows = np.flatnonzero(array_writes.is_atomic)
            np.maximum.at(lengths, array_writes.step[rows] - first, _count_earlier_writes(array_writes, rows) + 1)
        return cls(first, np.where(lengths > MAX_TURNS, 1, lengths))

    @property
    def _starts(self) -> Array:
        starts: Array = np.cumsum(self.lengths) - self.lengths
        return starts

    @property
    def turn_numbers(self) -> Array:
        """The turn of each of the new steps, from 0."""
        step = np.repeat(np.arange(self.lengths.size), self.lengths)
        turns: Array = np.arange(step.size) - self._starts[step]
        return turns

    def renumber_steps(self, writes: Writes) -> Writes:
        """Renumber the steps of writes; writes that follow an atomic operation come after its last turn."""
        step = writes.step - self.first
        turn = self.lengths[step] - 1
        rows = np.flatnonzero(writes.is_atomic)
        turn[rows] = np.minimum(_count_earlier_writes(writes, rows), turn[rows])
        return replace(writes, step=self.first + self._starts[step] + turn)


def _count_earlier_writes(writes: Writes, rows: Array) -> Array:
    """Return for each of the selected writes the number of earlier ones to the same cell in the same step."""
    step, cell = writes.step[rows], writes.cell[rows]
    order = np.lexsort((np.arange(rows.size), writes.moment[rows], cell, step))
    same = (np.diff(step[order], prepend=-1) == 0) & (np.diff(cell[order], prepend=-1) == 0)
    starts = np.maximum.accumulate(np.where(same, 0, np.arange(rows.size)))
    turn = np.empty(rows.size, np.int64)
    turn[order] = np.arange(rows.size) - starts
    return turn
