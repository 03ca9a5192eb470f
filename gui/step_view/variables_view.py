"""The variables of the warp that runs, a row each and a column for each lane."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from PyQt6.QtCore import QRectF, Qt
from PyQt6.QtGui import QColor, QPainter
from PyQt6.QtWidgets import QWidget

from gui.step_view.colours import mixed, warp_colour
from gui.step_view.values import as_text
from gui.theme import code_font, look

if TYPE_CHECKING:
    from gpu.stepping.warp_variables import WarpVariable

_LANES = 32
_LEFT = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft


def cells_of(variable: WarpVariable, room: int) -> list[str]:
    """Return what stands in the lanes, in at most `room` characters; of a mask its bits, the lowest in lane 0."""
    if variable.is_mask:
        mask = int(variable.values[variable.defined][0])
        return [str(mask >> lane & 1) for lane in range(_LANES)]
    shown = []
    for value, defined in zip(variable.values.tolist(), variable.defined.tolist(), strict=True):
        text = as_text(value, room) if defined else ""
        shown.append(text if len(text) <= room else "…")
    return shown


def name_of(variable: WarpVariable) -> str:
    """Return a variable's name, with its value where that is a mask, of which the lanes show bits."""
    if variable.is_mask:
        return f"{variable.name} = {int(variable.values[variable.defined][0])}"
    return variable.name


class VariablesView(QWidget):
    """What each lane of a warp holds; what the statement has just changed stands out."""

    def __init__(self) -> None:
        super().__init__()
        self.setAccessibleName("Variables")
        self.setMinimumSize(240, 160)
        self.variables: tuple[WarpVariable, ...] = ()
        self._active: tuple[bool, ...] = ()
        self._warp = 0

    def show_warp(self, variables: Sequence[WarpVariable], active: Sequence[bool], warp: int) -> None:
        """Show the variables of a warp, by its number in the grid, and which lanes run."""
        self.variables, self._active, self._warp = tuple(variables), tuple(active), warp
        self.setAccessibleDescription(
            "; ".join(f"{name_of(each)}: {' '.join(cells_of(each, 12))}" for each in variables)
        )
        self.update()

    def paintEvent(self, event: Any) -> None:
        painter = QPainter(self)
        theme = look().theme
        high, side = float(look().px(22)), 14.0
        painter.setFont(code_font(look().px(12)))
        metrics = painter.fontMetrics()
        names = [
            metrics.elidedText(name_of(each), Qt.TextElideMode.ElideRight, self.width() // 4) for each in self.variables
        ]
        left = side + max([metrics.horizontalAdvance(each) for each in (*names, "lane")]) + 10
        wide = (self.width() - left - side) / _LANES
        small = code_font(look().px(10))
        painter.setPen(QColor(theme.muted))
        painter.drawText(QRectF(side, 4, left, high), _LEFT, "lane")
        painter.setFont(small)
        room = max(int((wide - 2) / painter.fontMetrics().horizontalAdvance("0")), 1)
        colour = warp_colour(theme, self._warp)
        for lane, active in enumerate(self._active):
            painter.setPen(colour if active else QColor(theme.faint))
            painter.drawText(QRectF(left + lane * wide, 4, wide, high), Qt.AlignmentFlag.AlignCenter, str(lane))
        for number, (variable, name) in enumerate(zip(self.variables, names, strict=True), 1):
            top = 4 + number * high
            painter.setFont(code_font(look().px(12)))
            painter.setPen(QColor(theme.text if variable.changed.any() else theme.muted))
            painter.drawText(QRectF(side, top, left, high), _LEFT, name)
            painter.setFont(small)
            for lane, text in enumerate(cells_of(variable, room)):
                box = QRectF(left + lane * wide + 0.5, top + 1, wide - 1, high - 2)
                changed = bool(variable.changed[lane])
                painter.fillRect(box, mixed(colour.name(), theme.surface, 0.35) if changed else QColor(theme.raised))
                painter.setPen(QColor(theme.text if changed else theme.muted))
                painter.drawText(box, Qt.AlignmentFlag.AlignCenter, text)
        painter.end()
