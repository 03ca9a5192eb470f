"""A cluster in the engine's process that stays open between requests."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace

from gpu.distributed.asked import Asked
from gpu.distributed.cluster import Cluster, opened
from gpu.distributed.played import PlayedBodies
from gpu.distributed.run import devices_of, devices_text, run_distributed
from gpu.engines import create
from gpu.errors import EngineUnavailableError, KernelError
from gpu.messages.requests import AdvanceBodies, EngineRequest, PickBody, Ready, Result, RunPattern, SaveBodies
from gpu.messages.shared_arrays import SharedFolder
from gpu.patterns import find_pattern
from gpu.run.bodies import look_at
from gpu.run.drive import Tell
from gpu.run.execute import execute, share_arrays
from gpu.run.sized import opened as opened_inputs
from gpu.simulator.disk import complaint


class ClusterSession:
    """Execute requests on a cluster; requests that need no device, such as reading a file, run in this process.

    Parameters
    ----------
    asked : Asked

    Raises
    ------
    InputError
        If the address is malformed or certificates cannot be read.
    EngineUnavailableError
        If Dask is not installed, no scheduler answers at the address, or a worker has no engine.
    """

    def __init__(self, asked: Asked) -> None:
        self._asked = asked
        self._exit_stack = ExitStack()
        self._files = create("null")
        self._cluster: Cluster | None = None
        self._played: PlayedBodies | None = None
        self._open()

    @property
    def ready(self) -> Ready:
        """Description of the cluster."""
        cluster = self._open()
        one = cluster.workers[0].device
        device = replace(one, name=devices_text(cluster), peak_gflops=one.peak_gflops * devices_of(cluster.workers))
        return Ready(device, complaint(), cluster.workers, cluster.dashboard)

    def execute(self, request: EngineRequest, folder: SharedFolder, tell: Tell) -> Result:
        """Execute a request; the result's arrays are created in `folder`.

        Raises
        ------
        LockstepError
            As `run_distributed`.
        """
        match request:
            case RunPattern():
                return self._run(request, folder, tell)
            case AdvanceBodies():
                return self._advance(request, folder, tell)
            case SaveBodies() | PickBody():
                played = self._played
                return look_at(played if played and played.number == request.simulation else None, request, folder)
        return execute(self._files, request, folder, tell)

    def close(self) -> None:
        """Stop a cluster on this machine, or disconnect from another."""
        self._forget_bodies()
        self._cluster = None
        self._exit_stack.close()

    def _open(self) -> Cluster:
        if self._cluster is None:
            self._cluster = self._exit_stack.enter_context(opened(self._asked))
        return self._cluster

    def _forget_bodies(self) -> None:
        played, self._played = self._played, None
        if played is not None:
            played.close()

    def _advance(self, request: AdvanceBodies, folder: SharedFolder, tell: Tell) -> Result:
        """Start or continue a simulation of bodies; there is only one at a time."""
        try:
            if self._played is None or self._played.number != request.simulation:
                self._forget_bodies()
                self._played = PlayedBodies(self._open(), request)
            picture, figures = self._played.advance(request, tell)
        except EngineUnavailableError:
            self.close()
            raise
        except KernelError:
            self._forget_bodies()
            raise
        return Result({} if picture is None else {"picture": folder.put(picture)}, bodies=figures)

    def _run(self, request: RunPattern, folder: SharedFolder, tell: Tell) -> Result:
        pattern = find_pattern(request.pattern)
        params = pattern.check(request.params)
        inputs = pattern.inputs(opened_inputs(request.inputs, request.side), params, request.seed)
        variant = pattern.variant(request.variant)
        try:
            outcome, done = run_distributed(
                self._open(),
                pattern,
                variant,
                inputs,
                params,
                tell,
                chunks=request.chunks,
                sources=request.sources,
            )
        except EngineUnavailableError:
            self.close()  # the next request opens another
            raise
        return Result(share_arrays({**outcome.outputs, **outcome.presented}, folder), outcome.report, done)
