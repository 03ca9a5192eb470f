"""Input widgets for answers: cells or threads, a number, a thread, or one of several sentences."""

from __future__ import annotations

from typing import Any

from PyQt6.QtCore import Qt, pyqtSignal
from PyQt6.QtGui import QMouseEvent
from PyQt6.QtWidgets import QButtonGroup, QLabel, QLineEdit, QRadioButton, QVBoxLayout, QWidget

from gpu.messages.lessons import AnswerMark, RecordingQuestion
from gui.lessons.pad import ElementPad, format_numbers, parse_numbers
from gui.painting.theme import look
from gui.widgets.basic import column, label, row

_MAX_PAD_CELLS = 128
"""Maximum number of cells shown in the pane; with more, the user clicks in the picture."""


class AnswerBox(QWidget):
    """The input for the answer to one question; an `answer` of None means no answer yet."""

    changed = pyqtSignal()
    submitted = pyqtSignal()
    """Return was pressed: the answer is complete."""

    def __init__(self, question: RecordingQuestion) -> None:
        super().__init__()
        self.question = question
        self.setAccessibleName("Answer")
        self.body = QVBoxLayout(self)
        self.body.setContentsMargins(0, 0, 0, 0)
        self.body.setSpacing(look().px(6))

    @property
    def answer(self) -> Any:
        """The current answer, or None."""
        return None

    def show_mark(self, mark: AnswerMark) -> None:
        """Show which parts are right and wrong, and disable further input."""
        self.setEnabled(False)

    def handle_cell_click(self, array: str, block: int, element: int) -> None:
        """Handle a click on an element in a picture."""

    def handle_thread_click(self, block: int, thread: int) -> None:
        """Handle a click on a thread in a picture."""

    def focus_first(self) -> None:
        """Give the input the keyboard focus."""
        self.setFocus(Qt.FocusReason.OtherFocusReason)


class SetAnswer(AnswerBox):
    """A set of elements or threads, selected in a pad or a picture, or typed as "0, 2, 4-7"."""

    def __init__(self, question: RecordingQuestion) -> None:
        super().__init__(question)
        threads = question.answer_type == "threads"
        self.pad = ElementPad("Threads" if threads else f"Elements of {question.array}")
        self.pad.set_cell_count(question.size)
        self.text_edit = QLineEdit()
        self.text_edit.setAccessibleName("Selection as numbers")
        self.text_edit.setPlaceholderText("none (example: 0, 2, 4-7)")
        self.body.addWidget(self.pad)
        if question.size > _MAX_PAD_CELLS:
            self.pad.hide()
            self.body.addWidget(label("Click them in the picture, or type them:", "caption", wrap=True))
            self.text_edit.setPlaceholderText("none (example: 0, 2, 4-7 or 0, 8 … 56)")
        self.body.addWidget(self.text_edit)
        self.pad.changed.connect(self._on_selection)
        self.text_edit.textEdited.connect(lambda text: self.pad.select_cells(parse_numbers(text, question.size)))
        self.text_edit.returnPressed.connect(self.submitted)

    def _on_selection(self) -> None:
        words = format_numbers(self.pad.selected)
        if not self.text_edit.hasFocus() and words != self.text_edit.text():
            self.text_edit.setText(words)
            self.text_edit.setCursorPosition(0)
        self.changed.emit()

    @property
    def answer(self) -> Any:
        # An empty set of threads is a valid answer; an empty set of elements is not.
        return self.pad.selected if self.pad.selected or self.question.answer_type == "threads" else None

    def show_mark(self, mark: AnswerMark) -> None:
        self.pad.show_mark(mark.missing, mark.extra)
        self.text_edit.setReadOnly(True)

    def handle_cell_click(self, array: str, block: int, element: int) -> None:
        if self.question.answer_type == "cells" and array == self.question.array and block in (self.question.block, -1):
            self.pad.toggle_cell(element)

    def handle_thread_click(self, block: int, thread: int) -> None:
        if self.question.answer_type == "threads" and block == self.question.block:
            self.pad.toggle_cell(thread)

    def focus_first(self) -> None:
        (self.text_edit if self.pad.isHidden() else self.pad).setFocus(Qt.FocusReason.OtherFocusReason)


class NumberAnswer(AnswerBox):
    """A number."""

    def __init__(self, question: RecordingQuestion) -> None:
        super().__init__(question)
        self.text_edit = QLineEdit()
        self.text_edit.setAccessibleName("Number")
        self.text_edit.setPlaceholderText("a number")
        self.body.addWidget(self.text_edit)
        self.text_edit.textEdited.connect(lambda _: self.changed.emit())
        self.text_edit.returnPressed.connect(self.submitted)

    @property
    def answer(self) -> Any:
        text = self.text_edit.text().strip().replace(",", ".").replace("−", "-")
        try:
            return int(text)
        except ValueError:
            pass
        try:
            return float(text)
        except ValueError:
            return None

    def show_mark(self, mark: AnswerMark) -> None:
        self.text_edit.setReadOnly(True)

    def focus_first(self) -> None:
        self.text_edit.setFocus(Qt.FocusReason.OtherFocusReason)


class ThreadAnswer(AnswerBox):
    """A block and a thread, typed or clicked in a picture."""

    def __init__(self, question: RecordingQuestion) -> None:
        super().__init__(question)
        self.block, self.thread_ = QLineEdit(), QLineEdit()
        for name, box in (("Block", self.block), ("Thread", self.thread_)):
            box.setAccessibleName(name)
            box.textEdited.connect(lambda _: self.changed.emit())
            box.returnPressed.connect(self.submitted)
        pair = row(label("Block", "caption"), self.block, label("thread", "caption"), self.thread_)
        self.body.addLayout(column(pair))

    @property
    def answer(self) -> Any:
        texts = self.block.text().strip(), self.thread_.text().strip()
        return (int(texts[0]), int(texts[1])) if all(text.isdecimal() for text in texts) else None

    def show_mark(self, mark: AnswerMark) -> None:
        for box in (self.block, self.thread_):
            box.setReadOnly(True)

    def handle_thread_click(self, block: int, thread: int) -> None:
        if not self.block.isReadOnly():
            self.block.setText(str(block))
            self.thread_.setText(str(thread))
            self.changed.emit()

    def focus_first(self) -> None:
        self.block.setFocus(Qt.FocusReason.OtherFocusReason)


class _ChoiceLabel(QLabel):
    """The text of a choice, wrapped over several lines if needed."""

    clicked = pyqtSignal()

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setWordWrap(True)

    def mousePressEvent(self, event: QMouseEvent | None) -> None:
        self.clicked.emit()


class ChoiceAnswer(AnswerBox):
    """One of several sentences."""

    def __init__(self, question: RecordingQuestion) -> None:
        super().__init__(question)
        self.group = QButtonGroup(self)
        self.buttons: dict[str, QRadioButton] = {}
        for choice in question.choices:
            option = QRadioButton()
            words = _ChoiceLabel(choice)
            words.clicked.connect(option.click)
            option.setAccessibleName(choice)
            self.group.addButton(option)
            self.buttons[choice] = option
            line = row(option, words, spacing=look().px(8), stretch=1)
            self.body.addLayout(line)
        self.group.buttonToggled.connect(lambda *_: self.changed.emit())

    @property
    def answer(self) -> Any:
        return next((choice for choice, option in self.buttons.items() if option.isChecked()), None)

    def show_mark(self, mark: AnswerMark) -> None:
        for option in self.buttons.values():
            option.setEnabled(False)

    def focus_first(self) -> None:
        next(iter(self.buttons.values())).setFocus(Qt.FocusReason.OtherFocusReason)


def create_answer_box(question: RecordingQuestion) -> AnswerBox:
    """Create the input widget for a question."""
    forms: dict[str, type[AnswerBox]] = {
        "cells": SetAnswer,
        "threads": SetAnswer,
        "number": NumberAnswer,
        "thread": ThreadAnswer,
        "choice": ChoiceAnswer,
    }
    return forms[question.answer_type](question)
