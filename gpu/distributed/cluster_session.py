"""A cluster in the engine's process that stays open between requests."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from gpu.base.errors import EngineUnavailableError, KernelError
from gpu.distributed.cluster.dask_cluster import Cluster, open_cluster
from gpu.distributed.cluster.settings import ClusterSettings
from gpu.distributed.cluster_simulation import ClusterSimulation
from gpu.distributed.distributed_run import count_devices, describe_devices, run_distributed
from gpu.engines import create_engine
from gpu.messages.bodies import AdvanceBodies, BodiesResult, PickBody, PickedBody, SaveBodies
from gpu.messages.events import Ready
from gpu.messages.requests import Acknowledgment, R, Request
from gpu.messages.runs.pattern_runs import RunPattern, RunResult
from gpu.messages.shared_arrays import SharedFolder
from gpu.run.handlers.bodies import pick_from_simulation, write_simulation
from gpu.run.handlers.execution import execute_request
from gpu.run.handlers.registry import Handler, RequestContext
from gpu.run.host_program import ProgressCallback
from gpu.run.workload import Workload
from gpu.simulator.disk import find_problem


class ClusterSession:
    """Execute requests on a cluster; requests that need no device, such as reading a file, run in this process.

    Raises
    ------
    InputError
        If the address is malformed or certificates cannot be read.
    EngineUnavailableError
        If Dask is not installed, no scheduler answers at the address, or a worker has no engine.
    """

    def __init__(self, settings: ClusterSettings) -> None:
        self._settings = settings
        self._exit_stack = ExitStack()
        self._null_engine = create_engine("null")
        self._cluster: Cluster | None = None
        self._simulation: ClusterSimulation | None = None
        self._handlers: dict[type[Request[Any]], Handler[Any]] = {
            RunPattern: self._run_pattern,
            AdvanceBodies: self._advance_bodies,
            SaveBodies: self._save_bodies,
            PickBody: self._pick_body,
        }
        self._ensure_open()

    @property
    def ready(self) -> Ready:
        """Description of the cluster."""
        cluster = self._ensure_open()
        one = cluster.workers[0].device
        device = replace(
            one, name=describe_devices(cluster), peak_gflops=one.peak_gflops * count_devices(cluster.workers)
        )
        return Ready(device, find_problem(), cluster.workers, cluster.dashboard)

    def execute(self, request: Request[R], folder: SharedFolder, report_progress: ProgressCallback) -> R:
        """Execute a request; the result's arrays are created in `folder`.

        Raises
        ------
        LockstepError
            As `run_distributed`.
        """
        handler = self._handlers.get(type(request))
        if handler is None:
            return execute_request(self._null_engine, request, folder, report_progress)
        result: R = handler(RequestContext(self._null_engine, folder, report_progress), request)
        return result

    def close(self) -> None:
        """Stop a cluster on this machine, or disconnect from another."""
        self._discard_simulation()
        self._cluster = None
        self._exit_stack.close()

    def _ensure_open(self) -> Cluster:
        if self._cluster is None:
            self._cluster = self._exit_stack.enter_context(open_cluster(self._settings))
        return self._cluster

    def _discard_simulation(self) -> None:
        played, self._simulation = self._simulation, None
        if played is not None:
            played.close()

    def _advance_bodies(self, context: RequestContext, request: AdvanceBodies) -> BodiesResult:
        """Start or continue a simulation of bodies; there is only one at a time."""
        try:
            if self._simulation is None or self._simulation.number != request.simulation:
                self._discard_simulation()
                self._simulation = ClusterSimulation(self._ensure_open(), request)
            picture, figures = self._simulation.advance(request, context.report_progress)
        except EngineUnavailableError:
            self.close()
            raise
        except KernelError:
            self._discard_simulation()
            raise
        return BodiesResult({} if picture is None else {"picture": context.folder.put(picture)}, figures)

    def _save_bodies(self, context: RequestContext, request: SaveBodies) -> Acknowledgment:
        return write_simulation(self._find_simulation(request.simulation), request)

    def _pick_body(self, context: RequestContext, request: PickBody) -> PickedBody:
        return pick_from_simulation(self._find_simulation(request.simulation), request, context.folder)

    def _find_simulation(self, number: int) -> ClusterSimulation | None:
        return self._simulation if self._simulation is not None and self._simulation.number == number else None

    def _run_pattern(self, context: RequestContext, request: RunPattern) -> RunResult:
        workload = Workload.open(request, request.side)
        try:
            outcome, done = run_distributed(
                self._ensure_open(), workload, context.report_progress, chunks=request.chunks
            )
        except EngineUnavailableError:
            self.close()  # the next request opens another
            raise
        arrays = context.folder.put_all({**outcome.outputs, **outcome.presented_arrays})
        return RunResult(arrays, outcome.report, done)
