"""A student in front of the window: opens lessons, answers, writes, by real clicks and keys."""

from __future__ import annotations

import textwrap

from PyQt6.QtCore import Qt
from PyQt6.QtTest import QTest
from PyQt6.QtWidgets import QApplication

from gpu.lessons.questions.ask import wrong_answers
from gpu.lessons.reading import read_lesson
from gpu.lessons.tasks import reference
from gui.driving.driven import wait
from gui.lessons.pad import in_words
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
    def page_(self):
        return self.teaching.page

    def until(self, done):
        assert wait(done, PATIENCE_S), self.lessons.lesson and self.lessons.step.title

    def to_shelf(self):
        self.until(lambda: self.window.sidebar.isVisible())
        while not self.teaching.shows_shelf:
            self.click(self.window.sidebar.lessons)
        self.until(lambda: "" in self.lessons.shelves and self.teaching.shelf.tiles)

    def begin(self, name):
        """Open a lesson at its first step, from the shelf."""
        self.to_shelf()
        tile = next(tile for tile in self.teaching.shelf.tiles.values() if tile.lesson.name == name)
        self.teaching.shelf.scrolled.ensureWidgetVisible(tile)
        self.click(tile.open)
        self.until(lambda: self.lessons.lesson is not None)
        self.settle()

    def settle(self):
        """Wait until what the step shows is there."""

        def there():
            if self.lessons.busy:
                return False
            step = self.page_.step
            if self.lessons.task is not None or not self.lessons.step.shows:
                return True
            asked = bool(self.lessons.step.asks)
            return step.at_rest and step.models is not None and (not asked or self.question.scene is not None)

        self.until(there)

    # --- questions

    @property
    def asked(self):
        return self.question.scene.asked

    def give(self, answer):
        """Give an answer as its form wants it; cells and threads by clicks, others by keys."""
        box, asked = self.question.box, self.asked
        if asked.form in ("cells", "threads"):
            if len(answer) <= 8:
                for element in sorted(answer ^ box.pad.chosen):
                    self.pane.scrolled.ensureWidgetVisible(box.pad)
                    self.click(box.pad, box.pad.place(element).center().toPoint())
            else:
                box.typed.setFocus()
                box.typed.selectAll()
                QTest.keyClicks(box.typed, in_words(answer))
        elif asked.form == "number":
            box.focus_first()
            box.typed.selectAll()
            QTest.keyClicks(box.typed, f"{answer:.6g}" if isinstance(answer, float) else str(answer))
        elif asked.form == "thread":
            for field, number in zip((box.block, box.thread_), answer, strict=True):
                field.setFocus()
                field.selectAll()
                QTest.keyClicks(field, str(number))
        else:
            self.click(box.buttons[answer])

    def answer_wrong(self):
        wrong = next(each for each in wrong_answers(self.asked) if each not in (None, "nothing", frozenset()))
        if self.asked.form in ("cells", "threads") and max(wrong) >= self.asked.size:
            wrong = self.asked.answer - {max(self.asked.answer)} or frozenset({self.asked.size - 1}) - self.asked.answer
            wrong = wrong or self.asked.answer ^ {0}
        self.give(wrong)
        self.press_check()

    def press_check(self):
        self.pane.scrolled.ensureWidgetVisible(self.question.check)
        self.click(self.question.check)

    # --- tasks

    def solution(self):
        lesson = read_lesson(self.lessons_folder())
        return reference(lesson, lesson.task(self.lessons.task.name))

    def lessons_folder(self):
        from pathlib import Path

        return Path(self.lessons.lesson.folder)

    def write(self, text):
        """Put a text in the place of all that is written, from the clipboard."""
        code = self.page_.writing.source.code
        code.setFocus()
        QApplication.clipboard().setText(text)
        QTest.keyClick(code, Key.Key_A, CTRL)
        QTest.keyClick(code, Key.Key_V, CTRL)

    def put_in_order(self):
        """Move lines with keys until they are the solution's."""
        task, lines = self.lessons.task, self.page_.writing.lines
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

    def judge(self):
        """Have it judged by F5, and wait for the verdict."""
        self.press(Key.Key_F5)
        self.until(lambda: self.lessons.judging or self.task.verdict.isVisible())
        self.until(lambda: not self.lessons.busy and self.task.verdict.isVisible())
