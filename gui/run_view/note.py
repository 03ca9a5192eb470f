"""A line of text over the middle of a widget, about the work that it waits for."""

from __future__ import annotations

from PyQt6.QtCore import QEvent, QObject, Qt
from PyQt6.QtWidgets import QLabel, QWidget

from gui.widgets.basic import set_role


class Note(QLabel):
    """A line in the middle of a widget that ignores clicks; hidden while its text is empty."""

    def __init__(self, covered_widget: QWidget) -> None:
        super().__init__(covered_widget)
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setAccessibleName("Current work")
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        set_role(self, "note")
        self._covered_widget = covered_widget
        covered_widget.installEventFilter(self)
        self.hide()

    def show_text(self, text: str) -> None:
        """Show a text; "" hides the line."""
        self.setText(text)
        self.setVisible(bool(text))
        self._center()

    def eventFilter(self, watched: QObject | None, event: QEvent | None) -> bool:
        if event is not None and event.type() == QEvent.Type.Resize:
            self._center()
        return False

    def _center(self) -> None:
        self.adjustSize()
        self.move(self._covered_widget.rect().center() - self.rect().center())
        self.raise_()
