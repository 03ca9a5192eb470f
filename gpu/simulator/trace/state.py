"""What the arrays of a trace held at any moment."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from gpu.errors import InputError
from gpu.simulator.trace.data import TraceData
from gpu.simulator.trace.findings import unpacked
from gpu.simulator.trace.log import MemoryLog
from gpu.simulator.trace.packing import Array
from gpu.simulator.trace.recorder import ACCESS, ACTIONS
from gpu.simulator.trace.types import TraceArray, TraceLaunch


class TraceState:
    """A recorded launch: its lanes, and what its arrays held.

    Parameters
    ----------
    data : TraceData
    """

    def __init__(self, data: TraceData) -> None:
        self.data = data
        self.about = data.about
        self._events = data.arrays["events"]
        self._accesses = data.arrays["accesses"]
        self._registers = data.arrays["registers"]
        self._operations = data.arrays["operations"]
        self.kernel: str = self.about["kernel"]
        self.source: str = self.about["source"]
        self.grid: tuple[int, ...] = tuple(self.about["grid"])
        self.block: tuple[int, ...] = tuple(self.about["block"])
        self.stopped: str = self.about["stopped"]
        self.failure: str = self.about["failure"]
        self.schedule: str = self.about["schedule"]
        self.findings = tuple(map(unpacked, self.about["findings"]))
        self.lane_events: int = self.about["lane_events"]
        self.launches = tuple(
            TraceLaunch(number, kernel, tuple(grid), tuple(block), *(parent or ()))
            for number, (kernel, grid, block, parent) in enumerate(self.about["launches"])
        )
        self.lanes_per_block = self.launches[0].lanes_per_block
        self._logs: dict[int, MemoryLog] = {}
        self._lanes: dict[int, Array] = {}
        # Of memories that blocks share: how many writes there had been when one was asked for last, and what it held.
        self._contents: dict[int, tuple[int, Array]] = {}

    # Lanes.

    def lanes_of_mask(self, number: int) -> Array:
        """Return the lanes of a recorded mask, ascending."""
        if number not in self._lanes:
            start, count, lanes, as_bits = (int(each) for each in self.data.arrays["masks"][number])
            pool = self.data.arrays["mask_pool"]
            if as_bits:
                found = np.flatnonzero(np.unpackbits(pool[start : start + -(-lanes // 8)], count=lanes))
            else:
                found = pool[start : start + 4 * count].view(np.int32).astype(np.int64)
            if len(self._lanes) > 512:
                self._lanes.clear()
            self._lanes[number] = found
        return self._lanes[number]

    def launch_of(self, batch: int) -> TraceLaunch:
        """Return the launch that a batch belongs to."""
        return self.launches[int(self.about["batches"][batch][2])]

    def lanes_per_block_of(self, batch: int) -> int:
        """Return how many lanes each block of a batch has: its threads, filled up to whole warps."""
        return self.launch_of(batch).lanes_per_block

    def block_of(self, batch: int, lanes: Any) -> Any:
        """Return the number in the grid of the block of lanes of a batch."""
        return self.about["batches"][batch][0] + lanes // self.lanes_per_block_of(batch)

    def batch_lanes(self, batch: int) -> int:
        """Return how many lanes a batch has."""
        return int(self.about["batches"][batch][1]) * self.lanes_per_block_of(batch)

    def bits(self, batch: int, masks: Iterable[int]) -> Array:
        """Return which lanes of a batch are in any of some masks."""
        bits = np.zeros(self.batch_lanes(batch), bool)
        for mask in masks:
            bits[self.lanes_of_mask(mask)] = True
        return bits

    # Arrays.

    @cached_property
    def arrays(self) -> tuple[TraceArray, ...]:
        """All arrays: those of the launch first, then shared and local ones in the order in which they were used."""
        made: list[TraceArray] = []
        for number, memory in enumerate(self.about["memories"]):
            dtype = np.dtype(memory["dtype"])
            count = memory["size"] // dtype.itemsize
            first = self.about["batches"][memory["batch"]][0] if memory["space"] == "shared" else None
            for block in range(memory["blocks"]):
                place = None if first is None else first + block
                made.append(TraceArray(len(made), memory["name"], memory["space"], dtype, count, place, number))
        return tuple(made)

    @cached_property
    def first_array(self) -> list[int]:
        """The number of the first array of each memory."""
        firsts: dict[int, int] = {}
        for each in self.arrays:
            firsts.setdefault(each.memory, each.number)
        return [firsts[number] for number in range(len(self.about["memories"]))]

    def find(self, array: str | int, block: int | None = None) -> TraceArray:
        """Return an array by its number, or the first one of a name, of a block where that is given.

        Raises
        ------
        InputError
            There is none.
        """
        if isinstance(array, int):
            if 0 <= array < len(self.arrays):
                return self.arrays[array]
        else:
            for each in self.arrays:
                if each.name == array and (block is None or each.block == block):
                    return each
        raise InputError(f"The trace has no array {array!r}" + (f" of block {block}." if block is not None else "."))

    def array(self, array: str | int, step: int, block: int | None = None) -> Array:
        """Return what an array holds at a step: shape (count,), of a thread's own array (lanes of the batch, count)."""
        found = self.find(array, block)
        memory = self.about["memories"][found.memory]
        writes = self.writes_before(found.memory, step)
        if memory["blocks"] > 1:
            return self._of_block(found, writes)
        content = self.log(found.memory).content(writes)
        if found.space == "local":
            if memory["stride"]:
                rows = content.reshape(memory["lanes"], memory["stride"])
                return np.ascontiguousarray(rows[:, : found.count * found.dtype.itemsize]).view(found.dtype)
            parts: Array = content[: memory["lanes"] * found.count * found.dtype.itemsize].view(found.dtype)
            return parts.reshape(found.count, memory["lanes"]).T
        return content[: found.count * found.dtype.itemsize].view(found.dtype)

    def _of_block(self, array: TraceArray, writes: int) -> Array:
        """Return what an array of one block holds after so many writes by all blocks."""
        if self._contents.get(array.memory, (-1,))[0] != writes:
            self._contents[array.memory] = (writes, self.log(array.memory).content(writes))
        content = self._contents[array.memory][1]
        start = (array.number - self.first_array[array.memory]) * self.about["memories"][array.memory]["stride"]
        return content[start : start + array.count * array.dtype.itemsize].view(array.dtype).copy()

    def log(self, number: int) -> MemoryLog:
        """Return the log of a memory."""
        if number not in self._logs:
            memory, arrays = self.about["memories"][number], self.data.arrays
            total = (memory["lanes"] or memory["blocks"]) * (memory["stride"] or memory["size"])
            if memory["fill"] is None:
                initial = arrays["initial"][memory["initial"] : memory["initial"] + total]
            else:
                initial = np.full(total, memory["fill"], np.uint8)
            units = slice(memory["log"], memory["log"] + memory["written"])
            values = arrays["log_values"][memory["values"] : memory["values"] + memory["written"] * memory["unit"]]
            borders = arrays["log_borders"][memory["border"] : memory["border"] + memory["writes"]]
            self._logs[number] = MemoryLog(
                initial,
                memory["unit"],
                arrays["log_index"][units],
                values,
                arrays["log_nodes"][units],
                borders,
                memory["base"],
            )
        return self._logs[number]

    @cached_property
    def write_rows(self) -> list[Array]:
        """The rows of `accesses` that wrote, for each memory."""
        changes = np.flatnonzero(self._accesses[:, ACCESS.index("action")] != ACTIONS.index("read"))
        of = self._accesses[changes, ACCESS.index("memory")]
        order = np.argsort(of, kind="stable")
        borders = np.searchsorted(of[order], np.arange(len(self.about["memories"]) + 1))
        return [changes[order[start:end]] for start, end in pairwise(borders)]

    def writes_before(self, memory: int, step: int) -> int:
        """Return how many writes a memory has seen before a step."""
        if not 0 <= step <= len(self._events):
            raise InputError(f"The trace has {len(self._events)} events; there is no step {step}.")
        return int(np.searchsorted(self._accesses[self.write_rows[memory], ACCESS.index("event")], step))


def own_element(memory: dict[str, Any], lane: Any, element: Any, size: int) -> Any:
    """Return where an element of `size` bytes of a lane's own memory lies, counted in elements.

    Lanes lie side by side element after element; in memory whose bytes are read in several sizes, lane after lane.
    """
    if memory["stride"]:
        return lane * (memory["stride"] // size) + element
    return element * memory["lanes"] + lane
