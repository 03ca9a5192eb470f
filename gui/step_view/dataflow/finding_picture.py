"""Picture of a finding that no cell of a dataflow shows: the accessed elements of an array, or the lanes of warps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PyQt6.QtCore import QPointF, QRectF, Qt
from PyQt6.QtGui import QColor, QPainter, QPen

from gpu.base.warp import WARP
from gpu.declaration.pattern import Array
from gui.painting.colors import mix_colors, warp_color
from gui.painting.theme import code_font, look
from gui.step_view.dataflow.labels import label_font

CAPTION_HEIGHT, _CIRCLE, _GAP, _CELL_HEIGHT, _INDEX_HEIGHT = 24, 20, 26, 26, 16
"""Heights in pixels, at the normal text size, of the parts of a picture, from the top."""
_MAX_CELL_WIDTH, _MAX_LANE_WIDTH, _LANE_HEIGHT = 64, 26, 22
_MAX_SCALE, _FILLED_SHARE = 3.0, 0.7
"""A picture grows by at most this factor, to at most this share of its box's height."""
_SIDE = 14
_CORNER_RADIUS = 4
WAITING = 3
"""The value of gpu.stepping.moment.lanes.LaneState."""


@dataclass(frozen=True)
class ShownElement:
    """An element of the array: its index, its value as text, and whether it is out of the array's bounds."""

    index: int
    text: str
    is_outside: bool


@dataclass(frozen=True)
class ShownAccess:
    """An access of a thread to a shown element: "reads", "writes", or "" where the caption says it."""

    block: int
    thread: int
    element: int
    action: str = ""


@dataclass(frozen=True, eq=False)
class FindingPicture:
    """What the picture of a finding shows: elements with accesses, or lanes.

    Parameters
    ----------
    moment : int
        The event that shows the finding; accesses and lanes are painted after it.
    caption : str
        The finding and its thread in a few words.
    warps : int
        Warps per block.
    thread : (int, int) or None
        The block and the thread that the finding is about.
    array : str
        The array's name; "" for a picture of lanes.
    elements : tuple of ShownElement
        By ascending index.
    lanes : uint8 array, shape (warps, 32), or None
        The `LaneState` of each lane of some warps of the thread's block.
    first_warp : int
        The number in its block of the first of these warps.
    summary : str
        The lanes' states in words.
    """

    moment: int
    caption: str
    warps: int
    thread: tuple[int, int] | None
    array: str = ""
    elements: tuple[ShownElement, ...] = ()
    accesses: tuple[ShownAccess, ...] = ()
    lanes: Array | None = None
    first_warp: int = 0
    summary: str = ""

    @property
    def height(self) -> int:
        """Return the picture's height in pixels."""
        if self.lanes is not None:
            parts = CAPTION_HEIGHT + len(self.lanes) * _LANE_HEIGHT + _INDEX_HEIGHT
        else:
            has_actions = any(access.action for access in self.accesses)
            parts = CAPTION_HEIGHT + _INDEX_HEIGHT * (1 + has_actions) + _CIRCLE + _GAP + _CELL_HEIGHT
        return look().px(parts + 12)

    def place_elements(self) -> dict[int, float]:
        """Return the position of each element in cells; a gap of half a cell separates elements without neighbors."""
        places, place = {}, 0.0
        for before, element in zip((None, *self.elements), self.elements, strict=False):
            place += 0.0 if before is None else 1.0 if element.index == before.index + 1 else 1.5
            places[element.index] = place
        return places


def choose_picture(pictures: Sequence[FindingPicture], moment: int) -> FindingPicture:
    """Return the picture of the last finding before a moment, or of the first one."""
    so_far = [picture for picture in pictures if picture.moment < moment]
    return so_far[-1] if so_far else pictures[0]


class FindingPainter:
    """Painter of a finding's picture in a box, which also finds the thread at a point of it."""

    def __init__(self) -> None:
        self._circles: list[tuple[QRectF, tuple[int, int]]] = []
        self.scale = 1.0
        """The factor by which the last painted picture was enlarged to fill its box."""

    def thread_at(self, point: QPointF) -> tuple[int, int] | None:
        """Return the block and thread of the circle or lane at a point of the last painted picture."""
        return next((thread for box, thread in self._circles if box.contains(point / self.scale)), None)

    def paint(self, painter: QPainter, box: QRectF, picture: FindingPicture, moment: int) -> None:
        """Paint a picture at a moment: before the finding's event, the elements alone."""
        self._circles.clear()
        height = _FILLED_SHARE * box.height() / picture.height
        self.scale = max(1.0, min(_MAX_SCALE, height, box.width() / self._measure_width(painter, picture)))
        painter.scale(self.scale, self.scale)
        box = QRectF(box.topLeft() / self.scale, box.size() / self.scale)
        theme, happened = look().theme, moment > picture.moment
        top = box.top() + max(0.0, (box.height() - picture.height) / 3)
        side = look().px(_SIDE)
        if happened:
            font = label_font(look())
            font.setBold(True)
            painter.setFont(font)
            painter.setPen(QColor(theme.bad))
            line = QRectF(box.left() + side, top, box.width() - 2 * side, look().px(CAPTION_HEIGHT))
            text = painter.fontMetrics().elidedText(picture.caption, Qt.TextElideMode.ElideRight, int(line.width()))
            painter.drawText(line, int(Qt.AlignmentFlag.AlignVCenter), text)
        area = QRectF(box.left(), top + look().px(CAPTION_HEIGHT), box.width(), box.bottom() - top)
        if picture.lanes is not None:
            if happened:
                self._paint_lanes(painter, area, picture, picture.lanes)
        else:
            self._paint_elements(painter, area, picture, happened=happened)

    def _measure_width(self, painter: QPainter, picture: FindingPicture) -> float:
        """Return the width of a picture with cells of the largest width, in pixels before it is enlarged."""
        painter.setFont(label_font(look()))
        cells = picture.place_elements().values()
        width = WARP * _MAX_LANE_WIDTH if picture.lanes is not None else (max(cells) + 1) * _MAX_CELL_WIDTH
        longest = max(map(painter.fontMetrics().horizontalAdvance, ("threads", "warp 00", picture.array)))
        caption = painter.fontMetrics().horizontalAdvance(max(picture.caption, picture.summary, key=len))
        return max(longest + look().px(width + 3 * _SIDE), 1.1 * caption + look().px(2 * _SIDE))

    def _paint_elements(self, painter: QPainter, area: QRectF, picture: FindingPicture, *, happened: bool) -> None:
        px = look().px
        painter.setFont(label_font(look()))
        names = ("threads", picture.array)
        label = min(max(map(painter.fontMetrics().horizontalAdvance, names)) + px(2 * _SIDE), 0.28 * area.width())
        places = picture.place_elements()
        width = min((area.width() - label - px(_SIDE)) / (max(places.values()) + 1), px(_MAX_CELL_WIDTH))
        actions = px(_INDEX_HEIGHT) if any(access.action for access in picture.accesses) else 0
        threads_top = area.top() + actions
        cells_top = threads_top + px(_CIRCLE) + px(_GAP)
        boxes = {
            index: QRectF(area.left() + label + at * width, cells_top, width - 3, px(_CELL_HEIGHT))
            for index, at in places.items()
        }
        self._paint_label(painter, QRectF(area.left(), cells_top, label, px(_CELL_HEIGHT)), picture.array)
        if happened:
            self._paint_label(painter, QRectF(area.left(), threads_top, label, px(_CIRCLE)), names[0])
            self._paint_accesses(painter, boxes, threads_top, picture)
        accessed = {access.element for access in picture.accesses} if happened else set()
        for element in picture.elements:
            self._paint_element(painter, boxes[element.index], element, is_faulty=element.index in accessed)

    def _paint_accesses(self, painter: QPainter, boxes: dict[int, QRectF], top: float, picture: FindingPicture) -> None:
        """Paint the threads as circles above their elements, with lines to them."""
        px, theme = look().px, look().theme
        threads = {(access.block, access.thread): access.action for access in picture.accesses}
        elements = {
            each: [
                boxes[access.element].center().x()
                for access in picture.accesses
                if each == (access.block, access.thread)
            ]
            for each in threads
        }
        painter.setFont(code_font(look().small_px))
        widest = max(painter.fontMetrics().horizontalAdvance(str(thread)) for _, thread in threads)
        width = max(px(_CIRCLE), widest + px(8))
        pitch = width + (px(34) if any(threads.values()) else px(3))
        least = min(box.left() for box in boxes.values()) + width / 2
        for block, thread in sorted(threads, key=lambda each: sum(elements[each]) / len(elements[each])):
            targets = elements[block, thread]
            middle = max(sum(targets) / len(targets), least)
            least = middle + pitch
            oval = QRectF(middle - width / 2, top, width, px(_CIRCLE))
            painter.setPen(QPen(QColor(theme.bad), 2))
            for x in targets:
                painter.drawLine(QPointF(middle, oval.bottom()), QPointF(x, next(iter(boxes.values())).top()))
            is_about = (block, thread) == picture.thread
            painter.setPen(QPen(QColor(theme.text), 2) if is_about else Qt.PenStyle.NoPen)
            painter.setBrush(warp_color(theme, block * picture.warps + thread // WARP))
            painter.drawRoundedRect(oval, oval.height() / 2, oval.height() / 2)
            painter.setPen(QColor(theme.on_accent))
            painter.setFont(code_font(look().small_px))
            painter.drawText(oval, int(Qt.AlignmentFlag.AlignCenter), str(thread))
            if threads[block, thread]:
                painter.setFont(label_font(look()))
                painter.setPen(QColor(theme.muted))
                above = QRectF(middle - px(40), top - px(_INDEX_HEIGHT) - 2, px(80), px(_INDEX_HEIGHT))
                painter.drawText(above, int(Qt.AlignmentFlag.AlignCenter), threads[block, thread])
            self._circles.append((oval, (block, thread)))

    @staticmethod
    def _paint_element(painter: QPainter, box: QRectF, element: ShownElement, *, is_faulty: bool) -> None:
        theme, px = look().theme, look().px
        bad = QColor(theme.bad)
        if element.is_outside and not is_faulty:
            return
        painter.setPen(QPen(bad, 2) if is_faulty else QPen(QColor(theme.border), 1))
        painter.setBrush(mix_colors(theme.bad, theme.surface, 0.35) if is_faulty else QColor(theme.raised))
        painter.drawRoundedRect(box, _CORNER_RADIUS, _CORNER_RADIUS)
        painter.setFont(code_font(look().small_px))
        painter.setPen(QColor(theme.text))
        if painter.fontMetrics().horizontalAdvance(element.text) <= box.width():
            painter.drawText(box, int(Qt.AlignmentFlag.AlignCenter), element.text)
        below = QRectF(box.center().x() - px(40), box.bottom() + 2, px(80), px(_INDEX_HEIGHT))
        painter.setPen(bad if element.is_outside else QColor(theme.muted))
        painter.drawText(below, int(Qt.AlignmentFlag.AlignCenter), str(element.index))

    def _paint_lanes(self, painter: QPainter, area: QRectF, picture: FindingPicture, lanes: Array) -> None:
        """Paint a row of lanes per warp: those that wait are filled, the thread's is framed in red."""
        px, theme = look().px, look().theme
        painter.setFont(label_font(look()))
        label = painter.fontMetrics().horizontalAdvance(f"warp {picture.first_warp + len(lanes)}") + px(2 * _SIDE)
        width = min((area.width() - label - px(_SIDE)) / WARP, px(_MAX_LANE_WIDTH))
        for row, states in enumerate(lanes.tolist()):
            warp, top = picture.first_warp + row, area.top() + row * px(_LANE_HEIGHT)
            self._paint_label(painter, QRectF(area.left(), top, label, px(_LANE_HEIGHT)), f"warp {warp}")
            for lane, state in enumerate(states):
                if not state:
                    continue
                box = QRectF(area.left() + label + lane * width, top + 2, width - 2, px(_LANE_HEIGHT) - 4)
                thread = (picture.thread[0] if picture.thread else 0, warp * WARP + lane)
                is_about = thread == picture.thread
                waits = state == WAITING
                painter.setPen(QPen(QColor(theme.bad), 2.5 if is_about else 1) if not waits else Qt.PenStyle.NoPen)
                painter.setBrush(mix_colors(theme.warn, theme.surface, 0.4) if waits else QColor(theme.surface))
                painter.drawRoundedRect(box, 3, 3)
                self._circles.append((box, thread))
        painter.setPen(QColor(theme.muted))
        top = area.top() + len(lanes) * px(_LANE_HEIGHT)
        line = QRectF(area.left() + px(_SIDE), top, area.width() - 2 * px(_SIDE), px(_INDEX_HEIGHT) + 4)
        text = painter.fontMetrics().elidedText(picture.summary, Qt.TextElideMode.ElideRight, int(line.width()))
        painter.drawText(line, int(Qt.AlignmentFlag.AlignVCenter), text)

    @staticmethod
    def _paint_label(painter: QPainter, box: QRectF, text: str) -> None:
        painter.setFont(label_font(look()))
        painter.setPen(QColor(look().theme.muted))
        room = box.adjusted(look().px(_SIDE), 0, -4, 0)
        text = painter.fontMetrics().elidedText(text, Qt.TextElideMode.ElideRight, int(room.width()))
        painter.drawText(room, int(Qt.AlignmentFlag.AlignVCenter), text)
