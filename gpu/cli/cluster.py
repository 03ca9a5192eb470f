"""A run on a cluster as the command line tells of it: its progress on a terminal, what is lost, its workers."""

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
    """Runs patterns on a cluster that is open, and keeps what the last run did.

    Parameters
    ----------
    cluster : Cluster
    asked : OnCluster

    Raises
    ------
    InputError
        Where the drawing that is asked for cannot be written.
    """

    def __init__(self, cluster: Cluster, asked: OnCluster) -> None:
        if asked.graph:
            opening.check_target(asked.graph)
        self._cluster = cluster
        self._asked = asked
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
        """Run a variant as `run_distributed` does, and draw what was recorded where that is asked for."""
        from gpu.distributed.run import run_distributed

        bar = Bar(len(self._cluster.workers))
        try:
            outcome, done = run_distributed(
                self._cluster,
                pattern,
                variant,
                inputs,
                params,
                bar,
                chunks=self._asked.chunks,
                sources=sources,
                also=also,
            )
        finally:
            bar.close()
        if self._asked.graph:
            drawn = task_graph(done, f"{pattern.title}: {len(done.tasks)} tasks on {outcome.report.device}")
            with opening.replacing(self._asked.graph) as file:
                file.write(drawn.encode())
        return outcome, done


class Bar:
    """Tells how far a run is: a bar that moves on a terminal, and a line for what is lost wherever it is written."""

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._there = sys.stderr.isatty()

    def __call__(self, progress: Progress) -> None:
        if is_loss(progress):
            self.close()
            print(f"lockstep: {progress.message}.", file=sys.stderr)
        elif progress.fraction is not None and self._there:
            full = round(_BAR * progress.fraction)
            bar = "█" * full + "·" * (_BAR - full)
            print(f"\r{bar} {progress.message}, {self._workers} workers ", end="", file=sys.stderr, flush=True)

    def close(self) -> None:
        """Take the bar away."""
        if self._there:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def workers_of(asked: Asked) -> tuple[WorkerStatus, ...]:
    """Return the workers of a scheduler."""
    load_dask()
    with opened(asked) as cluster:
        return cluster.workers


def workers_data(workers: tuple[WorkerStatus, ...]) -> list[dict[str, Any]]:
    """Return workers as JSON takes them."""
    return [asdict(each) for each in workers]


def workers_text(workers: tuple[WorkerStatus, ...]) -> str:
    """Return workers, one a line."""
    return "\n".join(f"{each.address:<28}{each.device.engine:<12}{each.device.name}" for each in workers)
