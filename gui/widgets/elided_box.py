"""Choices whose texts end in an ellipsis where there is not enough room: of a list, and one that is ticked."""

from __future__ import annotations

from PyQt6.QtCore import Qt
from PyQt6.QtGui import QPaintEvent
from PyQt6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QSizePolicy,
    QStyle,
    QStyleOptionButton,
    QStyleOptionComboBox,
    QStylePainter,
)

BRIEF = Qt.ItemDataRole.UserRole + 2
"""Of a choice: what stands for it where all of it has no room."""


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
        room, metrics, text = self._room(), self.fontMetrics(), self.currentText()
        if metrics.horizontalAdvance(text) > room:
            text = self.currentData(BRIEF) or text
        return metrics.elidedText(text, Qt.TextElideMode.ElideRight, room)

    def _room(self) -> int:
        option = QStyleOptionComboBox()
        self.initStyleOption(option)
        style = self.style()
        assert style is not None
        box, field = QStyle.ComplexControl.CC_ComboBox, QStyle.SubControl.SC_ComboBoxEditField
        return style.subControlRect(box, option, field, self).width()

    def paintEvent(self, event: QPaintEvent | None) -> None:
        painter, option = QStylePainter(self), QStyleOptionComboBox()
        self.initStyleOption(option)
        painter.drawComplexControl(QStyle.ComplexControl.CC_ComboBox, option)
        option.currentText = self.shown_text()
        painter.drawControl(QStyle.ControlElement.CE_ComboBoxLabel, option)

    def _show_tip(self, text: str) -> None:
        self.setToolTip(f"{text}\n{self._tip}".strip())


class ElidedCheck(QCheckBox):
    """A choice to tick that takes what room there is; where that is not enough its tool tip begins with its text."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)

    def initStyleOption(self, option: QStyleOptionButton | None) -> None:
        super().initStyleOption(option)
        style = self.style()
        if option is not None and style is not None:
            room = style.subElementRect(QStyle.SubElement.SE_CheckBoxContents, option, self).width()
            option.text = self.fontMetrics().elidedText(option.text, Qt.TextElideMode.ElideRight, room)
