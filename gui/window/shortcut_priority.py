"""Which keys are shortcuts, and which belong to the widget that has the focus."""

from __future__ import annotations

from collections.abc import Iterable

from PyQt6.QtCore import QEvent, QObject, Qt
from PyQt6.QtGui import QKeyEvent, QKeySequence
from PyQt6.QtWidgets import QApplication, QComboBox, QWidget

_LETTER_MODIFIERS = (Qt.KeyboardModifier.NoModifier, Qt.KeyboardModifier.ShiftModifier)


class ShortcutPriority(QObject):
    """Let the window's shortcuts take precedence over the widget that has the focus, but not over letters in a list.

    Parameters
    ----------
    keys : iterable of str
        Key sequences such as Ctrl+E, which moves to the end of a line in X11 text fields.
    """

    def __init__(self, window: QWidget, keys: Iterable[str]) -> None:
        super().__init__(window)
        self._keys = [QKeySequence(key) for key in keys]
        app = QApplication.instance()
        assert isinstance(app, QApplication)
        app.focusChanged.connect(self._on_focus_changed)

    def _on_focus_changed(self, before: QWidget | None, now: QWidget | None) -> None:
        if before is not None:
            before.removeEventFilter(self)
        if now is not None and now.window() is self.parent():
            now.installEventFilter(self)

    def eventFilter(self, watched: QObject | None, event: QEvent | None) -> bool:
        if not isinstance(event, QKeyEvent) or event.type() != QEvent.Type.ShortcutOverride:
            return False
        if isinstance(watched, QComboBox) and event.text().isalpha() and event.modifiers() in _LETTER_MODIFIERS:
            event.accept()  # typing the name of an item selects it
            return True
        if QKeySequence(event.keyCombination()) not in self._keys:
            return False
        event.ignore()
        return True
