"""Batches of blocks that are executed together, and the geometry of their lanes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from gpu.base.errors import LaunchError, SourcePosition
from gpu.base.lane_mask import LaneMask
from gpu.base.thread_names import format_sanitizer_name
from gpu.base.warp import WARP
from gpu.simulator.executor.state.progress import ProgressMonitor

Array = npt.NDArray[Any]


class Geometry:
    """The layout of the lanes of a number of blocks, shared by all batches of a launch with that number.

    Lanes are ordered by block, and within a block by thread number, x fastest. A block is padded to whole warps; lanes
    past its last thread are never active.
    """

    def __init__(self, block: Sequence[int], blocks: int) -> None:
        self.block = tuple(block)
        self.blocks = blocks
        self.threads = block[0] * block[1] * block[2]
        self.lanes_per_block = -(-self.threads // WARP) * WARP
        self.lanes = blocks * self.lanes_per_block

    @cached_property
    def thread_mask(self) -> LaneMask:
        """The lanes that are threads, not padding."""
        return LaneMask(np.tile(np.arange(self.lanes_per_block) < self.threads, self.blocks))

    @cached_property
    def warps(self) -> list[LaneMask]:
        """For each warp, its lanes that are threads."""
        warp_of_lane = np.arange(self.lanes) // WARP
        return [LaneMask(self.thread_mask.bits & (warp_of_lane == number)) for number in range(self.lanes // WARP)]

    @cached_property
    def single_lane_masks(self) -> list[LaneMask]:
        """For each lane that is a thread, a mask of that lane only."""
        return [LaneMask(bits, 1) for bits in np.eye(self.lanes, dtype=bool)[self.thread_mask.lanes]]

    @cached_property
    def block_of_lane(self) -> Array:
        """The number of each lane's block within the batch."""
        return np.repeat(np.arange(self.blocks), self.lanes_per_block)

    @cached_property
    def lane_numbers(self) -> Array:
        return np.arange(self.lanes)

    @cached_property
    def thread_index(self) -> tuple[Any, Any, Any]:
        """threadIdx.x, .y and .z: uint32, one per lane, or one value if the block's extent is 1."""
        number = np.arange(self.lanes_per_block)
        x, y, z = self.block
        axes = (number % x, number // x % y, number // (x * y))
        return tuple(
            np.tile(axis.astype(np.uint32), self.blocks) if extent > 1 else np.uint32(0)
            for axis, extent in zip(axes, (x, y, z), strict=True)
        )  # type: ignore[return-value]


class BlockBatch:
    """Blocks that are executed together: blocks `first` to `first + geometry.blocks` of the grid, x fastest.

    A batch consists of whole clusters; `cluster` is the number of blocks of one along x, y and z.
    """

    def __init__(
        self,
        geometry: Geometry,
        grid: Sequence[int],
        first: int,
        shared_bytes: int,
        cluster: Sequence[int] = (1, 1, 1),
    ) -> None:
        self.geometry = geometry
        self.cluster = tuple(cluster)
        # Watches memory while the batch may start again in another order; None otherwise.
        self.monitor: ProgressMonitor | None = None
        # The order of a trial, "buffered" if strong writes become visible late; empty if the batch is no trial.
        self.trial_order = ""
        # Whether the kernel may access memory through the asynchronous proxy.
        self.uses_async_proxy = True
        self.shared_bytes = shared_bytes
        self.shared: dict[object, Any] = {}
        self.first = first
        self.grid = tuple(grid)
        extents = tuple(np.uint32(extent) for extent in grid)
        self.builtin_values = {
            "threadIdx": geometry.thread_index,
            "blockIdx": self._block_index(),
            "blockDim": tuple(np.uint32(extent) for extent in geometry.block),
            "gridDim": extents,
            "clusterDim": tuple(np.uint32(extent) for extent in cluster),
        }

    @property
    def cluster_blocks(self) -> int:
        """The number of blocks per cluster."""
        return math.prod(self.cluster)

    @cached_property
    def cluster_of_block(self) -> Array:
        """The number of each block's cluster within the batch."""
        return self._clusters[0]

    @cached_property
    def rank_of_block(self) -> Array:
        """The number of each block within its cluster, x fastest."""
        return self._clusters[1]

    @cached_property
    def block_of_rank(self) -> Array:
        """The block's number within the batch for each cluster and rank: shape (clusters, ranks)."""
        clusters, ranks = self._clusters
        numbers = np.zeros((self.geometry.blocks // self.cluster_blocks, self.cluster_blocks), np.int64)
        numbers[clusters, ranks] = np.arange(self.geometry.blocks)
        return numbers

    @cached_property
    def _clusters(self) -> tuple[Array, Array]:
        if self.cluster_blocks == 1:
            return np.arange(self.geometry.blocks), np.zeros(self.geometry.blocks, np.int64)
        number = np.arange(self.first, self.first + self.geometry.blocks)
        x, y, _ = self.grid
        coordinates = (number % x, number // x % y, number // (x * y))
        across, down, _ = (extent // size for extent, size in zip(self.grid, self.cluster, strict=True))
        box = [coordinate // size for coordinate, size in zip(coordinates, self.cluster, strict=True)]
        inside = [coordinate % size for coordinate, size in zip(coordinates, self.cluster, strict=True)]
        _, clusters = np.unique((box[2] * down + box[1]) * across + box[0], return_inverse=True)
        return clusters, (inside[2] * self.cluster[1] + inside[1]) * self.cluster[0] + inside[0]

    def _block_index(self) -> tuple[Any, ...]:
        """Return blockIdx.x, .y and .z: one value if all blocks of the batch agree, else one per lane."""
        number = np.arange(self.first, self.first + self.geometry.blocks)
        x, y, _ = self.grid
        axes = (number % x, number // x % y, number // (x * y))
        return tuple(
            np.uint32(axis[0])
            if (axis == axis[0]).all()
            else np.repeat(axis.astype(np.uint32), self.geometry.lanes_per_block)
            for axis in axes
        )

    def describe(self, lane: int) -> str:
        """Return the name of a lane's thread and block, in compute-sanitizer's notation."""
        geometry = self.geometry
        number, block = lane % geometry.lanes_per_block, self.first + lane // geometry.lanes_per_block
        x, y, _ = geometry.block
        columns, rows, _ = self.grid
        thread = (number % x, number // x % y, number // (x * y))
        coordinates = (block % columns, block // columns % rows, block // (columns * rows))
        return format_sanitizer_name(thread, coordinates)

    def thread_error(
        self,
        lane: LaneMask | int,
        position: SourcePosition | None,
        sentence: str,
        *,
        kind: str = "other",
        advice: str = "",
    ) -> LaunchError:
        """Return the error of a lane, or of the first one of a mask, with its name for "{thread}" in the sentence."""
        thread = self.describe(lane if isinstance(lane, int) else int(lane.lanes[0]))
        message = f"{position}: {sentence.replace('{thread}', thread, 1)}"
        return LaunchError(message, position=position, advice=advice, kind=kind, thread=thread)
