"""Checker for accesses to the shared memory of another block of the cluster before it begins or after it ends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gpu.base.findings import Finding
from gpu.base.lane_mask import LaneMask
from gpu.simulator.checkers.checker import Checker
from gpu.simulator.executor.state.batch import BlockBatch
from gpu.simulator.executor.state.memory import AccessSite, FlatMemory
from gpu.simulator.executor.state.observer import Access

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class _RemoteAccess:
    """An access: its source position, the array's name and the size in bytes."""

    site: AccessSite
    name: str
    size: int


class ClusterChecker(Checker):
    """Find accesses to another block's shared memory that no cluster barrier precedes or none follows.

    Another block has certainly begun once the thread has passed a cluster barrier. It has certainly not ended until its
    own threads pass a cluster barrier at which the accessing thread arrived after its access.
    """

    def __init__(self) -> None:
        super().__init__()
        self._accesses: list[_RemoteAccess] = []

    def batch_begins(self, batch: BlockBatch) -> None:
        lanes = batch.geometry.lanes
        self._arrivals, self._passed = np.zeros(lanes, np.int64), np.zeros(lanes, np.int64)
        # For each lane and each block of its cluster: the number of its last access, from 1, and the number of times
        # that the lane had arrived at the cluster barrier before that access.
        self._last = np.zeros((lanes, batch.cluster_blocks), np.int64)
        self._before = np.zeros((lanes, batch.cluster_blocks), np.int64)
        self._accesses.clear()

    def barrier(self, batch: BlockBatch, position: object, mask: LaneMask) -> None:
        if batch.cluster_blocks > 1:
            rows = self._passed.reshape(batch.geometry.blocks, -1)
            here = mask.bits.reshape(rows.shape).any(axis=1)
            rows[here] = rows[here].max(axis=1, keepdims=True)

    def cluster_arrives(self, batch: BlockBatch, mask: LaneMask, *, is_relaxed: bool) -> None:
        self._arrivals[mask.lanes] += 1

    def cluster_passes(self, batch: BlockBatch, mask: LaneMask) -> None:
        self._passed[mask.lanes] = self._arrivals[mask.lanes]

    def access(self, batch: BlockBatch, access: Access) -> None:
        memory = access.memory
        if batch.cluster_blocks == 1 or memory.space != "shared" or not isinstance(memory, FlatMemory):
            return
        lanes = access.mask.lanes
        own_blocks = batch.geometry.block_of_lane[lanes]
        stride = memory.data.size // batch.geometry.blocks
        blocks = own_blocks + access.elements * access.size // stride
        is_remote = blocks != own_blocks
        if not is_remote.any():
            return
        lanes, blocks = lanes[is_remote], blocks[is_remote]
        early = self._passed[lanes] == 0
        remote = _RemoteAccess(access.site, memory.name, access.size)
        if early.any():
            self._report(batch, remote, lanes[early], blocks[early], begins=True)
        ranks = batch.rank_of_block[blocks]
        self._accesses.append(remote)
        self._last[lanes, ranks] = len(self._accesses)
        self._before[lanes, ranks] = self._arrivals[lanes]

    def batch_ends(self, batch: BlockBatch) -> None:
        if batch.cluster_blocks == 1 or not self._accesses:
            return
        geometry = batch.geometry
        blocks = batch.block_of_rank[batch.cluster_of_block[geometry.block_of_lane]]
        passed = self._passed.reshape(geometry.blocks, -1).max(axis=1)[blocks]
        late = (self._last > 0) & (passed <= self._before)
        for number in np.unique(self._last[late]).tolist():
            lanes, ranks = np.nonzero(late & (self._last == number))
            self._report(batch, self._accesses[number - 1], lanes, blocks[lanes, ranks], begins=False)

    def _report(self, batch: BlockBatch, remote: _RemoteAccess, lanes: Array, blocks: Array, *, begins: bool) -> None:
        position = remote.site.position
        key = (position.line_key, begins)
        if self._count_again(key, lanes.size):
            return
        thread = batch.describe(int(lanes[0]))
        other = batch.describe(int(blocks[0]) * batch.geometry.lanes_per_block).partition(" in ")[2]
        cause = (
            "may not have begun. Add a cluster.sync() before the first such access"
            if begins
            else "may have ended. Add a cluster.sync() at the end, after the last such access"
        )
        self._findings[key] = Finding(
            "use-after-scope",
            f"Invalid __shared__ {remote.site.action} of size {remote.size} bytes by {thread} at "
            f"{position.short_text}: {remote.name} belongs to {other}, which {cause}.",
            (position,),
            (thread,),
            lanes.size,
        )
