"""Combo box that elides its text where space is short, and check box that wraps it."""

from __future__ import annotations

from PyQt6.QtCore import QRect, QSize, Qt
from PyQt6.QtGui import QFont, QFontMetrics, QPaintEvent, QResizeEvent
from PyQt6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QSizePolicy,
    QStyle,
    QStyleOptionButton,
    QStyleOptionComboBox,
    QStylePainter,
)

from gui.painting.theme import look

BRIEF_TEXT_ROLE = Qt.ItemDataRole.UserRole + 2
"""Item role of the short text to show if the full text does not fit."""

_WRAP_FLAGS = Qt.TextFlag.TextWordWrap | Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
_LIST_MARGIN = 24
"""Pixels around the texts of an open list, including a scroll bar."""
_MAX_VISIBLE_ITEMS = 20
"""Items of an open list that are visible without scrolling."""


class ElidedBox(QComboBox):
    """A combo box that elides its text where space is short; its list and its tooltip have the full text."""

    def __init__(self, name: str, tip: str) -> None:
        super().__init__()
        self.setAccessibleName(name)
        self.setMaxVisibleItems(_MAX_VISIBLE_ITEMS)
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

    def width_of_text(self) -> int:
        """Return the width in pixels at which the current text is not elided."""
        return self.fontMetrics().horizontalAdvance(self.currentText()) + self.width() - self._text_width() + 1

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


class WrappedCheck(QCheckBox):
    """A check box that adapts to the available width: its text wraps, in the small size where a word lacks room."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)

    def sizeHint(self) -> QSize:
        return super().sizeHint().expandedTo(QSize(0, self._measure_height()))

    def minimumSizeHint(self) -> QSize:
        return QSize(super().minimumSizeHint().width(), self.sizeHint().height())

    def _text_room(self) -> QRect:
        option, style = QStyleOptionButton(), self.style()
        self.initStyleOption(option)
        assert style is not None
        return style.subElementRect(QStyle.SubElement.SE_CheckBoxContents, option, self)

    def shown_font(self) -> QFont:
        """Return the font in which the longest word fits: the box's own, or else one of the small size."""
        font = QFont(self.font())
        longest = max(map(self.fontMetrics().horizontalAdvance, self.text().split()), default=0)
        if longest > self._text_room().width():
            font.setPixelSize(min(look().small_px, self.fontInfo().pixelSize()))
        return font

    def _measure_height(self) -> int:
        room = QRect(0, 0, max(self._text_room().width(), 1), 10_000)
        return QFontMetrics(self.shown_font()).boundingRect(room, int(_WRAP_FLAGS), self.text()).height()

    def resizeEvent(self, event: QResizeEvent | None) -> None:
        super().resizeEvent(event)
        if event is not None and event.size().width() != event.oldSize().width():
            self.updateGeometry()

    def paintEvent(self, event: QPaintEvent | None) -> None:
        painter, option, style = QStylePainter(self), QStyleOptionButton(), self.style()
        self.initStyleOption(option)
        option.text = ""
        painter.drawControl(QStyle.ControlElement.CE_CheckBox, option)
        assert style is not None
        painter.setFont(self.shown_font())
        style.drawItemText(
            painter, self._text_room(), int(_WRAP_FLAGS), self.palette(), self.isEnabled(), self.text(),
            self.foregroundRole(),
        )  # fmt: skip
        painter.end()
