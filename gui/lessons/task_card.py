"""The card of a step's task: the task, the grader's verdict, and a link to the input that fails."""

from __future__ import annotations

from PyQt6.QtCore import pyqtSignal
from PyQt6.QtWidgets import QWidget

from gpu.messages.judgments import Judgment
from gpu.messages.lessons import TaskOutline
from gui.lessons.hints import MISSED, Hints
from gui.model.lessons import Lessons
from gui.widgets.basic import Badge, Card, button, label, restyle, row
from gui.widgets.wrapping import WrappingLayout

KINDS = {
    "gap": "Complete the kernel",
    "repair": "Fix the mistake",
    "order": "Put the lines into order",
    "rewrite": "Rewrite it within limits",
}


class TaskCard(Card):
    """The task of the current step.

    Parameters
    ----------
    lessons : Lessons
        Grades submissions.
    """

    judge_wanted = pyqtSignal()
    anew_wanted = pyqtSignal()

    def __init__(self, lessons: Lessons) -> None:
        super().__init__("Task")
        self._lessons = lessons
        self._judged: tuple[Judgment, str] | None = None
        self._missed = 0
        self.done = Badge()
        self.head.addStretch(1)
        self.head.addWidget(self.done)
        self.prompt = label("", wrap=True, name="Task")
        self.limits = label("", "caption", wrap=True, name="Limits")
        self.hints = Hints()
        self.verdict = label("", wrap=True, name="Verdict")
        self.verdict.setContentsMargins(8, 6, 8, 6)
        self.judge = button("Test", "primary", tip="Run it on many inputs, with all checkers (F5)")
        self.stop = button("Stop", tip="Stop testing (Esc)")
        self.open_failing = button("Show the failure", tip="Step through the smallest input on which it fails")
        self.anew = button("Start over", tip="Restore the task's original text")
        for each in (self.prompt, self.limits, self.hints, self.verdict):
            self.body.addWidget(each)
        self.body.addLayout(row(self.open_failing, 0))
        buttons = QWidget()
        line = WrappingLayout(buttons, across=6, down=6)
        for control in (self.judge, self.stop, self.hints.more, self.anew):
            line.addWidget(control)
        self.body.addWidget(buttons)
        self.judge.clicked.connect(self.judge_wanted)
        self.stop.clicked.connect(lessons.stop)
        self.anew.clicked.connect(self.anew_wanted)
        self.open_failing.clicked.connect(self._open_failing)
        lessons.busy_changed.connect(lambda _: self._show_busy())

    def open(self, task: TaskOutline, *, done: bool) -> None:
        """Show a task that has not been tested yet."""
        self.title.setText(KINDS[task.kind])
        self.prompt.setText(task.prompt)
        self.limits.setText("\n".join(task.limits))
        self.limits.setVisible(bool(task.limits))
        self.hints.open(task.hints)
        self._missed = 0
        self.forget()
        self.show_done(done)
        self._show_busy()
        self.show()

    def show_done(self, done: bool) -> None:
        """Show whether a submission has been accepted before."""
        self.done.say("accepted" if done else "", "good")

    def forget(self) -> None:
        """Clear the verdict, because the submission has changed."""
        self._judged = None
        self.verdict.hide()
        self.open_failing.hide()

    def show_judgment(self, judgment: Judgment, text: str) -> None:
        """Show the grader's verdict on a submission."""
        self._judged = judgment, text
        self._show_verdict("\n".join(judgment.sentences), "good" if judgment.accepted else "bad")
        self.open_failing.setVisible(judgment.case is not None)
        if judgment.accepted:
            self.show_done(True)
            return
        self._missed += 1
        if self._missed >= MISSED:
            self.hints.show_first()

    def _show_verdict(self, words: str, tone: str) -> None:
        self.verdict.setText(words)
        restyle(self.verdict, "verdict", tone)
        self.verdict.show()

    def _show_busy(self) -> None:
        grading = self._lessons.judging
        self.judge.setEnabled(not grading)
        self.judge.setText("Testing…" if grading else "Test")
        self.stop.setVisible(grading)
        self.open_failing.setEnabled(not grading)

    def _open_failing(self) -> None:
        if self._judged is not None:
            self._lessons.show_failing(*self._judged)
