"""A short text to read and close."""

from __future__ import annotations

from PyQt6.QtCore import Qt
from PyQt6.QtWidgets import QDialog, QLabel, QVBoxLayout, QWidget

from gui.theme import look
from gui.widgets import button, label, row


class Notice(QDialog):
    """A title, a text with HTML's tags, and a button; it does not hold up the window.

    Parameters
    ----------
    parent : QWidget
    title, text : str
    """

    def __init__(self, parent: QWidget, title: str, text: str) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(title)
        self.text = QLabel(text)
        self.text.setTextFormat(Qt.TextFormat.RichText)
        self.text.setWordWrap(True)
        self.text.setMinimumWidth(look().px(360))
        self.text.setAccessibleName(title)
        close = button("Close", "primary")
        close.clicked.connect(self.accept)
        close.setDefault(True)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(24, 20, 24, 16)
        layout.setSpacing(16)
        layout.addWidget(label(title, "title"))
        layout.addWidget(self.text)
        layout.addLayout(row(0, close))
