"""Simulation of bodies, with their state on the device between steps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from gpu.engines.base import Buffer, Engine, ExecutorChoice
from gpu.messages.bodies import BodyFigures, ConservedQuantities, compute_body_figures
from gpu.patterns.nbody.forces import FILE, ForceKernel, Motion
from gpu.patterns.nbody.physics import half_mass_radius, square_softening
from gpu.patterns.nbody.picture import BodyPicture, Painter
from gpu.patterns.nbody.presets import distance_quarters

Array = npt.NDArray[Any]

_BLOCK = 256
MOMENTS_BLOCK = _BLOCK
"""Threads per block of the kernels of `measure_moments`, one body per thread."""
_SUMS = 8
"""Sums per block: kinetic energy, momentum (3), angular momentum (3), potential energy."""


def split_bodies(bodies: Array) -> tuple[Array, Array]:
    """Split bodies of shape (n, 7) for kernels: x y z m, and vx vy vz 0; both float32 of shape (n, 4)."""
    positions, velocities = np.zeros((2, len(bodies), 4), np.float32)
    positions[:, :3], positions[:, 3], velocities[:, :3] = bodies[:, :3], bodies[:, 6], bodies[:, 3:6]
    return positions, velocities


def measure_moments(
    engine: Engine, positions: Buffer, velocities: Buffer, sums: Buffer, softening_squared: np.float32
) -> Array:
    """Measure energy, momentum and angular momentum on the device.

    They are those of the bodies with velocities, the first ones of all bodies with positions. Only the blocks' float64
    sums are downloaded.

    Parameters
    ----------
    positions : Buffer
        float32, shape (n, 4): x y z m of all bodies.
    velocities : Buffer
        float32, shape (k, 4): vx vy vz 0 of the first k bodies.
    sums : Buffer
        The buffer from `allocate_moments`; overwritten.
    softening_squared : float32
        The square of the softening length.

    Returns
    -------
    array of float64, shape (8,)
        Kinetic energy, momentum, angular momentum, and potential energy, which counts each pair twice.
    """
    own_count, total = np.int32(velocities.shape[0]), np.int32(positions.shape[0])
    module = engine.build(FILE, {"BLOCK_SIZE": _BLOCK})
    grid, block = (sums.shape[0], 1, 1), (_BLOCK, 1, 1)
    engine.launch(module.kernel("nbody_potential"), grid, block, positions, sums, total, softening_squared)
    engine.launch(module.kernel("nbody_moments"), grid, block, positions, velocities, sums, own_count)
    result: Array = engine.download(sums).sum(axis=0)
    return result


def allocate_moments(engine: Engine, bodies: int) -> Buffer:
    """Allocate the buffer that `measure_moments` needs for a number of bodies."""
    return engine.allocate((-(-bodies // _BLOCK), _SUMS), np.float64)


def total_energy(moments: Array) -> float:
    """Return the total energy from `measure_moments`."""
    total: float = moments[0] + moments[7] / 2
    return total


def conserved_quantities(moments: Array, first_energy: float) -> ConservedQuantities:
    """Return the conserved quantities from `measure_moments`, with the energy's drift from its first value."""
    kinetic, *vectors, twice = moments.tolist()
    total = total_energy(moments)
    drift = (total - first_energy) / abs(first_energy) if first_energy else 0.0
    return ConservedQuantities(kinetic, twice / 2, total, drift, (*vectors[:3],), (*vectors[3:],))


def palette_speed(bodies: Array, radius: float) -> float:
    """Return the speed for the palette's last color: twice that of a circular orbit at the half-mass radius."""
    masses = float(bodies[:, 6].sum(dtype=np.float64))
    scale: float = 2 * (max(masses, 1e-30) / radius) ** 0.5
    return scale


class BodySimulation:
    """Bodies that move by leapfrog integration (kick-drift-kick).

    Parameters
    ----------
    engine : Engine
        The engine with the state, which `close` frees.
    bodies : array of float32, shape (n, 7)
        In columns x y z vx vy vz m.
    origins : array of uint8, shape (n,), or None
        Color indices; None for quarters by distance from the center.
    """

    def __init__(self, engine: Engine, bodies: Array, origins: Array | None = None) -> None:
        self._engine = engine
        self.count = len(bodies)
        self.time = 0.0
        self.steps = 0
        self.radius = half_mass_radius(bodies)
        self._speed_scale = palette_speed(bodies, self.radius)
        positions, velocities = split_bodies(bodies)
        self._bodies = engine.upload(positions)
        self._velocities = engine.upload(velocities)
        self._accelerations = engine.allocate((self.count, 4), np.float32)
        self._origins = engine.upload(
            distance_quarters(bodies) if origins is None else np.ascontiguousarray(origins, np.uint8)
        )
        self._sums = allocate_moments(engine, self.count)
        self._painter = Painter(engine)
        self._accelerations_softening: np.float32 | None = None
        self._first_energy: tuple[np.float32, float] | None = None

    def close(self) -> None:
        """Free the device's memory."""
        self._painter.close()
        self._engine.free(self._bodies, self._velocities, self._accelerations, self._origins, self._sums)

    def accelerations(self, variant: str, softening: float, block: int | None = None) -> Array:
        """Return the current accelerations: float32, shape (n, 3)."""
        self._accelerate(ForceKernel(self._engine, variant, self.count, block), square_softening(softening))
        return self._engine.download(self._accelerations)[:, :3]

    def advance(self, variant: str, steps: int, motion: Motion) -> Iterator[int]:
        """Run time steps, and yield the number of completed ones after each."""
        forces = ForceKernel(self._engine, variant, self.count, motion.block)
        squared = square_softening(motion.softening)
        block = motion.block or _BLOCK
        module = self._engine.build(FILE, {"BLOCK_SIZE": block})
        kick_drift, kick = module.kernel("leapfrog_kick_drift"), module.kernel("leapfrog_kick")
        grid, threads, count = (-(-self.count // block), 1, 1), (block, 1, 1), np.int32(self.count)
        half, whole = np.float32(motion.time_step / 2), np.float32(motion.time_step)
        if steps and self._accelerations_softening != squared:
            self._accelerate(forces, squared)
        for step in range(steps):
            self._engine.launch(
                kick_drift,
                grid,
                threads,
                self._bodies,
                self._velocities,
                self._accelerations,
                half,
                whole,
                count,
            )
            self._accelerate(forces, squared)
            self._engine.launch(kick, grid, threads, self._velocities, self._accelerations, half, count)
            self.steps += 1
            self.time += motion.time_step
            yield step + 1

    def _accelerate(self, forces: ForceKernel, squared: np.float32) -> None:
        forces.launch(self._bodies, self._accelerations, squared)
        self._accelerations_softening = squared

    def download_bodies(self) -> Array:
        """Return the current bodies: float32, shape (n, 7), in columns x y z vx vy vz m."""
        positions, velocities = self._engine.download(self._bodies), self._engine.download(self._velocities)
        return np.concatenate([positions[:, :3], velocities[:, :3], positions[:, 3:]], axis=1)

    def measure_conserved(self, softening: float) -> ConservedQuantities:
        """Measure the conserved quantities on the device."""
        squared = square_softening(softening)
        moments = measure_moments(self._engine, self._bodies, self._velocities, self._sums, squared)
        if self._first_energy is None or self._first_energy[0] != squared:
            self._first_energy = squared, total_energy(moments)
        return conserved_quantities(moments, self._first_energy[1])

    def draw(self, settings: BodyPicture) -> Array:
        """Draw the bodies; return a picture, uint8 of shape (height, width, 3)."""
        return self._painter.draw(self._bodies, self._velocities, self._origins, settings, self._speed_scale)

    def figures(
        self,
        steps: int,
        kernel_ms: float,
        executed: ExecutorChoice,
        conserved: ConservedQuantities | None,
        measuring_ms: float = 0.0,
    ) -> BodyFigures:
        """Return the figures of the simulation after a request.

        Parameters
        ----------
        steps : int
            The time steps of the request.
        kernel_ms : float
            Milliseconds of the request's kernels.
        executed : ExecutorChoice
            The executor that ran them.
        conserved : ConservedQuantities or None
            None if they were not measured.
        measuring_ms : float
            Milliseconds in which they were measured.
        """
        return compute_body_figures(
            self.count,
            self.time,
            self.steps,
            recent_steps=steps,
            kernel_ms=kernel_ms,
            radius=self.radius,
            executor=executed.executor,
            fallback=executed.reason,
            conserved=conserved,
            measuring_ms=measuring_ms,
        )
