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


def accepts_text(widget: QWidget | None) -> bool:
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
    non_repeating : tuple of str
        Keys that do not repeat while held.
    """

    def __init__(
        self, view: QWidget, keys: Mapping[str, Callable[[], object]], non_repeating: tuple[str, ...] = ()
    ) -> None:
        super().__init__(view)
        self._actions = dict(keys)
        self._shortcuts = [
            self._create_shortcut(view, key, do, repeats=key not in non_repeating) for key, do in keys.items()
        ]
        self._press_shortcuts = [
            self._create_shortcut(view, key, self._press_focused, repeats=False) for key in ("Return", "Enter")
        ]
        app = QApplication.instance()
        assert isinstance(app, QApplication)
        app.focusChanged.connect(self._on_focus_changed)
        self._on_focus_changed(None, app.focusWidget())

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the keys."""
        return tuple(self._actions)

    def press(self, key: str) -> bool:
        """Run the action of a key that another window received; return whether there is one."""
        action = self._actions.get(key)
        if action is not None:
            action()
        return action is not None

    def _create_shortcut(self, view: QWidget, key: str, action: Callable[[], object], *, repeats: bool) -> QShortcut:
        shortcut = QShortcut(QKeySequence(key), view)
        shortcut.setContext(Qt.ShortcutContext.WindowShortcut)
        shortcut.setAutoRepeat(repeats)
        shortcut.activated.connect(action)
        return shortcut

    def _on_focus_changed(self, _: QWidget | None, focused: QWidget | None) -> None:
        for shortcut in self._shortcuts:
            shortcut.setEnabled(not accepts_text(focused))
        for shortcut in self._press_shortcuts:
            shortcut.setEnabled(isinstance(focused, QAbstractButton | QComboBox))

    def _press_focused(self) -> None:
        match QApplication.focusWidget():
            case QAbstractButton() as button:
                button.click()
            case QComboBox() as box:
                box.showPopup()
