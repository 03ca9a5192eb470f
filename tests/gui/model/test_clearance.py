"""An edited kernel reaches the GPU only past the simulator's checkers, or by the user's word."""

from __future__ import annotations

from dataclasses import replace

import pytest
from PyQt6.QtCore import Qt

from gpu.messages.events import Failure, Ready
from gpu.messages.runs.pattern_runs import CheckPattern
from tests.gui.conftest import DEVICE, FakeHost, wait_until_idle
from tests.gui.editor.test_editing import type_at

GPU = replace(DEVICE, engine="cuda", name="a GPU")


@pytest.fixture
def on_gpu(qtbot, window):
    """The window with an engine that says it is a GPU, and the host of the simulator's process."""
    window.host.deliver(0, Ready(GPU))
    qtbot.waitUntil(lambda: "a GPU" in window.status.device.text())
    assert window.bench.side_jobs.started
    window.side = FakeHost.instances[-1]
    return window


def start_run(qtbot, window):
    qtbot.mouseClick(window.header.run, Qt.MouseButton.LeftButton)


def check_requests(window):
    return [request for request in window.side.requests if isinstance(request, CheckPattern)]


def test_what_is_not_edited_runs_at_once(qtbot, on_gpu):
    start = len(on_gpu.host.runs("convolution"))
    start_run(qtbot, on_gpu)
    wait_until_idle(qtbot, on_gpu)
    assert len(on_gpu.host.runs("convolution")) == start + 1
    assert not check_requests(on_gpu)


def verdict(window):
    return window.page.numbers.verdict.text()


def edited(qtbot, window, comment):
    """Type a comment behind a barrier, and run with the check held back; return the line."""
    window.choose_variant("tiled")
    wait_until_idle(qtbot, window)
    line = type_at(qtbot, window, "__syncthreads();", f" // {comment}")
    side = host_of_simulator(qtbot, window)
    side.answers_later = True
    start_run(qtbot, window)
    qtbot.waitUntil(lambda: any(isinstance(request, CheckPattern) for request in side.pending.values()))
    return line, side


def host_of_simulator(qtbot, window):
    assert window.bench.side_jobs.started
    qtbot.waitUntil(lambda: window.page.source.document.checked)
    return FakeHost.instances[-1]


def test_on_the_simulator_it_runs_at_once_and_is_verified_when_it_has_been_checked(qtbot, window):
    _, side = edited(qtbot, window, "fine")
    assert window.host.runs("convolution")[-1].sources
    assert verdict(window) == "right; checking for races…"
    side.answers_later = False
    side.answer_all()
    qtbot.waitUntil(lambda: verdict(window) == "✓ verified")
    assert "2 other schedules" in window.page.numbers.verdict.toolTip()
    start_run(qtbot, window)
    wait_until_idle(qtbot, window)
    assert verdict(window) == "✓ verified"
    assert len([each for each in side.requests if isinstance(each, CheckPattern)]) == 1


def test_a_right_result_of_a_kernel_that_races_is_not_verified(qtbot, window):
    _, side = edited(qtbot, window, "RACE")
    side.answers_later = False
    side.answer_all()
    line = window.page.source.code.textCursor().blockNumber() + 1
    qtbot.waitUntil(lambda: verdict(window) == f"right by chance: race in line {line}")
    assert window.page.numbers.verdict.property("badge") == "bad"
    assert [problem.line for problem in window.page.source.code.problems] == [line]
    start_run(qtbot, window)
    wait_until_idle(qtbot, window)
    assert verdict(window) == f"right by chance: race in line {line}"


def test_what_could_not_be_checked_is_not_verified(qtbot, window):
    _, side = edited(qtbot, window, "fine")
    side.answer(Failure("input", "There is not enough memory for this."))
    qtbot.waitUntil(lambda: verdict(window) == "right, but not checked")
    assert "There is not enough memory" in " ".join(window.page.numbers.verdict.toolTip().split())


def test_a_check_of_another_text_says_nothing_of_this_one(qtbot, window):
    _, side = edited(qtbot, window, "RACE")
    window.page.source.code.undo()
    start_run(qtbot, window)
    side.answers_later = False
    side.answer_all()
    wait_until_idle(qtbot, window)
    qtbot.waitUntil(lambda: not side.pending)
    assert "race" not in verdict(window)


def test_an_edited_text_runs_once_it_has_passed_and_is_not_checked_twice(qtbot, on_gpu):
    type_at(qtbot, on_gpu, "__syncthreads();", " // fine")
    start = len(on_gpu.host.runs("convolution"))
    on_gpu.side.answers_later = True
    start_run(qtbot, on_gpu)
    qtbot.waitUntil(lambda: bool(check_requests(on_gpu)) or bool(on_gpu.side.answer_all()))
    assert len(on_gpu.host.runs("convolution")) == start
    assert on_gpu.header.stop.isEnabled()
    assert not on_gpu.is_idle
    on_gpu.side.answers_later = False
    on_gpu.side.answer_all()
    qtbot.waitUntil(lambda: len(on_gpu.host.runs("convolution")) == start + 1)
    wait_until_idle(qtbot, on_gpu)
    check = check_requests(on_gpu)[-1]
    ran = on_gpu.host.runs("convolution")[-1]
    assert check.sources == ran.sources
    assert (check.pattern, check.variant, check.params, check.inputs) == (
        ran.pattern, ran.variant, ran.params, ran.inputs,
    )  # fmt: skip
    start_run(qtbot, on_gpu)
    wait_until_idle(qtbot, on_gpu)
    assert len(check_requests(on_gpu)) == 1
    on_gpu.choose_variant("constant")
    wait_until_idle(qtbot, on_gpu)
    assert len(check_requests(on_gpu)) == 2


def refused(qtbot, window):
    type_at(qtbot, window, "__syncthreads();", " // RACE")
    start_run(qtbot, window)
    qtbot.waitUntil(window.banner.isVisible)


def test_findings_keep_it_from_the_gpu_and_are_shown_at_their_lines(qtbot, on_gpu):
    start = len(on_gpu.host.runs("convolution"))
    refused(qtbot, on_gpu)
    assert "did not run on the GPU" in on_gpu.banner.message.text()
    line = on_gpu.page.source.code.textCursor().blockNumber() + 1
    assert on_gpu.banner.detail.toPlainText() == f"line {line}: RACE {line}"
    assert [problem.line for problem in on_gpu.page.source.code.problems] == [line]
    assert len(on_gpu.host.runs("convolution")) == start
    assert not on_gpu.header.stop.isEnabled()
    start_run(qtbot, on_gpu)
    qtbot.waitUntil(lambda: len(check_requests(on_gpu)) == 2)
    assert len(on_gpu.host.runs("convolution")) == start


def test_the_user_may_run_it_all_the_same_and_is_not_asked_again_until_the_text_changes(qtbot, on_gpu):
    start = len(on_gpu.host.runs("convolution"))
    refused(qtbot, on_gpu)
    assert on_gpu.banner.action.text() == "Run on the GPU anyway"
    qtbot.mouseClick(on_gpu.banner.action, Qt.MouseButton.LeftButton)
    wait_until_idle(qtbot, on_gpu)
    assert not on_gpu.banner.isVisible()
    start_run(qtbot, on_gpu)
    wait_until_idle(qtbot, on_gpu)
    assert len(on_gpu.host.runs("convolution")) == start + 2
    assert len(check_requests(on_gpu)) == 1
    type_at(qtbot, on_gpu, "// RACE", " more")
    start_run(qtbot, on_gpu)
    qtbot.waitUntil(on_gpu.banner.isVisible)
    assert len(on_gpu.host.runs("convolution")) == start + 2


def test_a_check_that_fails_is_no_pass(qtbot, on_gpu):
    start = len(on_gpu.host.runs("convolution"))
    type_at(qtbot, on_gpu, "__syncthreads();", " // fine")
    qtbot.waitUntil(lambda: on_gpu.page.source.document.checked)
    on_gpu.side.answers_later = True
    start_run(qtbot, on_gpu)
    qtbot.waitUntil(lambda: bool(check_requests(on_gpu)))
    on_gpu.side.answer(Failure("compile", "It does not compile.", "", "the log"))
    qtbot.waitUntil(on_gpu.banner.isVisible)
    assert "It does not compile." in on_gpu.banner.message.text()
    assert on_gpu.banner.detail.toPlainText() == "the log"
    assert len(on_gpu.host.runs("convolution")) == start


def test_stop_ends_the_check_and_nothing_runs(qtbot, on_gpu):
    start = len(on_gpu.host.runs("convolution"))
    type_at(qtbot, on_gpu, "__syncthreads();", " // fine")
    qtbot.waitUntil(lambda: on_gpu.page.source.document.checked)
    on_gpu.side.answers_later = True
    start_run(qtbot, on_gpu)
    qtbot.waitUntil(lambda: bool(check_requests(on_gpu)))
    qtbot.mouseClick(on_gpu.header.stop, Qt.MouseButton.LeftButton)
    assert on_gpu.side.cancels == 1
    qtbot.wait(50)
    assert len(on_gpu.host.runs("convolution")) == start
    assert not on_gpu.banner.isVisible()
    assert not on_gpu.header.stop.isEnabled()


def test_a_check_that_is_no_longer_waited_for_runs_nothing(qtbot, on_gpu):
    start = len(on_gpu.host.runs("convolution"))
    type_at(qtbot, on_gpu, "__syncthreads();", " // fine")
    qtbot.waitUntil(lambda: on_gpu.page.source.document.checked)
    on_gpu.side.answers_later = True
    start_run(qtbot, on_gpu)
    qtbot.waitUntil(lambda: bool(check_requests(on_gpu)))
    on_gpu.choose_pattern("histogram")
    on_gpu.side.answers_later = False
    on_gpu.side.answer_all()
    wait_until_idle(qtbot, on_gpu)
    assert len(on_gpu.host.runs("convolution")) == start


def test_an_engine_that_has_not_said_what_it_is_counts_as_a_gpu(qtbot, window):
    type_at(qtbot, window, "__syncthreads();", " // RACE")
    window.bench._device_engine = ""
    start = len(window.host.runs("convolution"))
    start_run(qtbot, window)
    qtbot.waitUntil(window.banner.isVisible)
    assert len(window.host.runs("convolution")) == start
