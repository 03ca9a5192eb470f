"""Which lanes of a batch take part, and where they sit in the grid."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from gpu.simulator.executor.observe import Observer, Step
from gpu.warp import WARP

if TYPE_CHECKING:
    from gpu.simulator.executor.schedule import Warps

if TYPE_CHECKING:
    from gpu.simulator.executor.children import Child, Tree

Array = npt.NDArray[Any]

# About what a batch runs in ten minutes: nobody waits longer for a kernel that is not stuck.
MAXIMUM_ROUNDS = 10_000_000


class Mask:
    """The active lanes, at least one. The same set is often the same object, and `is` then tells so at no cost."""

    __slots__ = ("_lanes", "bits", "count", "full")

    def __init__(self, bits: Array, count: int | None = None) -> None:
        self.bits = bits
        self.count = int(np.count_nonzero(bits)) if count is None else count
        self.full = self.count == bits.size
        self._lanes: Array | None = None

    @property
    def lanes(self) -> Array:
        """The numbers of the active lanes, ascending."""
        if self._lanes is None:
            self._lanes = np.flatnonzero(self.bits)
        return self._lanes

    def split(self, condition: Any) -> tuple[Mask | None, Mask | None]:
        """Return the lanes where the condition (one bool, or one a lane) holds, and those where it does not."""
        if not isinstance(condition, np.ndarray):
            return (self, None) if condition else (None, self)
        true = condition if self.full else condition & self.bits
        count = int(np.count_nonzero(true))
        if count == self.count:
            return self, None
        if count == 0:
            return None, self
        return Mask(true, count), Mask(true ^ self.bits, self.count - count)

    def without(self, gone: Mask | None) -> Mask | None:
        """Return the lanes that are not in `gone`."""
        return self if gone is None else self.split(~gone.bits)[0]


def union(first: Mask | None, second: Mask | None) -> Mask | None:
    """Return the lanes of two masks that share none."""
    if first is None or second is None:
        return first or second
    return Mask(first.bits | second.bits, first.count + second.count)


class Geometry:
    """The lanes of so many whole blocks: the same for every batch of a launch that has as many.

    Lanes go block by block, and within a block by thread number, x fastest. A block takes whole warps: the lanes past
    its last thread exist in no batch.
    """

    def __init__(self, block: Sequence[int], blocks: int) -> None:
        self.block = tuple(block)
        self.blocks = blocks
        self.threads = block[0] * block[1] * block[2]
        self.lanes_per_block = -(-self.threads // WARP) * WARP
        self.lanes = blocks * self.lanes_per_block

    @cached_property
    def everyone(self) -> Mask:
        """The lanes that are threads."""
        return Mask(np.tile(np.arange(self.lanes_per_block) < self.threads, self.blocks))

    @cached_property
    def warps(self) -> list[Mask]:
        """The lanes of each warp that are threads."""
        own = np.arange(self.lanes) // WARP
        return [Mask(self.everyone.bits & (own == number)) for number in range(self.lanes // WARP)]

    @cached_property
    def block_of_lane(self) -> Array:
        """The number of each lane's block within the batch."""
        return np.repeat(np.arange(self.blocks), self.lanes_per_block)

    @cached_property
    def lane_numbers(self) -> Array:
        return np.arange(self.lanes)

    @cached_property
    def thread_index(self) -> tuple[Any, Any, Any]:
        """threadIdx.x, .y and .z: uint32, one a lane, or one value where the block is one thread deep."""
        number = np.arange(self.lanes_per_block)
        x, y, z = self.block
        axes = (number % x, number // x % y, number // (x * y))
        return tuple(
            np.tile(axis.astype(np.uint32), self.blocks) if extent > 1 else np.uint32(0)
            for axis, extent in zip(axes, (x, y, z), strict=True)
        )  # type: ignore[return-value]


class BlockBatch:
    """Whole blocks that advance together: blocks `first` to `first + geometry.blocks` of the grid, x fastest."""

    def __init__(
        self, geometry: Geometry, grid: Sequence[int], first: int, shared_bytes: int, observer: Observer | None = None
    ) -> None:
        self.geometry = geometry
        self.shared_bytes = shared_bytes
        self.shared: dict[object, Any] = {}
        self.printed: list[tuple[int, str]] = []
        # What its threads have launched that has not run yet; and the host's launch that the batch belongs to.
        self.children: list[Child] = []
        self.depth = 0
        self.tree: Tree | None = None
        self.observer = observer
        # Where warps go one by one: who says which.
        self.warps: Warps | None = None
        self.first = first
        self.grid = tuple(grid)
        self.rounds = 0
        self.clock_calls = 0
        self.max_rounds = MAXIMUM_ROUNDS
        extents = tuple(np.uint32(extent) for extent in grid)
        self.special = {
            "threadIdx": geometry.thread_index,
            "blockIdx": self._block_index(),
            "blockDim": tuple(np.uint32(extent) for extent in geometry.block),
            "gridDim": extents,
        }

    def _block_index(self) -> tuple[Any, ...]:
        """blockIdx.x, .y and .z: one value where all blocks of the batch agree, else one a lane."""
        number = np.arange(self.first, self.first + self.geometry.blocks)
        x, y, _ = self.grid
        axes = (number % x, number // x % y, number // (x * y))
        return tuple(
            np.uint32(axis[0])
            if (axis == axis[0]).all()
            else np.repeat(axis.astype(np.uint32), self.geometry.lanes_per_block)
            for axis in axes
        )

    def begin(self, step: Step, mask: Mask) -> None:
        """Tell of a statement that lanes are about to execute, when it is their turn."""
        if self.warps is not None:
            self.warps.pause()
        if self.observer is not None:
            self.observer.step(self, step, mask)

    def describe(self, lane: int) -> str:
        """Name a lane's thread and block as compute-sanitizer does."""
        geometry = self.geometry
        number, block = lane % geometry.lanes_per_block, self.first + lane // geometry.lanes_per_block
        x, y, _ = geometry.block
        columns, rows, _ = self.grid
        thread = (number % x, number // x % y, number // (x * y))
        place = (block % columns, block // columns % rows, block // (columns * rows))
        return f"thread ({','.join(map(str, thread))}) in block ({','.join(map(str, place))})"
