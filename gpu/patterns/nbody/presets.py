"""Generators of initial bodies, from a seed. G is 1; each preset has its own units."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

_G = np.random.Generator

# Masses in suns, semi-major axes in astronomical units, eccentricities, inclinations and mean longitudes in degrees
# (J2000): E. M. Standish, Keplerian Elements for Approximate Positions of the Major Planets, JPL.
_PLANETS = (
    (1.6601e-7, 0.38710, 0.20564, 7.005, 252.25, 77.46, 48.33),
    (2.4478e-6, 0.72334, 0.00678, 3.395, 181.98, 131.60, 76.68),
    (3.0404e-6, 1.00000, 0.01671, 0.000, 100.46, 102.94, 0.00),
    (3.2272e-7, 1.52371, 0.09339, 1.850, -4.55, -23.94, 49.56),
    (9.5479e-4, 5.20289, 0.04839, 1.304, 34.40, 14.73, 100.47),
    (2.8589e-4, 9.53668, 0.05386, 2.486, 49.95, 92.60, 113.66),
    (4.3662e-5, 19.18916, 0.04726, 0.773, 313.24, 170.95, 74.02),
    (5.1514e-5, 30.06992, 0.00859, 1.770, -55.12, 44.96, 131.78),
)


def cube(n: int, rng: _G) -> Array:
    """Return bodies at rest, uniformly distributed in a cube with an edge of 2; their total mass is 1."""
    return _make_bodies(rng.uniform(-1, 1, (n, 3)), np.zeros((n, 3)))


def plummer(n: int, rng: _G) -> Array:
    """Return a Plummer sphere in equilibrium, of mass 1 and scale length 1.

    Speeds are drawn as in Aarseth, Henon, Wielen, A Comparison of Numerical Methods for the Study of Star Cluster
    Dynamics, Astronomy and Astrophysics 37 (1974). The outermost hundredth of the mass is left out.
    """
    radii = (rng.uniform(0, 0.99, n) ** (-2 / 3) - 1) ** -0.5
    positions = _random_directions(n, rng) * radii[:, np.newaxis]
    fractions = np.zeros(n)
    pending = np.arange(n)
    while pending.size:  # rejection sampling of the fraction q of the escape speed, with density q^2 (1 - q^2)^(7/2)
        candidates = rng.uniform(0, 1, pending.size)
        accepted = rng.uniform(0, 0.1, pending.size) < candidates**2 * (1 - candidates**2) ** 3.5
        fractions[pending[accepted]] = candidates[accepted]
        pending = pending[~accepted]
    escape = 2**0.5 * (1 + radii**2) ** -0.25
    return _make_bodies(positions, _random_directions(n, rng) * (fractions * escape)[:, np.newaxis])


def galaxies(n: int, rng: _G) -> Array:
    """Return two disc galaxies that fall toward each other: the first two thirds of the bodies, and the rest.

    In each, a third of the bodies form a halo and bulge (a Plummer sphere with 85% of the mass), and the others a cold
    exponential disc in it. The larger one has mass 1 and a disc scale length of 0.35.
    """
    larger = _larger_galaxy_size(n)
    first = _make_galaxy(larger, 1.0, 1.0, rng)
    if n == larger:
        return first
    second = _make_galaxy(n - larger, 0.5, 0.7, rng)
    for galaxy, tilt, turn in ((first, 0.3, 0.0), (second, -1.1, 0.8)):
        rotation = _rotation_matrix(tilt, turn).astype(np.float32)
        galaxy[:, :3] = galaxy[:, :3] @ rotation.T
        galaxy[:, 3:6] = galaxy[:, 3:6] @ rotation.T
    # A parabolic orbit with a closest distance of about the discs' size.
    distance, closest = 5.0, 0.8
    speed = (2 * 1.5 / distance) ** 0.5
    across = speed * (closest / distance) ** 0.5
    along = (speed**2 - across**2) ** 0.5
    for galaxy, share in ((first, -0.5 / 1.5), (second, 1.0 / 1.5)):
        galaxy[:, 0] += share * distance
        galaxy[:, 3] -= share * along
        galaxy[:, 4] += share * across
    return np.concatenate([first, second])


def collapse(n: int, rng: _G) -> Array:
    """Return a sphere of radius 1 and mass 1, denser at the center and almost at rest, so that it collapses."""
    radii = rng.uniform(0, 1, n) ** 0.5
    return _make_bodies(_random_directions(n, rng) * radii[:, np.newaxis], rng.normal(0, 0.05, (n, 3)))


def solar(n: int, rng: _G) -> Array:
    """Return the sun and eight planets, with their masses and orbits in the year 2000, relative to the sun.

    Units: the sun's mass, the astronomical unit, and a year over 2 pi (58.13 days).
    """
    sun = np.array([0, 0, 0, 0, 0, 0, 1])
    return np.stack([sun, *(_planet_state(*planet) for planet in _PLANETS)]).astype(np.float32)


def figure_eight(n: int, rng: _G) -> Array:
    """Return three bodies of mass 1 that follow each other along a figure eight, with a period of 6.3259.

    Source: Chenciner, Montgomery, A Remarkable Periodic Solution of the Three-Body Problem in the Case of Equal Masses,
    Annals of Mathematics 152 (2000), with Simo's initial values.
    """
    position, velocity = np.array([0.97000436, -0.24308753, 0.0]), np.array([-0.93240737, -0.86473146, 0.0])
    positions = np.stack([position, -position, np.zeros(3)])
    velocities = np.stack([-velocity / 2, -velocity / 2, velocity])
    return _make_bodies(positions, velocities, mass=3.0)


GENERATORS: dict[str, Callable[[int, _G], Array]] = {
    "galaxies": galaxies,
    "plummer": plummer,
    "cube": cube,
    "collapse": collapse,
    "solar": solar,
    "figure-eight": figure_eight,
}
"""(n, random generator) -> float32, shape (n, 7), by preset; the last two ignore n and have a fixed number."""

VARIABLE_SIZE_PRESETS = ("galaxies", "plummer", "cube", "collapse")


def generate(preset: str, n: int, seed: int) -> Array:
    """Return a preset's bodies: float32, shape (n, 7), in columns x y z vx vy vz m; their center of mass is at rest.

    The same number and seed give the same bodies.
    """
    bodies = GENERATORS[preset](n, np.random.default_rng(seed))
    masses = bodies[:, 6].astype(np.float64)
    for columns in (slice(0, 3), slice(3, 6)):
        mean = masses @ bodies[:, columns].astype(np.float64) / masses.sum()
        bodies[:, columns] = bodies[:, columns] - mean
    return bodies


def assign_origins(preset: str, bodies: Array) -> Array:
    """Return the color index of a preset's bodies: galaxy, planet, or quarter by distance from the center."""
    n = len(bodies)
    if preset == "galaxies":
        return (np.arange(n) >= _larger_galaxy_size(n)).astype(np.uint8)
    if preset not in VARIABLE_SIZE_PRESETS:
        return np.arange(n, dtype=np.uint8)
    return distance_quarters(bodies)


def distance_quarters(bodies: Array) -> Array:
    """Return the quarter of each body by distance from the center: uint8, shape (n,)."""
    distances = np.linalg.norm(bodies[:, :3].astype(np.float64) - bodies[:, :3].mean(axis=0, dtype=np.float64), axis=1)
    ranks = np.empty(len(bodies), np.int64)
    ranks[np.argsort(distances, kind="stable")] = np.arange(len(bodies))
    return (ranks * 4 // len(bodies)).astype(np.uint8)


def _larger_galaxy_size(n: int) -> int:
    """Return the number of bodies in the larger of two galaxies."""
    return max(1, 2 * n // 3)


def _make_bodies(positions: Array, velocities: Array, mass: float = 1.0) -> Array:
    """Return bodies of equal mass with a total of `mass`."""
    masses = np.full((len(positions), 1), mass / len(positions))
    return np.concatenate([positions, velocities, masses], axis=1).astype(np.float32)


def _random_directions(n: int, rng: _G) -> Array:
    """Return uniformly distributed unit vectors."""
    heights, angles = rng.uniform(-1, 1, n), rng.uniform(0, 2 * np.pi, n)
    flat = np.sqrt(1 - heights**2)
    return np.stack([flat * np.cos(angles), flat * np.sin(angles), heights], axis=1)


def _make_galaxy(n: int, mass: float, size: float, rng: _G) -> Array:
    """Return a disc in a Plummer halo, centered and at rest, with its axis along z."""
    halo = plummer(max(1, n // 3), rng)
    discs = n - len(halo)
    core = 0.6
    halo[:, :3] *= core
    halo[:, 3:6] *= core**-0.5  # velocities for a halo with the total mass, since the disc attracts it too
    halo_mass = 0.85 if discs else 1.0
    halo[:, 6] *= halo_mass
    # An exponential disc: a radius is a sum of two exponential variates; beyond five scale lengths it wraps inside.
    radii = np.maximum(rng.gamma(2.0, 0.35, discs) % 1.75, 0.05)
    angles = rng.uniform(0, 2 * np.pi, discs)
    within_disc = 1 - (1 + radii / 0.35) * np.exp(-radii / 0.35)
    within = halo_mass * radii**3 / (radii**2 + core**2) ** 1.5 + (1 - halo_mass) * within_disc
    speeds = np.sqrt(within / radii)
    cosine, sine = np.cos(angles), np.sin(angles)
    places = np.stack([radii * cosine, radii * sine, rng.normal(0, 0.02, discs)], axis=1)
    velocities = np.stack([-speeds * sine, speeds * cosine, np.zeros(discs)], axis=1)
    velocities += rng.normal(0, 0.03, (discs, 3))
    disc = np.empty((0, 7), np.float32)
    if discs:
        disc = _make_bodies(places, velocities, mass=1 - halo_mass)
    galaxy = np.concatenate([halo, disc])
    galaxy[:, :3] *= size
    galaxy[:, 3:6] *= (mass / size) ** 0.5
    galaxy[:, 6] *= mass
    return galaxy


def _rotation_matrix(tilt: float, turn: float) -> Array:
    """Return the matrix that rotates around x by `tilt`, then around z by `turn`."""
    around_x = np.array([[1, 0, 0], [0, np.cos(tilt), -np.sin(tilt)], [0, np.sin(tilt), np.cos(tilt)]])
    around_z = np.array([[np.cos(turn), -np.sin(turn), 0], [np.sin(turn), np.cos(turn), 0], [0, 0, 1]])
    product: Array = around_z @ around_x
    return product


def _planet_state(
    mass: float, axis: float, eccentricity: float, inclination: float, longitude: float, perihelion: float, node: float
) -> Array:
    """Return a planet in orbit around a sun of mass 1: x y z vx vy vz m; angles are in degrees."""
    mean = np.radians(longitude - perihelion)
    anomaly = mean
    for _ in range(50):  # Kepler's equation
        anomaly = mean + eccentricity * np.sin(anomaly)
    rate = ((1 + mass) / axis**3) ** 0.5 / (1 - eccentricity * np.cos(anomaly))
    minor = axis * (1 - eccentricity**2) ** 0.5
    position = np.array([axis * (np.cos(anomaly) - eccentricity), minor * np.sin(anomaly), 0])
    velocity = rate * np.array([-axis * np.sin(anomaly), minor * np.cos(anomaly), 0])
    in_plane = _rotation_matrix(0.0, np.radians(perihelion - node))
    to_space = _rotation_matrix(np.radians(inclination), np.radians(node)) @ in_plane
    return np.concatenate([to_space @ position, to_space @ velocity, [mass]])
