"""Base class of plots: a cursor line moved by pointer or arrow keys, theme colors, and no redundant painting."""

from __future__ import annotations

from typing import Any

import pyqtgraph as pg
from PyQt6.QtCore import QPoint, QPointF, QRectF, Qt, pyqtSignal
from PyQt6.QtGui import QKeyEvent, QShowEvent
from PyQt6.QtWidgets import QSizePolicy, QWidget

from gui.painting.theme import Look, look
from gui.plots.pointer import PointerTracker
from gui.qt.events import StyleListener
from gui.widgets.basic import column


class VerticalLine(pg.InfiniteLine):  # type: ignore[misc]  # pyqtgraph has no types
    """A vertical line over the height of a plot, also while the plot is being deleted."""

    def __init__(self, *, movable: bool) -> None:
        super().__init__(angle=90, movable=movable)

    def boundingRect(self) -> QRectF:
        # The line refers to its view weakly, and garbage collection may begin in this call.
        view = self.getViewBox()
        return super().boundingRect() if view is not None else QRectF()


class Plot(StyleListener, QWidget):
    """A plot over a discrete axis: elements, bins, sizes.

    Parameters
    ----------
    name : str
        Accessible name for screen readers.
    axes : pyqtgraph.AxisItem
        Axes that replace pyqtgraph's defaults on their sides.
    keys : bool
        Accept keyboard focus, so that arrow keys move the cursor line.
    """

    hovered = pyqtSignal(object)
    """The number of the item under the pointer, or None."""
    picked = pyqtSignal(int)
    """The number of the item that was clicked, or that the cursor was at when Enter was pressed."""

    def __init__(self, name: str, *axes: pg.AxisItem, keys: bool = True) -> None:
        super().__init__()
        self.setAccessibleName(name)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        if keys:
            self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.plot = pg.PlotWidget(parent=self, axisItems={axis.orientation: axis for axis in axes}, enableMenu=False)
        self.plot.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.plot.hideButtons()
        self.box = self.plot.getViewBox()
        self.left, self.bottom = self.plot.getAxis("left"), self.plot.getAxis("bottom")
        for axis in (self.left, self.bottom):
            axis.enableAutoSIPrefix(False)
        self.index: int | None = None
        """The item at the cursor line, or None."""
        self._moved_by_keys = False
        self.line = VerticalLine(movable=False)
        self.line.hide()
        self.plot.addItem(self.line, ignoreBounds=True)
        self._applied_look: Look | None = None
        self.setLayout(column(self.plot))
        pointer = PointerTracker(self.plot, self.box, self)
        pointer.pointer_moved.connect(self._on_pointer_moved)
        pointer.clicked.connect(self._on_clicked)
        pointer.home_requested.connect(self.fit)

    # --- overridden by subclasses

    @property
    def count(self) -> int:
        """Return the number of items that arrow keys can reach."""
        return 0

    def find_number(self, x: float) -> int | None:
        """Return the number of the item at a position of the axis, or None."""
        raise NotImplementedError

    def position_of(self, number: int) -> float:
        """Return an item's position on the axis."""
        return number

    def fit(self) -> None:
        """Show the whole range."""

    def restyle(self) -> None:
        """Apply the theme's colors and the text size, and redraw."""
        raise NotImplementedError

    # --- reading

    def show_cursor(self, number: int | None) -> None:
        """Show the cursor line at an item, or hide it."""
        self.index, self._moved_by_keys = number, False
        self.line.setVisible(number is not None)
        if number is not None:
            self.line.setPos(self.position_of(number))

    def move_cursor(self, number: int | None) -> None:
        """Move the cursor line to an item, and emit `hovered`."""
        self.show_cursor(number)
        self.hovered.emit(number)

    def _on_pointer_moved(self, place: QPointF | None) -> None:
        if place is not None:
            self.move_cursor(self.find_number(place.x()))
        elif not self._moved_by_keys:  # a card that opens below a resting pointer takes it away from the plot
            self.move_cursor(None)

    def _on_clicked(self, place: QPointF) -> None:
        number = self.find_number(place.x())
        if number is not None:
            self.move_cursor(number)
            self.picked.emit(number)

    def find_cursor_position(self) -> QPoint:
        """Return the screen position of the cursor line, at half the plot's height."""
        (_, _), (low, high) = self.box.viewRange()
        x = 0.0 if self.index is None else self.position_of(self.index)
        in_scene = self.box.mapViewToScene(QPointF(x, (low + high) / 2))
        return self.plot.mapToGlobal(self.plot.mapFromScene(in_scene))  # type: ignore[no-any-return]

    def keyPressEvent(self, event: QKeyEvent | None) -> None:
        assert event is not None
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and self.index is not None:
            self.picked.emit(self.index)
        elif self.count and event.key() in (Qt.Key.Key_Left, Qt.Key.Key_Right):
            start = self.count // 2 if self.index is None else self.index
            direction = 1 if event.key() == Qt.Key.Key_Right else -1
            self.move_cursor(min(max(start + direction, 0), self.count - 1))
            self._moved_by_keys = True
        else:
            super().keyPressEvent(event)

    # --- looks

    def update_layout(self) -> None:
        """Update the layout now: if that happened during painting, the plot would be painted twice."""
        self.box.prepareForPaint()

    def _apply_look(self) -> None:
        if self._applied_look != look():
            self._applied_look = look()
            self.plot.setBackground(look().theme.surface)
            self.line.setPen(pg.mkPen(look().theme.text, width=1))
            self.restyle()

    def _restyle(self) -> None:
        if self.isVisible():
            self._apply_look()

    def showEvent(self, event: QShowEvent | None) -> None:
        super().showEvent(event)
        self._apply_look()


def label_axis(axis: Any, text: str) -> None:
    """Set an axis's label in the theme's muted color."""
    axis.setLabel(text, **{"color": look().theme.muted, "font-size": f"{look().small_px}px"})
