"""Launch tree: every grid below the grid that launched it, appearing as the recording is played."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from PyQt6.QtCore import QEvent, QPointF, QRectF, Qt, pyqtSignal
from PyQt6.QtGui import QColor, QHelpEvent, QMouseEvent, QPainter, QPaintEvent, QPen
from PyQt6.QtWidgets import QToolTip, QWidget

from gpu.base.thread_names import name_thread
from gui.painting.colors import mix_colors
from gui.painting.painters import create_smooth_painter
from gui.painting.theme import code_font, look

if TYPE_CHECKING:
    from gpu.stepping.launch_tree import Grid

_MAX_LINES = 2
_MAX_BOX_WIDTH = 170
_FUTURE, _LAUNCHED, _RUNNING, _WAITING, _FINISHED = range(5)


def state_of(grid: Grid, moment: int) -> int:
    """Return a grid's state at a moment: future, launched, running, waiting for child launches, or finished."""
    if moment < grid.launch_moment:
        return _FUTURE
    if moment <= grid.first:
        return _LAUNCHED
    if moment <= grid.last and moment < grid.subtree_end:
        return _RUNNING
    return _WAITING if moment < grid.subtree_end else _FINISHED


class LaunchesView(QWidget):
    """The launch tree with grids as boxes; the row is the nesting depth."""

    moment_requested = pyqtSignal(int)

    def __init__(self) -> None:
        super().__init__()
        self.setAccessibleName("Launches")
        self.setMouseTracking(True)
        self.setMinimumSize(240, 160)
        self.grids: tuple[Grid, ...] = ()
        self.moment = 0
        self._centers: list[float] = []
        self._leaf_count = 1
        self._differing_arguments: frozenset[str] = frozenset()

    def open(self, grids: Sequence[Grid]) -> None:
        """Set the grids."""
        self.grids = tuple(grids)
        children: dict[int, list[int]] = {}
        for number, grid in enumerate(self.grids):
            children.setdefault(grid.parent, []).append(number)
        self._centers = [0.0] * len(self.grids)
        leaves = 0
        for number in _list_in_post_order(children):
            child_numbers = children.get(number)
            if child_numbers:
                self._centers[number] = (self._centers[child_numbers[0]] + self._centers[child_numbers[-1]]) / 2
            else:
                self._centers[number] = leaves + 0.5
                leaves += 1
        self._leaf_count = max(leaves, 1)
        # Show only the arguments that differ between grids.
        values: dict[str, set[str]] = {}
        for grid in self.grids:
            for name, value in grid.arguments:
                values.setdefault(name, set()).add(value)
        self._differing_arguments = frozenset(name for name, each in values.items() if len(each) > 1)
        self.update()

    def show_moment(self, moment: int) -> None:
        """Show the state of all grids at a moment."""
        self.moment = moment
        states = [state_of(grid, moment) for grid in self.grids]
        self.setAccessibleDescription(
            f"{sum(state > _FUTURE for state in states)} of {len(states)} grids launched, "
            f"{sum(state == _FINISHED for state in states)} finished"
        )
        self.update()

    def box(self, number: int) -> QRectF:
        """Return the box of a grid."""
        grid = self.grids[number]
        rows = max(each.depth for each in self.grids) + 1
        side, gap = 14.0, 6.0
        column = (self.width() - 2 * side) / self._leaf_count
        line = self.height() / rows
        height = min(line * 0.62, look().px(18) * (_MAX_LINES + 0.6))
        width = max(min(column - gap, look().px(_MAX_BOX_WIDTH)), 3.0)
        return QRectF(
            side + self._centers[number] * column - width / 2, grid.depth * line + (line - height) / 2, width, height
        )

    def grid_at(self, point: QPointF) -> int | None:
        """Return the number of the grid at a point, or None."""
        return next((number for number in range(len(self.grids)) if self.box(number).contains(point)), None)

    def paintEvent(self, event: QPaintEvent | None) -> None:
        painter = create_smooth_painter(self)
        painter.setFont(code_font(look().px(12)))
        boxes = [self.box(number) for number in range(len(self.grids))]
        states = [state_of(grid, self.moment) for grid in self.grids]
        theme = look().theme
        for number, grid in enumerate(self.grids):
            if grid.parent < 0:
                continue
            painter.setPen(QPen(QColor(theme.accent if states[number] else theme.border), 1.4))
            parent, box = boxes[grid.parent], boxes[number]
            painter.drawLine(QPointF(parent.center().x(), parent.bottom()), QPointF(box.center().x(), box.top()))
        for grid, box, state in zip(self.grids, boxes, states, strict=True):
            self._paint_box(painter, grid, box, state)
        painter.end()

    def _paint_box(self, painter: QPainter, grid: Grid, box: QRectF, state: int) -> None:
        theme = look().theme
        fills = {
            _FUTURE: QColor(theme.surface),
            _LAUNCHED: QColor(theme.surface),
            _RUNNING: QColor(theme.accent),
            _WAITING: mix_colors(theme.accent, theme.surface, 0.25),
            _FINISHED: QColor(theme.raised),
        }
        pen = QPen(QColor(theme.border if state in (_FUTURE, _FINISHED) else theme.accent), 1.4)
        if state == _LAUNCHED:
            pen.setStyle(Qt.PenStyle.DashLine)
        painter.setPen(pen)
        painter.setBrush(fills[state])
        painter.drawRoundedRect(box, 4, 4)
        if state == _FUTURE:
            return
        painter.setPen(QColor({_RUNNING: theme.on_accent, _FINISHED: theme.muted}.get(state, theme.text)))
        metrics = painter.fontMetrics()
        lines = [f"{name} {value}" for name, value in grid.arguments if name in self._differing_arguments] or [
            grid.kernel
        ]
        lines = lines[: max(min(_MAX_LINES, int(box.height() // metrics.height())), 1)]
        if box.width() < max(map(metrics.horizontalAdvance, lines)) + 6:
            lines = [line.rsplit(" ", 1)[-1] for line in lines]  # the values alone
        if box.width() < max(map(metrics.horizontalAdvance, lines)) + 2 or box.height() < metrics.height():
            return
        painter.drawText(box, Qt.AlignmentFlag.AlignCenter, "\n".join(lines))

    def mousePressEvent(self, event: QMouseEvent | None) -> None:
        assert event is not None
        number = self.grid_at(event.position())
        if number is not None:
            self.moment_requested.emit(self.grids[number].first + 1)

    def mouseMoveEvent(self, event: QMouseEvent | None) -> None:
        assert event is not None
        inside = self.grid_at(event.position()) is not None
        self.setCursor(Qt.CursorShape.PointingHandCursor if inside else Qt.CursorShape.ArrowCursor)

    def event(self, event: QEvent | None) -> bool:
        if isinstance(event, QHelpEvent):
            number = self.grid_at(QPointF(event.pos()))
            QToolTip.showText(event.globalPos(), "" if number is None else self.describe_grid(number), self)
            return True
        return super().event(event)

    def describe_grid(self, number: int) -> str:
        """Return a grid's size, arguments and launching thread as text."""
        grid = self.grids[number]
        blocks = "1 block" if grid.blocks == 1 else f"{grid.blocks} blocks"
        lines = [f"{grid.kernel}: {blocks} of {grid.threads} threads"]
        if grid.arguments:
            lines.append(", ".join(f"{name} = {value}" for name, value in grid.arguments))
        if grid.parent < 0:
            lines.append("launched by the host")
        else:
            parent = self.grids[grid.parent]
            extents = (parent.blocks,), (parent.threads,)
            name = name_thread(grid.parent_block, grid.parent_thread, *extents, names_block=parent.blocks > 1)
            lines.append(f"launched by {name}")
        return "\n".join(lines)


def _list_in_post_order(children: dict[int, list[int]]) -> list[int]:
    """Return all grids in post-order: each after its child launches."""
    order: list[int] = []
    stack = list(reversed(children.get(-1, [])))
    while stack:
        number = stack.pop()
        if number < 0:
            order.append(~number)
            continue
        stack.append(~number)
        stack += reversed(children.get(number, []))
    return order
