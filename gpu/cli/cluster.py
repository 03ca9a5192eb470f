"""Runs on a Dask cluster from the command line: progress bar, lost workers, list of workers."""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping
from dataclasses import asdict
from typing import Any

from gpu.cli.cluster_options import OnCluster
from gpu.declaration.pattern import Inputs, Params, Pattern, Progress, Variant
from gpu.distributed.asked import Asked
from gpu.distributed.cluster import Cluster, opened
from gpu.distributed.library import load_dask
from gpu.distributed.picture import task_graph
from gpu.files import opening
from gpu.messages.distributed import DistributedRun, WorkerStatus, is_loss
from gpu.run.execute import Outcome

_BAR = 30


class Runner:
    """Runs patterns on an open cluster.

    Parameters
    ----------
    cluster : Cluster
    asked : OnCluster

    Raises
    ------
    InputError
        The file for the graph cannot be written.
    """

    def __init__(self, cluster: Cluster, asked: OnCluster) -> None:
        if asked.graph:
            opening.check_target(asked.graph)
        self._cluster = cluster
        self._options = asked
        self.device = cluster.workers[0].device

    def __call__(
        self,
        pattern: Pattern,
        variant: Variant,
        inputs: Inputs,
        params: Params,
        sources: Mapping[str, str],
        also: Collection[str] = (),
    ) -> tuple[Outcome, DistributedRun]:
        """Run a variant as `run_distributed` does, and save the task graph if requested."""
        from gpu.distributed.run import run_distributed

        bar = Bar(len(self._cluster.workers))
        try:
            outcome, distributed = run_distributed(
                self._cluster,
                pattern,
                variant,
                inputs,
                params,
                bar,
                chunks=self._options.chunks,
                sources=sources,
                also=also,
            )
        finally:
            bar.close()
        if self._options.graph:
            picture = task_graph(
                distributed, f"{pattern.title}: {len(distributed.tasks)} tasks on {outcome.report.device}"
            )
            with opening.replacing(self._options.graph) as file:
                file.write(picture.encode())
        return outcome, distributed


class Bar:
    """Progress bar on a terminal; lost workers are reported on a line even without a terminal."""

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._is_terminal = sys.stderr.isatty()

    def __call__(self, progress: Progress) -> None:
        if is_loss(progress):
            self.close()
            print(f"lockstep: {progress.message}.", file=sys.stderr)
        elif progress.fraction is not None and self._is_terminal:
            full = round(_BAR * progress.fraction)
            bar = "█" * full + "·" * (_BAR - full)
            print(f"\r{bar} {progress.message}, {self._workers} workers ", end="", file=sys.stderr, flush=True)

    def close(self) -> None:
        """Erase the bar."""
        if self._is_terminal:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def workers_of(asked: Asked) -> tuple[WorkerStatus, ...]:
    """Return the workers of a scheduler."""
    load_dask()
    with opened(asked) as cluster:
        return cluster.workers


def workers_data(workers: tuple[WorkerStatus, ...]) -> list[dict[str, Any]]:
    """Return the workers as JSON data."""
    return [asdict(each) for each in workers]


def workers_text(workers: tuple[WorkerStatus, ...]) -> str:
    """Return the workers as text, one per line."""
    return "\n".join(f"{each.address:<28}{each.device.engine:<12}{each.device.name}" for each in workers)
