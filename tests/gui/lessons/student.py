"""A student in front of the window: opens lessons, answers, writes, by real clicks and keys."""

from __future__ import annotations

import textwrap

from PyQt6.QtCore import Qt
from PyQt6.QtTest import QTest
from PyQt6.QtWidgets import QApplication

from gpu.lessons.lesson_reader import read_lesson
from gpu.lessons.questions.generation import list_wrong_answers
from gpu.lessons.task_texts import reference_solution
from gui.driving.window_session import wait_until
from gui.lessons.pad import format_numbers
from tests.gui.window.walker import PATIENCE_S, Key, Walker

ALT, CTRL = Qt.KeyboardModifier.AltModifier, Qt.KeyboardModifier.ControlModifier


class Student(Walker):
    """Works through lessons."""

    @property
    def teaching(self):
        return self.window.teaching

    @property
    def lessons(self):
        return self.teaching.lessons

    @property
    def pane(self):
        return self.teaching.pane

    @property
    def question(self):
        return self.teaching.pane.question

    @property
    def task(self):
        return self.teaching.pane.task

    @property
    def lesson_page(self):
        return self.teaching.page

    def wait_until(self, done):
        assert wait_until(done, PATIENCE_S), self.lessons.lesson and self.lessons.step.title

    def open_shelf(self):
        self.wait_until(lambda: self.window.sidebar.isVisible())
        while not self.teaching.shows_shelf:
            self.click(self.window.sidebar.lessons)
        self.wait_until(lambda: "" in self.lessons.shelves and self.teaching.shelf.tiles)

    def begin_lesson(self, name):
        """Open a lesson at its first step, from the shelf."""
        self.open_shelf()
        tile = next(tile for tile in self.teaching.shelf.tiles.values() if tile.lesson.name == name)
        self.teaching.shelf.scroll_area.ensureWidgetVisible(tile)
        self.click(tile.open)
        self.wait_until(lambda: self.lessons.lesson is not None)
        self.wait_for_step()

    def wait_for_step(self):
        """Wait until what the step shows is there."""

        def is_step_shown():
            if self.lessons.busy:
                return False
            step = self.lesson_page.step
            if self.lessons.task is not None or not self.lessons.step.has_scene:
                return True
            asked = bool(self.lessons.step.question_kind)
            return step.is_up_to_date and step.models is not None and (not asked or self.question.scene is not None)

        self.wait_until(is_step_shown)

    # --- questions

    @property
    def current_question(self):
        return self.question.scene.question

    def give_answer(self, answer):
        """Give an answer as its form wants it; cells and threads by clicks, others by keys."""
        box, asked = self.question.answer_box, self.current_question
        if asked.answer_type in ("cells", "threads"):
            if len(answer) <= 8:
                for element in sorted(answer ^ box.pad.selected):
                    self.pane.scroll_area.ensureWidgetVisible(box.pad)
                    self.click(box.pad, box.pad.compute_cell_rect(element).center().toPoint())
            else:
                box.text_edit.setFocus()
                box.text_edit.selectAll()
                QTest.keyClicks(box.text_edit, format_numbers(answer))
        elif asked.answer_type == "number":
            box.focus_first()
            box.text_edit.selectAll()
            QTest.keyClicks(box.text_edit, f"{answer:.6g}" if isinstance(answer, float) else str(answer))
        elif asked.answer_type == "thread":
            for field, number in zip((box.block, box.thread_), answer, strict=True):
                field.setFocus()
                field.selectAll()
                QTest.keyClicks(field, str(number))
        else:
            self.click(box.buttons[answer])

    def answer_wrong(self):
        wrong = next(
            each for each in list_wrong_answers(self.current_question) if each not in (None, "nothing", frozenset())
        )
        if self.current_question.answer_type in ("cells", "threads") and max(wrong) >= self.current_question.size:
            wrong = (
                self.current_question.answer - {max(self.current_question.answer)}
                or frozenset({self.current_question.size - 1}) - self.current_question.answer
            )
            wrong = wrong or self.current_question.answer ^ {0}
        self.give_answer(wrong)
        self.press_check()

    def press_check(self):
        self.pane.scroll_area.ensureWidgetVisible(self.question.check)
        self.click(self.question.check)

    # --- tasks

    def solution(self):
        lesson = read_lesson(self.lessons_folder())
        return reference_solution(lesson, lesson.task(self.lessons.task.name))

    def lessons_folder(self):
        from pathlib import Path

        return Path(self.lessons.lesson.folder)

    def write_text(self, text):
        """Put a text in the place of all that is written, from the clipboard."""
        code = self.lesson_page.writing.source.code
        code.setFocus()
        QApplication.clipboard().setText(text)
        QTest.keyClick(code, Key.Key_A, CTRL)
        QTest.keyClick(code, Key.Key_V, CTRL)

    def order_lines(self):
        """Move lines with keys until they are the solution's."""
        task, lines = self.lessons.task, self.lesson_page.writing.line_order
        solution = self.solution()
        body = solution[len(task.frame.before) : len(solution) - len(task.frame.after)].rstrip("\n").split("\n")[1:-1]
        wanted = textwrap.dedent("\n".join(body)).split("\n")
        lines.setFocus()
        for place, line in enumerate(wanted):
            at = place + lines.lines[place:].index(line)
            QTest.keyClick(lines, Key.Key_Home)
            for _ in range(at):
                QTest.keyClick(lines, Key.Key_Down)
            for _ in range(at - place):
                QTest.keyClick(lines, Key.Key_Up, ALT)
        assert list(lines.lines) == wanted

    def grade(self):
        """Have it judged by F5, and wait for the verdict."""
        self.press(Key.Key_F5)
        self.wait_until(lambda: self.lessons.is_grading or self.task.verdict.isVisible())
        self.wait_until(lambda: not self.lessons.busy and self.task.verdict.isVisible())
