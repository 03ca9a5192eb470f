"""Requests to and figures of a simulation of bodies, as data for messages between processes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gpu.messages.requests import Acknowledgment, ArrayResult, Request
from gpu.messages.shared_arrays import SharedArray


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
        As in `gpu.messages.runs.pattern_runs.Report`.
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


@dataclass(frozen=True)
class BodiesResult(ArrayResult):
    """Result of advancing a simulation; the array `picture`, if requested, is uint8 (height, width, 3)."""

    figures: BodyFigures


@dataclass(frozen=True)
class PickedBody(ArrayResult):
    """Body at a position; the array `bodies` has the current bodies, as from LoadBodies.

    `number` is the body's number, or -1 if none is near.
    """

    number: int


@dataclass(frozen=True)
class LoadBodies(Request[ArrayResult]):
    """Read a file of bodies: .csv, or tipsy (.tipsy, .bin).

    The array is `bodies`: float32, shape (n, 7), in columns x y z vx vy vz m.
    """

    path: str


@dataclass(frozen=True)
class SaveBodies(Request[Acknowledgment]):
    """Write the current bodies of the simulation to a file: .csv, .tipsy, .bin or .npy."""

    path: str
    simulation: int


@dataclass(frozen=True)
class AdvanceBodies(Request[BodiesResult]):
    """Advance a simulation of bodies by `steps` time steps, then draw it.

    Parameters
    ----------
    simulation : int
        A number that the engine's process does not know starts a new simulation, of which there is one at a time; the
        same number continues it. Everything else may change between requests.
    variant : str
        Force kernel: a variant of the pattern `nbody`.
    params : mapping
        Values of the pattern's parameters; omitted ones have their defaults. `dt` and `softening` apply to these
        steps; parameters that generate bodies (`preset`, `bodies`) apply when a simulation starts.
    bodies : SharedArray or None
        Initial bodies: float32, shape (n, 7), in columns x y z vx vy vz m, from LoadBodies; None generates them from
        `params` and `seed`.
    steps : int
        0 only draws the bodies.
    width, height : int
        Size of the picture in pixels; 0 draws none.
    color : {"speed", "origin"}
        Quantity that determines the colors.
    exposure : float
        Factor of the brightness.
    measure : bool
        Whether to measure conserved quantities; the potential energy costs as much as a step.
    seed : int
        Random seed of generated bodies.
    sources : mapping of str to str
        Text of edited kernel files, by file name.
    """

    simulation: int
    variant: str
    params: Mapping[str, Any] = field(default_factory=dict)
    bodies: SharedArray | None = None
    steps: int = 1
    camera: Camera = field(default_factory=Camera)
    width: int = 0
    height: int = 0
    color: str = "speed"
    exposure: float = 1.0
    measure: bool = False
    seed: int = 0
    sources: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class PickBody(Request[PickedBody]):
    """Find the body at a position of the simulation's picture.

    Parameters
    ----------
    simulation, camera, width, height
        As in the AdvanceBodies that drew the picture.
    x, y : float
        Pixels from the picture's top left.
    """

    simulation: int
    camera: Camera
    width: int
    height: int
    x: float
    y: float


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
    **fields: Any,
) -> BodyFigures:
    """Return the figures of a simulation, with the rate of its last steps.

    Parameters
    ----------
    time : float
        Simulated time.
    steps : int
        All time steps so far.
    recent_steps : int
        The time steps that are timed.
    kernel_ms : float
        Milliseconds of their kernels.
    **fields
        The other fields of `BodyFigures`.
    """
    rate = interactions_per_s(bodies, recent_steps, kernel_ms)
    kernel_ms = kernel_ms if recent_steps else 0.0
    return BodyFigures(bodies, time, steps, kernel_ms, rate, rate * FLOPS_PER_INTERACTION / 1e9, **fields)
