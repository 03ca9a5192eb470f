"""A short text to read and close."""

from __future__ import annotations

from PyQt6.QtCore import Qt
from PyQt6.QtWidgets import QDialog, QHBoxLayout, QLabel, QVBoxLayout, QWidget

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
        body = QHBoxLayout()
        body.setSpacing(look().px(40))
        for column in self.columns:
            column.setTextFormat(Qt.TextFormat.RichText)
            column.setAccessibleName(title)
            body.addWidget(column, 0, Qt.AlignmentFlag.AlignTop)
        if len(columns) == 1:
            self.columns[0].setWordWrap(True)
            self.columns[0].setMinimumWidth(look().px(360))
        close = button("Close", "primary")
        close.clicked.connect(self.accept)
        close.setDefault(True)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(24, 20, 24, 16)
        layout.setSpacing(16)
        layout.addWidget(label(title, "title"))
        layout.addLayout(body)
        layout.addLayout(row(0, close))
