"""The card of a step's task: the task, the grader's verdict, and a link to the input that fails."""

from __future__ import annotations

from PyQt6.QtCore import pyqtSignal
from PyQt6.QtWidgets import QWidget

from gpu.messages.judgments import Judgment
from gpu.messages.lessons import TaskOutline
from gui.lessons.hints import MAX_WRONG_ATTEMPTS, Hints
from gui.model.lessons import Lessons
from gui.widgets.basic import Badge, Card, button, label, restyle, row
from gui.widgets.wrapping import WrappingLayout

KINDS = {
    "gap": "Complete the kernel",
    "repair": "Fix the mistake",
    "order": "Put the lines in order",
    "rewrite": "Rewrite it within limits",
}


class TaskCard(Card):
    """The task of the current step.

    Parameters
    ----------
    lessons : Lessons
        Grades submissions.
    """

    grading_requested = pyqtSignal()
    reset_requested = pyqtSignal()

    def __init__(self, lessons: Lessons) -> None:
        super().__init__("Task")
        self._lessons = lessons
        self._last_judgment: tuple[Judgment, str] | None = None
        self._wrong_attempts = 0
        self.accepted_badge = Badge()
        self.head.addStretch(1)
        self.head.addWidget(self.accepted_badge)
        self.prompt = label("", wrap=True, name="Task")
        self.limits = label("", "caption", wrap=True, name="Limits")
        self.hints = Hints()
        self.verdict = label("", wrap=True, name="Verdict")
        self.verdict.setContentsMargins(8, 6, 8, 6)
        self.test_button = button("Test", "primary", tip="Run it on many inputs, with all checkers (F5)")
        self.stop = button("Stop", tip="Stop testing (Esc)")
        self.show_failure_button = button("Show the failure", tip="Step through the smallest input on which it fails")
        self.reset_button = button("Start over", tip="Restore the task's original text")
        for each in (self.prompt, self.limits, self.hints, self.verdict):
            self.body.addWidget(each)
        self.body.addLayout(row(self.show_failure_button, 0))
        buttons = QWidget()
        line = WrappingLayout(buttons, across=6, down=6)
        for control in (self.test_button, self.stop, self.hints.hint_button, self.reset_button):
            line.addWidget(control)
        self.body.addWidget(buttons)
        self.test_button.clicked.connect(self.grading_requested)
        self.stop.clicked.connect(lessons.stop)
        self.reset_button.clicked.connect(self.reset_requested)
        self.show_failure_button.clicked.connect(self._show_failing_input)
        lessons.busy_changed.connect(lambda _: self._show_busy())

    def show_task(self, task: TaskOutline, *, accepted: bool) -> None:
        """Show a task that has not been tested yet."""
        self.title.setText(KINDS[task.kind])
        self.prompt.setText(task.prompt)
        self.limits.setText("\n".join(task.limits))
        self.limits.setVisible(bool(task.limits))
        self.hints.set_hints(task.hints)
        self._wrong_attempts = 0
        self.clear_verdict()
        self.show_accepted(accepted)
        self._show_busy()
        self.show()

    def show_accepted(self, accepted: bool) -> None:
        """Show whether a submission has been accepted before."""
        self.accepted_badge.show_text("accepted" if accepted else "", "good")

    def clear_verdict(self) -> None:
        """Clear the verdict, because the submission has changed."""
        self._last_judgment = None
        self.verdict.hide()
        self.show_failure_button.hide()

    def show_judgment(self, judgment: Judgment, text: str) -> None:
        """Show the grader's verdict on a submission."""
        self._last_judgment = judgment, text
        self._show_verdict("\n".join(judgment.sentences), "good" if judgment.accepted else "bad")
        self.show_failure_button.setVisible(judgment.case is not None)
        if judgment.accepted:
            self.show_accepted(True)
            return
        self._wrong_attempts += 1
        if self._wrong_attempts >= MAX_WRONG_ATTEMPTS:
            self.hints.show_first()

    def _show_verdict(self, text: str, tone: str) -> None:
        self.verdict.setText(text)
        restyle(self.verdict, "verdict", tone)
        self.verdict.show()

    def _show_busy(self) -> None:
        grading = self._lessons.is_grading
        self.test_button.setEnabled(not grading)
        self.test_button.setText("Testing…" if grading else "Test")
        self.stop.setVisible(grading)
        self.show_failure_button.setEnabled(not grading)

    def _show_failing_input(self) -> None:
        if self._last_judgment is not None:
            self._lessons.record_failing_input(*self._last_judgment)
