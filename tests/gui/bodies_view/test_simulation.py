"""What is asked of the engine while a simulation is played, and when."""

from __future__ import annotations

import time

import pytest
from PyQt6.QtCore import Qt

from gpu.messages.requests import Failure, Ready, RunPattern
from gui.bodies_view.simulation import FRAME_S
from tests.gui.bodies_view.conftest import asked, rest
from tests.gui.conftest import DEVICE, settle


def play(window):
    window.view.controls.buttons["play"].click()


def test_the_first_picture_comes_unasked_and_moves_nothing(bodies):
    requests = asked(bodies)
    assert requests[0].measure is False
    assert all(request.steps == 0 for request in requests)
    assert {request.simulation for request in requests} == {bodies.view.simulation.number}
    assert any(request.measure and request.width == 0 for request in requests), "what is conserved is measured apart"
    assert bodies.view.plots.histories[0].times.tolist() == [0.0]


def test_it_plays_one_request_at_a_time_and_pauses(qtbot, bodies):
    bodies.host.patient = True
    before = len(asked(bodies))
    play(bodies)
    for frames in range(1, 5):
        qtbot.waitUntil(lambda: len(bodies.host.open) == 1)
        qtbot.wait(30)
        assert len(asked(bodies)) == before + frames, "nothing piles up"
        bodies.host.answer()
        qtbot.waitUntil(lambda frames=frames: len(asked(bodies)) == before + frames + 1)
    assert all(request.steps == 1 for request in asked(bodies)[before:])
    play(bodies)
    bodies.host.patient = False
    bodies.host.answer_all()
    rest(qtbot, bodies)
    assert len(asked(bodies)) == before + 5
    assert bodies.view.frame.figures.steps == 5


def test_frames_are_no_faster_than_a_screen(qtbot, bodies):
    before, began = len(asked(bodies)), time.perf_counter()
    play(bodies)
    qtbot.waitUntil(lambda: len(asked(bodies)) >= before + 20, timeout=20_000)
    play(bodies)
    # The first is due at once, and one that came late does not put off the next.
    assert len(asked(bodies)) - before <= (time.perf_counter() - began) / FRAME_S + 3


def test_a_frame_that_is_not_painted_holds_the_next_back(qtbot, bodies):
    bodies.view.canvas.painted.disconnect()
    before = len(asked(bodies))
    play(bodies)
    qtbot.wait(200)
    # One is asked for when the one before has come, and it is not painted.
    assert len(asked(bodies)) <= before + 2
    play(bodies)


def test_the_next_frame_has_what_is_chosen_by_then(qtbot, bodies):
    bodies.host.patient = True
    play(bodies)
    qtbot.waitUntil(lambda: len(bodies.host.open) == 1)
    bodies.choose_variant("tiled")
    bodies.page.form.change(dt=0.25, softening=0.5)
    bodies.view.controls.speed.setCurrentIndex(3)
    bodies.view.controls.color.choose("origin")
    number = asked(bodies)[-1].simulation
    assert asked(bodies)[-1].variant == bodies.page.pattern.first_rung.name
    bodies.host.answer()
    qtbot.waitUntil(lambda: len(bodies.host.open) == 1)
    request = asked(bodies)[-1]
    assert (request.variant, request.params["dt"], request.params["softening"]) == ("tiled", 0.25, 0.5)
    assert (request.steps, request.color, request.simulation) == (10, "origin", number)
    play(bodies)


@pytest.mark.parametrize("change", [{"preset": "plummer"}, {"bodies": 77}])
def test_other_bodies_begin_anew(qtbot, bodies, change):
    play(bodies)
    qtbot.waitUntil(lambda: bodies.view.frame.figures.steps > 3)
    number = bodies.view.simulation.number
    bodies.page.form.change(**change)
    qtbot.waitUntil(lambda: bodies.view.frame is not None and asked(bodies)[-1].simulation != number)
    qtbot.waitUntil(lambda: bodies.view.frame is not None and 0 < bodies.view.frame.figures.steps < 5)
    assert bodies.view.playing
    for name, value in change.items():
        assert asked(bodies)[-1].params[name] == value
    play(bodies)


def test_a_preset_brings_its_time_step(qtbot, bodies):
    bodies.page.form.change(dt=0.25, softening=0.5)
    bodies.page.form.change(preset="figure-eight")
    rest(qtbot, bodies)
    params = asked(bodies)[-1].params
    assert (params["dt"], params["softening"]) == (0.005, 0.0)
    assert bodies.page.form.values["softening"] == "0"
    assert "figure" in bodies.view.about.toolTip() or "curve" in bodies.view.about.toolTip()


def test_a_single_step_is_measured(qtbot, bodies):
    before = len(asked(bodies))
    bodies.view.controls.buttons["step"].click()
    rest(qtbot, bodies)
    requests = asked(bodies)[before:]
    assert [(request.steps, request.measure) for request in requests] == [(1, True)]
    assert bodies.view.frame.figures.steps == 1


def test_the_beginning_is_a_new_simulation(qtbot, bodies):
    bodies.view.controls.buttons["step"].click()
    rest(qtbot, bodies)
    number = asked(bodies)[-1].simulation
    bodies.view.controls.buttons["first"].click()
    rest(qtbot, bodies)
    assert asked(bodies)[-1].simulation != number
    assert bodies.view.frame.figures.steps == 0
    assert len(bodies.view.plots.histories[1].times) == 0


def test_measuring_keeps_to_its_share_of_the_time(qtbot, bodies):
    play(bodies)
    qtbot.wait(700)
    play(bodies)
    moved = [request for request in asked(bodies) if request.steps]
    measured = sum(request.measure for request in moved)
    assert 1 <= measured <= 5
    assert measured < len(moved)


def test_measuring_that_takes_long_is_done_seldom(qtbot, bodies):
    def measured():
        return sum(request.measure for request in asked(bodies) if request.steps)

    bodies.host.measuring_ms = 20_000.0
    play(bodies)
    qtbot.waitUntil(lambda: measured() == 1)
    qtbot.wait(400)
    play(bodies)
    assert measured() == 1


def test_more_steps_a_frame_are_measured_as_often(qtbot, bodies):
    play(bodies)
    qtbot.waitUntil(lambda: bodies.view.frame.figures.steps > 10)
    bodies.host.step_ms = 20.0
    bodies.view.controls.speed.setCurrentIndex(6)
    before = len(asked(bodies))
    qtbot.waitUntil(lambda: sum(request.measure for request in asked(bodies)[before:]) >= 3, timeout=20_000)
    play(bodies)


def test_pictures_come_often_however_slow_the_steps_are(qtbot, bodies):
    bodies.host.step_ms = 30.0
    bodies.view.controls.speed.setCurrentIndex(4)
    before = len(asked(bodies))
    play(bodies)
    qtbot.waitUntil(lambda: len(asked(bodies)) >= before + 4)
    play(bodies)
    rest(qtbot, bodies)
    assert [request.steps for request in asked(bodies)[before:]][:4] == [20, 3, 3, 3], "at least ten pictures a second"
    bodies.host.step_ms = 300.0
    play(bodies)
    qtbot.waitUntil(lambda: asked(bodies)[-1].steps == 1)
    play(bodies)
    rest(qtbot, bodies)
    bodies.host.step_ms = 0.01
    play(bodies)
    qtbot.waitUntil(lambda: asked(bodies)[-1].steps == 20)
    play(bodies)


def test_a_single_step_is_one_however_many_a_frame_has(qtbot, bodies):
    bodies.view.controls.speed.setCurrentIndex(4)
    bodies.view.controls.buttons["step"].click()
    rest(qtbot, bodies)
    assert bodies.view.frame.figures.steps == 1


def test_nothing_is_asked_for_while_nobody_looks(qtbot, bodies):
    play(bodies)
    qtbot.waitUntil(lambda: bodies.view.frame.figures.steps > 2)
    bodies.page.tabs.setCurrentIndex(1)
    rest(qtbot, bodies)
    before = len(asked(bodies))
    qtbot.wait(80)
    assert len(asked(bodies)) == before
    bodies.page.tabs.setCurrentIndex(0)
    qtbot.waitUntil(lambda: len(asked(bodies)) > before + 2)
    assert asked(bodies)[-1].simulation == asked(bodies)[before - 1].simulation, "it goes on where it stood"
    play(bodies)


def test_a_kernel_is_verified_when_the_bodies_stand_still(qtbot, bodies):
    def verified():
        return [request for request in bodies.host.requests if isinstance(request, RunPattern)]

    play(bodies)
    before = len(verified())
    bodies.choose_variant("tiled")
    qtbot.wait(100)
    assert len(verified()) == before, "not while it is played"
    play(bodies)
    qtbot.waitUntil(lambda: len(verified()) == before + 1)
    assert (verified()[-1].variant, verified()[-1].verify) == ("tiled", True)


def test_an_edited_kernel_counts_once_it_has_run(qtbot, bodies):
    document = bodies.bench.sources.document("nbody.cu")
    edited = document.text + "// edited\n"
    document.replace(edited)
    bodies.view.controls.buttons["step"].click()
    rest(qtbot, bodies)
    assert asked(bodies)[-1].sources == {}
    bodies.jobs.device = bodies.jobs.device
    bodies.bench._device_engine = "simulator"
    qtbot.keyClick(bodies, Qt.Key.Key_F5)
    qtbot.waitUntil(lambda: asked(bodies)[-1].sources == {"nbody.cu": edited})
    assert bodies.view.playing
    play(bodies)


# --- what goes wrong


def test_stop_stands_still(qtbot, bodies):
    play(bodies)
    qtbot.waitUntil(lambda: bodies.view.frame.figures.steps > 2)
    assert bodies.header.stop.isEnabled()
    qtbot.mouseClick(bodies.header.stop, Qt.MouseButton.LeftButton)
    rest(qtbot, bodies)
    assert not bodies.view.playing
    assert bodies.host.cancels == 0, "a short request comes to its end, and the simulation is kept"
    number, steps = asked(bodies)[-1].simulation, bodies.view.frame.figures.steps
    play(bodies)
    qtbot.waitUntil(lambda: bodies.view.frame.figures.steps > steps)
    assert asked(bodies)[-1].simulation == number
    play(bodies)


def test_stop_ends_a_request_that_takes_long_and_it_begins_again(qtbot, bodies, monkeypatch):
    bodies.host.patient = True
    play(bodies)
    qtbot.waitUntil(lambda: len(bodies.host.open) == 1)
    number = asked(bodies)[-1].simulation
    monkeypatch.setattr(bodies.jobs, "age", lambda channel: 5.0 if channel == "bodies" else 0.0)
    bodies.host.patient = False
    qtbot.keyClick(bodies, Qt.Key.Key_Escape)
    assert bodies.host.cancels == 1
    monkeypatch.undo()
    play(bodies)
    qtbot.waitUntil(lambda: bodies.view.frame is not None and bodies.view.frame.figures.steps > 2)
    assert asked(bodies)[-1].simulation != number
    play(bodies)


def test_an_engine_that_dies_is_told_and_not_asked_again_at_once(qtbot, bodies):
    bodies.host.patient = True
    play(bodies)
    qtbot.waitUntil(lambda: len(bodies.host.open) == 1)
    bodies.host.answer(Failure("crash", "The engine's process has ended.", "It was started anew."))
    bodies.host.deliver(0, Ready(DEVICE))
    qtbot.waitUntil(bodies.banner.isVisible)
    qtbot.wait(60)
    assert bodies.banner.message.text() == "The engine's process has ended."
    assert bodies.host.open == {}
    assert not bodies.view.playing
    number = asked(bodies)[-1].simulation
    bodies.host.patient = False
    play(bodies)
    qtbot.waitUntil(lambda: bodies.view.frame is not None and bodies.view.frame.figures.steps > 1)
    assert asked(bodies)[-1].simulation != number
    play(bodies)


def test_a_refused_request_leaves_the_simulation_as_it_was(qtbot, bodies):
    bodies.host.patient = True
    play(bodies)
    qtbot.waitUntil(lambda: len(bodies.host.open) == 1)
    number = asked(bodies)[-1].simulation
    bodies.host.answer(Failure("input", "There is no room.", "Take fewer bodies."))
    qtbot.waitUntil(bodies.banner.isVisible)
    assert not bodies.view.playing
    bodies.host.patient = False
    bodies.host.answer_all()
    play(bodies)
    qtbot.waitUntil(lambda: bodies.view.frame.figures.steps > 1)
    assert asked(bodies)[-1].simulation == number
    play(bodies)


def test_another_engine_begins_anew(qtbot, bodies):
    play(bodies)
    qtbot.waitUntil(lambda: bodies.view.frame.figures.steps > 2)
    number = asked(bodies)[-1].simulation
    bodies.set_engine("simulator")
    bodies.host = type(bodies.host).made[-1]
    qtbot.waitUntil(lambda: len(asked(bodies)) > 2)
    assert asked(bodies)[-1].simulation != number
    play(bodies)


def test_other_patterns_run_while_bodies_play_unseen(qtbot, bodies):
    play(bodies)
    bodies.choose_pattern("scan")
    settle(qtbot, bodies)
    assert bodies.page.numbers.verdict.text() == "✓ verified"
    bodies.choose_variant("naive")
    qtbot.waitUntil(lambda: bodies.bench.outcomes["scan"].variant == "naive")
    before = len(bodies.host.runs("nbody"))
    bodies.choose_pattern("nbody")
    qtbot.waitUntil(lambda: bodies.view.frame.figures.steps > 3)
    assert bodies.view.simulation.playing
    assert len(bodies.host.runs("nbody")) == before, "while they play they are not verified"
