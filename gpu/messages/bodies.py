"""What is asked of a simulation of bodies, and what is known of it: plain data that crosses processes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Camera:
    """Where a picture of bodies is taken from: `distance` away from `target`, looking at it.

    Parameters
    ----------
    yaw, pitch : float
        Radians around the vertical (z) axis, and above the horizontal plane. At 0, 0 one looks along +y, x to the right
        and z up.
    distance : float
        From the target, in units of length.
    target : tuple of float
        The point in the middle of the picture.
    """

    yaw: float = 0.0
    pitch: float = 0.6
    distance: float = 5.0
    target: tuple[float, float, float] = (0.0, 0.0, 0.0)


@dataclass(frozen=True)
class Conserved:
    """What gravity keeps as it is, so that any change is the integration's error. All are in units where G is 1.

    Parameters
    ----------
    kinetic, potential, total : float
        Energies; the potential one is softened as the forces are.
    drift : float
        How far the total energy went since it was first measured with this softening: (E - E0) / |E0|.
    momentum, angular_momentum : tuple of float
        Vectors; the angular momentum is about the origin.
    """

    kinetic: float
    potential: float
    total: float
    drift: float
    momentum: tuple[float, float, float]
    angular_momentum: tuple[float, float, float]


@dataclass(frozen=True)
class BodyFigures:
    """Figures of a simulation after a request.

    Parameters
    ----------
    bodies : int
    time : float
        Simulated since the beginning.
    steps : int
        Done since the beginning.
    kernel_ms : float
        What this request's steps took on the device; 0 where it asked for none.
    interactions_per_s, gflops : float
        Of this request's steps, at `FLOPS_PER_INTERACTION`; 0 where it asked for none.
    radius : float
        Half of the bodies were within this distance of their center of mass when the simulation began: what a first
        camera goes by.
    executor, fallback : str
        As of a `gpu.messages.requests.Report`.
    conserved : Conserved or None
        Where it was to be measured.
    measuring_ms : float
        What that took, after the steps; 0 where it was not asked for.
    """

    bodies: int
    time: float
    steps: int
    kernel_ms: float
    interactions_per_s: float
    gflops: float
    radius: float
    executor: str
    fallback: str = ""
    conserved: Conserved | None = None
    measuring_ms: float = 0.0


def interactions_per_s(bodies: int, steps: int, kernel_ms: float) -> float:
    """Return how many interactions a second so many steps came to; 0 where there was none."""
    return steps * bodies**2 / (kernel_ms / 1e3) if steps and kernel_ms > 0 else 0.0


FLOPS_PER_INTERACTION = 20
"""What the field counts for one body's pull on another, whatever it takes."""


def figures_of(
    bodies: int, time: float, steps: int, *, lately: int, kernel_ms: float, radius: float, executor: str, **others: Any
) -> BodyFigures:
    """Return the figures of a simulation whose last steps, `lately` of them, took `kernel_ms`."""
    rate = interactions_per_s(bodies, lately, kernel_ms)
    kernel_ms = kernel_ms if lately else 0.0
    gflops = rate * FLOPS_PER_INTERACTION / 1e9
    return BodyFigures(bodies, time, steps, kernel_ms, rate, gflops, radius, executor, **others)
