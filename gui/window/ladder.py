"""The list of a pattern's variants as a ladder: the idea and limit of each, and the variant that removes the limit."""

from __future__ import annotations

from dataclasses import dataclass

from PyQt6.QtCore import QModelIndex, QRect, QRectF, QSize, Qt
from PyQt6.QtGui import QColor, QFont, QFontMetrics, QPainter, QPen, QStandardItemModel
from PyQt6.QtWidgets import QStyle, QStyledItemDelegate, QStyleOptionViewItem

from gpu.declaration.pattern import Pattern, Variant
from gpu.engines.base import Device
from gui.painting.theme import look
from gui.widgets.basic import wrap_tip
from gui.widgets.elided_box import ElidedBox

_RUNG_ROLE = Qt.ItemDataRole.UserRole + 1
_TEXT_WIDTH = 600
"""Width of the list in pixels, at the normal text size."""
_RAILS_WIDTH = (14, 46)
"""Horizontal positions of the ladder's two rails."""
_MARGIN, _GAP = 8, 2
_WRAP_FLAGS = Qt.TextFlag.TextWordWrap | Qt.AlignmentFlag.AlignTop


@dataclass(frozen=True)
class Rung:
    """The painted text of a variant: number, title, idea, and limit."""

    number: int
    title: str
    idea: str
    limit: str

    @classmethod
    def from_variant(cls, pattern: Pattern, variant: Variant, missing: str = "") -> Rung:
        """Build an entry; `missing` is the reason why the variant cannot run, or ""."""
        number = pattern.variants.index(variant) + 1
        title = variant.title + ("  ⚠" if variant.deliberate_error else "") + (" · unavailable" if missing else "")
        return cls(number, title, missing or variant.idea, describe_limit(pattern, variant))


def describe_limit(pattern: Pattern, variant: Variant) -> str:
    """Return a sentence with the variant's limit and the variant that removes it."""
    lifts = pattern.find_successor(variant)
    if lifts is None:
        return f"Limit: {variant.limit}"
    return f"Limit: {variant.limit} Next: variant {pattern.variants.index(lifts) + 1}."


class _RungDelegate(QStyledItemDelegate):
    """Delegate that paints the variants between the two rails of a ladder."""

    def _create_fonts(self, option: QStyleOptionViewItem) -> tuple[QFont, QFont]:
        strong, small = QFont(option.font), QFont(option.font)
        strong.setPixelSize(look().text_px)
        strong.setWeight(QFont.Weight.DemiBold)
        small.setPixelSize(look().small_px)
        return strong, small

    def _lay_out_lines(self, option: QStyleOptionViewItem, rung: Rung, width: int) -> list[tuple[str, QFont, int]]:
        """Return the texts of a variant with their fonts and heights."""
        strong, small = self._create_fonts(option)
        texts = ((rung.title, strong), (rung.idea, small), (rung.limit, small))
        room = QRect(0, 0, width, 10_000)
        return [(text, font, QFontMetrics(font).boundingRect(room, _WRAP_FLAGS, text).height()) for text, font in texts]

    def _compute_text_width(self) -> int:
        return look().px(_TEXT_WIDTH) - look().px(_RAILS_WIDTH[1]) - 3 * _MARGIN

    def sizeHint(self, option: QStyleOptionViewItem, index: QModelIndex) -> QSize:
        lines = self._lay_out_lines(option, index.data(_RUNG_ROLE), self._compute_text_width())
        return QSize(look().px(_TEXT_WIDTH), sum(height + _GAP for *_, height in lines) + 2 * _MARGIN)

    def paint(self, painter: QPainter | None, option: QStyleOptionViewItem, index: QModelIndex) -> None:
        rung: Rung = index.data(_RUNG_ROLE)
        if painter is None:
            return
        theme, area = look().theme, QRectF(option.rect)
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        usable = bool(option.state & QStyle.StateFlag.State_Enabled)
        chosen = bool(option.state & QStyle.StateFlag.State_Selected)
        if chosen:
            painter.fillRect(area, QColor(theme.accent_soft))
        left, right = (area.left() + look().px(place) for place in _RAILS_WIDTH)
        line, _ = self._create_fonts(option)
        height = QFontMetrics(line).height()
        middle = area.top() + _MARGIN + height / 2
        painter.setPen(QPen(QColor(theme.faint), 2))
        for side in (left, right):
            painter.drawLine(round(side), round(area.top()), round(side), round(area.bottom()) + 1)
        step = QRectF(left, middle - height * 0.6, right - left, height * 1.2)
        painter.setPen(QPen(QColor(theme.accent if chosen else theme.faint), 2))
        painter.setBrush(QColor(theme.accent if chosen else theme.raised))
        painter.drawRoundedRect(step, 4, 4)
        painter.setFont(line)
        painter.setPen(QColor(theme.on_accent if chosen else theme.text))
        painter.drawText(step, Qt.AlignmentFlag.AlignCenter, str(rung.number))
        y = area.top() + _MARGIN
        colors = (theme.text, theme.text, theme.muted) if usable else (theme.faint,) * 3
        for (text, font, high), color in zip(
            self._lay_out_lines(option, rung, self._compute_text_width()), colors, strict=True
        ):
            painter.setFont(font)
            painter.setPen(QColor(color))
            painter.drawText(QRectF(right + 2 * _MARGIN, y, self._compute_text_width(), high), int(_WRAP_FLAGS), text)
            y += high + _GAP
        painter.restore()


class LadderBox(ElidedBox):
    """A combo box of variants with a ladder as its list, which is as wide as its texts."""

    def __init__(self, name: str, tip: str) -> None:
        super().__init__(name, tip)
        self.setItemDelegate(_RungDelegate(self))
        self.setMaxVisibleItems(30)
        self._pattern: Pattern | None = None

    def show_ladder(self, pattern: Pattern, device: Device | None) -> None:
        """List a pattern's variants; disable those that the device cannot run, if it is known."""
        self.hidePopup()  # an open list would lay out entries that have no data yet
        self._pattern = pattern
        self.clear()
        for variant in pattern.variants:
            self.addItem("", variant.name)
        self.show_device(device)

    def show_device(self, device: Device | None) -> None:
        """Enable the variants that the device can run, and show why the others cannot run."""
        model, pattern = self.model(), self._pattern
        assert isinstance(model, QStandardItemModel)
        assert pattern is not None
        for index, variant in enumerate(pattern.variants):
            item, why = model.item(index), variant.unsupported_reason(device) if device is not None else ""
            assert item is not None
            rung = Rung.from_variant(pattern, variant, why)
            item.setText(f"{rung.number}  {rung.title}")
            item.setEnabled(not why)
            item.setToolTip(wrap_tip(why or variant.deliberate_error or variant.idea))
            item.setData(rung, _RUNG_ROLE)

    def showPopup(self) -> None:
        """Open the list below the box, inside the window."""
        view, window = self.view(), self.window()
        assert view is not None
        assert window is not None
        view.setMinimumWidth(min(look().px(_TEXT_WIDTH) + 24, window.width() - 16))
        super().showPopup()
        popup = view.window()
        assert popup is not None
        corner = self.mapTo(window, self.rect().bottomRight())
        needed = sum(view.sizeHintForRow(row) for row in range(self.count())) + 12
        height = min(needed, window.height() - corner.y() - 8)
        left = max(8, min(corner.x() + 1, window.width() - 8) - popup.width())
        popup.setGeometry(QRect(window.mapToGlobal(corner), QSize(popup.width(), height)))
        popup.move(window.mapToGlobal(corner).x() - corner.x() + left, popup.y())
        view.scrollTo(view.currentIndex())
