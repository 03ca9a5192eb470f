"""The steps of a lesson as a row of dots: completed steps, tasks, and the current step."""

from __future__ import annotations

from PyQt6.QtCore import QEvent, QPointF, QRectF, Qt, pyqtSignal
from PyQt6.QtGui import QColor, QHelpEvent, QMouseEvent, QPaintEvent, QPen
from PyQt6.QtWidgets import QToolTip, QWidget

from gpu.messages.lessons import LessonOutline
from gui.painting.painters import create_smooth_painter
from gui.painting.theme import look


class StepsLine(QWidget):
    """A dot per step; a click opens the step."""

    step_requested = pyqtSignal(int)

    def __init__(self) -> None:
        super().__init__()
        self.setAccessibleName("Steps")
        self.setMouseTracking(True)
        self._lesson: LessonOutline | None = None
        self._number = 0
        self._completed_steps: frozenset[int] = frozenset()
        self.setFixedHeight(18)

    def show_steps(self, lesson: LessonOutline, number: int, completed_steps: frozenset[int]) -> None:
        """Show the steps of a lesson, and mark the current one."""
        self._lesson, self._number, self._completed_steps = lesson, number, completed_steps
        self.setAccessibleDescription(f"{len(completed_steps)} of {len(lesson.steps)} done")
        self.update()

    def compute_dot_rect(self, number: int) -> QRectF:
        """Return a dot's rectangle."""
        count = len(self._lesson.steps) if self._lesson is not None else 1
        wide = self.width() / count
        side = min(wide - 3, 12.0)
        middle = QPointF((number + 0.5) * wide, self.height() / 2)
        return QRectF(middle.x() - side / 2, middle.y() - side / 2, side, side)

    def _find_step(self, x: float) -> int | None:
        count = len(self._lesson.steps) if self._lesson is not None else 0
        number = int(x // (self.width() / count)) if count else -1
        return number if 0 <= number < count else None

    def mousePressEvent(self, event: QMouseEvent | None) -> None:
        number = self._find_step(event.position().x()) if event is not None else None
        if number is not None:
            self.step_requested.emit(number)

    def event(self, event: QEvent | None) -> bool:
        if isinstance(event, QHelpEvent) and self._lesson is not None:
            number = self._find_step(event.pos().x())
            if number is not None:
                QToolTip.showText(event.globalPos(), f"{number + 1}  {self._lesson.steps[number].title}", self)
            return True
        return super().event(event)

    def paintEvent(self, event: QPaintEvent | None) -> None:
        if self._lesson is None:
            return
        theme = look().theme
        painter = create_smooth_painter(self)
        painter.setPen(QPen(QColor(theme.border), 2))
        middle = self.height() / 2
        painter.drawLine(QPointF(0, middle), QPointF(self.width(), middle))
        for number, step in enumerate(self._lesson.steps):
            done, is_current = number in self._completed_steps, number == self._number
            painter.setBrush(QColor(theme.good if done else theme.surface))
            edge = theme.accent if is_current else theme.good if done else theme.faint
            painter.setPen(QPen(QColor(edge), 3 if is_current else 1.5))
            area = self.compute_dot_rect(number)
            if step.task is not None:
                painter.drawRoundedRect(area, 2, 2)
            else:
                painter.drawEllipse(area)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.end()
