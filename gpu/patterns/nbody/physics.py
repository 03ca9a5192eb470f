"""Gravity in float64 on the CPU, the reference for the kernels, and its conserved quantities. G is 1."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from gpu.declaration.rounding import UNIT

Array = npt.NDArray[Any]

MIN_SOFTENING = 1e-10
"""Replaces a softening of 0, so that a body's force on itself is 0, not 0/0; its cube still fits float32."""

_CHUNK = 2**18
_VERIFIED_PAIRS = 2**22
_VERIFIED_BODIES = 32

_SMALL_TERM_HALF_UNITS = 4
"""Terms of at least this many half units in the last place of the sum are rounded up as often as down."""


def verified_bodies(n: int) -> Array:
    """Return the indices of the bodies for verification: all, unless there are too many."""
    count = min(n, max(_VERIFIED_BODIES, _VERIFIED_PAIRS // n))
    return np.arange(count, dtype=np.int64) * n // count


def square_softening(softening: float) -> np.float32:
    """Return the squared softening for the kernels."""
    return np.float32(max(softening, MIN_SOFTENING) ** 2)


def compute_accelerations(bodies: Array, targets: Array, softening: float) -> tuple[Array, Array, Array]:
    """Return accelerations of some bodies by all, the sums of the terms' magnitudes, and bounds of lost terms.

    The third result bounds the loss of terms that are small relative to their float32 sum. Terms below some units in
    the last place of the sum are not rounded up as often as down: many similar ones may all be rounded to nothing. The
    error of each is at most half such a unit, and at most the term.

    Parameters
    ----------
    bodies : array of shape (n, 7)
        Columns x y z vx vy vz m.
    targets : array of int
        Indices of the bodies to compute accelerations of.

    Returns
    -------
    array of float64, shape (targets, 3)
    array of float64, shape (targets,)
    array of float64, shape (targets,)
    """
    places, masses = _columns(bodies)[:3], _columns(bodies)[6]
    result, magnitudes, lost = np.empty((len(targets), 3)), np.empty(len(targets)), np.empty(len(targets))
    squared = float(square_softening(softening))
    step = max(1, _CHUNK // len(bodies))
    for start in range(0, len(targets), step):
        chunk = targets[start : start + step]
        away = [axis[np.newaxis, :] - axis[chunk, np.newaxis] for axis in places]
        pull = away[0] ** 2 + away[1] ** 2 + away[2] ** 2 + squared
        magnitude = masses * (pull - squared) ** 0.5
        pull **= -1.5
        magnitude *= pull
        magnitudes[start : start + step] = total = magnitude.sum(axis=1)
        half_unit = UNIT * total[:, np.newaxis]
        loss = np.minimum(magnitude, half_unit)
        lost[start : start + step] = loss.sum(axis=1, where=magnitude < _SMALL_TERM_HALF_UNITS * half_unit)
        pull *= masses
        for column, axis in enumerate(away):
            result[start : start + step, column] = (axis * pull).sum(axis=1)
    return result, magnitudes, lost


def _columns(bodies: Array) -> Array:
    """Return the columns as float64 of shape (7, n), as NumPy is fast along the last axis."""
    return np.ascontiguousarray(bodies.T, np.float64)


def half_mass_radius(bodies: Array) -> float:
    """Return the radius around the center of mass that contains half of the bodies, shape (n, 7); never 0."""
    places = bodies[:, :3].astype(np.float64)
    masses = bodies[:, 6].astype(np.float64)
    center = masses @ places / masses.sum() if masses.sum() > 0 else places.mean(axis=0)
    return float(np.median(np.sqrt(((places - center) ** 2).sum(axis=1)))) or 1.0
