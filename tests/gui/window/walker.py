"""A person in front of the window: real keys and clicks."""

from __future__ import annotations

from PyQt6.QtCore import Qt, QTimer
from PyQt6.QtTest import QTest
from PyQt6.QtWidgets import QApplication, QLineEdit

from gui.driving.window_session import wait_until
from gui.window.sidebar import Sidebar

PATIENCE_S = 60
Key = Qt.Key


class Walker:
    """A person in front of the window: presses keys, clicks, and waits until it rests."""

    def __init__(self, window):
        self.window = window

    @property
    def page(self):
        return self.window.page

    @property
    def step_tab(self):
        return self.window.page.step

    def press(self, *keys, modifier=Qt.KeyboardModifier.NoModifier):
        assert wait_until(self._activate, PATIENCE_S)
        for key in keys:
            QTest.keyClick(self.window.focusWidget() or self.window, key, modifier)

    def _activate(self):
        """Ask for the keys again at each poll: a window that closes late takes them away."""
        self.window.activateWindow()
        return self.window.isActiveWindow()

    def click(self, widget, at=None):
        QTest.mouseClick(widget, Qt.MouseButton.LeftButton, pos=at if at is not None else widget.rect().center())

    def show_pattern(self, pattern):
        title = self.window.bench.patterns[pattern].title
        self.click(next(each for each in self.window.findChild(Sidebar).buttons.values() if each.text() == title))
        self.wait_until_idle()

    def wait_until_idle(self):
        assert wait_until(lambda: self.window.is_idle, PATIENCE_S)

    def record_steps(self):
        self.press(Key.Key_F3)
        assert wait_until(
            lambda: self.page.stepping and self.step_tab.is_up_to_date and self.step_tab.models is not None, PATIENCE_S
        )

    def select_example(self, example):
        """Choose an example by arrows in its list."""
        box = self.page.examples.box
        box.setFocus()
        wanted = next(number for number in range(box.count()) if box.itemText(number).startswith(example))
        while box.currentIndex() != wanted:
            self.press(Key.Key_Down if box.currentIndex() < wanted else Key.Key_Up)
        self.wait_until_idle()

    def answer_file_dialog(self, path):
        """Write a path into the next dialog that asks for one."""

        def write():
            dialog = QApplication.activeModalWidget()
            if dialog is None:
                return QTimer.singleShot(20, write)
            name = dialog.findChild(QLineEdit)
            name.setText(str(path))
            return QTest.keyClick(name, Key.Key_Return)

        QTimer.singleShot(0, write)

    def verdict(self):
        said = self.page.numbers.verdict
        assert wait_until(lambda: said.text() and "checking" not in said.text(), PATIENCE_S)
        return said.text()
