"""A list to choose from that ends in an ellipsis where there is not enough room."""

from __future__ import annotations

from PyQt6.QtCore import Qt
from PyQt6.QtGui import QPaintEvent
from PyQt6.QtWidgets import QComboBox, QStyle, QStyleOptionComboBox, QStylePainter


class ElidedBox(QComboBox):
    """A list whose choice ends in an ellipsis where there is not enough room; its tool tip says all of it."""

    def __init__(self, name: str, tip: str) -> None:
        super().__init__()
        self.setAccessibleName(name)
        self._tip = tip
        self.currentTextChanged.connect(self._show_tip)
        self._show_tip("")

    def shown_text(self) -> str:
        """Return the choice as far as there is room."""
        option = QStyleOptionComboBox()
        self.initStyleOption(option)
        style = self.style()
        assert style is not None
        box, field = QStyle.ComplexControl.CC_ComboBox, QStyle.SubControl.SC_ComboBoxEditField
        room = style.subControlRect(box, option, field, self).width()
        return self.fontMetrics().elidedText(self.currentText(), Qt.TextElideMode.ElideRight, room)

    def paintEvent(self, event: QPaintEvent | None) -> None:
        painter, option = QStylePainter(self), QStyleOptionComboBox()
        self.initStyleOption(option)
        painter.drawComplexControl(QStyle.ComplexControl.CC_ComboBox, option)
        option.currentText = self.shown_text()
        painter.drawControl(QStyle.ControlElement.CE_ComboBoxLabel, option)

    def _show_tip(self, text: str) -> None:
        self.setToolTip(f"{text}\n{self._tip}".strip())
