"""Pointer tracking over a pyqtgraph view: position in view coordinates, clicks and double clicks."""

from __future__ import annotations

from typing import Any

from PyQt6.QtCore import QEvent, QObject, QPointF, Qt, pyqtSignal
from PyQt6.QtGui import QMouseEvent
from PyQt6.QtWidgets import QApplication, QWidget

from gui.qt.events import is_of


class PointerTracker(QObject):
    """Report the pointer's moves and clicks over a view.

    pyqtgraph's own signal drops every move within 10 ms of another, including the last one, so its last position can
    differ from where the pointer stopped.

    Parameters
    ----------
    view : pyqtgraph.GraphicsView
    box : pyqtgraph.ViewBox
        The view box that defines the coordinates of positions.
    widget : QWidget
        Receives the keyboard focus when pressed, if its focus policy allows that.
    """

    moved = pyqtSignal(object)
    """QPointF, or None if the pointer is not over the box."""
    clicked = pyqtSignal(object)
    """QPointF where the left button was pressed and released without a drag."""
    home_wanted = pyqtSignal()
    """A double click, which asks to show the whole range."""

    def __init__(self, view: Any, box: Any, widget: QWidget) -> None:
        super().__init__(widget)
        self._view, self._box, self._widget = view, box, widget
        self._pressed: QPointF | None = None
        view.viewport().installEventFilter(self)

    def eventFilter(self, watched: QObject | None, event: QEvent | None) -> bool:
        if is_of(event, QEvent.Type.Leave):
            self.moved.emit(None)
        elif isinstance(event, QMouseEvent):
            if event.type() == QEvent.Type.MouseMove:
                self.moved.emit(self._place(event.position()))
            elif event.type() == QEvent.Type.MouseButtonDblClick:
                self._pressed = None
                self.home_wanted.emit()
                return True
            elif event.type() == QEvent.Type.MouseButtonPress:
                self._pressed = event.position() if event.button() == Qt.MouseButton.LeftButton else None
                if self._widget.focusPolicy() & Qt.FocusPolicy.ClickFocus:
                    self._widget.setFocus(Qt.FocusReason.MouseFocusReason)
            elif event.type() == QEvent.Type.MouseButtonRelease:
                self._release(event.position())
        return False

    def _release(self, position: QPointF) -> None:
        pressed, self._pressed = self._pressed, None
        if pressed is None or (position - pressed).manhattanLength() >= QApplication.startDragDistance():
            return
        place = self._place(position)
        if place is not None:
            self.clicked.emit(place)

    def _place(self, position: QPointF) -> QPointF | None:
        in_scene = self._view.mapToScene(position.toPoint())
        inside = self._box.sceneBoundingRect().contains(in_scene)
        return QPointF(self._box.mapSceneToView(in_scene)) if inside else None
