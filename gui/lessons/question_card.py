"""The card of a step's question: ask it, and mark the answer against the recording."""

from __future__ import annotations

from typing import Any

from PyQt6.QtCore import pyqtSignal
from PyQt6.QtWidgets import QWidget

from gpu.messages.lessons import AnswerMark, StepScene
from gui.lessons.answers import AnswerBox, create_answer_box
from gui.lessons.hints import MAX_WRONG_ATTEMPTS, Hints
from gui.model.lessons import Lessons
from gui.painting.theme import look
from gui.step_view.arrays.view import PickedElements
from gui.widgets.basic import Card, button, label, restyle
from gui.widgets.wrapping import WrappingLayout

_NEW_QUESTION = ("New question", "Ask about another input")
_ANSWER_AGAIN = ("Answer again", "Answer the same question again: it is about the kernel, whatever the input")


class QuestionCard(Card):
    """The question of the current step.

    Parameters
    ----------
    lessons : Lessons
        Marks answers.
    """

    moment_requested = pyqtSignal(int)
    """The moment to show after the answer."""
    answered = pyqtSignal()
    """The question was answered correctly."""
    highlight_requested = pyqtSignal(object)
    """Tuple of PickedElements: elements to highlight in the picture of the array in question."""

    def __init__(self, lessons: Lessons) -> None:
        super().__init__("Question")
        self._lessons = lessons
        self.scene: StepScene | None = None
        self.answer_box: AnswerBox | None = None
        self.mark: AnswerMark | None = None
        self._step: tuple[str, int] | None = None
        self._wrong_attempts = 0
        self.title.hide()
        self.prompt = label("", wrap=True, name="Question")
        self.body.removeItem(self.head)
        self.hints = Hints()
        self.code = label("", "code", wrap=True, name="Statement")
        self.verdict = label("", wrap=True, name="Verdict")
        self.check = button("Check", "primary", tip="Check the answer (F5)")
        self.reveal = button("Show", "primary", tip="Show the answer to the class (F5)")
        self.retry_button = button("New question")
        self.verdict.setContentsMargins(8, 6, 8, 6)
        self.body.addWidget(self.prompt)
        self.body.addWidget(self.code)
        self._answer_index = self.body.count()
        self.body.addWidget(self.hints)
        self.body.addWidget(self.verdict)
        buttons = QWidget()
        line = WrappingLayout(buttons, across=6, down=6)
        for each in (self.check, self.reveal, self.retry_button, self.hints.hint_button):
            line.addWidget(each)
        self.body.addWidget(buttons)
        self.check.clicked.connect(self.check_answer)
        self.reveal.clicked.connect(self.check_answer)
        self.retry_button.clicked.connect(lessons.retry_question)

    def show_question(self, scene: StepScene) -> None:
        """Show the question of a scene."""
        assert scene.question is not None
        self.close_question()
        question, for_class = scene.question, self._lessons.for_class
        self.scene, self.mark = scene, None
        lesson = self._lessons.lesson
        step = (lesson.folder, self._lessons.step_number) if lesson is not None else None
        self._wrong_attempts = self._wrong_attempts if step == self._step else 0
        self._step = step
        prompt, source, rest = (
            question.prompt.partition(question.source) if question.source else (question.prompt, "", "")
        )
        self.prompt.setText(f"{prompt.rstrip()}{rest}" if not source else f"{prompt.rstrip().rstrip(':')}:{rest}")
        self.code.setText(source)
        self.code.setVisible(bool(source))
        self.answer_box = create_answer_box(question)
        self.body.insertWidget(self._answer_index, self.answer_box)
        self.answer_box.changed.connect(self._update_check_button)
        self.answer_box.submitted.connect(self.check_answer)
        self.hints.set_hints(question.hints)
        if self._wrong_attempts >= MAX_WRONG_ATTEMPTS and not for_class:
            self.hints.show_first()
        self.verdict.hide()
        self.check.setVisible(not for_class)
        self.reveal.setVisible(for_class)
        self.reveal.setEnabled(True)
        text, tip = _ANSWER_AGAIN if question.is_about_kernel else _NEW_QUESTION
        self.retry_button.setText(text)
        self.retry_button.setToolTip(tip)
        self.retry_button.setAccessibleName(text)
        self.retry_button.show()
        self._update_check_button()
        self.show()

    def close_question(self) -> None:
        """Remove the question."""
        if self.answer_box is not None:
            self.body.removeWidget(self.answer_box)
            self.answer_box.hide()
            self.answer_box.deleteLater()
        self.answer_box, self.scene, self.mark = None, None, None
        self.hide()

    def focus_first(self) -> None:
        """Focus the answer, or the button that shows it to a class."""
        if self._lessons.for_class:
            self.reveal.setFocus()
        elif self.answer_box is not None:
            self.answer_box.focus_first()

    def _update_check_button(self) -> None:
        self.check.setEnabled(self.mark is None and self.answer_box is not None and self.answer_box.answer is not None)
        self._highlight_selection()

    def _highlight_selection(self) -> None:
        """Highlight the selected elements; after the answer, the right, missing and extra ones."""
        question = self.scene.question if self.scene is not None else None
        if question is None or question.answer_type != "cells" or self.answer_box is None:
            return
        theme, chosen, mark = look().theme, self.answer_box.answer or frozenset(), self.mark
        groups = [(chosen, theme.accent)]
        if mark is not None:
            groups = [(chosen - mark.extra, theme.good), (mark.missing, theme.warn), (mark.extra, theme.bad)]
        self.highlight_requested.emit(
            tuple(PickedElements(question.array, question.block, each, color) for each, color in groups if each)
        )

    def check_answer(self) -> None:
        """Mark the answer, or show it to a class."""
        scene, box = self.scene, self.answer_box
        if scene is None or scene.question is None or box is None or self.mark is not None:
            return
        if self._lessons.for_class:
            self._reveal(scene, box)
            return
        if box.answer is None:
            return
        self.mark = mark = self._lessons.mark_answer(scene, box.answer)
        box.show_mark(mark)
        self._show_verdict(mark.feedback, "good" if mark.is_correct else "bad")
        self.check.setEnabled(False)
        self._highlight_selection()
        if mark.is_correct:
            self._wrong_attempts = 0
            self.answered.emit()
        else:
            self._wrong_attempts += 1
            self.retry_button.setFocus()
        self.moment_requested.emit(self._moment_after(mark.moment))

    def _reveal(self, scene: StepScene, box: AnswerBox) -> None:
        assert scene.question is not None
        self.mark = AnswerMark(True, scene.question.explanation, moment=scene.question.moment, line=scene.question.line)
        if isinstance(scene.question.answer, frozenset):
            self.mark = AnswerMark(True, "", missing=scene.question.answer)
            box.show_mark(self.mark)
            self._highlight_selection()
        else:
            box.show_mark(self.mark)
        self._show_verdict(f"{_describe_answer(scene.question.answer)}{scene.question.explanation}".strip(), "neutral")
        self.reveal.setEnabled(False)
        self.moment_requested.emit(self._moment_after(scene.question.moment))

    def _moment_after(self, moment: int) -> int:
        """Return the moment after a statement; for a question about a value, the moment itself."""
        question = self.scene.question if self.scene is not None else None
        return moment if question is None or question.kind == "value" or not question.line else moment + 1

    def _show_verdict(self, text: str, tone: str) -> None:
        self.verdict.setText(text)
        restyle(self.verdict, "verdict", tone)
        self.verdict.show()

    def handle_cell_click(self, array: str, block: int, element: int) -> None:
        """Handle a click on an element in a picture."""
        if self.answer_box is not None and self.mark is None:
            self.answer_box.handle_cell_click(array, block, element)

    def handle_thread_click(self, block: int, thread: int) -> None:
        """Handle a click on a thread in a picture."""
        if self.answer_box is not None and self.mark is None:
            self.answer_box.handle_thread_click(block, thread)


def _describe_answer(answer: Any) -> str:
    if isinstance(answer, frozenset):
        return ""  # the cells show it
    if isinstance(answer, tuple):
        return f"Block {answer[0]}, thread {answer[1]}. "
    return f"{answer:.6g}. " if isinstance(answer, float) else f"{answer}. "
