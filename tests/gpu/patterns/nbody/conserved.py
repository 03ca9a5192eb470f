"""Energy and momentum of bodies, computed in float64 by the definition."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from gpu.patterns.nbody.physics import square_softening

Array = npt.NDArray[Any]
_CHUNK = 2**18


def potential_energy(bodies: Array, softening: float) -> float:
    """Return the softened potential energy of bodies, shape (n, 7)."""
    places, masses = bodies[:, :3].astype(np.float64).T, bodies[:, 6].astype(np.float64)
    squared = float(square_softening(softening))
    total = 0.0
    step = max(1, _CHUNK // len(bodies))
    for start in range(0, len(bodies), step):
        chunk = slice(start, min(start + step, len(bodies)))
        distance = sum((axis[np.newaxis, :] - axis[chunk, np.newaxis]) ** 2 for axis in places) + squared
        shares = masses / np.sqrt(distance)
        rows = np.arange(chunk.stop - chunk.start)
        shares[rows, rows + chunk.start] = 0
        total -= float((masses[chunk] * shares.sum(axis=1)).sum())
    return total / 2


def kinetic_energy(bodies: Array) -> float:
    """Return the kinetic energy of bodies, shape (n, 7)."""
    columns = bodies.T.astype(np.float64)
    return float(sum(columns[6] @ speed**2 for speed in columns[3:6])) / 2


def momentum(bodies: Array) -> Array:
    """Return the momentum of bodies, shape (n, 7): float64, shape (3,)."""
    columns = bodies.T.astype(np.float64)
    result: Array = columns[3:6] @ columns[6]
    return result


def angular_momentum(bodies: Array) -> Array:
    """Return the angular momentum of bodies, shape (n, 7), about the origin: float64, shape (3,)."""
    x, y, z, vx, vy, vz, m = bodies.T.astype(np.float64)
    return np.array([m @ (y * vz - z * vy), m @ (z * vx - x * vz), m @ (x * vy - y * vx)])
