"""Finds accesses to the shared memory of a block that may not have begun, or may have ended."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Any

import numpy as np
import numpy.typing as npt

from gpu.simulator.checkers.checker import Checker
from gpu.simulator.checkers.findings import Finding
from gpu.simulator.executor.batch import BlockBatch
from gpu.simulator.executor.masks import LaneMask
from gpu.simulator.executor.memory import AccessSite, FlatMemory
from gpu.simulator.executor.observe import Access

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class _Accessed:
    """What was accessed, and where in the source."""

    site: AccessSite
    name: str
    size: int


class ClusterChecker(Checker):
    """Finds threads that use shared memory of another block of their cluster with no barrier before, or after, it.

    Another block has begun where the cluster's barrier has been passed, and has not ended before its own threads have
    passed one at which the thread arrived after its access.
    """

    def __init__(self) -> None:
        self._findings: dict[tuple[str, int, bool], Finding] = {}
        self._accesses: list[_Accessed] = []

    @property
    def findings(self) -> list[Finding]:
        """One finding for each line and end of a block, in the order in which they were found."""
        return list(self._findings.values())

    def batch_begins(self, batch: BlockBatch) -> None:
        lanes = batch.geometry.lanes
        self._arrivals, self._passed = np.zeros(lanes, np.int64), np.zeros(lanes, np.int64)
        # Of each lane its last access to a block of each rank, from 1, and how often it had arrived before.
        self._last = np.zeros((lanes, batch.cluster_blocks), np.int64)
        self._before = np.zeros((lanes, batch.cluster_blocks), np.int64)
        self._accesses.clear()

    def barrier(self, batch: BlockBatch, position: object, mask: LaneMask) -> None:
        if batch.cluster_blocks > 1:
            rows = self._passed.reshape(batch.geometry.blocks, -1)
            here = mask.bits.reshape(rows.shape).any(axis=1)
            rows[here] = rows[here].max(axis=1, keepdims=True)

    def cluster_arrives(self, batch: BlockBatch, mask: LaneMask) -> None:
        self._arrivals[mask.lanes] += 1

    def cluster_passes(self, batch: BlockBatch, mask: LaneMask) -> None:
        self._passed[mask.lanes] = self._arrivals[mask.lanes]

    def access(self, batch: BlockBatch, access: Access) -> None:
        memory = access.memory
        if batch.cluster_blocks == 1 or memory.space != "shared" or not isinstance(memory, FlatMemory):
            return
        lanes = access.mask.lanes
        own = batch.geometry.block_of_lane[lanes]
        stride = memory.data.size // batch.geometry.blocks
        blocks = own + access.elements * access.size // stride
        elsewhere = blocks != own
        if not elsewhere.any():
            return
        lanes, blocks = lanes[elsewhere], blocks[elsewhere]
        early = self._passed[lanes] == 0
        done = _Accessed(access.site, memory.name, access.size)
        if early.any():
            self._report(batch, done, lanes[early], blocks[early], begins=True)
        ranks = batch.rank_of_block[blocks]
        self._accesses.append(done)
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

    def _report(self, batch: BlockBatch, done: _Accessed, lanes: Array, blocks: Array, *, begins: bool) -> None:
        position = done.site.position
        key = (position.file, position.line, begins)
        if key in self._findings:
            known = self._findings[key]
            self._findings[key] = replace(known, count=known.count + lanes.size)
            return
        who = batch.describe(int(lanes[0]))
        other = batch.describe(int(blocks[0]) * batch.geometry.lanes_per_block).partition(" in ")[2]
        why = (
            "may not have begun. A cluster.sync() before the first such access would order the two"
            if begins
            else "may have ended. A cluster.sync() at the end, after the last such access, would order the two"
        )
        self._findings[key] = Finding(
            "use-after-scope",
            f"Invalid __shared__ {done.site.action} of size {done.size} bytes by {who} at "
            f"{PurePath(position.file).name}:{position.line}: {done.name} is that of {other}, which {why}.",
            (position,),
            (who,),
            lanes.size,
        )
