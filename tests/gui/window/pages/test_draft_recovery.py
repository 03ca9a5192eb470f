"""A window that must go keeps what was edited; the next one offers it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import uuid

import pytest
from PyQt6.QtCore import Qt

from gpu.base.paths import ROOT
from gui.editor.drafts import Drafts
from gui.editor.unsaved_dialog import UnsavedDialog
from tests import needs
from tests.gui.conftest import close_window
from tests.gui.editor.test_editing import type_at
from tests.gui.window.test_responsive import wait_until
from tests.leftovers import find_marked_processes


def offered_drafts(window):
    return "" if window.draft_recovery.banner.isHidden() else window.draft_recovery.banner.message.text()


@pytest.fixture
def unsaved_text(qtbot, window):
    """The text of a window that was edited and then had to go."""
    type_at(qtbot, window, "__syncthreads();", " // mine")
    text = window.page.source.document.text
    assert window.close_without_question() == ""
    assert not window.isVisible()
    assert not window.findChildren(UnsavedDialog)
    return text


def test_a_window_that_must_go_asks_nothing_and_the_next_one_gives_the_edits_back(
    qtbot, unsaved_text, make_window, drafts
):
    again = make_window()
    again.load_first_input()
    assert offered_drafts(again) == "Edits of convolution.cu from an earlier session were kept."
    assert again.draft_recovery.banner.advice.text() == ""
    again.banner.show_message("Something else.")
    again.banner.hide()
    assert offered_drafts(again)
    again.choose_pattern("scan")
    qtbot.mouseClick(again.draft_recovery.banner.action, Qt.MouseButton.LeftButton)
    assert not offered_drafts(again)
    assert again.bench.pattern_name == "convolution"
    assert again.page.source.document.text == unsaved_text
    assert again.page.source.edited_badge.isVisible()
    assert drafts.read_drafts(), "they are not saved yet"
    again.page.source.document.undo()
    assert not again.page.source.document.edited
    close_window(again)
    assert not drafts.read_drafts()
    last = make_window()
    last.load_first_input()
    assert not offered_drafts(last)


def test_edits_that_nobody_wants_are_gone(qtbot, unsaved_text, make_window, drafts):
    again = make_window()
    again.load_first_input()
    assert again.draft_recovery.banner.dismiss_button.text() == "Discard"
    qtbot.mouseClick(again.draft_recovery.banner.dismiss_button, Qt.MouseButton.LeftButton)
    assert not offered_drafts(again)
    assert not drafts.read_drafts()
    assert not again.page.source.document.edited
    again.banner.show_message("Something else.")
    assert again.banner.dismiss_button.text() == "Dismiss"


def test_edits_that_were_given_back_are_kept_again_or_discarded_with_the_window(unsaved_text, make_window, drafts):
    again = make_window()
    again.load_first_input()
    again.draft_recovery.banner.action.click()
    assert again.close_without_question() == ""
    assert [draft.text for draft in drafts.read_drafts()] == [unsaved_text]
    last = make_window()
    last.load_first_input()
    last.draft_recovery.banner.action.click()
    last.close()
    (dialog,) = last.findChildren(UnsavedDialog)
    dialog.discard.click()
    assert not drafts.read_drafts()


def test_an_own_kernel_that_changed_meanwhile_or_is_gone_is_told(qtbot, make_window, drafts, tmp_path):
    paths = [tmp_path / name for name in ("changed.cu", "gone.cu", "saved.cu")]
    first = make_window()
    for path in paths:
        path.write_text("__global__ void f(int* a) { a[0] = 1; }\n")
        first.files.open_file(path)
        first.bench.sources.document(str(path)).replace("__global__ void f(int* a) { a[0] = 2; }\n")
    assert first.close_without_question() == ""
    paths[0].write_text("__global__ void f(int* a) { a[0] = 3; }\n")
    paths[1].unlink()
    paths[2].write_text("__global__ void f(int* a) { a[0] = 2; }\n")
    again = make_window()
    again.load_first_input()
    assert "saved.cu" not in offered_drafts(again)
    assert {draft.name for draft in drafts.read_drafts()} == {"changed.cu", "gone.cu"}
    assert again.draft_recovery.banner.advice.text().startswith("changed.cu and gone.cu changed since then:")
    again.draft_recovery.banner.action.click()
    assert again.bench.sources.document(str(paths[0])).text == "__global__ void f(int* a) { a[0] = 2; }\n"
    assert again.user_file.visible_page.path == paths[0]
    assert offered_drafts(again) == "gone.cu no longer exists."
    (still,) = (draft for draft in drafts.read_drafts() if draft.name == "gone.cu")
    assert again.draft_recovery.banner.advice.text() == f"Its edits stay in {still.path}."


def test_where_a_session_does_not_end_after_all_only_what_was_edited_since_is_asked_for(qtbot, window, drafts):
    type_at(qtbot, window, "__syncthreads();", " // mine")
    assert window.draft_recovery.save_drafts() == ""
    type_at(qtbot, window, "__syncthreads();", " // more")
    window.close()
    (dialog,) = window.findChildren(UnsavedDialog)
    dialog.cancel.click()
    assert window.draft_recovery.save_drafts() == ""
    assert [draft.text for draft in drafts.read_drafts()] == [window.page.source.document.text]
    window.close()
    assert not window.isVisible()


def test_a_window_that_must_go_goes_although_edits_cannot_be_kept(qtbot, window, tmp_path):
    (tmp_path / "drafts").touch()
    type_at(qtbot, window, "__syncthreads();", " // mine")
    assert window.close_without_question().startswith("The edits of convolution.cu were not kept. ")
    assert not window.isVisible()


EDITED = """
import sys
from PyQt6.QtCore import QTimer
from PyQt6.QtWidgets import QFileDialog
from gui.window.main_window import MainWindow

def load_first_input(self, image=None):
    self.bench.sources.document("scan.cu").replace("// mine")
    if "dialog" in sys.argv:
        QTimer.singleShot(0, lambda: QFileDialog.getOpenFileName(self))
    QTimer.singleShot(0, lambda: print("edited", flush=True))

if __name__ == "__main__":
    MainWindow.load_first_input = load_first_input
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
    assert [draft.text for draft in Drafts(tmp_path / "Lockstep" / "drafts").read_drafts()] == ["// mine"]
    assert wait_until(lambda: not find_marked_processes(f"LOCKSTEP_TEST={mark}"))
