"""A cluster in the engine's process that stays open between requests."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace

from gpu.distributed.cluster import Cluster, open_cluster
from gpu.distributed.cluster_settings import ClusterSettings
from gpu.distributed.cluster_simulation import ClusterSimulation
from gpu.distributed.distributed_run import count_devices, describe_devices, run_distributed
from gpu.engines import create_engine
from gpu.errors import EngineUnavailableError, KernelError
from gpu.messages.requests import AdvanceBodies, EngineRequest, PickBody, Ready, Result, RunPattern, SaveBodies
from gpu.messages.shared_arrays import SharedFolder
from gpu.patterns import find_pattern
from gpu.run.bodies import save_or_pick_bodies
from gpu.run.engine_requests import execute_request, share_arrays
from gpu.run.host_program import ProgressCallback
from gpu.run.request_inputs import open_inputs as opened_inputs
from gpu.simulator.disk import find_problem


class ClusterSession:
    """Execute requests on a cluster; requests that need no device, such as reading a file, run in this process.

    Parameters
    ----------
    settings : ClusterSettings

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

    def execute(self, request: EngineRequest, folder: SharedFolder, report_progress: ProgressCallback) -> Result:
        """Execute a request; the result's arrays are created in `folder`.

        Raises
        ------
        LockstepError
            As `run_distributed`.
        """
        match request:
            case RunPattern():
                return self._run_pattern(request, folder, report_progress)
            case AdvanceBodies():
                return self._advance(request, folder, report_progress)
            case SaveBodies() | PickBody():
                played = self._simulation
                return save_or_pick_bodies(
                    played if played and played.number == request.simulation else None, request, folder
                )
        return execute_request(self._null_engine, request, folder, report_progress)

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

    def _advance(self, request: AdvanceBodies, folder: SharedFolder, report_progress: ProgressCallback) -> Result:
        """Start or continue a simulation of bodies; there is only one at a time."""
        try:
            if self._simulation is None or self._simulation.number != request.simulation:
                self._discard_simulation()
                self._simulation = ClusterSimulation(self._ensure_open(), request)
            picture, figures = self._simulation.advance(request, report_progress)
        except EngineUnavailableError:
            self.close()
            raise
        except KernelError:
            self._discard_simulation()
            raise
        return Result({} if picture is None else {"picture": folder.put(picture)}, bodies=figures)

    def _run_pattern(self, request: RunPattern, folder: SharedFolder, report_progress: ProgressCallback) -> Result:
        pattern = find_pattern(request.pattern)
        params = pattern.check(request.params)
        inputs = pattern.prepare_inputs(opened_inputs(request.inputs, request.side), params, request.seed)
        variant = pattern.variant(request.variant)
        try:
            outcome, done = run_distributed(
                self._ensure_open(),
                pattern,
                variant,
                inputs,
                params,
                report_progress,
                chunks=request.chunks,
                sources=request.sources,
            )
        except EngineUnavailableError:
            self.close()  # the next request opens another
            raise
        return Result(share_arrays({**outcome.outputs, **outcome.presented_arrays}, folder), outcome.report, done)
