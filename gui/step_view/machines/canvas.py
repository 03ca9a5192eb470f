"""Base class of the pictures of a run on several devices: current moment, selected task, tooltips."""

from __future__ import annotations

from PyQt6.QtCore import QEvent, QPointF, Qt, pyqtSignal
from PyQt6.QtGui import QHelpEvent, QMouseEvent
from PyQt6.QtWidgets import QToolTip, QWidget

from gui.painting.lettering import Lettering
from gui.painting.theme import look, resize_font
from gui.qt.events import is_event_type
from gui.step_view.machines.moments import MachineMoments

LABEL_WIDTH = 150
"""Width in pixels, at the normal text size, of the labels of rows and lanes."""


class TaskCanvas(QWidget):
    """A picture of Dask tasks with clicks and tooltips; subclasses paint it.

    Parameters
    ----------
    name : str
        Accessible name for screen readers.
    """

    task_picked = pyqtSignal(object)
    """The name of the clicked task, or None for a click elsewhere."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.setAccessibleName(name)
        self.moments: MachineMoments | None = None
        self.moment = 0
        self.picked: str | None = None
        self._restyle()

    def open(self, moments: MachineMoments) -> None:
        """Set the run."""
        self.moments, self.picked = moments, None
        self.update()

    def show_moment(self, moment: int) -> None:
        """Show the run at a moment."""
        self.moment = moment
        self.update()

    def pick(self, task: str | None) -> None:
        """Highlight a task, or none."""
        self.picked = task
        self.update()

    def task_at(self, point: QPointF) -> str | None:
        """Return the name of the task under a point, or None."""
        raise NotImplementedError

    def _restyle(self) -> None:
        """Apply the text size."""
        small = resize_font(self.font(), look().small_px)
        self._small_lettering = Lettering(small)

    # --- the pointer

    def mousePressEvent(self, event: QMouseEvent | None) -> None:
        if event is not None and event.button() == Qt.MouseButton.LeftButton:
            self.task_picked.emit(self.task_at(event.position()))

    def event(self, event: QEvent | None) -> bool:
        if isinstance(event, QHelpEvent) and self.moments is not None:
            name = self.task_at(QPointF(event.pos()))
            words = self.moments.describe_task(self.moments.layout.tasks[name].record) if name else ""
            QToolTip.showText(event.globalPos(), words, self)
            return True
        return super().event(event)

    def changeEvent(self, event: QEvent | None) -> None:
        super().changeEvent(event)
        if is_event_type(event, QEvent.Type.StyleChange):
            self._restyle()
            self.update()
