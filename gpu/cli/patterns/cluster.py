"""Runs on a Dask cluster from the command line: progress bar, lost workers, list of workers."""

from __future__ import annotations

import sys
from collections.abc import Collection
from dataclasses import asdict
from typing import Any

from gpu.cli.patterns.cluster_options import ClusterRunOptions
from gpu.declaration.pattern import Progress
from gpu.distributed.cluster.dask_cluster import Cluster, open_cluster
from gpu.distributed.cluster.dask_import import load_dask
from gpu.distributed.cluster.settings import ClusterSettings
from gpu.distributed.picture import draw_task_graph
from gpu.files import file_access
from gpu.messages.runs.distributed_run import DistributedRun, WorkerStatus, is_loss
from gpu.run.pattern_run import Outcome
from gpu.run.workload import Workload

_BAR_WIDTH = 30


class ClusterRunner:
    """Runs patterns on an open cluster.

    Raises
    ------
    InputError
        The file for the graph cannot be written.
    """

    def __init__(self, cluster: Cluster, options: ClusterRunOptions) -> None:
        if options.graph:
            file_access.check_target(options.graph)
        self._cluster = cluster
        self._options = options
        self.device = cluster.workers[0].device

    def __call__(self, workload: Workload, extra_outputs: Collection[str] = ()) -> tuple[Outcome, DistributedRun]:
        """Run a variant as `run_distributed` does, and save the task graph if requested."""
        from gpu.distributed.distributed_run import run_distributed

        bar = ProgressBar(len(self._cluster.workers))
        try:
            outcome, distributed = run_distributed(
                self._cluster, workload, bar, chunks=self._options.chunks, extra_outputs=extra_outputs
            )
        finally:
            bar.close()
        if self._options.graph:
            picture = draw_task_graph(
                distributed, f"{workload.pattern.title}: {len(distributed.tasks)} tasks on {outcome.report.device}"
            )
            with file_access.replace_file(self._options.graph) as file:
                file.write(picture.encode())
        return outcome, distributed


class ProgressBar:
    """Progress bar on a terminal; lost workers are reported on a line even without a terminal."""

    def __init__(self, worker_count: int) -> None:
        self._worker_count = worker_count
        self._is_terminal = sys.stderr.isatty()

    def __call__(self, progress: Progress) -> None:
        if is_loss(progress):
            self.close()
            print(f"lockstep: {progress.message}.", file=sys.stderr)
        elif progress.fraction is not None and self._is_terminal:
            full = round(_BAR_WIDTH * progress.fraction)
            bar = "█" * full + "·" * (_BAR_WIDTH - full)
            print(f"\r{bar} {progress.message}, {self._worker_count} workers ", end="", file=sys.stderr, flush=True)

    def close(self) -> None:
        """Erase the bar."""
        if self._is_terminal:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def find_workers(settings: ClusterSettings) -> tuple[WorkerStatus, ...]:
    """Return the workers of a scheduler."""
    load_dask()
    with open_cluster(settings) as cluster:
        return cluster.workers


def workers_data(workers: tuple[WorkerStatus, ...]) -> list[dict[str, Any]]:
    """Return the workers as JSON data."""
    return [asdict(worker) for worker in workers]


def format_workers(workers: tuple[WorkerStatus, ...]) -> str:
    """Return the workers as text, one per line."""
    return "\n".join(f"{worker.address:<28}{worker.device.engine:<12}{worker.device.name}" for worker in workers)
