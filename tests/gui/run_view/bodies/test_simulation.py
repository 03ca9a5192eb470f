"""What is asked of the engine while a simulation is played, and when."""

from __future__ import annotations

import time

import pytest
from PyQt6.QtCore import Qt

from gpu.messages.events import Failure, Ready
from gpu.messages.runs.pattern_runs import RunPattern
from gui.run_view.bodies.simulation import FRAME_S
from tests.gui.conftest import DEVICE, wait_until_idle
from tests.gui.run_view.bodies.conftest import body_requests, wait_for_picture, wait_for_simulation


def start_simulation(window):
    window.view.controls.buttons["play"].click()


def test_the_first_picture_comes_unasked_and_moves_nothing(qtbot, make_window):
    window = make_window()
    window.choose_pattern("nbody")
    bodies = wait_for_picture(qtbot, window)
    requests = body_requests(bodies)
    assert requests[0].measure is False
    assert all(request.steps == 0 for request in requests)
    assert {request.simulation for request in requests} == {bodies.view.simulation.number}
    assert any(request.measure and request.width == 0 for request in requests), "what is conserved is measured apart"
    assert bodies.view.plots.histories[0].times.tolist() == [0.0]


def test_it_plays_one_request_at_a_time_and_pauses(qtbot, bodies):
    bodies.host.answers_later = True
    before = len(body_requests(bodies))
    start_simulation(bodies)
    for frames in range(1, 5):
        qtbot.waitUntil(lambda: len(bodies.host.pending) == 1)
        qtbot.wait(30)
        assert len(body_requests(bodies)) == before + frames, "nothing piles up"
        bodies.host.answer()
        qtbot.waitUntil(lambda frames=frames: len(body_requests(bodies)) == before + frames + 1)
    assert all(request.steps == 1 for request in body_requests(bodies)[before:])
    start_simulation(bodies)
    bodies.host.answers_later = False
    bodies.host.answer_all()
    wait_for_simulation(qtbot, bodies)
    assert len(body_requests(bodies)) == before + 5
    assert bodies.view.frame.figures.steps == 5


def test_frames_are_no_faster_than_a_screen(qtbot, bodies):
    before, began = len(body_requests(bodies)), time.perf_counter()
    start_simulation(bodies)
    qtbot.waitUntil(lambda: len(body_requests(bodies)) >= before + 20, timeout=20_000)
    start_simulation(bodies)
    # The first is due at once, and one that came late does not put off the next.
    assert len(body_requests(bodies)) - before <= (time.perf_counter() - began) / FRAME_S + 3


def test_a_frame_that_is_not_painted_holds_the_next_back(qtbot, bodies):
    bodies.view.canvas.painted.disconnect()
    before = len(body_requests(bodies))
    start_simulation(bodies)
    qtbot.wait(200)
    # One is asked for when the one before has come, and it is not painted.
    assert len(body_requests(bodies)) <= before + 2
    start_simulation(bodies)


def test_the_next_frame_has_what_is_chosen_by_then(qtbot, bodies):
    bodies.host.answers_later = True
    start_simulation(bodies)
    qtbot.waitUntil(lambda: len(bodies.host.pending) == 1)
    bodies.choose_variant("tiled")
    bodies.page.form.change_values(dt=0.25, softening=0.5)
    bodies.view.controls.speed.setCurrentIndex(3)
    bodies.view.controls.color.choose("origin")
    number = body_requests(bodies)[-1].simulation
    assert body_requests(bodies)[-1].variant == bodies.page.pattern.first_rung.name
    bodies.host.answer()
    qtbot.waitUntil(lambda: len(bodies.host.pending) == 1)
    request = body_requests(bodies)[-1]
    assert (request.variant, request.params["dt"], request.params["softening"]) == ("tiled", 0.25, 0.5)
    assert (request.steps, request.color, request.simulation) == (10, "origin", number)
    start_simulation(bodies)


@pytest.mark.parametrize("change", [{"preset": "plummer"}, {"bodies": 77}])
def test_other_bodies_begin_anew(qtbot, bodies, change):
    start_simulation(bodies)
    qtbot.waitUntil(lambda: bodies.view.frame.figures.steps > 3)
    number = bodies.view.simulation.number
    bodies.page.form.change_values(**change)
    qtbot.waitUntil(lambda: bodies.view.frame is not None and body_requests(bodies)[-1].simulation != number)
    qtbot.waitUntil(lambda: bodies.view.frame is not None and 0 < bodies.view.frame.figures.steps < 5)
    assert bodies.view.playing
    for name, value in change.items():
        assert body_requests(bodies)[-1].params[name] == value
    start_simulation(bodies)


def test_a_preset_brings_its_time_step(qtbot, bodies):
    bodies.page.form.change_values(dt=0.25, softening=0.5)
    bodies.page.form.change_values(preset="figure-eight")
    wait_for_simulation(qtbot, bodies)
    params = body_requests(bodies)[-1].params
    assert (params["dt"], params["softening"]) == (0.005, 0.0)
    assert bodies.page.form.values["softening"] == "0"
    assert "figure" in bodies.view.description.toolTip() or "curve" in bodies.view.description.toolTip()


def test_a_single_step_is_measured(qtbot, bodies):
    before = len(body_requests(bodies))
    bodies.view.controls.buttons["step"].click()
    wait_for_simulation(qtbot, bodies)
    requests = body_requests(bodies)[before:]
    assert [(request.steps, request.measure) for request in requests] == [(1, True)]
    assert bodies.view.frame.figures.steps == 1


def test_the_beginning_is_a_new_simulation(qtbot, bodies):
    bodies.view.controls.buttons["step"].click()
    wait_for_simulation(qtbot, bodies)
    number = body_requests(bodies)[-1].simulation
    bodies.view.controls.buttons["first"].click()
    wait_for_simulation(qtbot, bodies)
    assert body_requests(bodies)[-1].simulation != number
    assert bodies.view.frame.figures.steps == 0
    assert len(bodies.view.plots.histories[1].times) == 0


def test_measuring_keeps_to_its_share_of_the_time(qtbot, bodies):
    start_simulation(bodies)
    qtbot.wait(700)
    start_simulation(bodies)
    moved = [request for request in body_requests(bodies) if request.steps]
    measured = sum(request.measure for request in moved)
    assert 1 <= measured <= 5
    assert measured < len(moved)


def test_measuring_that_takes_long_is_done_seldom(qtbot, bodies):
    def measured():
        return sum(request.measure for request in body_requests(bodies) if request.steps)

    bodies.host.measuring_ms = 20_000.0
    start_simulation(bodies)
    qtbot.waitUntil(lambda: measured() == 1)
    qtbot.wait(400)
    start_simulation(bodies)
    assert measured() == 1


def test_more_steps_a_frame_are_measured_as_often(qtbot, bodies):
    start_simulation(bodies)
    qtbot.waitUntil(lambda: bodies.view.frame.figures.steps > 10)
    bodies.host.step_ms = 20.0
    bodies.view.controls.speed.setCurrentIndex(6)
    before = len(body_requests(bodies))
    qtbot.waitUntil(lambda: sum(request.measure for request in body_requests(bodies)[before:]) >= 3, timeout=20_000)
    start_simulation(bodies)


def test_pictures_come_often_however_slow_the_steps_are(qtbot, bodies):
    bodies.host.step_ms = 30.0
    bodies.view.controls.speed.setCurrentIndex(4)
    before = len(body_requests(bodies))
    start_simulation(bodies)
    qtbot.waitUntil(lambda: len(body_requests(bodies)) >= before + 4)
    start_simulation(bodies)
    wait_for_simulation(qtbot, bodies)
    assert [request.steps for request in body_requests(bodies)[before:]][:4] == [20, 3, 3, 3], (
        "at least ten pictures a second"
    )
    bodies.host.step_ms = 300.0
    start_simulation(bodies)
    qtbot.waitUntil(lambda: body_requests(bodies)[-1].steps == 1)
    start_simulation(bodies)
    wait_for_simulation(qtbot, bodies)
    bodies.host.step_ms = 0.01
    start_simulation(bodies)
    qtbot.waitUntil(lambda: body_requests(bodies)[-1].steps == 20)
    start_simulation(bodies)


def test_a_single_step_is_one_however_many_a_frame_has(qtbot, bodies):
    bodies.view.controls.speed.setCurrentIndex(4)
    bodies.view.controls.buttons["step"].click()
    wait_for_simulation(qtbot, bodies)
    assert bodies.view.frame.figures.steps == 1


def test_nothing_is_asked_for_while_nobody_looks(qtbot, bodies):
    start_simulation(bodies)
    qtbot.waitUntil(lambda: bodies.view.frame.figures.steps > 2)
    bodies.page.tabs.setCurrentIndex(1)
    wait_for_simulation(qtbot, bodies)
    before = len(body_requests(bodies))
    qtbot.wait(80)
    assert len(body_requests(bodies)) == before
    bodies.page.tabs.setCurrentIndex(0)
    qtbot.waitUntil(lambda: len(body_requests(bodies)) > before + 2)
    assert body_requests(bodies)[-1].simulation == body_requests(bodies)[before - 1].simulation, (
        "it goes on where it stood"
    )
    start_simulation(bodies)


def test_a_kernel_is_verified_when_the_bodies_stand_still(qtbot, bodies):
    def verified():
        return [request for request in bodies.host.requests if isinstance(request, RunPattern)]

    start_simulation(bodies)
    before = len(verified())
    bodies.choose_variant("tiled")
    qtbot.wait(100)
    assert len(verified()) == before, "not while it is played"
    start_simulation(bodies)
    qtbot.waitUntil(lambda: len(verified()) == before + 1)
    assert (verified()[-1].variant, verified()[-1].verify) == ("tiled", True)


def test_an_edited_kernel_counts_once_it_has_run(qtbot, bodies):
    document = bodies.bench.sources.document("nbody.cu")
    edited = document.text + "// edited\n"
    document.replace(edited)
    bodies.view.controls.buttons["step"].click()
    wait_for_simulation(qtbot, bodies)
    assert body_requests(bodies)[-1].sources == {}
    bodies.jobs.device = bodies.jobs.device
    bodies.bench._device_engine = "simulator"
    qtbot.keyClick(bodies, Qt.Key.Key_F5)
    qtbot.waitUntil(lambda: body_requests(bodies)[-1].sources == {"nbody.cu": edited})
    assert bodies.view.playing
    start_simulation(bodies)


# --- what goes wrong


def test_stop_stands_still(qtbot, bodies):
    start_simulation(bodies)
    qtbot.waitUntil(lambda: bodies.view.frame.figures.steps > 2)
    assert bodies.header.stop.isEnabled()
    qtbot.mouseClick(bodies.header.stop, Qt.MouseButton.LeftButton)
    wait_for_simulation(qtbot, bodies)
    assert not bodies.view.playing
    assert bodies.host.cancels == 0, "a short request comes to its end, and the simulation is kept"
    number, steps = body_requests(bodies)[-1].simulation, bodies.view.frame.figures.steps
    start_simulation(bodies)
    qtbot.waitUntil(lambda: bodies.view.frame.figures.steps > steps)
    assert body_requests(bodies)[-1].simulation == number
    start_simulation(bodies)


def test_stop_ends_a_request_that_takes_long_and_it_begins_again(qtbot, bodies, monkeypatch):
    bodies.host.answers_later = True
    start_simulation(bodies)
    qtbot.waitUntil(lambda: len(bodies.host.pending) == 1)
    number = body_requests(bodies)[-1].simulation
    monkeypatch.setattr(bodies.jobs, "age", lambda channel: 5.0 if channel == "bodies" else 0.0)
    bodies.host.answers_later = False
    qtbot.keyClick(bodies, Qt.Key.Key_Escape)
    assert bodies.host.cancels == 1
    monkeypatch.undo()
    start_simulation(bodies)
    qtbot.waitUntil(lambda: bodies.view.frame is not None and bodies.view.frame.figures.steps > 2)
    assert body_requests(bodies)[-1].simulation != number
    start_simulation(bodies)


def test_an_engine_that_dies_is_told_and_not_asked_again_at_once(qtbot, bodies):
    bodies.host.answers_later = True
    start_simulation(bodies)
    qtbot.waitUntil(lambda: len(bodies.host.pending) == 1)
    bodies.host.answer(Failure("crash", "The engine's process has ended.", "It was started anew."))
    bodies.host.deliver(0, Ready(DEVICE))
    qtbot.waitUntil(bodies.banner.isVisible)
    qtbot.wait(60)
    assert bodies.banner.message.text() == "The engine's process has ended."
    assert bodies.host.pending == {}
    assert not bodies.view.playing
    number = body_requests(bodies)[-1].simulation
    bodies.host.answers_later = False
    start_simulation(bodies)
    qtbot.waitUntil(lambda: bodies.view.frame is not None and bodies.view.frame.figures.steps > 1)
    assert body_requests(bodies)[-1].simulation != number
    start_simulation(bodies)


def test_a_refused_request_leaves_the_simulation_as_it_was(qtbot, bodies):
    bodies.host.answers_later = True
    start_simulation(bodies)
    qtbot.waitUntil(lambda: len(bodies.host.pending) == 1)
    number = body_requests(bodies)[-1].simulation
    bodies.host.answer(Failure("input", "There is no room.", "Take fewer bodies."))
    qtbot.waitUntil(bodies.banner.isVisible)
    assert not bodies.view.playing
    bodies.host.answers_later = False
    bodies.host.answer_all()
    start_simulation(bodies)
    qtbot.waitUntil(lambda: bodies.view.frame.figures.steps > 1)
    assert body_requests(bodies)[-1].simulation == number
    start_simulation(bodies)


def test_another_engine_begins_anew(qtbot, bodies):
    start_simulation(bodies)
    qtbot.waitUntil(lambda: bodies.view.frame.figures.steps > 2)
    number = body_requests(bodies)[-1].simulation
    bodies.set_engine("simulator")
    bodies.host = type(bodies.host).instances[-1]
    qtbot.waitUntil(lambda: len(body_requests(bodies)) > 2)
    assert body_requests(bodies)[-1].simulation != number
    start_simulation(bodies)


def test_other_patterns_run_while_bodies_play_unseen(qtbot, bodies):
    start_simulation(bodies)
    bodies.choose_pattern("scan")
    wait_until_idle(qtbot, bodies)
    assert bodies.page.numbers.verdict.text() == "✓ verified"
    bodies.choose_variant("naive")
    qtbot.waitUntil(lambda: bodies.bench.outcomes["scan"].variant == "naive")
    before = len(bodies.host.runs("nbody"))
    bodies.choose_pattern("nbody")
    qtbot.waitUntil(lambda: bodies.view.frame.figures.steps > 3)
    assert bodies.view.simulation.playing
    assert len(bodies.host.runs("nbody")) == before, "while they play they are not verified"
