"""What a view waits for, above whatever it shows."""

from __future__ import annotations

from PyQt6.QtCore import QEvent, QObject, Qt
from PyQt6.QtWidgets import QLabel, QWidget

from gui.widgets.basic import role


class Note(QLabel):
    """A line in the middle of a widget, which takes no clicks; hidden while there is nothing to say.

    Parameters
    ----------
    over : QWidget
    """

    def __init__(self, over: QWidget) -> None:
        super().__init__(over)
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setAccessibleName("Waiting for")
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        role(self, "note")
        self._over = over
        over.installEventFilter(self)
        self.hide()

    def say(self, text: str) -> None:
        """Show a line; "" takes it away."""
        self.setText(text)
        self.setVisible(bool(text))
        self._settle()

    def eventFilter(self, watched: QObject | None, event: QEvent | None) -> bool:
        if event is not None and event.type() == QEvent.Type.Resize:
            self._settle()
        return False

    def _settle(self) -> None:
        self.adjustSize()
        self.move(self._over.rect().center() - self.rect().center())
        self.raise_()
