"""Requests that concern bodies: simulations that go on from request to request, their pictures and files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpu.base.errors import InputError, LaunchError
from gpu.base.paths import KERNELS
from gpu.engines.base import Engine
from gpu.engines.simulator import SimulatorEngine
from gpu.messages.bodies import AdvanceBodies, BodiesResult, Camera, LoadBodies, PickBody, SaveBodies
from gpu.messages.shared_arrays import SharedFolder
from gpu.run.handlers.bodies import discard_simulation
from gpu.run.handlers.execution import execute_request

Array = np.ndarray[Any, Any]

SMALL = {"preset": "plummer", "bodies": 60, "dt": 0.01, "softening": 0.1, "block": "32"}
ASKED = AdvanceBodies(1, "tiled", SMALL, steps=3, camera=Camera(0.4, 0.3, 5.0), width=90, height=60)


@pytest.fixture
def folder() -> Iterator[SharedFolder]:
    made = SharedFolder()
    yield made
    made.close()


@pytest.fixture
def ask(engine: Engine, folder: SharedFolder) -> Iterator[Any]:
    yield lambda request: execute_request(engine, request, folder, lambda progress: None)
    discard_simulation(engine)


def read_bodies(ask: Any, simulation: int, tmp_path: Path) -> Array:
    ask(SaveBodies(str(tmp_path / "now.csv"), simulation))
    found: Array = ask(LoadBodies(str(tmp_path / "now.csv"))).arrays["bodies"].open()
    return found


def test_a_simulation_goes_on_where_it_was(ask: Any, tmp_path: Path) -> None:
    for _ in range(2):
        result = ask(ASKED)
    assert result.figures.steps == 6
    assert result.figures.time == pytest.approx(0.06)
    assert result.figures.bodies == 60
    at_once = read_bodies(ask, 1, tmp_path)
    ask(replace(ASKED, simulation=2, steps=6))
    np.testing.assert_array_equal(read_bodies(ask, 2, tmp_path), at_once)


def test_what_is_compiled_is_told_and_only_while_the_request_runs(folder, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("LOCKSTEP_CACHE", str(tmp_path))
    engine = SimulatorEngine()
    said: list[str] = []
    for _ in range(2):
        execute_request(engine, ASKED, folder, lambda progress: said.append(progress.message))
    discard_simulation(engine)
    told = [message for message in said if message.startswith("compiling")]
    assert "compiling nbody_tiled for this processor" in told
    assert len(set(told)) == len(told), "the second time all is there"
    engine.on_compiling("k")
    assert said[-1] != "compiling k for this processor"


def test_another_number_begins_anew_and_the_old_one_is_gone(ask: Any, tmp_path: Path) -> None:
    ask(ASKED)
    assert ask(replace(ASKED, simulation=2, steps=0)).figures.time == 0
    with pytest.raises(InputError, match="This simulation has ended"):
        ask(SaveBodies(str(tmp_path / "old.csv"), 1))
    assert not (tmp_path / "old.csv").exists()


def test_kernel_time_step_and_softening_change_on_the_way(ask: Any) -> None:
    ask(ASKED)
    changed = {**SMALL, "dt": 0.02, "softening": 0.2}
    result = ask(replace(ASKED, variant="naive", params=changed, measure=True))
    assert result.figures.time == pytest.approx(0.09)
    assert result.figures.conserved.drift == 0, "another softening is another energy"
    assert abs(ask(replace(ASKED, variant="split", params=changed, measure=True)).figures.conserved.drift) < 1e-3


def test_no_steps_draw_only(ask: Any) -> None:
    ask(replace(ASKED, width=0, height=0))
    result = ask(replace(ASKED, steps=0))
    assert result.figures.steps == 3
    assert result.figures.kernel_ms == result.figures.interactions_per_s == result.figures.gflops == 0
    assert result.figures.conserved is None
    picture = result.arrays["picture"].open()
    assert (picture.shape, picture.dtype) == ((60, 90, 3), np.uint8)
    assert picture.max() > 100


def test_steps_are_timed_and_the_rest_is_not(ask: Any) -> None:
    figures = ask(replace(ASKED, measure=True)).figures
    assert figures.kernel_ms > 0
    assert figures.interactions_per_s == pytest.approx(3 * 60**2 / figures.kernel_ms * 1e3)
    assert figures.gflops == pytest.approx(20e-9 * figures.interactions_per_s)
    assert figures.conserved.total == pytest.approx(figures.conserved.kinetic + figures.conserved.potential)
    assert figures.measuring_ms > 0
    assert ask(ASKED).figures.measuring_ms == 0


def test_given_bodies_are_simulated(ask: Any, folder: SharedFolder, tmp_path: Path) -> None:
    given = np.random.default_rng(1).random((5, 7), np.float32)
    ask(replace(ASKED, bodies=folder.put(given), steps=0))
    np.testing.assert_array_equal(read_bodies(ask, 1, tmp_path), given)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"width": 9000}, "1 to 8192 pixels per side, not 9000 x 60"),
        ({"color": "mass"}, "colored by speed or origin, not by 'mass'"),
        ({"camera": Camera(distance=0.0)}, "its distance above 0"),
        ({"camera": Camera(yaw=float("nan"))}, "numbers have to be finite"),
        ({"exposure": -1.0}, "the exposure at least 0"),
        ({"steps": -1}, "0 to 1000000 steps, not -1"),
        ({"variant": "fast"}, "no variant 'fast'; there are naive"),
        ({"params": {"dt": 0}}, "--dt is a number from"),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_is_lost(ask: Any, wrong: dict[str, Any], message: str) -> None:
    ask(ASKED)
    with pytest.raises(InputError, match=message):
        ask(replace(ASKED, **wrong))
    assert ask(replace(ASKED, steps=0)).figures.steps == 3


def test_bodies_that_are_none_are_refused(ask: Any, folder: SharedFolder) -> None:
    ask(ASKED)
    for given, message in (
        (np.zeros((3, 6), np.float32), "3 x 6 numbers; a body has seven"),
        (np.zeros((0, 7), np.float32), "0 bodies; 1 to 1048576"),
        (np.full((2, 7), np.nan, np.float32), "body 1: numbers have to be finite"),
    ):
        with pytest.raises(InputError, match=message):
            ask(replace(ASKED, simulation=2, bodies=folder.put(given)))
    assert ask(replace(ASKED, steps=0)).figures.steps == 3


def test_a_kernel_that_fails_ends_the_simulation(folder: SharedFolder) -> None:
    engine = SimulatorEngine("lockstep")
    edited = (KERNELS / "nbody.cu").read_text().replace("accelerations[i] = ", "accelerations[i + n] = ")

    def ask(request: AdvanceBodies) -> BodiesResult:
        return execute_request(engine, request, folder, lambda progress: None)

    ask(ASKED)
    with pytest.raises(LaunchError):
        ask(replace(ASKED, sources={"nbody.cu": edited}))
    assert ask(ASKED).figures.steps == 3, "it begins anew"
    discard_simulation(engine)


def test_the_body_is_picked_that_the_picture_shows(ask: Any, folder: SharedFolder) -> None:
    bodies = np.zeros((3, 7), np.float32)
    bodies[:, :3] = (-1, 0, 0.4), (1, 0.3, -0.5), (0.2, -60, 0)
    bodies[:, 6] = 1
    drawn = replace(ASKED, simulation=9, bodies=folder.put(bodies), steps=0, width=120, height=90)
    picture = ask(drawn).arrays["picture"].open().sum(axis=2, dtype=int)
    found = []
    for columns in (slice(0, 60), slice(60, 120)):
        half = picture[:, columns]
        y, x = np.unravel_index(half.argmax(), half.shape)
        place = PickBody(9, drawn.camera, 120, 90, float(x + columns.start), float(y))
        answer = ask(place)
        found.append(answer.number)
        assert np.array_equal(answer.arrays["bodies"].open(), bodies)
    # The third is behind the camera.
    assert sorted(found) == [0, 1]
    assert ask(PickBody(9, drawn.camera, 120, 90, 2.0, 2.0)).number == -1
    with pytest.raises(InputError, match="This simulation has ended"):
        ask(PickBody(8, drawn.camera, 120, 90, 2.0, 2.0))
