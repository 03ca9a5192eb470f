"""Simulation of bodies on a cluster: the state stays on the workers between requests; one worker draws it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from gpu.declaration.distributed_program import FutureResult
from gpu.declaration.pattern import Array, Inputs, Params, Progress
from gpu.distributed.cluster.dask_cluster import Cluster
from gpu.distributed.distributed_run import compute_chunk_lengths, divide_input, find_distributed_program
from gpu.distributed.tasks import NamedResult, RunTasks
from gpu.messages.bodies import AdvanceBodies, BodyFigures, ConservedQuantities, compute_body_figures
from gpu.messages.runs.distributed_run import DistributedRun
from gpu.patterns.nbody import multi_device
from gpu.patterns.nbody.forces import motion_from_params
from gpu.patterns.nbody.pattern import PATTERN
from gpu.patterns.nbody.physics import half_mass_radius, square_softening
from gpu.patterns.nbody.presets import distance_quarters
from gpu.patterns.nbody.simulation import conserved_quantities, palette_speed, total_energy
from gpu.run.handlers.bodies import build_initial_inputs, check_advance_request
from gpu.run.host_program import ProgressCallback
from gpu.run.workload import Workload

_MAX_TASKS_SINCE_DIVISION = 2**12
"""Number of tasks after which bodies are gathered and divided again.

The scheduler keeps the whole history of each result, to recompute it if a worker is lost; this bounds that history.
"""


class ClusterSimulation:
    """A simulation of bodies whose state stays on a cluster's workers between requests.

    Parameters
    ----------
    request : AdvanceBodies
        The first request, which specifies the initial bodies.

    Raises
    ------
    InputError
        If the request is invalid, or its variant does not support several devices.
    """

    def __init__(self, cluster: Cluster, request: AdvanceBodies) -> None:
        variant, params, _ = check_advance_request(request)
        find_distributed_program(PATTERN, variant)
        inputs = build_initial_inputs(request, params)
        bodies = inputs["bodies"]
        self.number = request.simulation
        self.time = 0.0
        self._steps = 0
        self._count = len(bodies)
        self._radius = half_mass_radius(bodies)
        self._speed_scale = palette_speed(bodies, self._radius)
        self._origins = inputs.get("origins", distance_quarters(bodies))
        self._initial_energy: tuple[np.float32, float] | None = None
        self._undistributed_bodies: Array | None = bodies
        """Bodies that the workers have not received yet."""
        self._cluster = cluster
        self._folder = ExitStack()
        self._positions: list[FutureResult] = []
        self._velocities: list[FutureResult] = []
        self._accelerations: list[FutureResult] = []
        self._color_origins: list[FutureResult] = []
        self._last_squared_softening: np.float32 | None = None
        self._tasks_since_division = 0
        self._tasks = RunTasks(cluster, Workload(PATTERN, variant, {}, params), (), {})

    def close(self) -> None:
        """Release all results on the workers."""
        self._tasks.close()
        self._folder.close()

    def advance(self, request: AdvanceBodies, report_progress: ProgressCallback) -> tuple[Array | None, BodyFigures]:
        """Execute a request's steps; return the picture, if one is requested, and the figures.

        If the request fails or is canceled, the bodies stay as they were.

        Raises
        ------
        InputError
            If the request is invalid, or its variant runs on one device only.
        LockstepError
            As for `RunTasks.wait_for_results`.
        """
        variant, params, picture = check_advance_request(request)
        multi_device.check_run(variant.name, request.steps, len(self._cluster.workers))
        motion = motion_from_params(params)
        squared = square_softening(motion.softening)
        if self._tasks_since_division > _MAX_TASKS_SINCE_DIVISION:
            self._undistributed_bodies = self.download_bodies(report_progress)
        tasks = self._restart_tasks(variant.name, params, request.sources)
        positions, velocities, accelerations = self._positions, self._velocities, self._accelerations
        requested: dict[str, FutureResult] = {}
        if request.measure and not self._steps:
            # The baseline of the drift.
            requested["begun"] = multi_device.add_measuring_tasks(tasks, positions, velocities)
        if request.steps and self._last_squared_softening != squared:
            accelerations = [forces["acceleration buffer"] for forces in multi_device.add_force_tasks(tasks, positions)]
        for _ in range(request.steps):
            positions, velocities, accelerations = multi_device.add_time_step_tasks(
                tasks, positions, velocities, accelerations
            )
        if request.measure and (self._steps or request.steps):
            requested["ended"] = multi_device.add_measuring_tasks(tasks, positions, velocities)
        if picture is not None:
            requested["picture"] = tasks.add_task(
                multi_device.draw_bodies, positions, velocities, self._color_origins, picture, self._speed_scale
            )
        if not requested:
            requested["nothing"] = tasks.add_task(multi_device.wait_for_chunks, velocities)
        report_step = _report_in_steps(report_progress, request.steps)
        arrays = self._wait_for_results([*requested.values()], report_step, positions, velocities, accelerations)
        results = dict(zip(requested, arrays, strict=True))
        self._positions, self._velocities, self._accelerations = positions, velocities, accelerations
        self._steps += request.steps
        self.time += request.steps * motion.time_step
        self._tasks_since_division += tasks.task_count
        if request.steps:
            self._last_squared_softening = squared
        if tasks.event_log.lost_workers:
            self._cluster.update_workers()
        conserved = self._conserved_quantities(squared, results) if request.measure else None
        return results.get("picture"), self._compute_figures(request.steps, conserved)

    def _compute_figures(self, recent_steps: int, conserved: ConservedQuantities | None) -> BodyFigures:
        """Return the figures after a request's steps, with the times of its tasks."""
        distributed_run = DistributedRun(self._cluster.workers, tuple(self._tasks.event_log.records), (), 0.0, 0)
        return compute_body_figures(
            self._count,
            self.time,
            self._steps,
            recent_steps=recent_steps,
            kernel_ms=distributed_run.phase_times(*multi_device.TIME_STEP_NAMES).kernel,
            radius=self._radius,
            executor=self._cluster.workers[0].device.executor,
            conserved=conserved,
            measuring_ms=distributed_run.phase_times(*multi_device.MEASURING_STEP_NAMES).kernel,
        )

    def download_bodies(self, report_progress: ProgressCallback = lambda progress: None) -> Array:
        """Return the current bodies: float32, shape (n, 7), in columns x y z vx vy vz m."""
        tasks = self._restart_tasks(self._tasks.variant, self._tasks.params, {})
        parts: list[FutureResult] = [
            tasks.add_task(multi_device.download_bodies, *chunk_state, chunk_index=index)
            for index, chunk_state in enumerate(zip(self._positions, self._velocities, strict=True))
        ]
        return np.concatenate(
            self._wait_for_results(parts, report_progress, self._positions, self._velocities, self._accelerations)
        )

    def _wait_for_results(
        self,
        requested_results: list[FutureResult],
        report_progress: ProgressCallback,
        positions: list[FutureResult],
        velocities: list[FutureResult],
        accelerations: list[FutureResult],
    ) -> list[Array]:
        """Return results; the new state of the bodies stays on the workers, or if this fails the old state."""
        for named_result in _list_named_results(positions):
            named_result.mark_used_remotely()  # every worker needs all positions in the next step
        persistent_results = _list_named_results([*positions, *velocities, *accelerations, *self._color_origins])
        try:
            arrays = self._tasks.wait_for_results(
                _list_named_results(requested_results), report_progress, persistent_results
            )
        except BaseException:
            self._tasks.release_other_results(
                _list_named_results([*self._positions, *self._velocities, *self._accelerations, *self._color_origins])
            )
            raise
        self._undistributed_bodies = None
        return arrays

    def _conserved_quantities(self, squared: np.float32, results: dict[str, Array]) -> ConservedQuantities:
        for name in ("begun", "ended"):
            if name in results and (self._initial_energy is None or self._initial_energy[0] != squared):
                self._initial_energy = squared, total_energy(results[name][0])
        assert self._initial_energy is not None
        return conserved_quantities(results["ended" if "ended" in results else "begun"][0], self._initial_energy[1])

    def _restart_tasks(self, variant: str, params: Params, sources: Mapping[str, str]) -> RunTasks:
        self._tasks.restart(variant, params, sources)
        if self._undistributed_bodies is not None:
            self._distribute_bodies(self._undistributed_bodies)
        return self._tasks

    def _distribute_bodies(self, bodies: Array) -> None:
        """Distribute bodies to the workers."""
        self._folder.close()
        shared = self._cluster.shared_folder
        name = self._folder.enter_context(tempfile.TemporaryDirectory(dir=shared or None, ignore_cleanup_errors=True))
        inputs: Inputs = {"bodies": bodies, "origins": self._origins}
        lengths = compute_chunk_lengths(self._count, (), len(self._cluster.workers))
        program, folder = PATTERN.require_distributed(), Path(name) if shared else None
        self._tasks.replace_chunks(divide_input(program, inputs, self._tasks.params, inputs, {}, lengths, folder))
        self._positions, self._velocities = multi_device.add_upload_tasks(self._tasks)
        self._color_origins = [
            self._tasks.add_task(multi_device.select_origins, chunk, chunk_index=index)
            for index, chunk in enumerate(self._tasks.chunks)
        ]
        self._accelerations, self._last_squared_softening, self._tasks_since_division = [], None, 0


def _list_named_results(results: Iterable[FutureResult]) -> list[NamedResult]:
    return [result for result in results if isinstance(result, NamedResult)]


def _report_in_steps(report_progress: ProgressCallback, steps: int) -> ProgressCallback:
    """Return a callback that reports progress in steps instead of tasks."""

    def report_steps(progress: Progress) -> None:
        if progress.fraction is not None:
            progress = Progress(progress.fraction, f"step {int(progress.fraction * steps)} of {steps}")
        report_progress(progress)

    return report_steps
