"""Keyboard shortcuts of a view that work wherever the focus is, while the view is visible and no text is edited."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from PyQt6.QtCore import QObject, Qt
from PyQt6.QtGui import QKeySequence, QShortcut
from PyQt6.QtWidgets import (
    QAbstractButton,
    QAbstractSpinBox,
    QApplication,
    QComboBox,
    QLineEdit,
    QPlainTextEdit,
    QTextEdit,
    QWidget,
)


def takes_text(widget: QWidget | None) -> bool:
    """Return whether a widget accepts typed text."""
    texts = QLineEdit | QAbstractSpinBox | QPlainTextEdit | QTextEdit
    return isinstance(widget, texts) and not widget.isReadOnly()


class ViewKeys(QObject):
    """The shortcuts of a view; since Space may be one of them, Return presses the focused button.

    Parameters
    ----------
    view : QWidget
        While it is hidden, the shortcuts do nothing.
    keys : mapping of str to callable
        The action of each key.
    once : tuple of str
        Keys that do not repeat while held.
    """

    def __init__(self, view: QWidget, keys: Mapping[str, Callable[[], object]], once: tuple[str, ...] = ()) -> None:
        super().__init__(view)
        self._keys = [self._shortcut(view, key, do, again=key not in once) for key, do in keys.items()]
        self._press = [self._shortcut(view, key, self._press_focused, again=False) for key in ("Return", "Enter")]
        app = QApplication.instance()
        assert isinstance(app, QApplication)
        app.focusChanged.connect(self._follow_focus)
        self._follow_focus(None, app.focusWidget())

    def _shortcut(self, view: QWidget, key: str, do: Callable[[], object], *, again: bool) -> QShortcut:
        shortcut = QShortcut(QKeySequence(key), view)
        shortcut.setContext(Qt.ShortcutContext.WindowShortcut)
        shortcut.setAutoRepeat(again)
        shortcut.activated.connect(do)
        return shortcut

    def _follow_focus(self, _: QWidget | None, focused: QWidget | None) -> None:
        for shortcut in self._keys:
            shortcut.setEnabled(not takes_text(focused))
        for shortcut in self._press:
            shortcut.setEnabled(isinstance(focused, QAbstractButton | QComboBox))

    def _press_focused(self) -> None:
        match QApplication.focusWidget():
            case QAbstractButton() as button:
                button.click()
            case QComboBox() as box:
                box.showPopup()
