"""What the pictures of a run on several devices have in common: a moment that is seen, and a task that stands out."""

from __future__ import annotations

from PyQt6.QtCore import QEvent, QPointF, Qt, pyqtSignal
from PyQt6.QtGui import QFont, QHelpEvent, QMouseEvent
from PyQt6.QtWidgets import QToolTip, QWidget

from gui.painting.lettering import Lettering
from gui.painting.theme import look
from gui.qt.events import is_of
from gui.step_view.machines.moments import MachineMoments

LABELS = 150
"""Pixels at the left, at the normal size of text, for what a row or a lane is."""


class TaskCanvas(QWidget):
    """A picture of tasks, which are clicked and asked about; what it paints is the heirs'.

    Parameters
    ----------
    name : str
        For who does not see it.
    """

    task_picked = pyqtSignal(object)
    """The name of a task that was clicked; None beside all."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.setAccessibleName(name)
        self.moments: MachineMoments | None = None
        self.moment = 0
        self.picked: str | None = None
        self._restyle()

    def open(self, moments: MachineMoments) -> None:
        """Show a run."""
        self.moments, self.picked = moments, None
        self.update()

    def show_moment(self, moment: int) -> None:
        """Show what there is at a moment."""
        self.moment = moment
        self.update()

    def pick(self, task: str | None) -> None:
        """Let a task stand out, or none."""
        self.picked = task
        self.update()

    def task_at(self, place: QPointF) -> str | None:
        """Return the task under a point."""
        raise NotImplementedError

    def _restyle(self) -> None:
        """Take the size of text."""
        small = QFont(self.font())
        small.setPixelSize(look().small_px)
        self._small = Lettering(small)

    # --- the pointer

    def mousePressEvent(self, event: QMouseEvent | None) -> None:
        if event is not None and event.button() == Qt.MouseButton.LeftButton:
            self.task_picked.emit(self.task_at(event.position()))

    def event(self, event: QEvent | None) -> bool:
        if isinstance(event, QHelpEvent) and self.moments is not None:
            name = self.task_at(QPointF(event.pos()))
            words = self.moments.words(self.moments.layout.tasks[name].record) if name else ""
            QToolTip.showText(event.globalPos(), words, self)
            return True
        return super().event(event)

    def changeEvent(self, event: QEvent | None) -> None:
        super().changeEvent(event)
        if is_of(event, QEvent.Type.StyleChange):
            self._restyle()
            self.update()
