"""What the generators make is what their names say."""

from __future__ import annotations

import numpy as np
import pytest

from gpu.patterns.nbody.presets import GENERATORS, VARIABLE_SIZE_PRESETS, assign_origins, generate
from tests.gpu.patterns.nbody.conserved import angular_momentum, kinetic_energy, momentum, potential_energy

FIXED = {"solar": 9, "figure-eight": 3}


@pytest.mark.parametrize("preset", GENERATORS)
def test_a_preset_has_its_number_and_grows_from_its_seed(preset: str) -> None:
    for n in (1, 2, 3, 255, 256, 257):
        bodies = generate(preset, n, 7)
        assert bodies.shape == (FIXED.get(preset, n), 7)
        assert bodies.dtype == np.float32
        assert np.isfinite(bodies).all()
        assert (bodies[:, 6] > 0).all()
        np.testing.assert_array_equal(bodies, generate(preset, n, 7))
        origins = assign_origins(preset, bodies)
        assert (origins.shape, origins.dtype) == ((len(bodies),), np.uint8)
    assert np.array_equal(bodies, generate(preset, n, 8)) == (preset in FIXED)


@pytest.mark.parametrize("preset", GENERATORS)
def test_a_preset_is_at_rest_in_the_middle(preset: str) -> None:
    bodies = generate(preset, 1000, 1)
    scale = np.abs(bodies[:, :6]).max()
    np.testing.assert_allclose(momentum(bodies), 0, atol=1e-6 * scale)
    middle = bodies[:, 6].astype(np.float64) @ bodies[:, :3].astype(np.float64)
    np.testing.assert_allclose(middle, 0, atol=1e-6 * scale)


def test_a_plummer_sphere_is_in_equilibrium() -> None:
    """Its virial ratio is 1, its potential energy -3 pi / 32, and half of its mass is within 1.3048 scale lengths."""
    bodies = generate("plummer", 6000, 2)
    kinetic, potential = kinetic_energy(bodies), potential_energy(bodies, 0.0)
    assert -2 * kinetic / potential == pytest.approx(1, abs=0.05)
    assert potential == pytest.approx(-3 * np.pi / 32, rel=0.05)
    assert np.median(np.linalg.norm(bodies[:, :3], axis=1)) == pytest.approx(1.3, rel=0.05)


def test_a_collapse_is_cold_and_a_cube_is_at_rest_and_full() -> None:
    collapse = generate("collapse", 2000, 3)
    assert -2 * kinetic_energy(collapse) / potential_energy(collapse, 0.0) < 0.02
    cube = generate("cube", 8000, 3)
    assert kinetic_energy(cube) == 0
    counts, _ = np.histogramdd(cube[:, :3], bins=2, range=[(-1.1, 1.1)] * 3)
    np.testing.assert_allclose(counts, 1000, atol=150)


def test_two_galaxies_fall_towards_each_other_and_each_turns() -> None:
    bodies = generate("galaxies", 3000, 4)
    first, second = bodies[:2000], bodies[2000:]
    assert assign_origins("galaxies", bodies).tolist() == [0] * 2000 + [1] * 1000
    assert bodies[:, 6].sum() == pytest.approx(1.5, rel=1e-3)
    middles = [part[:, 6:].T @ part[:, :6] / part[:, 6].sum() for part in (first, second)]
    apart = (middles[1] - middles[0])[0]
    assert np.linalg.norm(apart[:3]) == pytest.approx(5, rel=0.05)
    assert apart[:3] @ apart[3:] < 0
    for part, middle in zip((first, second), middles, strict=True):
        own = part.copy()
        own[:, :6] -= middle[0].astype(np.float32)
        disc = own[len(own) // 3 :]
        turning = angular_momentum(disc)
        straight = disc[:, 6].astype(np.float64) @ (
            np.linalg.norm(disc[:, :3], axis=1) * np.linalg.norm(disc[:, 3:6], axis=1)
        )
        assert np.linalg.norm(turning) > 0.9 * straight, "a disc turns as one"
        assert -2 * kinetic_energy(own) / potential_energy(own, 0.03) == pytest.approx(1, abs=0.15)


def test_the_solar_system_has_its_distances_and_years() -> None:
    sun, *planets = generate("solar", 1, 0).astype(np.float64)
    assert sun[6] == 1
    # Perihelion and aphelion in astronomical units, years: NASA's planetary fact sheet.
    facts = [
        (0.307, 0.467, 0.2408),
        (0.718, 0.728, 0.6152),
        (0.983, 1.017, 1.0000),
        (1.381, 1.666, 1.8808),
        (4.951, 5.457, 11.862),
        (9.041, 10.124, 29.457),
        (18.33, 20.11, 84.011),
        (29.81, 30.33, 164.79),
    ]
    for planet, (near, far, year) in zip(planets, facts, strict=True):
        away, speed = planet[:3] - sun[:3], planet[3:6] - sun[3:6]
        distance = np.linalg.norm(away)
        assert near * 0.99 < distance < far * 1.01
        axis = 1 / (2 / distance - speed @ speed / (1 + planet[6]))
        assert 2 * axis == pytest.approx(near + far, rel=5e-3)
        assert axis**1.5 == pytest.approx(year, rel=5e-3)
        assert np.cross(away, speed)[2] > 0, "all go the same way around"


def test_the_figure_eight_has_its_energy_and_does_not_turn() -> None:
    bodies = generate("figure-eight", 1, 0)
    assert kinetic_energy(bodies) + potential_energy(bodies, 0.0) == pytest.approx(-1.287146, rel=1e-5)
    np.testing.assert_allclose(angular_momentum(bodies), 0, atol=1e-6)


def test_only_presets_of_any_number_ask_for_one() -> None:
    assert {*VARIABLE_SIZE_PRESETS} == {*GENERATORS} - {*FIXED}
