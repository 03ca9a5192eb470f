"""Paints an array as a grid of cells; of a grid that was painted before only those cells that have changed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from PyQt6.QtCore import QPointF, QRectF, Qt
from PyQt6.QtGui import QColor, QFontMetricsF, QImage, QPainter, QPixmap

from gpu.pattern import Array
from gui.step_view.colours import mixed
from gui.step_view.lettering import Lettering
from gui.step_view.values import texts
from gui.theme import code_font, look

READABLE = 17
"""Pixels of a cell from which it carries its value."""
_FRAMED = 7
"""Pixels of a cell from which there is a gap between cells."""
_MANY = 128
"""Changed cells from which all are painted at once."""
_KEPT_CELLS = 1024
_BRIGHT = 0.55
_DARK_TEXT, _LIGHT_TEXT = "#0b0f14", "#f2f5f9"


@dataclass(frozen=True, eq=False)
class Panel:
    """An array, or the plane of it that is looked at, as rows and columns.

    Parameters
    ----------
    number : int
        Of the array in its trace.
    first : int
        The array's element at the top left.
    values : array, shape (rows, columns)
    known : bool array, same shape
        Where there is a value: nobody has written the others yet, or the last row ends early.
    """

    number: int
    title: str
    first: int
    values: Array
    known: Array

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.values.shape[0], self.values.shape[1]


class Grid:
    """The painted cells of one array.

    Parameters
    ----------
    shape : (int, int)
        Rows and columns.
    cell : float
        Pixels of a cell.
    ratio : float
        Pixels of the screen for each of the picture.
    """

    def __init__(self, shape: tuple[int, int], cell: float, ratio: float) -> None:
        self.shape, self.cell = shape, cell
        self._picture = QPixmap(round(shape[1] * cell * ratio), round(shape[0] * cell * ratio))
        self._picture.setDevicePixelRatio(ratio)
        self._picture.fill(Qt.GlobalColor.transparent)
        self._colours = np.zeros(shape, np.uint32)
        self._values: Array | None = None
        self._known: Array = np.zeros(shape, bool)
        self._range: tuple[float, float] | None = None
        self._cells: dict[tuple[int, str, bool], QPixmap] = {}
        self._dark = np.zeros(shape, bool)
        font = code_font(max(8, min(look().small_px, round(cell * 0.4))))
        self._lettering = Lettering(font)
        self._room = max(1, int((cell - 3) / QFontMetricsF(font).horizontalAdvance("0")))

    def paint(self, painter: QPainter, panel: Panel, area: QRectF, values: tuple[float, float] | None) -> None:
        """Paint an array, dark for the least of a pair of values, light for the greatest."""
        if self._is_painted(panel, values):
            painter.drawPixmap(area.topLeft(), self._picture)
            return
        share = _shares(panel, values)
        colours = _colours(panel, share)
        if self.cell < _FRAMED:
            painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform, False)
            painter.drawImage(area, _image(colours))
            return
        dark = share > _BRIGHT
        changed = colours != self._colours
        if self._values is None or self._values.dtype != panel.values.dtype:
            changed[:] = True
        else:
            # As bytes, so that NaN is like itself.
            size = panel.values.dtype.itemsize
            one, other = (np.ascontiguousarray(each).view(np.uint8).reshape(*self.shape, size)
                          for each in (panel.values, self._values))  # fmt: skip
            changed |= (one != other).any(axis=-1)
        self._colours, self._values, self._dark = colours, panel.values, dark
        self._known, self._range = panel.known, values
        if changed.any():
            self._update(panel, changed)
        painter.drawPixmap(area.topLeft(), self._picture)

    def _is_painted(self, panel: Panel, values: tuple[float, float] | None) -> bool:
        """Return whether the picture is that of an array already, as that of most arrays is in most steps."""
        before = self._values
        return (
            before is not None
            and self._range == values
            and before.dtype == panel.values.dtype
            and before.tobytes() == panel.values.tobytes()
            and np.array_equal(self._known, panel.known)
        )

    def _update(self, panel: Panel, changed: Array) -> None:
        painter = QPainter(self._picture)
        painter.setCompositionMode(QPainter.CompositionMode.CompositionMode_Source)
        surface = QColor(look().theme.surface)
        if self.cell < READABLE and np.count_nonzero(changed) > _MANY:
            self._update_all(painter, surface)
            painter.end()
            return
        places = np.flatnonzero(changed.reshape(-1))
        known = panel.known.reshape(-1)[places]
        shown = [""] * places.size
        if self.cell >= READABLE:
            shown = [text if there else "" for text, there in
                     zip(texts(panel.values.reshape(-1)[places], self._room), known.tolist(), strict=True)]  # fmt: skip
        looks = zip(self._colours.reshape(-1)[places].tolist(), shown, self._dark.reshape(-1)[places].tolist(),
                    strict=True)  # fmt: skip
        tops, lefts = (each * self.cell for each in divmod(places, self.shape[1]))
        for left, top, key in zip(lefts.tolist(), tops.tolist(), looks, strict=True):
            painter.drawPixmap(QPointF(left, top), self._cells.get(key) or self._cell(*key))
        painter.end()

    def _cell(self, colour: int, text: str, on_light: bool) -> QPixmap:
        """Return a painted cell; the same values come again and again."""
        key = (colour, text, on_light)
        if key not in self._cells:
            if len(self._cells) >= _KEPT_CELLS:
                self._cells.clear()
            ratio = self._picture.devicePixelRatio()
            made = QPixmap(round(self.cell * ratio), round(self.cell * ratio))
            made.setDevicePixelRatio(ratio)
            made.fill(QColor(look().theme.surface))
            painter = QPainter(made)
            box = QRectF(0, 0, self.cell, self.cell)
            painter.fillRect(box.adjusted(0.5, 0.5, -0.5, -0.5), QColor.fromRgb(colour))
            if text:
                painter.setFont(self._lettering.font)
                painter.setPen(QColor(_DARK_TEXT if on_light else _LIGHT_TEXT))
                self._lettering.centre(painter, box, text)
            painter.end()
            self._cells[key] = made
        return self._cells[key]

    def _update_all(self, painter: QPainter, surface: QColor) -> None:
        """Paint all cells at once, and then what is between them; they carry no values."""
        rows, columns = self.shape
        width, height = columns * self.cell, rows * self.cell
        painter.drawImage(QRectF(0, 0, width, height), _image(self._colours))
        for row in range(rows + 1):
            painter.fillRect(QRectF(0, row * self.cell - 0.5, width, 1), surface)
        for column in range(columns + 1):
            painter.fillRect(QRectF(column * self.cell - 0.5, 0, 1, height), surface)

    def letter(self, painter: QPainter, panel: Panel, area: QRectF, places: Array, *, dark: bool) -> None:
        """Paint the values of some cells over what lies on them, in dark letters or in those of their ground."""
        if self.cell < READABLE:
            return
        left, top = area.left(), area.top()
        places = places[panel.known.reshape(-1)[places]]
        painter.setFont(self._lettering.font)
        on_light = self._dark.reshape(-1)[places] | dark
        for colour, here in ((_DARK_TEXT, places[on_light]), (_LIGHT_TEXT, places[~on_light])):
            painter.setPen(QColor(colour))
            shown = texts(panel.values.reshape(-1)[here], self._room)
            for place, text in zip(here.tolist(), shown, strict=True):
                row, column = divmod(place, self.shape[1])
                box = QRectF(left + column * self.cell, top + row * self.cell, self.cell, self.cell)
                self._lettering.centre(painter, box, text)


def _shares(panel: Panel, values: tuple[float, float] | None) -> Array:
    """Return where each value lies between the least and the greatest, 0 to 1."""
    low, high = values or (0.0, 1.0)
    with np.errstate(all="ignore"):
        share = (panel.values.astype(float) - low) / ((high - low) or 1.0)
    return np.clip(np.nan_to_num(share, nan=0.0), 0, 1)


def _colours(panel: Panel, share: Array) -> Array:
    """Return the colour of each cell: uint32, as QRgb."""
    dark, light = (np.array(QColor(each).getRgb()[:3], float) for each in ("#1c232d", "#dfe6ef"))
    parts = (dark + share[..., np.newaxis] * (light - dark)).astype(np.uint32)
    found = np.uint32(0xFF000000) | parts[..., 0] << 16 | parts[..., 1] << 8 | parts[..., 2]
    found[~panel.known] = mixed(look().theme.border, look().theme.surface, 0.35).rgb()
    return found.astype(np.uint32)


def _image(colours: Array) -> QImage:
    # The image looks at these bytes until it is copied.
    looked_at = colours.tobytes()
    rows, columns = colours.shape
    return QImage(looked_at, columns, rows, 4 * columns, QImage.Format.Format_ARGB32).copy()
