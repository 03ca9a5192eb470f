"""Writes to arrays and variables as columns, with one row per lane, for vectorized analysis."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields

import numpy as np

from gpu.recording.memory import TraceMemory
from gpu.recording.packing import Array, compute_ranks
from gpu.recording.recording import LaunchSpan
from gpu.recording.tables import ACTIONS
from gpu.stepping.provenance.storages import Storage, Storages

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
    launch : LaunchSpan
    storages : Storages
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
        storage : Storage
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
        return self._build_writes(
            np.full(write_number.size, storage.number),
            _locate_cells(memory, storage, cells, block, thread),
            memory.nodes[first],
            event,
            block,
            thread,
            raw,
            np.zeros(write_number.size, bool),
            (rows["action"] == ACTIONS.index("atomic"))[row_of],
        )

    def build_variable_writes(self) -> Writes:
        """Return the writes to scalar variables."""
        data = self.launch.trace.data
        events, registers = data.events, data.registers
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
        return self._build_writes(
            storage,
            block * section + thread,
            data.integers.gather_items(registers["node"][owner], rank),
            event[owner],
            block,
            thread,
            data.values.gather_bytes(registers["value"][owner], rank, MAX_SCALAR_BYTES),
            is_parameter[owner],
            np.zeros(owner.size, bool),
        )

    def _build_writes(
        self,
        storage: Array,
        cell: Array,
        node: Array,
        event: Array,
        block: Array,
        thread: Array,
        raw: Array,
        is_parameter: Array,
        is_atomic: Array,
    ) -> Writes:
        moment = event.astype(np.int64) + self.launch.first
        nodes, steps = self.nodes[node], self.steps[event]
        return Writes(storage, cell, nodes, steps, moment, block, thread, raw, is_parameter, is_atomic)

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
