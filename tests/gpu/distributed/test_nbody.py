"""Bodies over four simulator workers: within the pattern's own bounds, and their state stays where it is."""

from __future__ import annotations

from contextlib import closing
from dataclasses import astuple

import numpy as np
import pytest

from gpu import engines
from gpu.base.errors import InputError
from gpu.distributed.distributed_run import run_distributed
from gpu.patterns import find_pattern
from gpu.patterns.nbody.forces import motion_from_params
from gpu.patterns.nbody.multi_device import CONSERVED
from gpu.patterns.nbody.simulation import BodySimulation, conserved_quantities, total_energy
from gpu.run.pattern_run import run_pattern
from gpu.run.workload import Workload
from tests.gpu.distributed.test_distributed_run import ignore_progress, prepare_run, run_on_cluster


def run_on_one_device(variant, **params):
    pattern, _, inputs, checked = prepare_run("nbody", None, **params)
    with closing(engines.create_engine("simulator", "lockstep")) as engine:
        return run_pattern(
            engine, Workload(pattern, pattern.variant(variant), inputs, checked), ignore_progress
        ).outputs


@pytest.mark.parametrize("variant", [each.name for each in find_pattern("nbody").variants if each.name != "pairs"])
def test_every_rung_moves_bodies_as_one_device_does(cluster, variant):
    params = {"preset": "plummer", "bodies": 90, "steps": 3, "block": "32"}
    outcome, done = run_on_cluster(cluster, "nbody", chunks=(50, 1, 39), variant=variant, **params)
    assert outcome.report.verified
    alone = run_on_one_device(variant, **params)
    for name, values in alone.items():
        assert outcome.outputs[name].dtype == values.dtype
        np.testing.assert_allclose(outcome.outputs[name], values, rtol=2e-5, atol=2e-5)
    moved = np.abs(alone["bodies"][:, :3] - prepare_run("nbody", None, **params)[2]["bodies"][:, :3]).max()
    assert moved > 1e-3, "what is close by itself says nothing"
    steps = [record.step for record in done.tasks]
    names = ("kick drift", "accelerate and kick", "compute initial accelerations")
    assert [steps.count(name) for name in names] == [9, 9, 3]
    # What others need of a chunk in a step are its places, 16 bytes a body; nobody's velocities go anywhere.
    assert done.exchanged_bytes <= 4 * 2 * 90 * 16 + 3 * 90 * 12


@pytest.mark.parametrize(("bodies", "steps"), [(1, 2), (70, 2)])
def test_a_chunk_of_all_bodies_is_the_run_of_one_device(cluster, bodies, steps):
    params = {"preset": "cube", "bodies": bodies, "steps": steps}
    outcome, _ = run_on_cluster(cluster, "nbody", chunks=(1,), variant="tiled", **params)
    for name, values in run_on_one_device("tiled", **params).items():
        assert outcome.outputs[name].tobytes() == values.tobytes()


def test_what_gravity_keeps_is_measured_where_it_is_asked_for(cluster):
    pattern, variant, inputs, params = prepare_run("nbody", None, preset="plummer", bodies=60, steps=1, softening=0.05)
    told = []
    outcome, done = run_distributed(
        cluster, Workload(pattern, variant, inputs, params), told.append, chunks=(40, 1, 19), extra_outputs=(CONSERVED,)
    )
    with closing(engines.create_engine("simulator", "lockstep")) as engine:
        simulation, motion = BodySimulation(engine, inputs["bodies"]), motion_from_params(params)
        begun = simulation.measure_conserved(motion.softening)
        assert list(simulation.advance(variant.name, 1, motion)) == [1]
        ended = simulation.measure_conserved(motion.softening)
    first, last = outcome.outputs[CONSERVED]
    assert total_energy(first) == pytest.approx(begun.total, rel=1e-7)
    found = conserved_quantities(last, total_energy(first))
    assert astuple(found)[:3] == pytest.approx(astuple(ended)[:3], rel=1e-6)
    assert found.drift == pytest.approx(ended.drift, abs=1e-6)
    assert found.momentum == pytest.approx(ended.momentum, abs=1e-6)
    assert found.angular_momentum == pytest.approx(ended.angular_momentum, abs=1e-6)
    count = len(done.tasks)
    assert (told[-2].fraction, told[-2].message) == (1.0, f"{count} of {count} tasks"), "before it is compared"
    assert [record.step for record in done.tasks].count("chunk moments") == 6
    without, _ = run_on_cluster(cluster, "nbody", bodies=8, steps=1)
    assert CONSERVED not in without.outputs


@pytest.mark.parametrize(
    ("variant", "steps", "sentence"),
    [("pairs", 0, "Each pair once runs on one"), ("tiled", 10**6, "are too many Dask tasks")],
)
def test_what_cannot_be_divided_is_refused(cluster, variant, steps, sentence):
    with pytest.raises(InputError, match=sentence):
        run_on_cluster(cluster, "nbody", variant=variant, bodies=8, steps=steps)
