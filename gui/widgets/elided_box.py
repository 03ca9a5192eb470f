"""Combo box and check box that elide their texts where space is short."""

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

BRIEF_TEXT_ROLE = Qt.ItemDataRole.UserRole + 2
"""Item role of the short text to show if the full text does not fit."""

_LIST_MARGIN = 24
"""Pixels around the texts of an open list, including a scroll bar."""


class ElidedBox(QComboBox):
    """A combo box that elides its text where space is short; its list and its tooltip have the full text."""

    def __init__(self, name: str, tip: str) -> None:
        super().__init__()
        self.setAccessibleName(name)
        self._tip = tip
        self.currentTextChanged.connect(self._show_tip)
        self._show_tip("")

    def showPopup(self) -> None:
        """Open the list, as wide as its longest text."""
        view = self.view()
        assert view is not None
        view.setMinimumWidth(view.sizeHintForColumn(0) + _LIST_MARGIN)
        super().showPopup()

    def visible_text(self) -> str:
        """Return the current text as displayed, possibly elided."""
        room, metrics, text = self._text_width(), self.fontMetrics(), self.currentText()
        if metrics.horizontalAdvance(text) > room:
            text = self.currentData(BRIEF_TEXT_ROLE) or text
        return metrics.elidedText(text, Qt.TextElideMode.ElideRight, room)

    def _text_width(self) -> int:
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
        option.currentText = self.visible_text()
        painter.drawControl(QStyle.ControlElement.CE_ComboBoxLabel, option)

    def _show_tip(self, text: str) -> None:
        self.setToolTip(f"{text}\n{self._tip}".strip())


class ElidedCheck(QCheckBox):
    """A check box that adapts to the available width and elides its text."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)

    def initStyleOption(self, option: QStyleOptionButton | None) -> None:
        super().initStyleOption(option)
        style = self.style()
        if option is not None and style is not None:
            room = style.subElementRect(QStyle.SubElement.SE_CheckBoxContents, option, self).width()
            option.text = self.fontMetrics().elidedText(option.text, Qt.TextElideMode.ElideRight, room)
