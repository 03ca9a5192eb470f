"""Card of a block's warps and lanes, and of the current statement's memory accesses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from PyQt6.QtCore import QPointF, QRectF, QSize, Qt, pyqtSignal
from PyQt6.QtGui import QColor, QMouseEvent, QPainter, QPaintEvent, QPen, QPixmap
from PyQt6.QtWidgets import QSizePolicy, QToolTip, QWidget

from gpu.base.thread_names import name_thread
from gpu.base.warp import WARP
from gui.painting.colors import mix_colors, warp_color
from gui.painting.pixmaps import Pixmaps, paint_pixmap
from gui.painting.theme import look
from gui.step_view.cards.traffic import AddressBars, BankRow
from gui.widgets.basic import Card, ElidedLabel

if TYPE_CHECKING:
    from gpu.stepping.moment.lanes import Lanes
    from gpu.stepping.moment.traffic import Traffic

_MAX_ROWS = 4
_COMPACT_ROWS = 2
# The values of gpu.stepping.moment.lanes.LaneState.
ABSENT, ACTIVE, IDLE, WAITING, FINISHED, READY = range(6)
_STATE_NAMES = {ABSENT: "the block has no more threads", ACTIVE: "active", WAITING: "waiting at a barrier",
          FINISHED: "finished", READY: "ready, not running"}  # fmt: skip


class LaneGrid(QWidget):
    """A grid with one row per warp and one cell per lane; a click follows the thread."""

    thread_clicked = pyqtSignal(int, int)

    def __init__(self) -> None:
        super().__init__()
        self.setAccessibleName("Warps and lanes")
        self.setMouseTracking(True)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.lanes: Lanes | None = None
        self.block = 0
        self.threads = 0
        self.followed = -1
        self.max_rows = _MAX_ROWS
        self.first_warp = 0
        """The first visible warp."""
        self._warp_pictures = Pixmaps()

    def show_lanes(self, lanes: Lanes | None, block: int, threads: int, followed: int) -> None:
        """Show the lanes of a block.

        Parameters
        ----------
        lanes : Lanes or None
            None shows nothing.
        threads : int
            Threads per block.
        followed : int
            The followed thread of the block, -1 for none.
        """
        rows = self.rows
        self.lanes, self.block, self.threads, self.followed = lanes, block, threads, followed
        if lanes is not None:
            active = np.flatnonzero((lanes.state[block] == ACTIVE).any(axis=1))
            warp = followed // WARP if followed >= 0 else int(active[0]) if active.size else self.first_warp
            if not self.first_warp <= warp < self.first_warp + self.max_rows:
                self.first_warp = warp
            self.first_warp = min(self.first_warp, max(0, lanes.state.shape[1] - self.max_rows))
        if rows != self.rows:
            self.updateGeometry()
        self.update()

    @property
    def rows(self) -> int:
        """Return the number of visible warps."""
        return 1 if self.lanes is None else min(self.lanes.state.shape[1], self.max_rows)

    def sizeHint(self) -> QSize:
        return QSize(260, self.rows * look().px(22 if self.rows < 3 else 18))

    def minimumSizeHint(self) -> QSize:
        return QSize(160, self.sizeHint().height())

    def _box(self, lane: int) -> QRectF:
        """Return the box of a lane in the first row."""
        width = self.width() / WARP
        return QRectF(lane * width + 0.75, 1, width - 1.5, self.height() / self.rows - 3)

    def paintEvent(self, event: QPaintEvent | None) -> None:
        if self.lanes is None:
            return
        painter = QPainter(self)
        warps = self.lanes.state.shape[1]
        for row in range(self.rows):
            warp = self.first_warp + row
            color = warp_color(look().theme, self.block * warps + warp)
            painter.drawPixmap(0, round(row * self.height() / self.rows), self._warp_picture(warp, color))
        if self.first_warp * WARP <= self.followed < (self.first_warp + self.rows) * WARP:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(QPen(QColor(look().theme.text), 2))
            row, lane = divmod(self.followed - self.first_warp * WARP, WARP)
            painter.drawRoundedRect(self._box(lane).translated(0, row * self.height() / self.rows), 3, 3)
        painter.end()

    def _warp_picture(self, warp: int, color: QColor) -> QPixmap:
        """Return the painted lanes of a warp, cached because states repeat."""
        assert self.lanes is not None
        states, ratio = self.lanes.state[self.block, warp], self.devicePixelRatioF()
        key = (states.tobytes(), color.rgb(), self.width(), self.height(), self.rows, ratio, look())
        size = QSize(round(self.width() * ratio), round(self.height() / self.rows * ratio))

        def paint(painter: QPainter) -> None:
            for lane, state in enumerate(states.tolist()):
                self._paint_lane(painter, self._box(lane), state, color)

        return self._warp_pictures.find_or_paint(key, lambda: paint_pixmap(size, ratio, paint))

    @staticmethod
    def _paint_lane(painter: QPainter, box: QRectF, state: int, color: QColor) -> None:
        theme = look().theme
        painter.setPen(Qt.PenStyle.NoPen)
        if state == ACTIVE:
            painter.setBrush(color)
        elif state == IDLE:
            painter.setBrush(QColor(theme.border))
        elif state == WAITING:
            painter.setBrush(mix_colors(theme.warn, theme.surface, 0.4))
        elif state == READY:
            painter.setBrush(mix_colors(color.name(), theme.surface, 0.3))
        else:
            painter.setBrush(mix_colors(theme.raised, theme.surface, 0.3))
            painter.setPen(QPen(mix_colors(theme.border, theme.surface, 1.0 if state == FINISHED else 0.5), 1))
        painter.drawRoundedRect(box, 3, 3)
        if state == FINISHED:
            painter.setPen(QPen(QColor(theme.faint), 1.2))
            painter.drawLine(box.center() + QPointF(-2.5, 0), box.center() + QPointF(2.5, 0))

    def _thread_at(self, point: QPointF) -> int:
        row = int(point.y() // (self.height() / self.rows))
        lane = int(point.x() // (self.width() / WARP))
        if not (0 <= row < self.rows and 0 <= lane < WARP):
            return -1
        return (self.first_warp + row) * WARP + lane

    def box_at(self, point: QPointF) -> QRectF | None:
        """Return the box of the lane under a point, or None."""
        thread = self._thread_at(point)
        if self.lanes is None or thread < 0:
            return None
        row, lane = divmod(thread - self.first_warp * WARP, WARP)
        return self._box(lane).translated(0, row * self.height() / self.rows)

    def mousePressEvent(self, event: QMouseEvent | None) -> None:
        assert event is not None
        thread = self._thread_at(event.position())
        if 0 <= thread < self.threads:
            self.thread_clicked.emit(self.block, thread)

    def mouseMoveEvent(self, event: QMouseEvent | None) -> None:
        assert event is not None
        thread = self._thread_at(event.position())
        if self.lanes is None or thread < 0:
            return
        state = int(self.lanes.state[self.block].reshape(-1)[thread])
        line = int(self.lanes.line[self.block].reshape(-1)[thread])
        words = f"inactive (line {line})" if state == IDLE else _STATE_NAMES[state]
        name = name_thread(self.block, thread, (1,), self.lanes.block_shape, names_block=False)
        QToolTip.showText(event.globalPosition().toPoint(), f"{name}: {words}", self)


def list_state_texts(lanes: Lanes | None, block: int, where: Sequence[str] = ()) -> tuple[str, str]:
    """Return the states of a block's lanes as text, after the words of `where`, and a shorter text."""
    groups = lanes.groups(block) if lanes is not None else ()
    return (
        "  ·  ".join([*where, *(group.text for group in groups)]),
        " · ".join([*where, *(group.short_text for group in groups)]),
    )


class LanesCard(Card):
    """Warps and lanes, in colors and words, and the memory accesses of the current statement."""

    def __init__(self) -> None:
        super().__init__("Warps and lanes", margins=(12, 7, 12, 9))
        self.body.setSpacing(5)
        self._detailed = True
        self._visible_pictures = (True, False)
        self.block_label = ElidedLabel("caption", "Block and warps", right=True)
        self.head.addWidget(self.block_label, 1)
        self.grid = LaneGrid()
        self.lane_states = ElidedLabel("caption", "States of the lanes")
        self.traffic = ElidedLabel("caption", "Memory accesses")
        self.banks = BankRow()
        self.queues = AddressBars()
        for widget in (self.grid, self.lane_states, self.banks, self.queues, self.traffic):
            self.body.addWidget(widget)

    def show_lanes(self, lanes: Lanes | None, block: int, blocks: int, threads: int, followed: int) -> None:
        """Show the lanes of a block.

        Parameters
        ----------
        blocks : int
            Number of blocks of the launch.
        threads : int
            Threads per block.
        followed : int
            The followed thread, or -1.
        """
        self.grid.show_lanes(lanes, block, threads, followed)
        parts = [f"block {block} of {blocks}"] if blocks > 1 else []
        if lanes is not None and self.grid.rows < (warps := lanes.state.shape[1]):
            parts.append(f"warps {self.grid.first_warp} to {self.grid.first_warp + self.grid.rows - 1} of {warps}")
        self.block_label.show_text("  ·  ".join(parts) or ("one block" if lanes is not None else ""))
        # Without its title line, the card shows the block in its text.
        where = parts if not self._detailed else []
        self.lane_states.show_text(*list_state_texts(lanes, block, where))

    def show_traffic(self, traffic: Traffic | None) -> None:
        """Show the memory accesses of the current statement."""
        lanes = self.grid.lanes
        idle_text = "no memory access" if lanes is not None else ""
        text = (traffic.summary if traffic is not None else "") or idle_text
        self.traffic.show_text(text, text.replace(", bank conflicts 0", ""))
        self.banks.show_wavefronts(traffic.banks if traffic is not None else None)
        self.queues.show_addresses(
            traffic.addresses(self.grid.block) if traffic is not None else (), lanes.state.shape[1] if lanes else 1
        )

    def show_pictures(self, *, banks: bool, addresses: int) -> None:
        """Show or hide the banks of shared memory, and reserve space for the queues of `addresses` addresses."""
        self._visible_pictures = (banks, addresses > 0)
        self.queues.reserve(addresses)
        self._lay_out()

    def show_details(self, detailed: bool) -> None:
        """Show everything, or only a few warps and their states."""
        self._detailed = detailed
        self.grid.max_rows = _MAX_ROWS if detailed else _COMPACT_ROWS
        self.grid.updateGeometry()
        for widget in (self.title, self.block_label, self.traffic):
            widget.setVisible(detailed)
        self._lay_out()

    def _lay_out(self) -> None:
        for widget, is_visible in zip((self.banks, self.queues), self._visible_pictures, strict=True):
            widget.setVisible(is_visible and self._detailed)
