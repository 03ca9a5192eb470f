"""Observer of the writes to a byte range of an array: their threads, lines and memory traffic."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gpu.base.errors import SourcePosition
from gpu.base.lane_mask import LaneMask
from gpu.base.warp import WARP
from gpu.simulator import ir
from gpu.simulator.counting.traffic import Warps, count_queued_sectors, count_sectors, narrow_indices
from gpu.simulator.executor.state.batch import BlockBatch
from gpu.simulator.executor.state.memory import FlatMemory
from gpu.simulator.executor.state.observer import Access, IssuedStep, Observer

Array = npt.NDArray[Any]
Index3 = tuple[int, int, int]


@dataclass(frozen=True)
class ObservedWrite:
    """A write by one thread, and the request of its warp that performed it.

    Parameters
    ----------
    grid, block_shape, block, thread : tuple of int
        Blocks of the launch, threads per block, `blockIdx` and `threadIdx`.
    atomic : bool
        Whether it is an atomic operation.
    lanes : int
        The lanes in the request.
    sectors, ideal_sectors : int
        `moved` and `ideal` of `gpu.simulator.counting.traffic.Sectors`.
    queue : int
        For an atomic operation, the most lanes that access one address; else 1.
    """

    kernel: str
    grid: Index3
    block_shape: Index3
    block: Index3
    thread: Index3
    position: SourcePosition
    atomic: bool
    lanes: int
    sectors: int
    ideal_sectors: int
    queue: int


class Writers(Observer):
    """Observer of the writes to a byte range.

    Parameters
    ----------
    memory : uint8 array
        An array that is an argument of the launch.
    start, size : int
        The byte range.
    on_step : callable
        Called at every statement; an exception that it raises ends the launch.

    Attributes
    ----------
    first, last : ObservedWrite or None
        The first and the last write.
    writes : int
        Writes of single threads.
    statements : int
        Statements of single lanes, with or without a write.
    """

    def __init__(self, memory: Array, start: int, size: int, on_step: Callable[[], None] = lambda: None) -> None:
        self._memory, self._start, self._stop = memory, start, start + size
        self._on_step = on_step
        self._kernel = ""
        self._threads: list[Array] = []
        self.first: ObservedWrite | None = None
        self.last: ObservedWrite | None = None
        self.writes = self.statements = 0

    @property
    def threads(self) -> int:
        """The number of threads that wrote."""
        return np.unique(np.concatenate(self._threads), axis=0).shape[0] if self._threads else 0

    @property
    def blocks(self) -> int:
        """The number of blocks with a thread that wrote."""
        return np.unique(np.concatenate(self._threads)[:, 0]).size if self._threads else 0

    def launch_begins(self, kernel: str, grid: Sequence[int], block: Sequence[int]) -> None:
        self._kernel = kernel

    def step(self, batch: BlockBatch, step: IssuedStep, mask: LaneMask) -> None:
        self.statements += mask.count
        self._on_step()

    def advance(self, batch: BlockBatch, loop: ir.Loop, mask: LaneMask) -> None:
        self.statements += mask.count

    def access(self, batch: BlockBatch, access: Access) -> None:
        memory = access.memory
        if access.site.action == "read" or not isinstance(memory, FlatMemory) or memory.data is not self._memory:
            return
        first, last = self._start // access.size, (self._stop - 1) // access.size
        lanes = access.mask.lanes
        if isinstance(access.element, np.ndarray):
            elements = access.element.take(lanes)
            lanes = lanes[(elements >= first) & (elements <= last)]
        elif not first <= access.element <= last:
            return
        if not lanes.size:
            return
        self.writes += int(lanes.size)
        per_block = batch.geometry.lanes_per_block
        self._threads.append(np.stack([batch.first + lanes // per_block, lanes % per_block], axis=1))
        if self.first is None:
            self.first = self._describe_write(batch, access, memory, int(lanes[0]))
        self.last = self._describe_write(batch, access, memory, int(lanes[-1]))

    def _describe_write(self, batch: BlockBatch, access: Access, memory: FlatMemory, lane: int) -> ObservedWrite:
        in_warp = np.arange(access.mask.bits.size) // WARP == lane // WARP
        warps = Warps(LaneMask(access.mask.bits & in_warp))
        atomic = access.site.action == "atomic"
        elements: Any = access.element
        if isinstance(elements, np.ndarray) or atomic:
            elements = narrow_indices(np.broadcast_to(elements, in_warp.shape), memory.data.size)
        if atomic:
            (queue,), (moved,) = count_queued_sectors(warps.rows().gather_marked(elements), access.size)
            (ideal,) = warps.ideal_sectors(access.size)
        else:
            queue, ((moved,), _, (ideal,)) = 1, count_sectors(warps, elements, access.size)
        geometry = batch.geometry
        block, thread = divmod(lane, geometry.lanes_per_block)
        return ObservedWrite(
            self._kernel,
            _to_three_axes(batch.grid),
            _to_three_axes(geometry.block),
            _index(batch.first + block, batch.grid),
            _index(thread, geometry.block),
            access.site.position,
            atomic,
            warps.mask.count,
            int(moved),
            int(ideal),
            int(queue),
        )


def _to_three_axes(extents: Sequence[int]) -> Index3:
    return int(extents[0]), int(extents[1]), int(extents[2])


def _index(number: int, extents: Sequence[int]) -> Index3:
    x, y = int(extents[0]), int(extents[1])
    return number % x, number // x % y, number // (x * y)
