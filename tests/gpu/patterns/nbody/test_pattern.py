"""Gravity on every engine against float64, and what must hold of bodies that move by it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gpu.base.errors import InputError
from gpu.base.paths import KERNELS
from gpu.engines.base import Engine
from gpu.engines.simulator import SimulatorEngine
from gpu.kernel.simulate import simulate
from gpu.patterns.nbody.forces import PLANS, Motion, threads_per_body
from gpu.patterns.nbody.pattern import PATTERN
from gpu.patterns.nbody.physics import verified_bodies
from gpu.patterns.nbody.presets import generate
from gpu.patterns.nbody.simulation import BodySimulation
from gpu.run.kernel_check import check_variant
from gpu.run.pattern_run import Outcome, record_pattern, run_pattern
from gpu.run.workload import Workload

Array = np.ndarray[Any, Any]

VARIANTS = [variant.name for variant in PATTERN.variants]
SIZES = (1, 2, 33, 255, 256, 257)
FULL_TURN = 2 * np.pi
# Two bodies with masses of 1/2, one apart: each goes around in 2 pi.
CIRCLE = np.array([[0.5, 0, 0, 0, 0.5, 0, 0.5], [-0.5, 0, 0, 0, -0.5, 0, 0.5]], np.float32)


def run(engine: Engine, variant: str, bodies: Array, sources: dict[str, str] | None = None, **params: Any) -> Outcome:
    inputs = {"bodies": bodies}
    return run_pattern(
        engine,
        Workload(PATTERN, PATTERN.variant(variant), inputs, params, sources=sources or {}),
        lambda progress: None,
    )


def expected_accelerations(bodies: Array, softening: float) -> Array:
    """Add up one pair after the other, as it is written in the textbook, in float64."""
    exact = bodies.astype(np.float64)
    found = np.zeros((len(bodies), 3))
    for i, body in enumerate(exact):
        away = exact[:, :3] - body[:3]
        others = np.arange(len(exact)) != i
        distance = np.sqrt((away[others] ** 2).sum(axis=1) + softening**2)
        found[i] = (exact[others, 6:] * away[others] / distance[:, None] ** 3).sum(axis=0)
    return found


def random_bodies(n: int) -> Array:
    rng = np.random.default_rng(n)
    bodies = rng.normal(size=(n, 7)).astype(np.float32)
    bodies[:, 6] = rng.random(n)
    return bodies


def advance_bodies(engine: Engine, bodies: Array, steps: int, dt: float, softening: float = 0.0) -> BodySimulation:
    simulation = BodySimulation(engine, bodies)
    simulation.measure_conserved(softening)
    for _ in simulation.advance("naive", steps, Motion(dt, softening, 32)):
        pass
    return simulation


@pytest.mark.parametrize("variant", ["naive", "tiled", "registers"])
def test_light_bodies_that_a_sum_rounds_all_the_same_way_are_no_mistake(variant: str) -> None:
    """Each pulls with 0.7 units in the last place of what a heavy one does, so each adds a whole unit."""
    bodies = np.zeros((2**15, 7), np.float32)
    bodies[1:, 0], bodies[1:, 6] = 2, 0.7 * 2.0**-23 * 9
    bodies[0, 6] = 1
    massless = verified_bodies(len(bodies))[1:]
    bodies[massless] = -1, 0, 0, 0, 0, 0, 0
    report = run(SimulatorEngine(), variant, bodies, steps=0, softening=0.0).report
    assert report.verified
    assert report.deviation is not None
    assert report.deviation.max_abs > 1e-4


@pytest.mark.parametrize("softening", [0.0, 0.1])
@pytest.mark.parametrize("variant", VARIANTS)
def test_forces_are_those_of_float64(engine: Engine, variant: str, softening: float) -> None:
    for n in SIZES if softening else (1, 2, 65):
        bodies = random_bodies(n)
        outcome = run(engine, variant, bodies, softening=softening, block="64")
        right = expected_accelerations(bodies, softening)
        found = outcome.outputs["accelerations"]
        assert found.shape == (n, 3)
        np.testing.assert_allclose(found, right, rtol=0, atol=3e-6 * max(np.abs(right).max(), 1))
        assert outcome.report.verified
        np.testing.assert_array_equal(outcome.outputs["bodies"], bodies)


@pytest.mark.parametrize("block", ["8", "32", "256", "1024"])
@pytest.mark.parametrize("variant", VARIANTS)
def test_blocks_of_every_size(engine: Engine, variant: str, block: str) -> None:
    assert run(engine, variant, random_bodies(140), block=block).report.verified


@pytest.mark.parametrize("variant", VARIANTS)
def test_ten_thousand_bodies_in_the_block_that_suits_the_kernel(fast_engine: Engine, variant: str) -> None:
    assert run(fast_engine, variant, random_bodies(10_000)).report.verified


@pytest.mark.parametrize(("lanes", "numbers"), [(1, (1, 2, 3, 4)), (2, (3, 4))])
def test_pairs_meet_once_however_many_tiles_there_are(engine: Engine, lanes: int, numbers: tuple[int, ...]) -> None:
    """Even and odd numbers of tiles, whole ones and not, one tile a warp and several."""
    module = engine.build("nbody.cu", {"BODIES_PER_THREAD": lanes, "PAIR_BLOCK": 64})
    for tiles in numbers:
        n = tiles * 32 * lanes - 7
        bodies = random_bodies(n)
        places = engine.upload(np.ascontiguousarray(bodies[:, [0, 1, 2, 6]]))
        for tiles_per_warp in (1, 2):
            found = engine.upload(np.zeros((n, 4), np.float32))
            warps = tiles * -(-(tiles // 2 + 1) // tiles_per_warp)
            counts = np.int32(tiles), np.int32(tiles_per_warp)
            arguments = places, found, np.int32(n), np.float32(0.01)
            engine.launch(module.kernel("nbody_pairs"), (-(-warps // 2), 1, 1), (64, 1, 1), *arguments, *counts)
            right = expected_accelerations(bodies, 0.1)
            np.testing.assert_allclose(engine.download(found)[:, :3], right, rtol=0, atol=3e-6 * np.abs(right).max())


@pytest.mark.parametrize("variant", VARIANTS)
def test_bodies_at_one_place_and_bodies_without_mass_do_no_harm(engine: Engine, variant: str) -> None:
    bodies = random_bodies(40)
    bodies[20:, :3] = bodies[:20, :3]
    bodies[10:30, 6] = 0
    found = run(engine, variant, bodies, softening=0.0, block="32").outputs["accelerations"]
    right = expected_accelerations(bodies, 1e-10)
    np.testing.assert_allclose(found, right, rtol=0, atol=3e-6 * np.abs(right).max())


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_wrong_force_is_not_verified(variant: str) -> None:
    text = (KERNELS / "nbody.cu").read_text()
    spoilt = text.replace("dz * dz + softening", "dz * dx + softening")
    assert spoilt != text
    engine = SimulatorEngine("lockstep")
    assert run(engine, variant, random_bodies(50), {"nbody.cu": spoilt}).report.verified is False


@pytest.mark.parametrize("variant", VARIANTS)
def test_no_rung_races_or_reads_what_nobody_wrote(variant: str) -> None:
    params = {"preset": "plummer", "bodies": 70, "block": "32", "steps": 1}
    assert check_variant(Workload(PATTERN, PATTERN.variant(variant), {}, params), lambda progress: None)[0] == []


def test_what_measures_races_with_nothing() -> None:
    bodies = np.ones((70, 4), np.float32)
    for kernel, arguments in (
        ("nbody_potential", (bodies, "empty:16", 70, 0.1)),
        ("nbody_moments", (bodies, bodies, "empty:16", 70)),
    ):
        simulation = simulate(KERNELS / "nbody.cu", kernel, 2, 64, arguments, defines={"BLOCK_SIZE": 64})
        assert simulation.findings == []


@pytest.mark.parametrize("variant", VARIANTS)
def test_it_can_be_stepped(variant: str) -> None:
    params = PATTERN.step_params
    made = record_pattern(Workload(PATTERN, PATTERN.variant(variant), {}, params), lambda progress: None)
    assert made.launches
    assert not made.failure


def test_two_bodies_keep_to_their_circle_for_100_periods(fast_engine: Engine) -> None:
    per_turn = 40
    simulation = advance_bodies(fast_engine, CIRCLE, 100 * per_turn, FULL_TURN / per_turn)
    bodies = simulation.download_bodies()
    assert np.linalg.norm(bodies[0, :3] - bodies[1, :3]) == pytest.approx(1, abs=1e-2)
    assert np.linalg.norm(bodies[0, 3:6]) == pytest.approx(0.5, abs=5e-3)
    conserved = simulation.measure_conserved(0.0)
    assert abs(conserved.drift) < 1e-3
    assert conserved.angular_momentum == pytest.approx((0, 0, 0.25), abs=1e-4)
    simulation.close()


def test_momentum_is_conserved_to_rounding(engine: Engine) -> None:
    bodies = generate("plummer", 70, 3)
    for variant in VARIANTS:
        simulation = BodySimulation(engine, bodies)
        for _ in simulation.advance(variant, 4, Motion(0.02, 0.05, 64)):
            pass
        conserved = simulation.measure_conserved(0.05)
        np.testing.assert_allclose(conserved.momentum, 0, atol=1e-6)
        simulation.close()


def test_half_the_time_step_has_a_quarter_of_the_drift(fast_engine: Engine) -> None:
    """An eccentric orbit, measured where the error is largest: on its way, not after a whole turn."""
    bodies = CIRCLE.copy()
    bodies[:, 3:6] *= 0.8
    drifts = []
    for steps in (25, 50, 100):
        simulation = advance_bodies(fast_engine, bodies, steps, 1.5 / steps)
        drifts.append(abs(simulation.measure_conserved(0.0).drift))
        simulation.close()
    assert drifts[0] / drifts[1] == pytest.approx(4, rel=0.1)
    assert drifts[1] / drifts[2] == pytest.approx(4, rel=0.1)


def test_time_runs_backwards(engine: Engine) -> None:
    bodies = generate("plummer", 64, 5)
    there = advance_bodies(engine, bodies, 40, 0.02, 0.1)
    turned = there.download_bodies()
    turned[:, 3:6] *= -1
    assert np.abs(turned[:, :3] - bodies[:, :3]).max() > 0.1
    back = advance_bodies(engine, turned, 40, 0.02, 0.1)
    np.testing.assert_allclose(back.download_bodies()[:, :3], bodies[:, :3], rtol=0, atol=2e-5)
    np.testing.assert_allclose(back.download_bodies()[:, 3:6], -bodies[:, 3:6], rtol=0, atol=2e-5)
    there.close()
    back.close()


def test_energies_are_those_of_float64(engine: Engine) -> None:
    bodies = random_bodies(257)
    exact = bodies.astype(np.float64)
    simulation = BodySimulation(engine, bodies)
    for softening in (0.0, 0.3):
        found = simulation.measure_conserved(softening)
        pairs = [
            -exact[i, 6] * exact[:i, 6] @ (((exact[:i, :3] - exact[i, :3]) ** 2).sum(axis=1) + softening**2) ** -0.5
            for i in range(257)
        ]
        assert found.potential == pytest.approx(sum(pairs), rel=1e-5)
        assert found.kinetic == pytest.approx(0.5 * (exact[:, 6] @ (exact[:, 3:6] ** 2).sum(axis=1)), rel=1e-12)
        assert found.total == found.kinetic + found.potential
        assert found.momentum == pytest.approx((exact[:, 6:] * exact[:, 3:6]).sum(axis=0))
        turning = (exact[:, 6:] * np.cross(exact[:, :3], exact[:, 3:6])).sum(axis=0)
        assert found.angular_momentum == pytest.approx(turning)
    simulation.close()


def test_every_variant_has_a_plan() -> None:
    assert set(PLANS) == set(VARIANTS)


@pytest.mark.parametrize("variant", VARIANTS)
def test_plans_cover_all_bodies_and_fit_a_device(variant: str) -> None:
    for n in (1, 31, 4096, 10_000, 65_536, 262_144, 2**20):
        for multiprocessors in (1, 16, 132):
            for block in (None, 256):
                plan = PLANS[variant](n, block, multiprocessors)
                assert plan.block <= 1024
                assert plan.grid >= 1
                threads = plan.grid * plan.block
                assert threads * 8 >= n
                assert threads < 2**31


def test_threads_share_a_body_where_bodies_are_few() -> None:
    assert threads_per_body(4096, 1024, 132) == 32
    assert threads_per_body(2**20, 1024, 132) == 1
    assert threads_per_body(16, 8, 1) == 2
    assert threads_per_body(4096, 256, 132) == 32
    assert [threads_per_body(n, 1024, 132) for n in (1024, 2048, 8192, 16384, 65536)] == [128, 64, 16, 8, 2]


def test_probes_are_different_bodies_and_not_too_many() -> None:
    for n in (1, 2, 31, 4096, 2**20):
        chosen = verified_bodies(n)
        assert len(np.unique(chosen)) == len(chosen)
        assert chosen.max() < n
        assert len(chosen) * n <= max(2**22, 32 * n)
    np.testing.assert_array_equal(verified_bodies(2048), np.arange(2048))


def test_bodies_that_are_none_are_refused() -> None:
    with pytest.raises(InputError, match="3 numbers; a body has seven"):
        run(SimulatorEngine("lockstep"), "naive", np.zeros(3, np.float32))
