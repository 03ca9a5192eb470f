"""What plots have in common: a line where one reads, by pointer or arrow keys; the theme's colors; painting once."""

from __future__ import annotations

from typing import Any

import pyqtgraph as pg
from PyQt6.QtCore import QEvent, QPoint, QPointF, Qt, pyqtSignal
from PyQt6.QtGui import QKeyEvent, QShowEvent
from PyQt6.QtWidgets import QSizePolicy, QVBoxLayout, QWidget

from gui.painting.theme import Look, look
from gui.plots.pointer import PointerTracker
from gui.qt.events import is_of


class Plot(QWidget):
    """A plot over something that is counted: elements, bins, sizes.

    Parameters
    ----------
    name : str
        What a screen reader says.
    axes : pyqtgraph.AxisItem
        In place of pyqtgraph's own, which those of a plot's sides are.
    keys : bool
        Whether it takes the keyboard's focus: arrow keys read.
    """

    hovered = pyqtSignal(object)
    """The number of what is under the pointer, or None."""
    picked = pyqtSignal(int)
    """The number of what was clicked, or was read when Enter was pressed."""

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
        """What is read."""
        self.line = pg.InfiniteLine(angle=90, movable=False)
        self.line.hide()
        self.plot.addItem(self.line, ignoreBounds=True)
        self._styled: Look | None = None
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self.plot)
        pointer = PointerTracker(self.plot, self.box, self)
        pointer.moved.connect(self._follow)
        pointer.clicked.connect(self._pick)
        pointer.home_wanted.connect(self.fit)

    # --- what each plot says of itself

    @property
    def count(self) -> int:
        """Return how many there are for arrow keys to read."""
        return 0

    def number_at(self, x: float) -> int | None:
        """Return the number of what stands at a place of the axis, where anything does."""
        raise NotImplementedError

    def place_of(self, number: int) -> float:
        """Return where on the axis that number stands."""
        return number

    def fit(self) -> None:
        """Show all there is."""

    def restyle(self) -> None:
        """Take the theme's colors and the text's size, and draw again in them."""
        raise NotImplementedError

    # --- reading

    def mark(self, number: int | None) -> None:
        """Show a line at a number, or none."""
        self.index = number
        self.line.setVisible(number is not None)
        if number is not None:
            self.line.setPos(self.place_of(number))

    def read(self, number: int | None) -> None:
        """Show a line at a number, and say that it is read."""
        self.mark(number)
        self.hovered.emit(number)

    def _follow(self, place: QPointF | None) -> None:
        self.read(None if place is None else self.number_at(place.x()))

    def _pick(self, place: QPointF) -> None:
        number = self.number_at(place.x())
        if number is not None:
            self.read(number)
            self.picked.emit(number)

    def anchor(self) -> QPoint:
        """Return where on the screen what is read stands, at half the plot's height."""
        (_, _), (low, high) = self.box.viewRange()
        x = 0.0 if self.index is None else self.place_of(self.index)
        in_scene = self.box.mapViewToScene(QPointF(x, (low + high) / 2))
        return self.plot.mapToGlobal(self.plot.mapFromScene(in_scene))  # type: ignore[no-any-return]

    def keyPressEvent(self, event: QKeyEvent | None) -> None:
        assert event is not None
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and self.index is not None:
            self.picked.emit(self.index)
        elif self.count and event.key() in (Qt.Key.Key_Left, Qt.Key.Key_Right):
            start = self.count // 2 if self.index is None else self.index
            by = 1 if event.key() == Qt.Key.Key_Right else -1
            self.read(min(max(start + by, 0), self.count - 1))
        else:
            super().keyPressEvent(event)

    # --- looks

    def settle(self) -> None:
        """Work out where things are: a plot that finds out while it is painted is painted once more."""
        self.box.prepareForPaint()

    def _take_look(self) -> None:
        if self._styled != look():
            self._styled = look()
            self.plot.setBackground(look().theme.surface)
            self.line.setPen(pg.mkPen(look().theme.text, width=1))
            self.restyle()

    def changeEvent(self, event: QEvent | None) -> None:
        super().changeEvent(event)
        if is_of(event, QEvent.Type.StyleChange) and self.isVisible():
            self._take_look()

    def showEvent(self, event: QShowEvent | None) -> None:
        super().showEvent(event)
        self._take_look()


def label_axis(axis: Any, text: str) -> None:
    """Write beside an axis what it counts."""
    axis.setLabel(text, **{"color": look().theme.muted, "font-size": f"{look().small_px}px"})
