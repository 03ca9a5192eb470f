"""A recording that was saved: opened, played beside the text that it was made of, and never run."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest
from PyQt6.QtCore import QMimeData, QPoint, Qt, QUrl
from PyQt6.QtGui import QDragEnterEvent

from gpu.kernel.simulate import simulate
from gpu.messages.kernels import KernelLaunch
from gpu.messages.modeled_time import ModelPattern
from gpu.run.kernel_launch import record_kernel
from gui.user_kernel.saved_recording import RecordedPage
from tests.attacks.recordings import change_members
from tests.gui.conftest import FakeHost, wait_until_idle
from tests.gui.window.test_main_window import drop_path, press_key

TEXT = """__device__ int twice(int x) { return x + x; }

__global__ void rotate(const int *in, int *out, int n) {
    __shared__ int s[8];
    s[threadIdx.x] = twice(in[threadIdx.x]);
    __syncthreads();
    out[threadIdx.x] = s[(threadIdx.x + 1) % n];
}
"""


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A recording, whose kernel's file is gone."""
    path = tmp_path_factory.mktemp("saved") / "rotate.lockstep"
    arguments = ("arange:8", "zeros:8", "8")
    record_kernel(KernelLaunch("gone.cu", TEXT, "rotate", (1,), (8,), arguments), "round-robin").save(path)
    return path


@pytest.fixture
def recording(saved, tmp_path):
    """A copy of the recording, which a test may damage."""
    return shutil.copy(saved, tmp_path / saved.name)


@pytest.fixture
def trace(tmp_path):
    """What `simulate --trace` writes."""
    simulation = simulate("gone.cu", "rotate", 1, 8, ["arange:8", "zeros:8", "8"], source=TEXT, traced=True)
    simulation.trace.save(tmp_path / "rotate.trace")
    return tmp_path / "rotate.trace"


def open_recording(qtbot, window, path):
    assert drop_path(window, path)
    qtbot.waitUntil(lambda: window.user_file.visible_page is not None and window.user_file.visible_page.path == path)
    page = window.user_file.visible_page
    assert isinstance(page, RecordedPage)
    qtbot.waitUntil(lambda: page.step.is_up_to_date)
    return page


@pytest.mark.parametrize("kind", ["recording", "trace"])
def test_a_recording_is_played_beside_the_text_that_it_was_made_of(qtbot, window, request, kind):
    asked = {id(each) for host in FakeHost.instances for each in host.requests}
    page = open_recording(qtbot, window, request.getfixturevalue(kind))
    step = page.step
    assert page.source.code.toPlainText() == TEXT
    assert page.source.title.text() == "gone.cu"
    assert step.player.moment == 0
    step.setFocus()
    qtbot.keyClick(step, Qt.Key.Key_End)
    assert step.models.recording.event_count == step.player.moment > 0
    recorded = step.models.recording.launches[0].trace
    assert np.array_equal(recorded.array("out", len(recorded.events)), 2 * np.roll(np.arange(8), -1))
    assert "out[0] = s[1] = 2" in step.panes.statement.text()
    since = [each for host in FakeHost.instances for each in host.requests if id(each) not in asked]
    assert all(isinstance(each, ModelPattern) for each in since)  # of the pattern that stood there before


def test_its_text_is_read_only_and_what_would_have_to_run_is_not_offered(qtbot, window, recording):
    page = open_recording(qtbot, window, recording)
    page.source.code.setFocus()
    qtbot.keyClicks(page.source.code, "x")
    assert page.source.code.toPlainText() == TEXT
    assert not page.source.revert.isVisible()
    assert not page.source.open.isVisible()
    assert page.source.save.isVisible()
    assert not page.step.panes.kinds.buttons["Two schedules"].isVisible()
    assert window.header.title.text() == "Recording"
    assert window.sidebar.own.text() == "Recording"


def test_keys_of_tabs_that_it_has_not_do_nothing(qtbot, window, recording):
    page = open_recording(qtbot, window, recording)
    for key in (Qt.Key.Key_F2, Qt.Key.Key_F3, Qt.Key.Key_F4):
        press_key(qtbot, window, key)
    assert window.user_file.visible_page is page


def test_it_is_saved_again_as_it_was(qtbot, window, recording, tmp_path):
    page = open_recording(qtbot, window, recording)
    assert page.step.exports.write_recording(tmp_path / "copy.lockstep")
    assert (tmp_path / "copy.lockstep").read_bytes() == recording.read_bytes()
    assert window.status.message_label.text() == "Saved copy.lockstep"
    assert not page.step.exports.write_picture(tmp_path / "nowhere" / "copy.png")
    assert window.banner.isVisible()
    assert "copy.png: there is no folder" in window.banner.message.text()


@pytest.fixture
def damaged(recording, tmp_path):
    path = tmp_path / "damaged.lockstep"
    path.write_bytes(recording.read_bytes()[:200])
    return path


@pytest.mark.parametrize("before", ["pattern", "kernel", "recording"])
def test_a_file_that_is_no_recording_says_so_and_leaves_what_was_there(
    qtbot, window, recording, damaged, tmp_path, before
):
    if before == "recording":
        open_recording(qtbot, window, recording)
    elif before == "kernel":
        (tmp_path / "mine.cu").write_text(TEXT)
        assert drop_path(window, tmp_path / "mine.cu")
        qtbot.waitUntil(
            lambda: window.user_file.visible_page is not None and bool(window.user_file.visible_page.form.rows)
        )
        window.user_file.visible_page.form.grid.setText("3")
    page, shown = window.user_file.page, window.stack.currentWidget()
    said = window.header.title.text(), window.header.summary._full_text
    assert drop_path(window, damaged)
    qtbot.waitUntil(window.banner.isVisible)
    assert "damaged.lockstep is not a recording, or is damaged" in window.banner.message.text()
    assert "Record it again" in window.banner.advice.text()
    assert (window.user_file.page, window.stack.currentWidget()) == (page, shown)
    assert (window.header.title.text(), window.header.summary._full_text) == said
    assert window.status.message_label.text() == ""
    if before == "kernel":
        assert page.form.grid.text() == "3"
    assert drop_path(window, recording)
    qtbot.waitUntil(window.banner.isHidden)
    page = open_recording(qtbot, window, recording)
    assert page.source.code.toPlainText() == TEXT


def test_the_newest_of_two_files_is_shown(qtbot, window, recording, trace):
    assert drop_path(window, recording)
    page = open_recording(qtbot, window, trace)
    qtbot.wait(200)
    assert window.user_file.visible_page is page
    assert window.status.message_label.text() == "rotate.trace is played, not run"


def test_a_recording_that_is_damaged_by_now_is_played_on(qtbot, window, recording):
    page = open_recording(qtbot, window, recording)
    models = page.step.models
    recording.write_bytes(b"no recording")
    qtbot.mouseClick(window.header.run, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(window.banner.isVisible)
    assert page.step.models is models
    assert page.step.panes.pictures.currentWidget() is not page.step.panes.message


def test_run_reads_the_file_again(qtbot, window, recording, trace):
    page = open_recording(qtbot, window, recording)
    first = page.step.models
    shutil.copyfile(trace, recording)
    qtbot.mouseClick(window.header.run, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: page.step.models is not first)
    assert page.source.code.toPlainText() == TEXT


@pytest.mark.parametrize("way", ["another file", "close"])
def test_an_animation_is_given_up_with_its_page(qtbot, window, recording, trace, tmp_path, monkeypatch, way):
    monkeypatch.setattr("gui.step_view.export.menu.plan_frames", lambda end, rate: ([0, end] * 50_000, 10.0))
    page = open_recording(qtbot, window, recording)
    path, said = tmp_path / "rotate.gif", []
    page.step.exports.progressed.connect(said.append)
    page.step.exports.write_film(path)
    film = page.step.exports.film
    qtbot.waitUntil(lambda: len(said) > 10, timeout=10_000)
    if way == "close":
        window.close()
    else:
        open_recording(qtbot, window, trace)
    assert not film._thread.is_alive()
    assert not list(tmp_path.glob("*.part")), "half a film is none"
    assert not path.exists()


def test_what_takes_too_much_is_refused_in_a_sentence(qtbot, window, recording):
    def widened(members):
        manifest = json.loads(members["0/manifest.json"])
        manifest["memories"][0]["blocks"] = 10**9
        members["0/manifest.json"] = json.dumps(manifest).encode()

    recording.write_bytes(change_members(recording.read_bytes(), widened))
    assert drop_path(window, recording)
    qtbot.waitUntil(window.banner.isVisible, timeout=30_000)
    assert window.banner.message.text() == f"{recording} is not a recording, or is damaged."
    assert "Record it again" in window.banner.advice.text()
    assert window.user_file.page is None


@pytest.mark.parametrize("when", ["read", "shown", "played"])
def test_what_goes_wrong_with_a_file_is_said_and_the_window_goes_on(qtbot, window, recording, monkeypatch, when):
    def broken(*_):
        raise ZeroDivisionError("out of luck")

    if when == "read":
        monkeypatch.setattr("gpu.stepping.derived_data.derive_data", broken)
    elif when == "shown":
        monkeypatch.setattr("gui.step_view.time.timeline.Timeline.open", broken)
    if when == "played":
        page = open_recording(qtbot, window, recording)
        monkeypatch.setattr(page.step.panes.statement, "show_text", broken)
        page.step.player.play()
        qtbot.waitUntil(window.banner.isVisible)
        assert not page.step.player.playing
    else:
        assert drop_path(window, recording)
        qtbot.waitUntil(window.banner.isVisible, timeout=30_000)
    assert window.banner.message.text() == f"{recording} is not a recording, or is damaged."
    window.files.open_file(window.bench.image.path)
    wait_until_idle(qtbot, window)
    assert not window.banner.isVisible()


def test_the_process_that_looks_at_recordings_is_there_when_one_is_asked_for(window, monkeypatch):
    asked = []
    monkeypatch.setattr(
        "gui.widgets.file_dialogs.QFileDialog.getOpenFileName",
        lambda *_: (asked.append(window.user_file._inspector._idle_process), ("", ""))[1],
    )
    window.user_file.choose_and_open()
    (process,) = asked
    assert process is not None
    window.close()
    assert process.returncode is not None


@pytest.mark.parametrize(("name", "starts"), [("kernel.cu", False), ("run.lockstep", True)])
def test_only_a_dragged_recording_starts_the_inspector(window, name, starts):
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(name)])
    action, button, modifier = Qt.DropAction.CopyAction, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    window.dragEnterEvent(QDragEnterEvent(QPoint(300, 300), action, data, button, modifier))
    assert (window.user_file._inspector._idle_process is not None) == starts
