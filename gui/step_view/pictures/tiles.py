"""Tiles of a tensor-core product: which lane holds which element, with A at the left, B above, and C."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from PyQt6.QtCore import QPointF, QRectF, Qt, pyqtSignal
from PyQt6.QtGui import QColor, QFont, QMouseEvent, QPainter, QPaintEvent, QPen
from PyQt6.QtWidgets import QToolTip, QWidget

from gpu.base.warp import WARP
from gui.painting.colors import mix_colors, warp_color
from gui.painting.lettering import Lettering
from gui.painting.theme import code_font, look
from gui.qt.events import StyleListener

if TYPE_CHECKING:
    from gpu.stepping.moment.tiles import Tile, TileProduct

_NO_TILES = "No tiles here. Statements that load, multiply or store tiles show which lane holds which element."
_DOCUMENTED_LAYOUT = "layout as in NVIDIA's PTX ISA"
_UNSPECIFIED_LAYOUT = "CUDA does not specify this layout: the simulator uses that of mma.sync"
_MIN_FONT_SIZE, _MAX_FONT_SIZE = 6, 13
_MIN_LETTER_WIDTH, _MAX_CELL_WIDTH = 22.0, 30.0
"""Minimum width in pixels of a cell with a letter before its number, and maximum width of a cell."""
_SIDE = 14.0


class TilesView(StyleListener, QWidget):
    """A statement's tiles, with the holding lane in each element's cell; a click follows that thread."""

    thread_clicked = pyqtSignal(int, int)

    def __init__(self) -> None:
        super().__init__()
        self.setAccessibleName("Tiles")
        self.setMouseTracking(True)
        self.setMinimumSize(240, 160)
        self.product: TileProduct | None = None
        self._block = self._thread = self._warp = 0

    def show_tiles(self, product: TileProduct | None, block: int, thread: int, warp: int) -> None:
        """Show a statement's tiles, and highlight the elements of a thread.

        Parameters
        ----------
        product : TileProduct or None
            The tiles; None if the statement has none.
        block, thread : int
            The thread whose elements are highlighted.
        warp : int
            The thread's warp, numbered through the grid, which determines the color.
        """
        self.product, self._block, self._thread, self._warp = product, block, thread, warp
        self.setAccessibleDescription(_NO_TILES if product is None else self._describe_elements(product))
        self.update()

    def _describe_elements(self, product: TileProduct) -> str:
        """Return the elements of the followed lane in words."""
        lane, parts = self._thread % WARP, []
        for tile in product.tiles:
            rows, columns = (tile.lanes == lane).nonzero()
            places = tile.element_indices[rows, columns]
            elements = sorted(zip(places.tolist(), rows.tolist(), columns.tolist(), strict=True))
            parts.append(f"{tile.use}: " + ", ".join(f"{at} is ({row}, {column})" for at, row, column in elements))
        return f"{product.name}; lane {lane} holds {'; '.join(parts)}"

    def _restyle(self) -> None:
        self.update()

    # --- positions

    def _tile_boxes(self) -> list[tuple[Tile, QRectF]]:
        """Return the box of each tile, arranged as a written product: A to the left of C, and B above it."""
        if self.product is None:
            return []
        tiles = {tile.use: tile for tile in self.product.tiles}
        head = look().px(22) * 2.0
        gap, title = 12.0, look().px(18) * 1.0
        shapes: dict[str, tuple[int, ...]] = {"A": (0, 0), "B": (0, 0), "C": (0, 0)}
        shapes |= {use: tile.lanes.shape for use, tile in tiles.items()}
        left, right = shapes["A"][1], max(shapes[use][1] for use in "BC")
        above, below = shapes["B"][0], max(shapes[use][0] for use in "AC")
        total_width = self.width() - 2 * _SIDE - (gap if left and right else 0)
        total_height = self.height() - head - title * (bool(above) + bool(below)) - (gap if above and below else 0) - 6
        width = min(total_width / (left + right), _MAX_CELL_WIDTH)
        height = min(total_height / (above + below), width)
        over = left * width + (gap if left and right else 0)
        under = (title + above * height + gap) if above and below else 0
        corners = {
            "A": QPointF(0, under + title),
            "B": QPointF(over, title),
            "C": QPointF(over, under + title),
        }
        start = QPointF((self.width() - over - right * width) / 2, head)
        return [
            (tile, QRectF(start + corners[use], start + corners[use] + QPointF(width * columns, height * rows)))
            for use, tile in tiles.items()
            for rows, columns in (tile.lanes.shape,)
        ]

    def element_at(self, point: QPointF) -> tuple[Tile, int, int] | None:
        """Return the tile under a point, with the row and the column of its element."""
        for tile, box in self._tile_boxes():
            if box.contains(point):
                rows, columns = tile.lanes.shape
                row = int((point.y() - box.y()) / box.height() * rows)
                column = int((point.x() - box.x()) / box.width() * columns)
                return tile, min(row, rows - 1), min(column, columns - 1)
        return None

    # --- painting

    def paintEvent(self, event: QPaintEvent | None) -> None:
        painter = QPainter(self)
        theme = look().theme
        if self.product is None:
            painter.setPen(QColor(theme.muted))
            box = QRectF(self.rect()).adjusted(2 * _SIDE, 0, -2 * _SIDE, 0)
            painter.drawText(box, int(Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap), _NO_TILES)
            painter.end()
            return
        line_height = float(look().px(22))
        bold = QFont(self.font())
        bold.setBold(True)
        width = self.width() - 2 * _SIDE
        for number, (text, color, font) in enumerate(
            (
                (self.product.name, theme.text, bold),
                (_DOCUMENTED_LAYOUT if self.product.documented else _UNSPECIFIED_LAYOUT, theme.muted, self.font()),
            )
        ):
            painter.setFont(font)
            painter.setPen(QColor(color))
            shortened = painter.fontMetrics().elidedText(text, Qt.TextElideMode.ElideRight, int(width))
            line = QRectF(_SIDE, number * line_height, width, line_height)
            painter.drawText(line, int(Qt.AlignmentFlag.AlignVCenter), shortened)
        places = self._tile_boxes()
        letters = _choose_fonts(*_cell_size(places), look())
        for tile, box in places:
            self._paint_tile(painter, tile, box, letters)
        painter.end()

    def _paint_tile(
        self, painter: QPainter, tile: Tile, box: QRectF, letters: tuple[Lettering, Lettering] | None
    ) -> None:
        theme, lane = look().theme, self._thread % WARP
        rows, columns = tile.lanes.shape
        width, height = box.width() / columns, box.height() / rows
        painter.setFont(self.font())
        painter.setPen(QColor(theme.muted))
        title = QRectF(box.x(), box.y() - look().px(18), max(box.width(), 60), look().px(18))
        painter.drawText(title, int(Qt.AlignmentFlag.AlignVCenter), f"{tile.use}   {rows} x {columns}")
        color = warp_color(theme, self._warp)
        # The ISA's or C++'s name of a lane's element.
        letter = tile.use.lower() if self.product is not None and self.product.documented else "x"
        # Four lanes share a row or column: alternate the background of groups of four.
        grounds = (QColor(theme.raised), mix_colors(theme.border, theme.surface, 0.9))
        for is_own in (False, True):
            for row in range(rows):
                for column in range(columns):
                    holder = int(tile.lanes[row, column])
                    if (holder == lane) != is_own:
                        continue
                    cell = QRectF(box.x() + column * width + 0.5, box.y() + row * height + 0.5, width - 1, height - 1)
                    painter.fillRect(cell, color if is_own else grounds[holder // 4 % 2])
                    if letters is not None:
                        text = f"{letter}{tile.element_indices[row, column]}" if is_own else str(holder)
                        painter.setFont(letters[is_own].font)
                        painter.setPen(QColor(theme.surface if is_own else theme.muted))
                        letters[is_own].paint_centered(painter, cell, text)
        painter.setPen(QPen(QColor(theme.border), 1))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawRect(box)

    # --- mouse

    def mouseMoveEvent(self, event: QMouseEvent | None) -> None:
        assert event is not None
        hit = self.element_at(event.position())
        if hit is None:
            QToolTip.hideText()
            return
        tile, row, column = hit
        lane, element = tile.lanes[row, column], tile.element_indices[row, column]
        text = f"{tile.use}[{row}][{column}]: lane {lane}, its element {element}"
        QToolTip.showText(event.globalPosition().toPoint(), text, self)

    def mousePressEvent(self, event: QMouseEvent | None) -> None:
        assert event is not None
        hit = self.element_at(event.position())
        if hit is not None:
            tile, row, column = hit
            self.thread_clicked.emit(self._block, self._thread // WARP * WARP + int(tile.lanes[row, column]))


def _cell_size(tile_boxes: list[tuple[Tile, QRectF]]) -> tuple[float, float]:
    tile, box = tile_boxes[0]
    rows, columns = tile.lanes.shape
    return box.width() / columns, box.height() / rows


@lru_cache(maxsize=8)
def _choose_fonts(width: float, height: float, _: object) -> tuple[Lettering, Lettering] | None:
    """Return the fonts of cells and of the followed thread's cells, or None if no text fits."""
    for pixels in range(_MAX_FONT_SIZE, _MIN_FONT_SIZE - 1, -1):
        plain = Lettering(code_font(pixels))
        if plain.width("x00" if width > _MIN_LETTER_WIDTH else "00") <= width - 2 and pixels <= height - 1:
            bold = code_font(pixels)
            bold.setBold(True)
            return plain, Lettering(bold)
    return None
