"""A short text to read and close."""

from __future__ import annotations

from PyQt6.QtCore import QSize, Qt
from PyQt6.QtGui import QShowEvent
from PyQt6.QtWidgets import QDialog, QHBoxLayout, QLabel, QScrollArea, QVBoxLayout, QWidget

from gui.painting.theme import look
from gui.widgets.basic import button, label, row


class Notice(QDialog):
    """A title, a text with HTML's tags, and a button; it does not hold up the window.

    Parameters
    ----------
    parent : QWidget
    title : str
    columns : str
        The text; several stand side by side, and no line of theirs is broken.
    """

    def __init__(self, parent: QWidget, title: str, *columns: str) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(title)
        self.columns = [QLabel(text) for text in columns]
        content = QWidget()
        body = QHBoxLayout(content)
        body.setContentsMargins(0, 0, 0, 0)
        body.setSpacing(look().px(24))
        for column in self.columns:
            column.setTextFormat(Qt.TextFormat.RichText)
            column.setAccessibleName(title)
            body.addWidget(column, 0, Qt.AlignmentFlag.AlignTop)
        if len(columns) == 1:
            self.columns[0].setWordWrap(True)
            self.columns[0].setMinimumWidth(look().px(360))
        self.area = QScrollArea()
        self.area.setWidgetResizable(True)
        self.area.setWidget(content)
        close = button("Close", "primary")
        close.clicked.connect(self.accept)
        close.setDefault(True)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(24, 20, 24, 16)
        layout.setSpacing(16)
        layout.addWidget(label(title, "title"))
        layout.addWidget(self.area)
        layout.addLayout(row(0, close))

    def showEvent(self, event: QShowEvent | None) -> None:
        """Take what room the text wants, now that its fonts are known; what the window has not is scrolled to."""
        content, window = self.area.widget(), self.parentWidget()
        if content is not None and window is not None:
            room = window.size() - QSize(look().px(60), look().px(150))
            wanted = content.sizeHint()
            bar = QSize(14 if wanted.height() > room.height() else 0, 14 if wanted.width() > room.width() else 0)
            self.area.setMinimumSize((wanted + bar).boundedTo(room))
            self.adjustSize()
        super().showEvent(event)
