"""Cluster barriers, at which threads arrive and then wait for all other threads of the cluster."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu.base.errors import LaunchError, SourcePosition
from gpu.base.lane_mask import LaneMask
from gpu.simulator.executor.state.call_frame import CallFrame
from gpu.simulator.executor.state.running_batch import RunningBatch
from gpu.simulator.ir import nodes as ir


class ClusterBarriers:
    """The arrivals at the barrier of each cluster of a batch. Threads that have exited are not waited for."""

    def __init__(self, batch: RunningBatch) -> None:
        geometry = batch.geometry
        self._batch = batch
        self._cluster_of_lane = batch.cluster_of_block[geometry.block_of_lane]
        # The number of completed barriers of each cluster, and of barriers at which each lane has arrived.
        self._completed_counts = np.zeros(int(self._cluster_of_lane.max()) + 1, np.int64)
        self._arrival_counts = np.zeros(geometry.lanes, np.int64)
        self._exited_lanes = ~geometry.thread_mask.bits

    def arrive(self, exited: LaneMask | None, mask: LaneMask, position: SourcePosition, *, is_relaxed: bool) -> None:
        """Record the arrival of lanes, which orders no accesses if it is relaxed; those of `exited` have exited.

        Raises
        ------
        LaunchError
            A lane arrives twice without a wait in between.
        """
        self._mark_exited(exited)
        twice, _ = mask.split(self._arrival_counts > self._completed_counts[self._cluster_of_lane])
        if twice is not None:
            raise self._misuse_error(
                twice, "arrives at the cluster barrier a second time without a wait in between", position
            )
        self._arrival_counts[mask.lanes] += 1
        if self._batch.scheduler is not None:
            self._batch.scheduler.recheck_conditions()
        if self._batch.observer is not None:
            self._batch.observer.cluster_arrives(self._batch, mask, is_relaxed=is_relaxed)

    def wait(self, exited: LaneMask | None, mask: LaneMask, position: SourcePosition) -> None:
        """Wait until all lanes that have not exited have arrived; those of `exited` have exited.

        Raises
        ------
        LaunchError
            Some lanes never arrive.
        """
        self._mark_exited(exited)
        batch, clusters = self._batch, np.unique(self._cluster_of_lane[mask.lanes])
        number = self._arrival_counts[mask.lanes].min()
        if number == 0:
            raise self._misuse_error(mask, "waits at the cluster barrier without having arrived there", position)

        def is_complete() -> bool:
            ended = batch.scheduler.exited_mask if batch.scheduler is not None else None
            self._mark_exited(ended)
            for cluster in clusters.tolist():
                if self._completed_counts[cluster] < number and not self._find_missing(cluster).any():
                    self._completed_counts[cluster] += 1
            return bool((self._completed_counts[clusters] >= number).all())

        def missing_thread_error() -> LaunchError:
            lane = next(
                int(np.argmax(lanes)) for each in clusters.tolist() if (lanes := self._find_missing(each)).any()
            )
            return batch.thread_error(
                lane,
                position,
                "Barrier error detected. Divergent thread(s) in cluster: {thread} does not reach the cluster barrier.",
                kind="barrier",
                advice="Move the barrier out of the branch, so that every thread of every block of the cluster "
                "reaches it.",
            )

        if batch.scheduler is not None:
            batch.scheduler.wait_until(is_complete, missing_thread_error)
        elif not is_complete():
            raise missing_thread_error()
        if batch.observer is not None:
            batch.observer.cluster_passes(batch, mask)

    def _mark_exited(self, exited: LaneMask | None) -> None:
        if exited is not None:
            self._exited_lanes |= exited.bits

    def _find_missing(self, cluster: int) -> Any:
        """Return a bool mask of the lanes of a cluster that have yet to arrive."""
        return (
            (self._cluster_of_lane == cluster)
            & ~self._exited_lanes
            & (self._arrival_counts <= self._completed_counts[cluster])
        )

    def _misuse_error(self, mask: LaneMask, misuse: str, position: SourcePosition) -> LaunchError:
        advice = "Each thread must arrive once and then wait once; cluster.sync() does both."
        return self._batch.thread_error(mask, position, f"{{thread}} {misuse}.", kind="barrier", advice=advice)


def pass_cluster_barrier(frame: CallFrame, mask: LaneMask, node: ir.ClusterBarrier) -> None:
    """Arrive at the cluster barrier, or wait there.

    Parameters
    ----------
    frame : CallFrame
        The running call.
    mask : LaneMask
        The lanes that execute the operation.
    node : ir.ClusterBarrier
        The operation.

    Raises
    ------
    LaunchError
        A lane arrives or waits twice in succession, or a lane of the cluster never arrives.
    """
    batch, exited = frame.batch, (frame.kernel or frame).returned_mask
    if batch.registers is not None:
        batch.registers.flush_lanes(mask)
    if batch.cluster_barriers is None:
        batch.cluster_barriers = ClusterBarriers(batch)
    barriers: ClusterBarriers = batch.cluster_barriers
    if node.part == "arrive":
        barriers.arrive(exited, mask, node.position, is_relaxed=node.is_relaxed)
    else:
        barriers.wait(exited, mask, node.position)
