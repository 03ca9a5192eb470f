"""Pointer tracking over a pyqtgraph view: position in view coordinates, clicks and double clicks."""

from __future__ import annotations

from typing import Any

from PyQt6.QtCore import QEvent, QObject, QPointF, Qt, pyqtSignal
from PyQt6.QtGui import QMouseEvent
from PyQt6.QtWidgets import QApplication, QWidget

from gui.qt.events import is_event_type


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

    pointer_moved = pyqtSignal(object)
    """QPointF, or None if the pointer is not over the box."""
    clicked = pyqtSignal(object)
    """QPointF where the left button was pressed and released without a drag."""
    home_requested = pyqtSignal()
    """A double click, which asks to show the whole range."""

    def __init__(self, view: Any, box: Any, widget: QWidget) -> None:
        super().__init__(widget)
        self._view, self._box, self._widget = view, box, widget
        self._press_position: QPointF | None = None
        view.viewport().installEventFilter(self)

    def eventFilter(self, watched: QObject | None, event: QEvent | None) -> bool:
        if is_event_type(event, QEvent.Type.Leave):
            self.pointer_moved.emit(None)
        elif isinstance(event, QMouseEvent):
            if event.type() == QEvent.Type.MouseMove:
                self.pointer_moved.emit(self._to_view_position(event.position()))
            elif event.type() == QEvent.Type.MouseButtonDblClick:
                self._press_position = None
                self.home_requested.emit()
                return True
            elif event.type() == QEvent.Type.MouseButtonPress:
                self._press_position = event.position() if event.button() == Qt.MouseButton.LeftButton else None
                if self._widget.focusPolicy() & Qt.FocusPolicy.ClickFocus:
                    self._widget.setFocus(Qt.FocusReason.MouseFocusReason)
            elif event.type() == QEvent.Type.MouseButtonRelease:
                self._on_release(event.position())
        return False

    def _on_release(self, position: QPointF) -> None:
        pressed, self._press_position = self._press_position, None
        if pressed is None or (position - pressed).manhattanLength() >= QApplication.startDragDistance():
            return
        view_position = self._to_view_position(position)
        if view_position is not None:
            self.clicked.emit(view_position)

    def _to_view_position(self, position: QPointF) -> QPointF | None:
        in_scene = self._view.mapToScene(position.toPoint())
        inside = self._box.sceneBoundingRect().contains(in_scene)
        return QPointF(self._box.mapSceneToView(in_scene)) if inside else None
