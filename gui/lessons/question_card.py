"""A step's question: asked, answered, and marked against what happened."""

from __future__ import annotations

from typing import Any

from PyQt6.QtCore import pyqtSignal
from PyQt6.QtWidgets import QWidget

from gpu.messages.lessons import AnswerMark, ShownScene
from gui.lessons.answers import AnswerBox, answer_box
from gui.lessons.hints import MISSED, Hints
from gui.model.lessons import Lessons
from gui.painting.theme import look
from gui.step_view.arrays.view import PickedElements
from gui.widgets.basic import Card, button, label, restyle
from gui.widgets.wrapping import WrappingLayout


class QuestionCard(Card):
    """The question of the step that is open.

    Parameters
    ----------
    lessons : Lessons
        Marks answers.
    """

    moment_wanted = pyqtSignal(int)
    """The moment at which what was asked for is seen."""
    answered = pyqtSignal()
    """Rightly."""
    picked = pyqtSignal(object)
    """Tuple of PickedElements: what is to stand out in a picture of the array that is asked about."""

    def __init__(self, lessons: Lessons) -> None:
        super().__init__("Question")
        self._lessons = lessons
        self.scene: ShownScene | None = None
        self.box: AnswerBox | None = None
        self.mark: AnswerMark | None = None
        self._step: tuple[str, int] | None = None
        self._missed = 0
        self.title.hide()
        self.prompt = label("", wrap=True, name="Question")
        self.body.removeItem(self.head)
        self.hints = Hints()
        self.code = label("", "code", wrap=True, name="Statement")
        self.verdict = label("", wrap=True, name="What is said of the answer")
        self.check = button("Check", "primary", tip="Compare the answer with what happened (F5)")
        self.reveal = button("Show", "primary", tip="Show the class what happens (F5)")
        self.again = button("Another", tip="Ask anew, of another input")
        self.verdict.setContentsMargins(8, 6, 8, 6)
        self.body.addWidget(self.prompt)
        self.body.addWidget(self.code)
        self._place = self.body.count()
        self.body.addWidget(self.hints)
        self.body.addWidget(self.verdict)
        buttons = QWidget()
        line = WrappingLayout(buttons, across=6, down=6)
        for each in (self.check, self.reveal, self.again, self.hints.more):
            line.addWidget(each)
        self.body.addWidget(buttons)
        self.check.clicked.connect(self.check_answer)
        self.reveal.clicked.connect(self.check_answer)
        self.again.clicked.connect(lessons.retry)

    def open(self, scene: ShownScene) -> None:
        """Ask the question of what is shown."""
        assert scene.asked is not None
        self.close_question()
        asked, for_class = scene.asked, self._lessons.for_class
        self.scene, self.mark = scene, None
        lesson = self._lessons.lesson
        step = (lesson.folder, self._lessons.number) if lesson is not None else None
        self._missed = self._missed if step == self._step else 0
        self._step = step
        prompt, source, rest = asked.prompt.partition(asked.source) if asked.source else (asked.prompt, "", "")
        self.prompt.setText(f"{prompt.rstrip()}{rest}" if not source else f"{prompt.rstrip().rstrip(':')}:{rest}")
        self.code.setText(source)
        self.code.setVisible(bool(source))
        self.box = answer_box(asked)
        self.body.insertWidget(self._place, self.box)
        self.box.changed.connect(self._judge_readiness)
        self.box.done.connect(self.check_answer)
        self.hints.open(asked.hints)
        if self._missed >= MISSED and not for_class:
            self.hints.show_first()
        self.verdict.hide()
        self.check.setVisible(not for_class)
        self.reveal.setVisible(for_class)
        self.reveal.setEnabled(True)
        self.again.show()
        self._judge_readiness()
        self.show()

    def close_question(self) -> None:
        """Ask nothing."""
        if self.box is not None:
            self.body.removeWidget(self.box)
            self.box.hide()
            self.box.deleteLater()
        self.box, self.scene, self.mark = None, None, None
        self.hide()

    def focus_first(self) -> None:
        """Let keys answer, or show a class what happens."""
        if self._lessons.for_class:
            self.reveal.setFocus()
        elif self.box is not None:
            self.box.focus_first()

    def _judge_readiness(self) -> None:
        self.check.setEnabled(self.mark is None and self.box is not None and self.box.answer is not None)
        self._show_picked()

    def _show_picked(self) -> None:
        """Let the elements that are chosen stand out, and after that what was right, left out, or does not belong."""
        asked = self.scene.asked if self.scene is not None else None
        if asked is None or asked.form != "cells" or self.box is None:
            return
        theme, chosen, mark = look().theme, self.box.answer or frozenset(), self.mark
        groups = [(chosen, theme.accent)]
        if mark is not None:
            groups = [(chosen - mark.extra, theme.good), (mark.missing, theme.warn), (mark.extra, theme.bad)]
        self.picked.emit(tuple(PickedElements(asked.array, asked.block, each, color) for each, color in groups if each))

    def check_answer(self) -> None:
        """Say whether the answer is right, or to a class what happens."""
        scene, box = self.scene, self.box
        if scene is None or scene.asked is None or box is None or self.mark is not None:
            return
        if self._lessons.for_class:
            self._reveal(scene, box)
            return
        if box.answer is None:
            return
        self.mark = mark = self._lessons.mark(scene, box.answer)
        box.show_mark(mark)
        self._say(mark.words, "good" if mark.right else "bad")
        self.check.setEnabled(False)
        self._show_picked()
        if mark.right:
            self._missed = 0
            self.answered.emit()
        else:
            self._missed += 1
            self.again.setFocus()
        self.moment_wanted.emit(self._moment_seen(mark.moment))

    def _reveal(self, scene: ShownScene, box: AnswerBox) -> None:
        assert scene.asked is not None
        self.mark = AnswerMark(True, scene.asked.why, moment=scene.asked.moment, line=scene.asked.line)
        if isinstance(scene.asked.answer, frozenset):
            self.mark = AnswerMark(True, "", missing=scene.asked.answer)
            box.show_mark(self.mark)
            self._show_picked()
        else:
            box.show_mark(self.mark)
        self._say(f"{_in_words(scene.asked.answer)}{scene.asked.why}".strip(), "neutral")
        self.reveal.setEnabled(False)
        self.moment_wanted.emit(self._moment_seen(scene.asked.moment))

    def _moment_seen(self, moment: int) -> int:
        """Return the moment at which a statement has been executed; values are asked for as they stand."""
        asked = self.scene.asked if self.scene is not None else None
        return moment if asked is None or asked.kind == "value" or not asked.line else moment + 1

    def _say(self, words: str, tone: str) -> None:
        self.verdict.setText(words)
        restyle(self.verdict, "verdict", tone)
        self.verdict.show()

    def take_cell(self, array: str, block: int, element: int) -> None:
        """Take an element that was clicked in a picture."""
        if self.box is not None and self.mark is None:
            self.box.take_cell(array, block, element)

    def take_thread(self, block: int, thread: int) -> None:
        """Take a thread that was clicked in a picture."""
        if self.box is not None and self.mark is None:
            self.box.take_thread(block, thread)


def _in_words(answer: Any) -> str:
    if isinstance(answer, frozenset):
        return ""  # the cells show it, and what happened says it
    if isinstance(answer, tuple):
        return f"Block {answer[0]}, thread {answer[1]}. "
    return f"{answer:.6g}. " if isinstance(answer, float) else f"{answer}. "
