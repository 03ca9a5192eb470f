"""Writes to arrays and variables with one row a lane, so that NumPy can ask about all of them at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields

import numpy as np

from gpu.simulator.trace.memory import TraceMemory
from gpu.simulator.trace.packing import Array
from gpu.simulator.trace.tables import ACTIONS
from gpu.simulator.trace.vectors import ranks
from gpu.stepping.provenance.storages import Storage, Storages
from gpu.stepping.recording import LaunchSpan

WIDTH = 8
"""Bytes that the widest scalar takes."""


@dataclass(frozen=True, eq=False)
class Writes:
    """One row for each value that was put somewhere, in the order of the program and, within a step, of time.

    Parameters
    ----------
    storage, cell, node : arrays
        `node` is 0 where nothing that is known made the value.
    step : array
        The step of the program, over all launches: what is done in it is done by all warps.
    moment : array
        The number of the event over all launches.
    block, thread : arrays
    raw : uint8 array, shape (writes, 8)
        The value's bytes, filled up with zeros.
    is_parameter : array
        Whether the write hands an argument to a called function.
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

    def take(self, rows: Array) -> Writes:
        """Return some of the rows."""
        return Writes(*(getattr(self, each.name)[rows] for each in fields(self)))

    @classmethod
    def joined(cls, parts: list[Writes]) -> Writes:
        """Return several as one, in order."""
        if not parts:
            none, never = np.zeros(0, np.int64), np.zeros(0, bool)
            return cls(none, none, none, none, none, none, none, np.zeros((0, WIDTH), np.uint8), never, never)
        whole = cls(*(np.concatenate([getattr(part, each.name) for part in parts]) for each in fields(cls)))
        return whole.take(np.lexsort((whole.moment, whole.step)))


@dataclass(frozen=True, eq=False)
class LaunchWrites:
    """The writes of a launch.

    Parameters
    ----------
    launch : LaunchSpan
    storages : Storages
    nodes : array
        By the numbers that nodes have in the launch's trace, their numbers over all launches.
    steps : array
        The step of each event, over all launches.
    """

    launch: LaunchSpan
    storages: Storages
    nodes: Array
    steps: Array

    def by_host(self, storage: Storage, content: Array, element: Array, node: Array, step: int) -> Writes:
        """Return what the host put into an array between two launches, or found there without a known origin."""
        raw = np.zeros((element.size, WIDTH), np.uint8)
        size = content.dtype.itemsize
        raw[:, :size] = content[element].view(np.uint8).reshape(-1, size)
        nobody, never = np.full(element.size, -1), np.zeros(element.size, bool)
        where, when = np.full(element.size, storage.number), np.full(element.size, step)
        before = np.full(element.size, self.launch.first - 1)
        return Writes(where, element, node, when, before, nobody, nobody, raw, never, never)

    def to_arrays(self) -> Iterator[Writes]:
        """Yield the writes to each memory, atomics included."""
        for number, memory in enumerate(self.launch.trace.data.memories):
            if self.launch.trace.memory.writing[number].size:
                yield self._to_memory(number, memory)

    def _to_memory(self, number: int, memory: TraceMemory) -> Writes:
        trace, data = self.launch.trace, self.launch.trace.data
        storage = self.storages.of_array(self.launch, trace.arrays[trace.memory.first[number]])
        rows = data.accesses[trace.memory.writing[number]]
        size, unit = memory.dtype.itemsize, memory.unit
        owner, _, lanes = data.masks.expand(rows["mask"])
        # A write in the array's own size has so many units; a wider one is several, a narrower one changes a part.
        written = data.values.sizes[rows["dtype"]][owner]
        units = written // unit
        pieces = np.maximum(written // size, 1)
        piece, of = ranks(pieces)
        # Where all writes are wider than elements, so may units be.
        first = (np.cumsum(units) - units)[of] + piece * size // unit
        inside = piece * size % unit
        cells = (memory.index[first].astype(np.int64) * unit + inside) // size
        raw = np.zeros((of.size, WIDTH), np.uint8)
        if unit > size:
            raw[:, :size] = memory.values[first[:, None], inside[:, None] + np.arange(size)]
        elif (written >= size).all():
            at = first[:, None] + np.arange(size // unit)
            raw[:, :size] = memory.values[at].reshape(of.size, size)
        else:
            _replay(memory, cells, first, units[of], raw[:, :size])
        row_of = owner[of]
        event = rows["event"][row_of]
        block, thread = self._threads(event, lanes[of])
        return self._writes(
            np.full(of.size, storage.number),
            _cells(memory, storage, cells, block, thread),
            memory.nodes[first],
            event,
            block,
            thread,
            raw,
            np.zeros(of.size, bool),
            (rows["action"] == ACTIONS.index("atomic"))[row_of],
        )

    def to_variables(self) -> Writes:
        """Return the writes to variables that are numbers."""
        data = self.launch.trace.data
        events, registers = data.events, data.registers
        functions = _functions_of_frames(events, int(registers["frame"].max(initial=-1)) + 1)
        # Each function's variable, in each of the launches by kernels, is a storage.
        event = np.maximum(registers["event"], 0)
        launch = data.batches["launch"][events["batch"][event]].astype(np.int64)
        keys = np.stack((functions[registers["frame"]], registers["slot"], launch))
        variables, which = np.unique(keys, axis=1, return_inverse=True)
        which = which.reshape(-1)
        dtypes = np.zeros(variables.shape[1], np.int64)
        dtypes[which] = data.values.codes[registers["value"]] // 2
        storages = [
            self.storages.of_variable(self.launch, child, function, slot, data.values.dtypes[dtype])
            for (function, slot, child), dtype in zip(variables.T.tolist(), dtypes.tolist(), strict=True)
        ]
        is_parameter = (registers["event"] < 0) | (events["frame"][event] != registers["frame"])
        owner, rank, lanes = data.masks.expand(registers["mask"])
        storage = np.array([each.number for each in storages], np.int64)[which[owner]]
        section = np.array([each.section for each in storages], np.int64)[which[owner]]
        block, thread = self._threads(event[owner], lanes)
        return self._writes(
            storage,
            block * section + thread,
            data.integers.each(registers["node"][owner], rank),
            event[owner],
            block,
            thread,
            data.values.each(registers["value"][owner], rank, WIDTH),
            is_parameter[owner],
            np.zeros(owner.size, bool),
        )

    def _writes(
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

    def _threads(self, event: Array, lane: Array) -> tuple[Array, Array]:
        """Return the blocks of lanes, and the threads in them."""
        data = self.launch.trace.data
        batch = data.events["batch"][event]
        per_block = np.array([launch.lanes_per_block for launch in data.launches])[data.batches["launch"]][batch]
        return data.batches["first"].astype(np.int64)[batch] + lane // per_block, lane % per_block


def _functions_of_frames(events: Array, frames: int) -> Array:
    """Return the number of each frame's function; 0 for one in which nothing ran."""
    functions = np.zeros(max(frames, int(events["frame"].max(initial=-1)) + 1), np.int64)
    functions[events["frame"]] = events["function"]
    return functions


def _cells(memory: TraceMemory, storage: Storage, flat: Array, block: Array, thread: Array) -> Array:
    """Return the cell of each element, which is counted over all of a recorded memory."""
    if storage.space == "local":
        return np.asarray(block * storage.section + thread * storage.extent + flat // memory.lanes)
    if storage.space == "shared":
        return np.asarray(block * storage.section + flat % (memory.stride // storage.dtype.itemsize))
    return flat


def _replay(memory: TraceMemory, cells: Array, first: Array, units: Array, raw: Array) -> None:
    """Fill in what whole elements held after each of the writes that change parts of them."""
    content, unit, size = memory.content(0), memory.unit, raw.shape[1]
    for number, (cell, start, count) in enumerate(zip(cells, first, units, strict=True)):
        for entry in range(start, start + min(count, size // unit)):
            content[memory.index[entry] * unit : (memory.index[entry] + 1) * unit] = memory.values[entry]
        raw[number] = content[cell * size : (cell + 1) * size]
