"""Keys of a view that count wherever the keyboard's focus is, while the view is seen and nobody types."""

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
    """Whether what is typed goes into a widget."""
    texts = QLineEdit | QAbstractSpinBox | QPlainTextEdit | QTextEdit
    return isinstance(widget, texts) and not widget.isReadOnly()


class ViewKeys(QObject):
    """The keys of a view; since Space is one of them, Return presses the button that has the focus.

    Parameters
    ----------
    view : QWidget
        Where it is not seen, they do nothing.
    keys : mapping of str to callable
        What each does.
    once : tuple of str
        Those that do it once, however long they are held.
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
        made = QShortcut(QKeySequence(key), view)
        made.setContext(Qt.ShortcutContext.WindowShortcut)
        made.setAutoRepeat(again)
        made.activated.connect(do)
        return made

    def _follow_focus(self, _: QWidget | None, now: QWidget | None) -> None:
        for each in self._keys:
            each.setEnabled(not takes_text(now))
        for each in self._press:
            each.setEnabled(isinstance(now, QAbstractButton | QComboBox))

    def _press_focused(self) -> None:
        match QApplication.focusWidget():
            case QAbstractButton() as button:
                button.click()
            case QComboBox() as box:
                box.showPopup()
