"""Dialog with a short text and a Close button."""

from __future__ import annotations

from PyQt6.QtCore import QSize, Qt
from PyQt6.QtGui import QShowEvent
from PyQt6.QtWidgets import QDialog, QHBoxLayout, QLabel, QScrollArea, QWidget

from gui.painting.theme import look
from gui.widgets.basic import button, dialog_column, row


class Notice(QDialog):
    """A dialog with a title, an HTML text and a Close button; it does not block the window.

    Parameters
    ----------
    columns : str
        The text as HTML; several columns are placed side by side, without wrapping lines.
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
        self.setLayout(dialog_column(title, self.area, row(0, close)))

    def showEvent(self, event: QShowEvent | None) -> None:
        """Fit the dialog to its text, now that the fonts are known; scroll if the window is too small."""
        content, window = self.area.widget(), self.parentWidget()
        if content is not None and window is not None:
            room = window.size() - QSize(look().px(60), look().px(150))
            preferred = content.sizeHint()
            bar = QSize(14 if preferred.height() > room.height() else 0, 14 if preferred.width() > room.width() else 0)
            self.area.setMinimumSize((preferred + bar).boundedTo(room))
            self.adjustSize()
        super().showEvent(event)
