"""Every lesson is gone through from its first step to its last by clicks and keys, answering wrong and right."""

from __future__ import annotations

from dataclasses import fields

import pytest

from gpu.lessons.lesson_reader import LIBRARY, find_lesson_folders, read_lesson
from gui.driving.window_session import open_window, wait_until
from tests.gui.lessons.student import ALT, Student
from tests.gui.window.walker import PATIENCE_S, Key

pytestmark = [pytest.mark.timeout(300), pytest.mark.qt_log_ignore("This plugin does not support", extend=True)]

NAMES = [folder.name for folder in find_lesson_folders(LIBRARY)]
FIRST_TIER = ("01-threads-and-indices", "03-coalescing", "08-reduction", "10-any-length", "14-occupancy")
"""Lessons that have all kinds of steps: the others repeat these with other kernels."""


@pytest.fixture(scope="module")
def student(qapp):
    with open_window("simulator") as window:
        assert wait_until(lambda: window.is_idle, PATIENCE_S)
        yield Student(window)


def list_kinds(name):
    """Return the kinds of a lesson's steps: of questions with their options, tasks with their limits, and scenes."""
    kinds = set()
    for step in read_lesson(LIBRARY / name).steps:
        question, task, scene = step.question, step.task, step.scene
        if scene is not None:
            place = fields(scene.place) if scene.place is not None else ()
            kinds |= {("place", each.name) for each in place if getattr(scene.place, each.name) != each.default}
            kinds.add((scene.tab, "pattern" if scene.pattern else "stage", question is not None and question.kind))
        if question is not None:
            kinds |= {("option", option) for option in question.options}
        if task is not None:
            kinds |= {("task", task.kind), ("limits", bool(task.limits)), ("modeled", bool(task.modeled_limit))}
    return kinds


def test_the_lessons_of_the_first_tier_have_steps_of_all_kinds():
    assert set().union(*map(list_kinds, FIRST_TIER)) == set().union(*map(list_kinds, NAMES))


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in FIRST_TIER else pytest.mark.sweep) for name in NAMES]
)
def test_a_lesson_is_gone_through_from_first_to_last(student, name):
    student.begin_lesson(name)
    lesson = student.lessons.lesson
    assert student.pane.isVisible()
    assert student.lessons.find_completed_steps(lesson) == frozenset()
    for number, step in enumerate(lesson.steps):
        assert student.lessons.step_number == number
        assert student.pane.heading.text() == step.title
        if step.question_kind:
            answer_wrong_then_right(student)
        elif step.task is not None:
            write_wrong_then_right(student)
        assert (number in student.lessons.find_completed_steps(lesson)) == bool(step.question_kind or step.task)
        if number % 2:
            student.press(Key.Key_Right, modifier=ALT)
        else:
            student.click(student.pane.next)
        if number + 1 < len(lesson.steps):
            student.wait_for_step()
            assert number in student.lessons.find_completed_steps(lesson)
    assert student.teaching.shows_shelf
    assert student.lessons.find_completed_steps(lesson) == frozenset(range(len(lesson.steps)))
    assert student.teaching.shelf.tiles[lesson.folder].open.text() == "Again"


def answer_wrong_then_right(student):
    asked, first = student.current_question, student.question.scene
    student.answer_wrong()
    said = student.question.verdict
    assert said.property("verdict") == "bad"
    assert asked.explanation in said.text()
    assert not asked.line or f"Line {asked.line}: {asked.source}" in said.text()
    assert student.lessons.step_number not in student.lessons.find_completed_steps(student.lessons.lesson)
    seen = asked.moment if asked.kind == "value" or not asked.line else asked.moment + 1
    assert student.lesson_page.step.player.moment == min(seen, student.lesson_page.step.player.end)
    is_same = asked.kind in ("order", "mistake")
    assert student.question.retry_button.text() == ("Answer again" if is_same else "New question")
    student.click(student.question.retry_button)
    student.wait_until(lambda: student.question.scene is not None and student.question.scene is not first)
    student.wait_for_step()
    student.give_answer(student.current_question.answer)
    student.press_check()
    assert student.question.verdict.property("verdict") == "good", student.question.verdict.text()


def write_wrong_then_right(student):
    task = student.lessons.task
    assert student.lesson_page.writing.text == task.start
    student.grade()
    assert student.task.verdict.property("verdict") == "bad"
    if student.task.show_failure_button.isVisible():
        student.click(student.task.show_failure_button)
        step = student.lesson_page.step
        student.wait_until(lambda: not student.lessons.busy and student.lesson_page.stepping and step.is_up_to_date)
        assert step.scene.title.startswith(task.file)
        assert step.player.moment or not step.player.end  # of a kernel that does nothing there is nothing to see
        student.lesson_page.tabs.setCurrentIndex(0)
    if task.frame is not None:
        student.order_lines()
    else:
        student.write_text(student.solution())
    student.grade()
    assert student.task.verdict.property("verdict") == "good", student.task.verdict.text()
