"""The pane of a lesson: the step's text, its question or task, and navigation."""

from __future__ import annotations

from functools import partial

from PyQt6.QtCore import Qt, pyqtSignal
from PyQt6.QtGui import QHideEvent, QShowEvent
from PyQt6.QtWidgets import QApplication, QCheckBox, QPushButton, QVBoxLayout, QWidget

from gpu.messages.lessons import LessonOutline, StepScene
from gui.lessons.markdown import MarkdownLabel
from gui.lessons.question_card import QuestionCard
from gui.lessons.steps_line import StepsLine
from gui.lessons.task_card import TaskCard
from gui.model.lessons import Lessons
from gui.painting.theme import look
from gui.qt.timers import create_single_shot_timer
from gui.widgets.basic import ElidedLabel, Ground, button, column, label, row
from gui.widgets.scroll_column import ScrollColumn

_MAX_WINDOW_SHARE = 0.29
_WIDTH = 322
"""Pixels at the normal text size: lines of about fifty letters, and eight hundred pixels left for the page."""


class _Recap(Ground):
    """The end of a lesson: how much of it is done, and the questions and tasks that were skipped."""

    step_requested = pyqtSignal(int)
    """The number of a skipped step, from 0."""

    def __init__(self) -> None:
        super().__init__()
        self.summary = label("", "muted", wrap=True, name="Progress in this lesson")
        self.step_buttons: list[QPushButton] = []
        self._layout = QVBoxLayout(self)
        self._layout.setContentsMargins(0, 0, 0, 0)
        self._layout.setSpacing(4)
        self._layout.addWidget(self.summary)
        self._rows: list[QWidget] = []
        self.hide()

    def show_progress(self, lesson: LessonOutline, skipped: tuple[int, ...]) -> None:
        """Show the number of completed questions and tasks, and a button for each skipped one."""
        for each in self._rows:
            self._layout.removeWidget(each)
            each.deleteLater()
        self._rows, self.step_buttons = [], []
        total = sum(bool(step.question_kind) or step.task is not None for step in lesson.steps)
        done = f"{total - len(skipped)} of {total} questions and tasks are done."
        self.summary.setText(f"{done} Skipped:" if skipped else done)
        for number in skipped:
            title = lesson.steps[number].title
            kind = "task" if lesson.steps[number].task is not None else "question"
            go = button(str(number + 1), tip="Go to this step", name=f"Step {number + 1}, {kind}: {title}")
            go.clicked.connect(partial(self.step_requested.emit, number))
            line = QWidget()
            content = row(go, label(f"{title} ({kind})", wrap=True), stretch=1)
            line.setLayout(content)
            self._rows.append(line)
            self.step_buttons.append(go)
            self._layout.addWidget(line)


class LessonPane(Ground):
    """The pane of the current step."""

    closed = pyqtSignal()
    """The user closes the lesson."""
    visibility_changed = pyqtSignal(bool)
    """Whether the pane is visible from now on."""

    def __init__(self, lessons: Lessons) -> None:
        super().__init__()
        self.setAccessibleName("Lesson")
        self._lessons = lessons
        self.title = ElidedLabel("card-title", "Lesson")
        self.step_count = label("", "caption", name="Step of the lesson")
        self.close_button = button("✕", "flat", tip="Close the lesson (F7)", name="Close the lesson")
        self.heading = label("", "title", wrap=True, name="Step")
        self.step_text = MarkdownLabel("Text of the step")
        self.intro = MarkdownLabel("Text of the lesson")
        self.steps_line = StepsLine()
        self.question = QuestionCard(lessons)
        self.task = TaskCard(lessons)
        self.wait_label = label("", "muted", wrap=True, name="Current work")
        self.for_class = QCheckBox("For a class: no marking")
        self.for_class.setToolTip("Questions are shown with their answers to a class; nothing is marked or saved")
        self.back = button("‹ Back", tip="Previous step (Alt+←)")
        self.next = button("Next ›", tip="Next step (Alt+→)")
        self.scroll_area = ScrollColumn()
        self._scroll_timer = create_single_shot_timer(0, self._scroll_to_end, self)
        if (bar := self.scroll_area.verticalScrollBar()) is not None:
            bar.rangeChanged.connect(lambda *_: self._scroll_timer.start() if lessons.for_class else None)
        content = self.scroll_area.column
        content.setContentsMargins(0, 0, 4, 0)
        content.setSpacing(10)
        self.recap = _Recap()
        for each in (self.intro, self.heading, self.step_text, self.wait_label, self.question, self.task, self.recap):
            content.addWidget(each)
        content.addStretch(1)
        head = row(self.title, self.close_button, stretch=0)
        foot = row(self.back, 0, self.step_count, 0, self.next)
        parts = (head, self.steps_line, self.scroll_area, self.for_class, foot)
        self.setLayout(column(*parts, margins=(14, 10, 10, 10), stretch=2))
        self.close_button.clicked.connect(self.closed)
        self.back.clicked.connect(lessons.open_previous_step)
        self.question.answered.connect(self.next.setFocus)
        self.next.clicked.connect(self.open_next_step)
        self.steps_line.step_requested.connect(self._open_step)
        self.recap.step_requested.connect(self._open_step)
        self.for_class.toggled.connect(self._set_for_class)
        lessons.step_opened.connect(self.show_step)
        lessons.shelf_changed.connect(self._show_progress)
        lessons.busy_changed.connect(lambda _: self._show_busy())
        self.resize_with_text()
        self.hide()

    def resize_with_text(self, window: int = 0) -> None:
        """Set the width in proportion to the text size, limited to a share of the window's width."""
        preferred = look().px(_WIDTH)
        self.setFixedWidth(min(preferred, max(_WIDTH, int(_MAX_WINDOW_SHARE * window))) if window else preferred)

    def showEvent(self, event: QShowEvent | None) -> None:
        super().showEvent(event)
        self.visibility_changed.emit(True)

    def hideEvent(self, event: QHideEvent | None) -> None:
        super().hideEvent(event)
        self.visibility_changed.emit(False)

    @property
    def _lesson(self) -> LessonOutline:
        assert self._lessons.lesson is not None, "no lesson is open"
        return self._lessons.lesson

    def show_step(self) -> None:
        """Show the current step."""
        lesson, step, number = self._lesson, self._lessons.step, self._lessons.step_number
        self.title.show_text(lesson.title)
        self.step_count.setText(f"{number + 1} of {len(lesson.steps)}")
        self.intro.show_text("" if number else lesson.text)
        self.heading.setText(step.title)
        self.step_text.show_text(step.text)
        self.question.close_question()
        self.task.setVisible(step.task is not None)
        if step.task is not None:
            self.task.show_task(step.task, accepted=number in self._lessons.find_completed_steps(lesson))
        self.for_class.setChecked(self._lessons.for_class)
        self.back.setEnabled(number > 0)
        self.next.setText("Next ›" if number + 1 < len(lesson.steps) else "Finish")
        self._show_progress()
        self._show_busy()
        if (bar := self.scroll_area.verticalScrollBar()) is not None:
            bar.setValue(0)

    def open_next_step(self) -> None:
        """Go to the next step, or from the last one to the list of lessons."""
        last = self._lessons.step_number + 1 >= len(self._lesson.steps)
        self._lessons.open_next_step()
        if last:
            self.closed.emit()

    def submit_answer(self) -> None:
        """Check the answer, or test the submission."""
        if self._lessons.task is not None:
            if self.task.test_button.isEnabled():
                self.task.grading_requested.emit()
        elif self.question.scene is not None:
            self.question.check_answer()

    def show_question(self, scene: StepScene) -> None:
        """Show the question of a scene; it takes the focus if the pane had it."""
        focused = QApplication.focusWidget()
        self.question.show_question(scene)
        if focused is not None and self.isAncestorOf(focused):
            self.question.focus_first()

    def scroll_to_verdict(self) -> None:
        """Scroll to the latest verdict and its button, once they are laid out."""
        self._scroll_timer.start()

    def _scroll_to_end(self) -> None:
        """Scroll to the whole question or task, or if it is too high, to the latest verdict and its button."""
        for part in (self.question, self.task):
            if part.isVisible():
                self.scroll_area.ensureWidgetVisible(part, 0, 0)
        for verdict, control in (
            (self.question.verdict, self.question.retry_button),
            (self.task.verdict, self.task.test_button),
        ):
            if verdict.isVisible():
                for each in (control, verdict):
                    self.scroll_area.ensureWidgetVisible(each, 0, look().px(10))

    def _open_step(self, number: int) -> None:
        self._lessons.open_lesson(self._lesson, number)

    def _set_for_class(self, on: bool) -> None:
        if on != self._lessons.for_class:
            self._lessons.for_class = on

    def _show_progress(self) -> None:
        if self._lessons.lesson is None:
            return
        lesson, number = self._lesson, self._lessons.step_number
        self.steps_line.show_steps(lesson, number, self._lessons.find_completed_steps(lesson))
        is_last = number + 1 == len(lesson.steps)
        self.recap.setVisible(is_last and not self._lessons.for_class)
        if is_last:
            self.recap.show_progress(lesson, self._lessons.find_skipped_steps(lesson))

    def _show_busy(self) -> None:
        asks = self._lessons.lesson is not None and bool(self._lessons.step.question_kind)
        self.wait_label.setText("Recording it for the question…" if asks else "Recording it…")
        self.wait_label.setVisible(self._lessons.is_recording)
        self.wait_label.setAlignment(Qt.AlignmentFlag.AlignLeft)
