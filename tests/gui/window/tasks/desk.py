"""A person at a window of some size and theme, who reads what is painted and takes pictures of it."""

from __future__ import annotations

import html
import os
import re
from pathlib import Path

from PyQt6.QtCore import QBuffer, QIODevice, QPoint
from PyQt6.QtGui import QPainter, QPixmap
from PyQt6.QtSvg import QSvgGenerator
from PyQt6.QtTest import QTest
from PyQt6.QtWidgets import QAbstractButton, QApplication, QComboBox, QLabel, QWidget

from gui.driving.window_session import are_flows_complete, wait_until
from tests.gui.lessons.student import Student
from tests.gui.window.clipped_widgets import find_clipped_when_settled
from tests.gui.window.walker import PATIENCE_S, Key

PICTURES = "LOCKSTEP_TASK_PICTURES"
"""The environment variable with the folder for pictures; without it none is saved."""


class Desk(Student):
    """Works through tasks.

    Parameters
    ----------
    window : MainWindow
    size : (int, int)
        The window's width and height in pixels.
    theme : str
    """

    def __init__(self, window, size, theme):
        super().__init__(window)
        self.size, self.theme = size, theme
        self.files = Path()
        """The folder of the task's files."""
        window.appearance.set_theme(theme)
        self.restore_size()

    def restore_size(self):
        self.window.showNormal()
        self.window.resize(*self.size)
        self.wait_until(lambda: (self.window.width(), self.window.height()) == self.size)

    @property
    def own_step(self):
        """The Step tab of the user's kernel."""
        return self.window.user_file.visible_page.step

    @property
    def dialogs(self):
        """Visible dialogs, menus and lists."""
        return [each for each in QApplication.topLevelWidgets() if each.isVisible() and each is not self.window]

    def find(self, name, kind=QWidget):
        """Return the visible widget with this name or text, a dialog's first."""
        found = [
            each
            for parent in (*self.dialogs, self.window)
            for each in parent.findChildren(kind)
            if each.isVisible() and name in (each.accessibleName(), read_text(each))
        ]
        found.sort(key=lambda each: not isinstance(each, QAbstractButton))
        assert found, f"{name} is not in the window: {self.painted_text()}"
        return found[0]

    def choose(self, box, text):
        """Choose an entry of a list by its arrow keys."""
        box = self.find(box, QComboBox)
        box.setFocus()
        wanted = next(place for place in range(box.count()) if box.itemText(place).startswith(text))
        while box.currentIndex() != wanted:
            before = box.currentIndex()
            QTest.keyClick(box, Key.Key_Down if before < wanted else Key.Key_Up)
            assert box.currentIndex() != before, f"{text} cannot be chosen"

    def settle(self):
        """Wait until all that is visible is up to date and painted."""
        self.wait_until(lambda: self.window.is_idle and are_flows_complete(self.window))

    def painted_text(self):
        """Return the text that the window and its dialogs paint, in the order of painting.

        Cells of Flow are missing, as they are painted from pictures.
        """
        return " ".join(" ".join(text.split()) for each in (self.window, *self.dialogs) for text in list_texts(each))

    def sees(self, text):
        return wait_until(lambda: " ".join(text.split()) in self.painted_text(), PATIENCE_S)

    def take_picture(self, name):
        """Save a picture of the window with its dialogs, if a folder was named; check that nothing is clipped."""
        self.settle()
        clipped = [] if self.dialogs else find_clipped_when_settled(self.window)
        if folder := os.environ.get(PICTURES):
            picture = QPixmap(self.window.grab())
            painter = QPainter(picture)
            for dialog in self.dialogs:
                painter.drawPixmap(self.window.mapFromGlobal(dialog.mapToGlobal(QPoint(0, 0))), dialog.grab())
            painter.end()
            Path(folder).mkdir(parents=True, exist_ok=True)
            assert picture.save(str(Path(folder) / f"{name}-{self.size[0]}-{self.theme}.png"))
        assert not clipped, f"{name}: {clipped}"

    def leave(self):
        """Leave the window as another task expects it."""
        for dialog in self.dialogs:
            dialog.close()
        if self.window.lecturing.view is not None:
            self.press(Key.Key_F11)
        self.restore_size()
        self.window.appearance.set_text_size("normal")
        if self.pane.isVisible():
            self.click(self.pane.close_button)
        for document in self.window.bench.sources.unsaved:
            document.replace(document.original)
        self.window.banner.hide()


def read_text(widget):
    """Return the text of a button, label, list or field, "" for other widgets."""
    if isinstance(widget, QComboBox):
        return widget.currentText()
    return widget.text() if isinstance(widget, QAbstractButton | QLabel) else ""


def list_texts(widget):
    """Return the texts that a widget paints, in the order of painting."""
    buffer = QBuffer()
    buffer.open(QIODevice.OpenModeFlag.ReadWrite)
    generator = QSvgGenerator()
    generator.setOutputDevice(buffer)
    generator.setViewBox(widget.rect())
    painter = QPainter(generator)
    widget.render(painter)
    painter.end()
    written = bytes(buffer.data()).decode()
    return [html.unescape(text) for text in re.findall(r"<text[^>]*>(.*?)</text>", written, re.DOTALL)]
