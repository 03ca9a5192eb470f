"""Every lesson is gone through from its first step to its last by clicks and keys, answering wrong and right."""

from __future__ import annotations

import pytest

from gpu.lessons.reading import LIBRARY, lesson_folders
from gui.driving.driven import driven, wait
from tests.gui.lessons.student import ALT, Student
from tests.gui.window.walker import PATIENCE_S, Key

pytestmark = [pytest.mark.timeout(300), pytest.mark.qt_log_ignore("This plugin does not support", extend=True)]

NAMES = [folder.name for folder in lesson_folders(LIBRARY)]


@pytest.fixture(scope="module")
def student(qapp):
    with driven("simulator") as window:
        assert wait(lambda: window.at_rest, PATIENCE_S)
        yield Student(window)


@pytest.mark.parametrize("name", NAMES)
def test_a_lesson_is_gone_through_from_first_to_last(student, name):
    student.begin(name)
    lesson = student.lessons.lesson
    assert student.pane.isVisible()
    assert student.lessons.done(lesson) == frozenset()
    for number, step in enumerate(lesson.steps):
        assert student.lessons.number == number
        assert student.pane.heading.text() == step.title
        if step.asks:
            answer_wrong_then_right(student)
        elif step.task is not None:
            write_wrong_then_right(student)
        assert (number in student.lessons.done(lesson)) == bool(step.asks or step.task)
        if number % 2:
            student.press(Key.Key_Right, modifier=ALT)
        else:
            student.click(student.pane.next)
        if number + 1 < len(lesson.steps):
            student.settle()
            assert number in student.lessons.done(lesson)
    assert student.teaching.shows_shelf
    assert student.lessons.done(lesson) == frozenset(range(len(lesson.steps)))
    assert student.teaching.shelf.tiles[lesson.folder].open.text() == "Again"


def answer_wrong_then_right(student):
    asked, first = student.asked, student.question.scene
    student.answer_wrong()
    said = student.question.verdict
    assert said.property("verdict") == "bad"
    assert asked.why in said.text()
    assert not asked.line or f"Line {asked.line}: {asked.source}" in said.text()
    assert student.lessons.number not in student.lessons.done(student.lessons.lesson)
    seen = asked.moment if asked.kind == "value" or not asked.line else asked.moment + 1
    assert student.page_.step.player.moment == min(seen, student.page_.step.player.end)
    student.click(student.question.again)
    student.until(lambda: student.question.scene is not None and student.question.scene is not first)
    student.settle()
    student.give(student.asked.answer)
    student.press_check()
    assert student.question.verdict.property("verdict") == "good", student.question.verdict.text()


def write_wrong_then_right(student):
    task = student.lessons.task
    assert student.page_.writing.text == task.start
    student.judge()
    assert student.task.verdict.property("verdict") == "bad"
    if student.task.open_failing.isVisible():
        student.click(student.task.open_failing)
        step = student.page_.step
        student.until(lambda: not student.lessons.busy and student.page_.stepping and step.at_rest)
        assert step.scene.title.startswith(task.file)
        assert step.player.moment or not step.player.end  # of a kernel that does nothing there is nothing to see
        student.page_.tabs.setCurrentIndex(0)
    if task.frame is not None:
        student.put_in_order()
    else:
        student.write(student.solution())
    student.judge()
    assert student.task.verdict.property("verdict") == "good", student.task.verdict.text()
