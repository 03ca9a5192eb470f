"""Simulation of bodies on a cluster: the state stays on the workers between requests; one worker draws it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from gpu.declaration.distributed import Made
from gpu.declaration.pattern import Array, Inputs, Params, Progress
from gpu.distributed.cluster import Cluster
from gpu.distributed.run import chunks_of, lengths_of, program_of
from gpu.distributed.tasks import Named, RunTasks
from gpu.messages.bodies import BodyFigures, Conserved, figures_of
from gpu.messages.distributed import DistributedRun
from gpu.messages.requests import AdvanceBodies
from gpu.patterns.nbody import divided
from gpu.patterns.nbody.forces import motion_of
from gpu.patterns.nbody.pattern import PATTERN
from gpu.patterns.nbody.physics import half_mass_radius, softening_squared
from gpu.patterns.nbody.presets import shells
from gpu.patterns.nbody.simulation import conserved, energy, speed_scale
from gpu.run.bodies import checked, inputs_of
from gpu.run.drive import Tell

_MOST_TASKS_SINCE_DIVISION = 2**12
"""Number of tasks after which bodies are gathered and divided again.

The scheduler keeps the whole history of each result, to recompute it if a worker is lost; this bounds that history.
"""


class PlayedBodies:
    """A simulation of bodies.

    Parameters
    ----------
    cluster : Cluster
    request : AdvanceBodies
        The first request, which specifies the initial bodies.

    Raises
    ------
    InputError
        If there are no such bodies.
    """

    def __init__(self, cluster: Cluster, request: AdvanceBodies) -> None:
        variant, params, _ = checked(request)
        program_of(PATTERN, variant)
        inputs = inputs_of(request, params)
        bodies = inputs["bodies"]
        self.number = request.simulation
        self.time = 0.0
        self._steps = 0
        self._count = len(bodies)
        self._radius = half_mass_radius(bodies)
        self._speed_scale = speed_scale(bodies, self._radius)
        self._origins = inputs.get("origins", shells(bodies))
        self._first_energy: tuple[np.float32, float] | None = None
        self._undistributed: Array | None = bodies
        """Bodies that the workers have not received yet."""
        self._cluster = cluster
        self._folder = ExitStack()
        self._places: list[Made] = []
        self._velocities: list[Made] = []
        self._pulls: list[Made] = []
        self._colors: list[Made] = []
        self._softened_by: np.float32 | None = None
        self._since_divided = 0
        self._tasks = RunTasks(cluster, PATTERN.name, variant.name, params, {}, (), {})

    def close(self) -> None:
        """Release all results on the workers."""
        self._tasks.close()
        self._folder.close()

    def advance(self, request: AdvanceBodies, tell: Tell) -> tuple[Array | None, BodyFigures]:
        """Execute a request's steps; return the picture, if one is requested, and the figures.

        If the request fails or is canceled, the bodies stay as they were.

        Raises
        ------
        InputError
            If the request is invalid, or its variant runs on one device only.
        LockstepError
            As `RunTasks.wait`.
        """
        variant, params, drawn = checked(request)
        divided.refuse(variant.name, request.steps, len(self._cluster.workers))
        motion = motion_of(params)
        squared = softening_squared(motion.softening)
        if self._since_divided > _MOST_TASKS_SINCE_DIVISION:
            self._undistributed = self.bodies(tell)
        tasks = self._restart_tasks(variant.name, params, request.sources)
        places, velocities, pulls = self._places, self._velocities, self._pulls
        requested: dict[str, Made] = {}
        if request.measure and not self._steps:
            requested["begun"] = divided.measured(tasks, places, velocities)  # the baseline of the drift
        if request.steps and self._softened_by != squared:
            pulls = [each["pulls"] for each in divided.pulled(tasks, places)]
        for _ in range(request.steps):
            places, velocities, pulls = divided.moved(tasks, places, velocities, pulls)
        if request.measure and (self._steps or request.steps):
            requested["ended"] = divided.measured(tasks, places, velocities)
        if drawn:
            picture = divided.BodyPicture(
                request.camera, request.width, request.height, request.color, request.exposure, self._speed_scale
            )
            requested["picture"] = tasks.make(divided.draw_bodies, places, velocities, self._colors, picture)
        if not requested:
            requested["nothing"] = tasks.make(divided.all_are_there, velocities)
        arrays = self._wait([*requested.values()], _count_steps(tell, request.steps), places, velocities, pulls)
        results = dict(zip(requested, arrays, strict=True))
        self._places, self._velocities, self._pulls = places, velocities, pulls
        self._steps += request.steps
        self.time += request.steps * motion.time_step
        self._since_divided += tasks.count
        if request.steps:
            self._softened_by = squared
        if tasks.news.lost:
            self._cluster.look()
        done = DistributedRun(self._cluster.workers, tuple(tasks.news.records), (), 0.0, 0)
        figures = figures_of(
            self._count,
            self.time,
            self._steps,
            lately=request.steps,
            kernel_ms=done.times_of(*divided.MOVING).kernel,
            radius=self._radius,
            executor=self._cluster.workers[0].device.executor,
            conserved=self._conserved_quantities(squared, results) if request.measure else None,
            measuring_ms=done.times_of(*divided.MEASURING).kernel,
        )
        return results.get("picture"), figures

    def bodies(self, tell: Tell = lambda progress: None) -> Array:
        """Return the current bodies: float32, shape (n, 7), in columns x y z vx vy vz m."""
        tasks = self._restart_tasks(self._tasks.variant, self._tasks.params, {})
        parts: list[Made] = [
            tasks.make(divided.bodies_of, *of_chunk, place=place)
            for place, of_chunk in enumerate(zip(self._places, self._velocities, strict=True))
        ]
        return np.concatenate(self._wait(parts, tell, self._places, self._velocities, self._pulls))

    def _wait(
        self, requested: list[Made], tell: Tell, places: list[Made], velocities: list[Made], pulls: list[Made]
    ) -> list[Array]:
        """Return results; the new state of the bodies stays on the workers, or if this fails the old state."""
        for each in _task_results(places):
            each.goes_elsewhere()  # every worker needs all positions in the next step
        kept = _task_results([*places, *velocities, *pulls, *self._colors])
        try:
            found = self._tasks.wait(_task_results(requested), tell, kept)
        except BaseException:
            self._tasks.keep_only(_task_results([*self._places, *self._velocities, *self._pulls, *self._colors]))
            raise
        self._undistributed = None
        return found

    def _conserved_quantities(self, squared: np.float32, results: dict[str, Array]) -> Conserved:
        for name in ("begun", "ended"):
            if name in results and (self._first_energy is None or self._first_energy[0] != squared):
                self._first_energy = squared, energy(results[name][0])
        assert self._first_energy is not None
        return conserved(results["ended" if "ended" in results else "begun"][0], self._first_energy[1])

    def _restart_tasks(self, variant: str, params: Params, sources: Mapping[str, str]) -> RunTasks:
        self._tasks.go_on(variant, params, sources)
        if self._undistributed is not None:
            self._divide(self._undistributed)
        return self._tasks

    def _divide(self, bodies: Array) -> None:
        """Distribute bodies to the workers."""
        self._folder.close()
        shared = self._cluster.shared
        name = self._folder.enter_context(tempfile.TemporaryDirectory(dir=shared or None, ignore_cleanup_errors=True))
        inputs: Inputs = {"bodies": bodies, "origins": self._origins}
        lengths = lengths_of(self._count, (), len(self._cluster.workers))
        program, folder = PATTERN.over_devices(), Path(name) if shared else None
        self._tasks.divide(chunks_of(program, inputs, self._tasks.params, inputs, {}, lengths, folder))
        self._places, self._velocities = divided.taken(self._tasks)
        self._colors = [
            self._tasks.make(divided.origins_of, chunk, place=place) for place, chunk in enumerate(self._tasks.chunks)
        ]
        self._pulls, self._softened_by, self._since_divided = [], None, 0


def _task_results(made: Iterable[Made]) -> list[Named]:
    return [each for each in made if isinstance(each, Named)]


def _count_steps(tell: Tell, steps: int) -> Tell:
    """Return a callback that reports progress in steps instead of tasks."""

    def report_steps(progress: Progress) -> None:
        if progress.fraction is not None:
            progress = Progress(progress.fraction, f"step {int(progress.fraction * steps)} of {steps}")
        tell(progress)

    return report_steps
