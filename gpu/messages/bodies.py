"""Requests to and figures of a simulation of bodies, as data for messages between processes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Camera:
    """Camera of a picture of bodies: `distance` away from `target`, looking at it.

    Parameters
    ----------
    yaw, pitch : float
        Radians around the vertical (z) axis, and above the horizontal plane. At 0, 0 the camera looks along +y, with x
        to the right and z up.
    distance : float
        From the target, in units of length.
    target : tuple of float
        The point at the picture's center.
    """

    yaw: float = 0.0
    pitch: float = 0.6
    distance: float = 5.0
    target: tuple[float, float, float] = (0.0, 0.0, 0.0)


@dataclass(frozen=True)
class ConservedQuantities:
    """Quantities that gravity conserves, so any change is an error of the integration; in units where G is 1.

    Parameters
    ----------
    kinetic, potential, total : float
        Energies; the potential energy uses the same softening as the forces.
    drift : float
        Relative change of the total energy since its first measurement with this softening: (E - E0) / |E0|.
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
        Simulated time since the beginning.
    steps : int
        Steps since the beginning.
    kernel_ms : float
        Duration of this request's steps on the device; 0 without steps.
    interactions_per_s, gflops : float
        Rates of this request's steps, with `FLOPS_PER_INTERACTION`; 0 without steps.
    radius : float
        Distance from the center of mass that contained half of the bodies when the simulation began; the initial
        camera depends on it.
    executor, fallback : str
        As in `gpu.messages.requests.Report`.
    conserved : ConservedQuantities or None
        None if not requested.
    measuring_ms : float
        Duration of that measurement, after the steps; 0 if not requested.
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
    conserved: ConservedQuantities | None = None
    measuring_ms: float = 0.0


def interactions_per_s(bodies: int, steps: int, kernel_ms: float) -> float:
    """Return the interactions per second of some steps; 0 if there were none."""
    return steps * bodies**2 / (kernel_ms / 1e3) if steps and kernel_ms > 0 else 0.0


FLOPS_PER_INTERACTION = 20
"""Operations per interaction of two bodies by the convention of the field, whatever a kernel executes."""


def compute_body_figures(
    bodies: int,
    time: float,
    steps: int,
    *,
    recent_steps: int,
    kernel_ms: float,
    radius: float,
    executor: str,
    **fields: Any,
) -> BodyFigures:
    """Return the figures of a simulation, with the rate of its last steps.

    Parameters
    ----------
    bodies : int
        The number of bodies.
    time : float
        Simulated time.
    steps : int
        All time steps so far.
    recent_steps : int
        The time steps that are timed.
    kernel_ms : float
        Milliseconds of their kernels.
    radius : float
        The half-mass radius.
    executor : str
        The executor that ran the kernels.
    **fields
        Further fields of `BodyFigures`.
    """
    rate = interactions_per_s(bodies, recent_steps, kernel_ms)
    kernel_ms = kernel_ms if recent_steps else 0.0
    gflops = rate * FLOPS_PER_INTERACTION / 1e9
    return BodyFigures(bodies, time, steps, kernel_ms, rate, gflops, radius, executor, **fields)
