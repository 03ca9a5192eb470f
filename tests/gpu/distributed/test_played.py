"""Bodies that are played on four simulator workers: as on one device, frame by frame, and nothing piles up."""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest

from gpu import engines
from gpu.distributed import played
from gpu.distributed.played import PlayedBodies
from gpu.errors import InputError
from gpu.messages.bodies import Camera
from gpu.messages.requests import AdvanceBodies
from gpu.patterns import find_pattern
from gpu.patterns.nbody.forces import motion_of
from gpu.patterns.nbody.simulation import BodySimulation
from tests.gpu.distributed.test_run import quiet

PARAMS = {"preset": "plummer", "bodies": 70, "softening": 0.05}
CAMERA = Camera(yaw=0.3, pitch=0.2, distance=4)
FRAME = AdvanceBodies(5, "tiled", PARAMS, steps=1, camera=CAMERA, width=40, height=30, color="origin", measure=True)


@pytest.fixture
def bodies(cluster):
    with closing(PlayedBodies(cluster, FRAME)) as made:
        yield made


def test_frames_are_those_of_one_device(bodies):
    pattern = find_pattern("nbody")
    params = pattern.check(PARAMS)
    inputs, motion = pattern.inputs({}, params, 0), motion_of(params)
    first, _ = bodies.advance(replace(FRAME, steps=0, measure=False), quiet)
    told = []
    bodies.advance(FRAME, told.append)
    picture, figures = bodies.advance(replace(FRAME, steps=2), told.append)
    with closing(engines.create("simulator", "lockstep")) as engine:
        alone = BodySimulation(engine, inputs["bodies"], inputs["origins"])
        assert np.array_equal(first, alone.draw(CAMERA, 40, 30, color="origin"))
        alone.conserved(motion.softening)
        assert [*alone.advance("tiled", 3, motion)] == [1, 2, 3]
        drawn, exact = alone.draw(CAMERA, 40, 30, color="origin"), alone.conserved(motion.softening)
        np.testing.assert_allclose(bodies.bodies(), alone.bodies(), rtol=2e-5, atol=2e-5)
    assert np.abs(picture.astype(int) - drawn).mean() < 0.05
    assert np.abs(picture.astype(int) - first).mean() > 0.2, "they have moved"
    assert (figures.bodies, figures.steps, figures.time) == (70, 3, 3 * motion.time_step)
    assert figures.conserved.total == pytest.approx(exact.total, rel=1e-5)
    assert figures.conserved.drift == pytest.approx(exact.drift, abs=1e-6)
    assert min(figures.kernel_ms, figures.measuring_ms, figures.interactions_per_s) > 0
    assert (told[-1].fraction, told[-1].message) == (1, "step 2 of 2")


def test_bodies_that_are_divided_anew_move_as_if_they_were_not(cluster, bodies, monkeypatch):
    frame = replace(FRAME, width=0, measure=False)
    for _ in range(2):
        assert bodies.advance(frame, quiet)[0] is None
    monkeypatch.setattr(played, "_MOST_TASKS_SINCE_DIVISION", 0)
    with closing(PlayedBodies(cluster, FRAME)) as others:
        for _ in range(2):
            others.advance(frame, quiet)
        assert others.bodies().tobytes() == bodies.bodies().tobytes()


def test_what_the_scheduler_knows_of_does_not_grow_for_ever(cluster, bodies, monkeypatch):
    monkeypatch.setattr(played, "_MOST_TASKS_SINCE_DIVISION", 15)
    frame = replace(FRAME, measure=False)
    bodies.advance(frame, quiet)
    begun = cluster.client.run_on_scheduler(tasks_known)
    for _ in range(4):
        bodies.advance(frame, quiet)
    assert comes_to(cluster, begun)
    bodies.close()
    assert comes_to(cluster, 0)


def comes_to(cluster, most):
    """Whether the scheduler forgets all but so many tasks, which takes it a moment."""
    end = time.monotonic() + 20
    while (known := cluster.client.run_on_scheduler(tasks_known)) > most and time.monotonic() < end:
        time.sleep(0.02)
    return known <= most


def tasks_known(dask_scheduler):
    return len(dask_scheduler.tasks)


def test_what_is_stopped_leaves_the_bodies_where_they_were(bodies):
    def stop(progress):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        bodies.advance(FRAME, stop)
    bodies.advance(FRAME, quiet)
    before = bodies.bodies()
    with pytest.raises(KeyboardInterrupt):
        bodies.advance(replace(FRAME, steps=40), stop)
    assert bodies.bodies().tobytes() == before.tobytes()
    _, figures = bodies.advance(FRAME, quiet)
    assert figures.steps == 2


def test_what_no_cluster_plays_is_one_sentence(cluster, bodies):
    with pytest.raises(InputError, match="Each pair once runs on one device only"):
        bodies.advance(replace(FRAME, variant="pairs"), quiet)
    with pytest.raises(InputError, match="are too many Dask tasks"):
        bodies.advance(replace(FRAME, steps=2**17), quiet)
