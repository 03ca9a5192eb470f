"""The pane of a lesson, beside what it tells of: the step's words, its question or task, and the way on."""

from __future__ import annotations

from PyQt6.QtCore import Qt, pyqtSignal
from PyQt6.QtGui import QHideEvent, QShowEvent
from PyQt6.QtWidgets import QApplication, QCheckBox, QVBoxLayout

from gpu.messages.lessons import LessonOutline, ShownScene
from gui.lessons.markdown import MarkdownLabel
from gui.lessons.question_card import QuestionCard
from gui.lessons.steps_line import StepsLine
from gui.lessons.task_card import TaskCard
from gui.model.lessons import Lessons
from gui.painting.theme import look
from gui.qt.later import after
from gui.widgets.basic import ElidedLabel, Ground, button, label, row
from gui.widgets.scrolled import Scrolled

_SHARE = 0.29
_WIDTH = 322
"""Pixels at the normal size of text: lines of some fifty letters, and eight hundred pixels for a page beside it."""


class LessonPane(Ground):
    """Shows the step that is open.

    Parameters
    ----------
    lessons : Lessons
    """

    left = pyqtSignal()
    """The lesson is to be closed."""
    appeared = pyqtSignal(bool)
    """Whether the pane is seen from now on."""

    def __init__(self, lessons: Lessons) -> None:
        super().__init__()
        self.setAccessibleName("Lesson")
        self._lessons = lessons
        self.title = ElidedLabel("card-title", "Lesson")
        self.count = label("", "caption", name="Step of the lesson")
        self.close_ = button("✕", "flat", tip="Close the lesson (F7)", name="Close the lesson")
        self.heading = label("", "title", wrap=True, name="Step")
        self.words = MarkdownLabel("Words of the step")
        self.intro = MarkdownLabel("Words of the lesson")
        self.line = StepsLine()
        self.question = QuestionCard(lessons)
        self.task = TaskCard(lessons)
        self.wait = label("", "muted", wrap=True, name="What is under way")
        self.for_class = QCheckBox("For a class: show, don't mark")
        self.for_class.setToolTip("Questions are shown and answered for a class; nothing is marked or remembered")
        self.back = button("‹ Back", tip="The step before (Alt+←)")
        self.next = button("Next ›", tip="The next step (Alt+→)")
        self.scrolled = Scrolled()
        self._look = after(0, self._bring_into_view, self)
        content = self.scrolled.column
        content.setContentsMargins(0, 0, 4, 0)
        content.setSpacing(10)
        for each in (self.intro, self.heading, self.words, self.wait, self.question, self.task):
            content.addWidget(each)
        content.addStretch(1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(14, 10, 10, 10)
        layout.setSpacing(8)
        head = row(self.title, self.close_)
        head.setStretch(0, 1)
        layout.addLayout(head)
        layout.addWidget(self.line)
        layout.addWidget(self.scrolled, 1)
        layout.addWidget(self.for_class)
        layout.addLayout(row(self.back, 0, self.count, 0, self.next))
        self.close_.clicked.connect(self.left)
        self.back.clicked.connect(lessons.back)
        self.question.answered.connect(self.next.setFocus)
        self.next.clicked.connect(self.go_on)
        self.line.step_wanted.connect(self._go)
        self.for_class.toggled.connect(self._set_for_class)
        lessons.step_opened.connect(self.show_step)
        lessons.shelf_changed.connect(self._show_progress)
        lessons.busy_changed.connect(lambda _: self._show_busy())
        self.resize_with_text()
        self.hide()

    def resize_with_text(self, window: int = 0) -> None:
        """Take the width that goes with the text's size, and leave most of a window's to what is told of."""
        wanted = look().px(_WIDTH)
        self.setFixedWidth(min(wanted, max(_WIDTH, int(_SHARE * window))) if window else wanted)

    def showEvent(self, event: QShowEvent | None) -> None:
        super().showEvent(event)
        self.appeared.emit(True)

    def hideEvent(self, event: QHideEvent | None) -> None:
        super().hideEvent(event)
        self.appeared.emit(False)

    @property
    def _lesson(self) -> LessonOutline:
        assert self._lessons.lesson is not None, "no lesson is open"
        return self._lessons.lesson

    def show_step(self) -> None:
        """Show the step that is open."""
        lesson, step, number = self._lesson, self._lessons.step, self._lessons.number
        self.title.say(lesson.title)
        self.count.setText(f"{number + 1} of {len(lesson.steps)}")
        self.intro.say("" if number else lesson.text)
        self.heading.setText(step.title)
        self.words.say(step.text)
        self.question.close_question()
        self.task.setVisible(step.task is not None)
        if step.task is not None:
            self.task.open(step.task, done=number in self._lessons.done(lesson))
        self.for_class.setChecked(self._lessons.for_class)
        self.back.setEnabled(number > 0)
        self.next.setText("Next ›" if number + 1 < len(lesson.steps) else "Finish")
        self._show_progress()
        self._show_busy()
        if (bar := self.scrolled.verticalScrollBar()) is not None:
            bar.setValue(0)

    def go_on(self) -> None:
        """Go to the next step; from the last one, back to what there is."""
        last = self._lessons.number + 1 >= len(self._lesson.steps)
        self._lessons.next()
        if last:
            self.left.emit()

    def check(self) -> None:
        """Compare the answer with what happened, or have what is written judged."""
        if self._lessons.task is not None:
            if self.task.judge.isEnabled():
                self.task.judge_wanted.emit()
        elif self.question.scene is not None:
            self.question.check_answer()

    def ask(self, scene: ShownScene) -> None:
        """Ask the question of what is shown; keys answer it where they were for the pane before."""
        here = QApplication.focusWidget()
        self.question.open(scene)
        if here is not None and self.isAncestorOf(here):
            self.question.focus_first()

    def bring_into_view(self) -> None:
        """Let what was said last be seen, and what can be done about it, once both have their places."""
        self._look.start()

    def _bring_into_view(self) -> None:
        for said, done in ((self.question.verdict, self.question.again), (self.task.verdict, self.task.judge)):
            if said.isVisible():
                for each in (done, said):
                    self.scrolled.ensureWidgetVisible(each, 0, look().px(10))

    def _go(self, number: int) -> None:
        self._lessons.open(self._lesson, number)

    def _set_for_class(self, on: bool) -> None:
        if on != self._lessons.for_class:
            self._lessons.for_class = on

    def _show_progress(self) -> None:
        if self._lessons.lesson is not None:
            self.line.show_steps(self._lesson, self._lessons.number, self._lessons.done(self._lesson))

    def _show_busy(self) -> None:
        asks = self._lessons.lesson is not None and bool(self._lessons.step.asks)
        self.wait.setText("Running it to ask about it…" if asks else "Running it…")
        self.wait.setVisible(self._lessons.showing)
        self.wait.setAlignment(Qt.AlignmentFlag.AlignLeft)
