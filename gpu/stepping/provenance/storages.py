"""The storages of a recording: the arrays of a host program, and the variables of its threads; each has cells."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from gpu.recording.recording import LaunchSpan
from gpu.recording.types import TraceArray, TraceLaunch

Space = Literal["global", "constant", "shared", "local", "register"]


@dataclass(frozen=True, eq=False)
class Storage:
    """An array of all blocks, or a variable of all threads.

    Cells are numbered block by block, thread by thread.

    Parameters
    ----------
    number : int
    name : str
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
        buffer = launch.buffers[array.number]
        if buffer is not None:
            space: Space = "constant" if array.space == "constant" else "global"
            buffer_key = ("buffer", buffer)
            return self._register(buffer_key, array.name, space, array.dtype, 1, array.count, array.count, launch)
        trace = launch.trace
        child, blocks, threads = _launch_extents(trace.lanes.launch(trace.data.memories[array.memory].batch))
        key = (launch.number, child, array.space, array.name, array.count)
        if array.space == "shared":
            return self._register(key, array.name, "shared", array.dtype, blocks, array.count, array.count, launch)
        section = threads * array.count
        return self._register(key, array.name, "local", array.dtype, blocks, section, array.count, launch)

    def register_variable(
        self, launch: LaunchSpan, child: int, function: int, slot: int, dtype: np.dtype[Any]
    ) -> Storage:
        """Return the storage of a variable, which has a cell for each thread of the trace's launch `child`."""
        data = launch.trace.data
        _, blocks, threads = _launch_extents(data.launches[child])
        name = data.functions[function].variables.get(slot, "")
        key = (launch.number, child, "register", function, slot)
        return self._register(key, name, "register", dtype, blocks, threads, 1, launch)

    def _register(
        self,
        key: Hashable,
        name: str,
        space: Space,
        dtype: np.dtype[Any],
        blocks: int,
        section: int,
        extent: int,
        launch: LaunchSpan,
    ) -> Storage:
        if key not in self._by_key:
            storage = Storage(len(self.entries), name, space, dtype, blocks * section, section, extent, launch.number)
            self._by_key[key] = storage
            self.entries.append(storage)
        return self._by_key[key]


def _launch_extents(launch: TraceLaunch) -> tuple[int, int, int]:
    """Return a launch's number, its number of blocks, and its threads per block."""
    grid, block = launch.grid, launch.block
    return launch.number, grid[0] * grid[1] * grid[2], block[0] * block[1] * block[2]
