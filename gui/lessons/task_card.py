"""A step's task: what is wanted, what the judge says, and the way to the input on which it goes wrong."""

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
    "gap": "Write what is missing",
    "repair": "Repair the mistake",
    "order": "Put the lines into order",
    "rewrite": "Rewrite it within limits",
}


class TaskCard(Card):
    """The task of the step that is open.

    Parameters
    ----------
    lessons : Lessons
        Judges what is written.
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
        self.judge = button("Judge", "primary", tip="Run it on many inputs, before all checkers (F5)")
        self.stop = button("Stop", tip="Stop judging (Esc)")
        self.open_failing = button("See it go wrong", tip="The smallest input on which it fails, in Step")
        self.anew = button("Begin anew", tip="Go back to what the task begins with")
        for each in (self.prompt, self.limits, self.hints, self.verdict):
            self.body.addWidget(each)
        self.body.addLayout(row(self.open_failing, 0))
        buttons = QWidget()
        line = WrappingLayout(buttons, across=6, down=6)
        for made in (self.judge, self.stop, self.hints.more, self.anew):
            line.addWidget(made)
        self.body.addWidget(buttons)
        self.judge.clicked.connect(self.judge_wanted)
        self.stop.clicked.connect(lessons.stop)
        self.anew.clicked.connect(self.anew_wanted)
        self.open_failing.clicked.connect(self._open_failing)
        lessons.busy_changed.connect(lambda _: self._show_busy())

    def open(self, task: TaskOutline, *, done: bool) -> None:
        """Show a task, of which nothing has been judged yet."""
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
        """Say whether it has been accepted before."""
        self.done.say("accepted" if done else "", "good")

    def forget(self) -> None:
        """Take back what was said: the text is another."""
        self._judged = None
        self.verdict.hide()
        self.open_failing.hide()

    def show_judgment(self, judgment: Judgment, text: str) -> None:
        """Say what was found."""
        self._judged = judgment, text
        self._say("\n".join(judgment.sentences), "good" if judgment.accepted else "bad")
        self.open_failing.setVisible(judgment.case is not None)
        if judgment.accepted:
            self.show_done(True)
            return
        self._missed += 1
        if self._missed >= MISSED:
            self.hints.show_first()

    def _say(self, words: str, tone: str) -> None:
        self.verdict.setText(words)
        restyle(self.verdict, "verdict", tone)
        self.verdict.show()

    def _show_busy(self) -> None:
        judging = self._lessons.judging
        self.judge.setEnabled(not judging)
        self.judge.setText("Judging…" if judging else "Judge")
        self.stop.setVisible(judging)
        self.open_failing.setEnabled(not judging)

    def _open_failing(self) -> None:
        if self._judged is not None:
            self._lessons.show_failing(*self._judged)
