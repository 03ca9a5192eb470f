"""A window that must go keeps what was edited; the next one offers it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import uuid
from pathlib import Path

import pytest
from PyQt6.QtCore import Qt

from gui.editor.drafts import Drafts
from gui.editor.unsaved import UnsavedDialog
from tests import needs
from tests.gui.conftest import close
from tests.gui.editor.test_editing import type_at
from tests.gui.window.test_responsive import until
from tests.leftovers import processes_with

ROOT = Path(__file__).parents[3]


def offered(window):
    return "" if window.kept.banner.isHidden() else window.kept.banner.message.text()


@pytest.fixture
def left(qtbot, window):
    """The text of a window that was edited and then had to go."""
    type_at(qtbot, window, "__syncthreads();", " // mine")
    text = window.page.source.document.text
    assert window.leave() == ""
    assert not window.isVisible()
    assert not window.findChildren(UnsavedDialog)
    return text


def test_a_window_that_must_go_asks_nothing_and_the_next_one_gives_the_edits_back(qtbot, left, make_window, drafts):
    again = make_window()
    again.begin()
    assert offered(again) == "Edits of convolution.cu from an earlier session were kept."
    assert again.kept.banner.advice.text() == ""
    again.banner.say("Something else.")
    again.banner.hide()
    assert offered(again)
    again.choose_pattern("scan")
    qtbot.mouseClick(again.kept.banner.action, Qt.MouseButton.LeftButton)
    assert not offered(again)
    assert again.bench.chosen == "convolution"
    assert again.page.source.document.text == left
    assert again.page.source.edited.isVisible()
    assert drafts.found(), "they are not saved yet"
    again.page.source.document.undo()
    assert not again.page.source.document.edited
    close(again)
    assert not drafts.found()
    last = make_window()
    last.begin()
    assert not offered(last)


def test_edits_that_nobody_wants_are_gone(qtbot, left, make_window, drafts):
    again = make_window()
    again.begin()
    assert again.kept.banner.dismiss.text() == "Discard"
    qtbot.mouseClick(again.kept.banner.dismiss, Qt.MouseButton.LeftButton)
    assert not offered(again)
    assert not drafts.found()
    assert not again.page.source.document.edited
    again.banner.say("Something else.")
    assert again.banner.dismiss.text() == "Dismiss"


def test_edits_that_were_given_back_are_kept_again_or_discarded_with_the_window(left, make_window, drafts):
    again = make_window()
    again.begin()
    again.kept.banner.action.click()
    assert again.leave() == ""
    assert [draft.text for draft in drafts.found()] == [left]
    last = make_window()
    last.begin()
    last.kept.banner.action.click()
    last.close()
    (dialog,) = last.findChildren(UnsavedDialog)
    dialog.discard.click()
    assert not drafts.found()


def test_an_own_kernel_that_changed_meanwhile_or_is_gone_is_told(qtbot, make_window, drafts, tmp_path):
    paths = [tmp_path / name for name in ("changed.cu", "gone.cu", "saved.cu")]
    first = make_window()
    for path in paths:
        path.write_text("__global__ void f(int* a) { a[0] = 1; }\n")
        first.files.open(path)
        first.bench.sources.document(str(path)).replace("__global__ void f(int* a) { a[0] = 2; }\n")
    assert first.leave() == ""
    paths[0].write_text("__global__ void f(int* a) { a[0] = 3; }\n")
    paths[1].unlink()
    paths[2].write_text("__global__ void f(int* a) { a[0] = 2; }\n")
    again = make_window()
    again.begin()
    assert "saved.cu" not in offered(again)
    assert {draft.name for draft in drafts.found()} == {"changed.cu", "gone.cu"}
    assert again.kept.banner.advice.text().startswith("changed.cu and gone.cu changed in the meantime")
    again.kept.banner.action.click()
    assert again.bench.sources.document(str(paths[0])).text == "__global__ void f(int* a) { a[0] = 2; }\n"
    assert again.own.shown.path == paths[0]
    assert offered(again) == "gone.cu no longer exists."
    (still,) = (draft for draft in drafts.found() if draft.name == "gone.cu")
    assert again.kept.banner.advice.text() == f"Its edits stay in {still.path}."


def test_where_a_session_does_not_end_after_all_only_what_was_edited_since_is_asked_for(qtbot, window, drafts):
    type_at(qtbot, window, "__syncthreads();", " // mine")
    assert window.kept.keep() == ""
    type_at(qtbot, window, "__syncthreads();", " // more")
    window.close()
    (dialog,) = window.findChildren(UnsavedDialog)
    dialog.cancel.click()
    assert window.kept.keep() == ""
    assert [draft.text for draft in drafts.found()] == [window.page.source.document.text]
    window.close()
    assert not window.isVisible()


def test_a_window_that_must_go_goes_although_edits_cannot_be_kept(qtbot, window, tmp_path):
    (tmp_path / "drafts").touch()
    type_at(qtbot, window, "__syncthreads();", " // mine")
    assert window.leave().startswith("The edits of convolution.cu could not be kept: ")
    assert not window.isVisible()


EDITED = """
import sys
from PyQt6.QtCore import QTimer
from PyQt6.QtWidgets import QFileDialog
from gui.window.main_window import MainWindow

def begin(self, image=None):
    self.bench.sources.document("scan.cu").replace("// mine")
    if "dialog" in sys.argv:
        QTimer.singleShot(0, lambda: QFileDialog.getOpenFileName(self))
    QTimer.singleShot(0, lambda: print("edited", flush=True))

if __name__ == "__main__":
    MainWindow.begin = begin
    from gui.app import main
    sys.exit(main(["--engine", "null"]))
"""


@needs.proc
@pytest.mark.parametrize(("name", "dialog"), [("SIGTERM", "dialog"), ("SIGHUP", "")])
def test_a_signal_ends_a_window_with_edits(tmp_path, name, dialog):
    script = tmp_path / "edited.py"
    script.write_text(EDITED)
    mark = uuid.uuid4().hex
    environment = {**os.environ, "LOCKSTEP_TEST": mark, "PYTHONPATH": str(ROOT), "XDG_DATA_HOME": str(tmp_path)}
    command = [sys.executable, str(script), dialog]
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "edited\n"
        process.send_signal(getattr(signal, name))
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 0
    # Qt's own word of a window that goes while it is painted.
    assert [line for line in errors.splitlines() if "QBackingStore" not in line] == []
    assert [draft.text for draft in Drafts(tmp_path / "Lockstep" / "drafts").found()] == ["// mine"]
    assert until(lambda: not processes_with(f"LOCKSTEP_TEST={mark}"))
