"""Variables of the current warp: one row per variable, one column per lane."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from PyQt6.QtCore import QPointF, QRectF, Qt
from PyQt6.QtGui import QColor, QPainter, QPaintEvent, QPixmap
from PyQt6.QtWidgets import QWidget

from gpu.base.warp import WARP
from gui.painting.colors import mix_colors, warp_color
from gui.painting.lettering import Lettering
from gui.painting.pixmaps import Pixmaps
from gui.painting.theme import code_font, look
from gui.painting.values import format_value
from gui.qt.events import StyleListener

if TYPE_CHECKING:
    from gpu.stepping.moment.warp_variables import WarpVariable


def format_cells(variable: WarpVariable, max_length: int) -> tuple[str, ...]:
    """Return the texts of a variable's lanes, at most `max_length` characters; for a mask its bits, bit 0 in lane 0."""
    if variable.is_mask:
        mask = int(variable.values[variable.defined][0])
        return tuple(str(mask >> lane & 1) for lane in range(WARP))
    return _format_values(variable.values.tobytes(), variable.values.dtype, variable.defined.tobytes(), max_length)


@lru_cache(maxsize=1024)
def _format_values(values: bytes, dtype: np.dtype[Any], defined: bytes, max_length: int) -> tuple[str, ...]:
    """Return a variable's cell texts, cached because most do not change from one moment to the next."""
    text_of_value: dict[Any, str] = {}
    texts = []
    for value, is_defined in zip(np.frombuffer(values, dtype).tolist(), defined, strict=True):
        if not is_defined:
            texts.append("")
            continue
        key = value or repr(value)  # 0.0 and -0.0 are equal, but have different texts
        if key not in text_of_value:
            text = format_value(value, max_length)
            text_of_value[key] = text if len(text) <= max_length else "…"
        texts.append(text_of_value[key])
    return tuple(texts)


def format_name(variable: WarpVariable) -> str:
    """Return a variable's name; for a mask also its value, since its lanes show bits."""
    if variable.is_mask:
        return f"{variable.name} = {int(variable.values[variable.defined][0])}"
    return variable.name


@dataclass(frozen=True)
class _VariableRow:
    """The contents of a variable's row, used as cache key."""

    name: str
    texts: tuple[str, ...]
    changed: tuple[bool, ...]


class VariablesView(StyleListener, QWidget):
    """The variables of a warp's lanes; values changed by the last statement are highlighted."""

    def __init__(self) -> None:
        super().__init__()
        self.setAccessibleName("Variables")
        self.setMinimumSize(240, 160)
        self.variables: tuple[WarpVariable, ...] = ()
        self._active: tuple[bool, ...] = ()
        self._warp = 0
        self._rows = Pixmaps()
        self._restyle()

    def show_warp(self, variables: Sequence[WarpVariable], active: Sequence[bool], warp: int) -> None:
        """Show the variables of a warp, its active lanes, and its grid-wide number as color."""
        self.variables, self._active, self._warp = tuple(variables), tuple(active), warp
        self.setAccessibleDescription(
            "; ".join(f"{format_name(variable)}: {' '.join(format_cells(variable, 12))}" for variable in variables)
        )
        self.update()

    def _restyle(self) -> None:
        self._names, self._values = Lettering(code_font(look().px(12))), Lettering(code_font(look().px(10)))

    def paintEvent(self, event: QPaintEvent | None) -> None:
        painter = QPainter(self)
        theme = look().theme
        height, side = float(look().px(22)), 14.0
        painter.setFont(self._names.font)
        metrics = painter.fontMetrics()
        names = [
            metrics.elidedText(format_name(each), Qt.TextElideMode.ElideRight, self.width() // 4)
            for each in self.variables
        ]
        left = side + max([self._names.width(each) for each in (*names, "lane")]) + 10
        cell_width = (self.width() - left - side) / WARP
        room = max(int((cell_width - 2) / self._values.width("0")), 1)
        color = warp_color(theme, self._warp)
        painter.setPen(QColor(theme.muted))
        self._names.paint_left(painter, QRectF(side, 4, left, height), "lane")
        painter.setFont(self._values.font)
        for lane, active in enumerate(self._active):
            painter.setPen(color if active else QColor(theme.faint))
            self._values.paint_centered(painter, QRectF(left + lane * cell_width, 4, cell_width, height), str(lane))
        for number, (variable, name) in enumerate(zip(self.variables, names, strict=True), 1):
            row = _VariableRow(name, format_cells(variable, room), tuple(variable.changed.tolist()))
            # Cached, since most rows do not change from one moment to the next.
            key = (row, left, cell_width, color.rgb(), self.width(), self.devicePixelRatioF(), look())
            picture = self._rows.find_or_paint(key, partial(self._paint_row, row, left, cell_width, color))
            painter.drawPixmap(QPointF(0, 4 + number * height), picture)
        painter.end()

    def _paint_row(self, row: _VariableRow, left: float, cell_width: float, color: QColor) -> QPixmap:
        """Paint and return the picture of a row."""
        theme, height, ratio = look().theme, float(look().px(22)), self.devicePixelRatioF()
        picture = QPixmap(round(self.width() * ratio), round(height * ratio))
        picture.setDevicePixelRatio(ratio)
        picture.fill(QColor(theme.surface))
        painter = QPainter(picture)
        painter.setFont(self._names.font)
        painter.setPen(QColor(theme.text if any(row.changed) else theme.muted))
        self._names.paint_left(painter, QRectF(14, 0, left, height), row.name)
        painter.setFont(self._values.font)
        boxes = [QRectF(left + lane * cell_width + 0.5, 1, cell_width - 1, height - 2) for lane in range(WARP)]
        for changed, ground, ink in (
            (False, QColor(theme.raised), theme.muted),
            (True, mix_colors(color.name(), theme.surface, 0.35), theme.text),
        ):
            lanes = [lane for lane in range(WARP) if row.changed[lane] == changed]
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(ground)
            if lanes:
                painter.drawRects(*(boxes[lane] for lane in lanes))
            painter.setPen(QColor(ink))
            for lane in lanes:
                self._values.paint_centered(painter, boxes[lane], row.texts[lane])
        painter.end()
        return picture
