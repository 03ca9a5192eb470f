"""Barriers of clusters of blocks, at which threads arrive and then wait for all others of the cluster."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu.errors import LaunchError, SourcePosition
from gpu.simulator.executor.call_frame import CallFrame
from gpu.simulator.executor.masks import LaneMask
from gpu.simulator.executor.running import RunningBatch


class ClusterBarriers:
    """Who has arrived at the barrier of each cluster of a batch. Threads that have ended are not waited for."""

    def __init__(self, batch: RunningBatch) -> None:
        geometry = batch.geometry
        self._batch = batch
        self._cluster = batch.cluster_of_block[geometry.block_of_lane]
        # How many barriers of its cluster are over, and at how many each lane has arrived.
        self._over = np.zeros(int(self._cluster.max()) + 1, np.int64)
        self._arrived = np.zeros(geometry.lanes, np.int64)
        self._gone = ~geometry.everyone.bits

    def arrive(self, gone: LaneMask | None, mask: LaneMask, position: SourcePosition) -> None:
        """Let lanes arrive; those of `gone` have returned.

        Raises
        ------
        LaunchError
            A lane arrives twice without a wait between.
        """
        self._leave(gone)
        twice, _ = mask.split(self._arrived > self._over[self._cluster])
        if twice is not None:
            raise self._misused(
                twice, "arrives at the barrier of its cluster again before it has waited there", position
            )
        self._arrived[mask.lanes] += 1
        if self._batch.scheduler is not None:
            self._batch.scheduler.wake()
        if self._batch.observer is not None:
            self._batch.observer.cluster_arrives(self._batch, mask)

    def wait(self, gone: LaneMask | None, mask: LaneMask, position: SourcePosition) -> None:
        """Let lanes wait for all that have not ended to arrive.

        Raises
        ------
        LaunchError
            There are lanes that do not come.
        """
        self._leave(gone)
        batch, clusters = self._batch, np.unique(self._cluster[mask.lanes])
        due = self._arrived[mask.lanes].min()
        if due == 0:
            raise self._misused(mask, "waits at the barrier of its cluster before it has arrived there", position)

        def is_over() -> bool:
            ended = batch.scheduler.ended if batch.scheduler is not None else None
            self._leave(ended)
            for cluster in clusters.tolist():
                if self._over[cluster] < due and not self._missing(cluster).any():
                    self._over[cluster] += 1
            return bool((self._over[clusters] >= due).all())

        def does_not_come() -> LaunchError:
            lane = next(int(np.argmax(found)) for each in clusters.tolist() if (found := self._missing(each)).any())
            who = batch.describe(lane)
            return LaunchError(
                f"{position}: Barrier error detected. Divergent thread(s) in cluster: "
                f"{who} does not come to the barrier of its cluster.",
                position=position,
                advice="Move the barrier out of the branch, so that every thread of every block of the cluster "
                "reaches it.",
                kind="barrier",
                thread=who,
            )

        if batch.scheduler is not None:
            batch.scheduler.wait_until(is_over, does_not_come)
        elif not is_over():
            raise does_not_come()
        if batch.observer is not None:
            batch.observer.cluster_passes(batch, mask)

    def _leave(self, gone: LaneMask | None) -> None:
        if gone is not None:
            self._gone |= gone.bits

    def _missing(self, cluster: int) -> Any:
        """Return which lanes of a cluster have yet to arrive."""
        return (self._cluster == cluster) & ~self._gone & (self._arrived <= self._over[cluster])

    def _misused(self, mask: LaneMask, what: str, position: SourcePosition) -> LaunchError:
        who = self._batch.describe(int(mask.lanes[0]))
        return LaunchError(
            f"{position}: {who} {what}.",
            position=position,
            advice="Each thread arrives once and then waits once, which cluster.sync() does in one.",
            kind="barrier",
            thread=who,
        )


def pass_cluster_barrier(frame: CallFrame, mask: LaneMask, part: str, position: SourcePosition) -> None:
    """Let lanes arrive at the barrier of their clusters, or wait there."""
    batch, gone = frame.batch, (frame.kernel or frame).returned
    if batch.registers is not None:
        batch.registers.settle(mask)
    if batch.clusters is None:
        batch.clusters = ClusterBarriers(batch)
    barriers: ClusterBarriers = batch.clusters
    if part == "arrive":
        barriers.arrive(gone, mask, position)
    else:
        barriers.wait(gone, mask, position)
