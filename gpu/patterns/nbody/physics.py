"""Gravity in float64 on the CPU, and what it conserves: what the kernels are compared with. G is 1."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from gpu.declaration.rounding import UNIT

Array = npt.NDArray[Any]

SMALLEST_SOFTENING = 1e-10
"""What stands for a softening of 0: a body's pull on itself must be 0, not 0/0, and its cube still fits a float32."""

_CHUNK = 2**18
_VERIFIED_PAIRS = 2**22
_VERIFIED_BODIES = 32

_SMALL = 4
"""Terms of so many half units in the sum's last place, and more, are rounded up as often as down."""


def probes(n: int) -> Array:
    """Return the numbers of the bodies whose accelerations are verified: all where there are not too many for it."""
    count = min(n, max(_VERIFIED_BODIES, _VERIFIED_PAIRS // n))
    return np.arange(count, dtype=np.int64) * n // count


def softening_squared(softening: float) -> np.float32:
    """Return the square as the kernels take it."""
    return np.float32(max(softening, SMALLEST_SOFTENING) ** 2)


def accelerations(bodies: Array, targets: Array, softening: float) -> tuple[Array, Array, Array]:
    """Return the accelerations of some bodies by all, and for each the sum of the magnitudes that were added.

    The third is what a sum in float32 may lose of terms that are small beside it. One below some units in the last
    place of the sum is not rounded as often up as down: many alike are all rounded the same way, in the end to
    nothing. Each is off by half such a unit at most, and by no more than itself.

    Parameters
    ----------
    bodies : array of shape (n, 7)
        Columns x y z vx vy vz m.
    targets : array of int
        Numbers of the bodies whose accelerations are wanted.
    softening : float

    Returns
    -------
    array of float64, shape (targets, 3)
    array of float64, shape (targets,)
    array of float64, shape (targets,)
    """
    places, masses = _columns(bodies)[:3], _columns(bodies)[6]
    found, magnitudes, lost = np.empty((len(targets), 3)), np.empty(len(targets)), np.empty(len(targets))
    squared = float(softening_squared(softening))
    step = max(1, _CHUNK // len(bodies))
    for start in range(0, len(targets), step):
        some = targets[start : start + step]
        away = [axis[np.newaxis, :] - axis[some, np.newaxis] for axis in places]
        pull = away[0] ** 2 + away[1] ** 2 + away[2] ** 2 + squared
        magnitude = masses * (pull - squared) ** 0.5
        pull **= -1.5
        magnitude *= pull
        magnitudes[start : start + step] = total = magnitude.sum(axis=1)
        half_unit = UNIT * total[:, np.newaxis]
        off = np.minimum(magnitude, half_unit)
        lost[start : start + step] = off.sum(axis=1, where=magnitude < _SMALL * half_unit)
        pull *= masses
        for column, axis in enumerate(away):
            found[start : start + step, column] = (axis * pull).sum(axis=1)
    return found, magnitudes, lost


def potential_energy(bodies: Array, softening: float) -> float:
    """Return the softened potential energy of bodies, shape (n, 7)."""
    places, masses = bodies[:, :3].astype(np.float64).T, bodies[:, 6].astype(np.float64)
    squared = float(softening_squared(softening))
    total = 0.0
    step = max(1, _CHUNK // len(bodies))
    for start in range(0, len(bodies), step):
        some = slice(start, min(start + step, len(bodies)))
        distance = sum((axis[np.newaxis, :] - axis[some, np.newaxis]) ** 2 for axis in places) + squared
        shares = masses / np.sqrt(distance)
        rows = np.arange(some.stop - some.start)
        shares[rows, rows + some.start] = 0
        total -= float((masses[some] * shares.sum(axis=1)).sum())
    return total / 2


def kinetic_energy(bodies: Array) -> float:
    """Return the kinetic energy of bodies, shape (n, 7)."""
    columns = _columns(bodies)
    return float(sum(columns[6] @ speed**2 for speed in columns[3:6])) / 2


def momentum(bodies: Array) -> Array:
    """Return the momentum of bodies, shape (n, 7): float64, shape (3,)."""
    columns = _columns(bodies)
    result: Array = columns[3:6] @ columns[6]
    return result


def angular_momentum(bodies: Array) -> Array:
    """Return the angular momentum of bodies, shape (n, 7), about the origin: float64, shape (3,)."""
    x, y, z, vx, vy, vz, m = _columns(bodies)
    return np.array([m @ (y * vz - z * vy), m @ (z * vx - x * vz), m @ (x * vy - y * vx)])


def _columns(bodies: Array) -> Array:
    """Return float64 of shape (7, n): NumPy is fast along the last axis."""
    return np.ascontiguousarray(bodies.T, np.float64)


def half_mass_radius(bodies: Array) -> float:
    """Return the distance from the center of mass within which half of the bodies, shape (n, 7), are; never 0."""
    places = bodies[:, :3].astype(np.float64)
    masses = bodies[:, 6].astype(np.float64)
    center = masses @ places / masses.sum() if masses.sum() > 0 else places.mean(axis=0)
    return float(np.median(np.sqrt(((places - center) ** 2).sum(axis=1)))) or 1.0
