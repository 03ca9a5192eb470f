"""Bodies that are played on four simulator workers: as on one device, frame by frame, and nothing piles up."""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest

from gpu import engines
from gpu.base.errors import InputError
from gpu.distributed import cluster_simulation
from gpu.distributed.cluster_simulation import ClusterSimulation
from gpu.messages.bodies import AdvanceBodies, Camera
from gpu.patterns import find_pattern
from gpu.patterns.nbody.forces import motion_from_params
from gpu.patterns.nbody.picture import BodyPicture
from gpu.patterns.nbody.simulation import BodySimulation
from tests.gpu.distributed.test_distributed_run import ignore_progress

PARAMS = {"preset": "plummer", "bodies": 70, "softening": 0.05}
CAMERA = Camera(yaw=0.3, pitch=0.2, distance=4)
FRAME = AdvanceBodies(5, "tiled", PARAMS, steps=1, camera=CAMERA, width=40, height=30, color="origin", measure=True)


@pytest.fixture
def bodies(cluster):
    with closing(ClusterSimulation(cluster, FRAME)) as made:
        yield made


def test_frames_are_those_of_one_device(bodies):
    pattern = find_pattern("nbody")
    params = pattern.check(PARAMS)
    inputs, motion = pattern.prepare_inputs({}, params, 0), motion_from_params(params)
    first, _ = bodies.advance(replace(FRAME, steps=0, measure=False), ignore_progress)
    told = []
    bodies.advance(FRAME, told.append)
    picture, figures = bodies.advance(replace(FRAME, steps=2), told.append)
    with closing(engines.create_engine("simulator", "lockstep")) as engine:
        alone = BodySimulation(engine, inputs["bodies"], inputs["origins"])
        settings = BodyPicture(CAMERA, 40, 30, color="origin")
        assert np.array_equal(first, alone.draw(settings))
        alone.measure_conserved(motion.softening)
        assert [*alone.advance("tiled", 3, motion)] == [1, 2, 3]
        drawn, exact = alone.draw(settings), alone.measure_conserved(motion.softening)
        np.testing.assert_allclose(bodies.download_bodies(), alone.download_bodies(), rtol=2e-5, atol=2e-5)
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
        assert bodies.advance(frame, ignore_progress)[0] is None
    monkeypatch.setattr(cluster_simulation, "_MAX_TASKS_SINCE_DIVISION", 0)
    with closing(ClusterSimulation(cluster, FRAME)) as others:
        for _ in range(2):
            others.advance(frame, ignore_progress)
        assert others.download_bodies().tobytes() == bodies.download_bodies().tobytes()


def test_what_the_scheduler_knows_of_does_not_grow_for_ever(cluster, bodies, monkeypatch):
    monkeypatch.setattr(cluster_simulation, "_MAX_TASKS_SINCE_DIVISION", 15)
    frame = replace(FRAME, measure=False)
    bodies.advance(frame, ignore_progress)
    begun = cluster.client.run_on_scheduler(count_tasks)
    for _ in range(4):
        bodies.advance(frame, ignore_progress)
    assert wait_for_task_count(cluster, begun)
    bodies.close()
    assert wait_for_task_count(cluster, 0)


def wait_for_task_count(cluster, most):
    """Whether the scheduler forgets all but so many tasks, which takes it a moment."""
    end = time.monotonic() + 20
    while (known := cluster.client.run_on_scheduler(count_tasks)) > most and time.monotonic() < end:
        time.sleep(0.02)
    return known <= most


def count_tasks(dask_scheduler):
    return len(dask_scheduler.tasks)


def test_what_is_stopped_leaves_the_bodies_where_they_were(bodies):
    def stop(progress):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        bodies.advance(FRAME, stop)
    bodies.advance(FRAME, ignore_progress)
    before = bodies.download_bodies()
    with pytest.raises(KeyboardInterrupt):
        bodies.advance(replace(FRAME, steps=40), stop)
    assert bodies.download_bodies().tobytes() == before.tobytes()
    _, figures = bodies.advance(FRAME, ignore_progress)
    assert figures.steps == 2


def test_what_no_cluster_plays_is_one_sentence(cluster, bodies):
    with pytest.raises(InputError, match="Each pair once runs on one device only"):
        bodies.advance(replace(FRAME, variant="pairs"), ignore_progress)
    with pytest.raises(InputError, match="are too many Dask tasks"):
        bodies.advance(replace(FRAME, steps=2**17), ignore_progress)
