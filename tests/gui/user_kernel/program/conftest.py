"""One window for all tests of programs, whose simulator is real: what runs there are processes of their own."""

from __future__ import annotations

import shutil

import pytest
from PyQt6.QtCore import Qt

from gpu.hosts.pycuda import driver
from gui.editor.drafts import Drafts
from gui.model.request_queue import create_engine_host
from gui.model.settings import SavedSettings
from gui.user_kernel.program.page import ProgramPage
from gui.window.main_window import MainWindow
from tests import needs
from tests.gui.conftest import PATIENCE_MS, FakeHost, close_window
from tests.gui.window.test_main_window import drop_path, press_key


def _host(engine, deliver):
    return create_engine_host(engine, deliver) if engine == "simulator" else FakeHost(engine, deliver)


@pytest.fixture(scope="module")
def program_window(qapp, tmp_path_factory):
    """The window, which every test leaves as it is."""
    folder = tmp_path_factory.mktemp("window")
    saved_settings, drafts = SavedSettings(folder / "settings.json"), Drafts(folder / "drafts")
    window = MainWindow(saved_settings, "null", factory=_host, survey=list, drafts=drafts)
    window.show()
    yield window
    close_window(window)


class OpenedProgram:
    """A program that is open: what a user sees and does."""

    def __init__(self, qtbot, window, path):
        self.bot, self.window, self.path = qtbot, window, path
        window.activateWindow()
        assert drop_path(window, path)
        qtbot.waitUntil(
            lambda: window.user_file.visible_page is not None and window.user_file.visible_page.path == path
        )
        self.page = window.user_file.visible_page
        assert isinstance(self.page, ProgramPage)

    def run(self, *, wait=True):
        press_key(self.bot, self.window, Qt.Key.Key_F5)
        if not self.page.is_trusted:
            self.confirm()
        assert self.page.busy
        if wait:
            self.wait_until(lambda: not self.page.busy)

    def confirm(self):
        """Confirm that a file's host code may run, as at its first run."""
        assert self.window.banner.message.text() == f"Run the {self.kind} {self.path.name}?"
        self.bot.mouseClick(self.window.banner.action, Qt.MouseButton.LeftButton)

    @property
    def kind(self):
        return "script" if self.path.suffix == ".py" else "program"

    def stop(self):
        self.bot.mouseClick(self.window.header.stop, Qt.MouseButton.LeftButton)

    def wait_until(self, done):
        self.bot.waitUntil(done, timeout=PATIENCE_MS)

    @property
    def rows(self):
        model = self.page.launches.model()
        return [
            tuple(model.index(row, column).data() for column in range(model.columnCount()))
            for row in range(model.rowCount())
        ]

    @property
    def output(self):
        return self.page.results.output.toPlainText()

    @property
    def end(self):
        return self.page.results.end_label.toolTip()

    @property
    def verdict(self):
        return self.page.results.verdict.text()


@pytest.fixture
def program(qtbot, program_window, tmp_path):
    """Return what opens a program's text by a drop on the window."""

    def open_text(text, name="script.py"):
        if name.endswith(".py") and driver.explain_unavailable():
            needs.skip(needs.PYCUDA)
        if name.endswith(".cu") and not any(map(shutil.which, ("g++", "clang++", "c++"))):
            needs.skip(needs.COMPILER)
        path = tmp_path / name
        path.write_text(text)
        return OpenedProgram(qtbot, program_window, path)

    yield open_text
    if program_window.user_file.page is not None:
        program_window.user_file.page.stop()
        document = program_window.user_file.page.source.document
        document.replace(document.original)
    program_window.banner.hide()
