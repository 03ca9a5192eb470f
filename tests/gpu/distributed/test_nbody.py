"""Bodies over four simulator workers: within the pattern's own bounds, and their state stays where it is."""

from __future__ import annotations

from contextlib import closing

import numpy as np
import pytest

from gpu import engines
from gpu.errors import InputError
from gpu.patterns import find_pattern
from gpu.run.execute import run_pattern
from tests.gpu.distributed.test_run import given, on_all, quiet


def on_one(variant, **params):
    pattern, _, inputs, checked = given("nbody", None, **params)
    with closing(engines.create("simulator", "lockstep")) as engine:
        return run_pattern(engine, pattern, pattern.variant(variant), inputs, checked, quiet).outputs


@pytest.mark.parametrize("variant", [each.name for each in find_pattern("nbody").variants if each.name != "pairs"])
def test_every_rung_moves_bodies_as_one_device_does(cluster, variant):
    params = {"preset": "plummer", "bodies": 90, "steps": 3, "block": "32"}
    outcome, done = on_all(cluster, "nbody", chunks=(50, 1, 39), variant=variant, **params)
    assert outcome.report.verified
    alone = on_one(variant, **params)
    for name, values in alone.items():
        assert outcome.outputs[name].dtype == values.dtype
        np.testing.assert_allclose(outcome.outputs[name], values, rtol=2e-5, atol=2e-5)
    moved = np.abs(alone["bodies"][:, :3] - given("nbody", None, **params)[2]["bodies"][:, :3]).max()
    assert moved > 1e-3, "what is close by itself says nothing"
    steps = [record.step for record in done.tasks]
    assert (steps.count("kick drift"), steps.count("pulls and kick"), steps.count("first pulls")) == (9, 9, 3)
    # What others need of a chunk in a step are its places, 16 bytes a body; nobody's velocities go anywhere.
    assert done.exchanged_bytes <= 4 * 2 * 90 * 16 + 3 * 90 * 12


@pytest.mark.parametrize(("bodies", "steps"), [(1, 2), (70, 2)])
def test_a_chunk_of_all_bodies_is_the_run_of_one_device(cluster, bodies, steps):
    params = {"preset": "cube", "bodies": bodies, "steps": steps}
    outcome, _ = on_all(cluster, "nbody", chunks=(1,), variant="tiled", **params)
    for name, values in on_one("tiled", **params).items():
        assert outcome.outputs[name].tobytes() == values.tobytes()


@pytest.mark.parametrize(
    ("variant", "steps", "sentence"),
    [("pairs", 0, "Each pair once runs on one"), ("tiled", 10**6, "are too many tasks")],
)
def test_what_cannot_be_divided_is_refused(cluster, variant, steps, sentence):
    with pytest.raises(InputError, match=sentence):
        on_all(cluster, "nbody", variant=variant, bodies=8, steps=steps)
