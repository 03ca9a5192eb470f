"""Lessons are worked through by clicks and keys, answering wrong and right: steps of each kind, and whole lessons."""

from __future__ import annotations

from dataclasses import fields

import pytest

from gpu.lessons.lesson_reader import LIBRARY, find_lesson_folders, read_lesson
from gui.driving.window_session import open_window, wait_until
from tests.gui.lessons.student import ALT, Student
from tests.gui.window.walker import PATIENCE_S, Key

pytestmark = [pytest.mark.timeout(300), pytest.mark.qt_log_ignore("This plugin does not support", extend=True)]

NAMES = [folder.name for folder in find_lesson_folders(LIBRARY)]
WHOLE = "10-any-length"
"""The lesson of the first tier that is gone through from its first step to its last."""
STEPS = [
    ("01-threads-and-indices", (5, 6)),
    ("03-coalescing", (1, 5, 6)),
    ("08-reduction", (0, 5, 8, 9, 12, 15, 16, 18)),
    ("14-occupancy", (0, 4)),
]
"""Steps of other lessons, by their numbers: with the whole lesson they are of all kinds that there are."""


@pytest.fixture(scope="module")
def student(qapp):
    with open_window("simulator") as window:
        assert wait_until(lambda: window.is_idle, PATIENCE_S)
        yield Student(window)


def list_kinds(step):
    """Return the kinds of a step: of a question with its options, a task with its limits, and a scene."""
    kinds = set()
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


def test_the_steps_of_the_first_tier_are_of_all_kinds():
    steps = {name: read_lesson(LIBRARY / name).steps for name in NAMES}
    chosen = [*steps[WHOLE], *(steps[name][number] for name, numbers in STEPS for number in numbers)]
    assert set().union(*map(list_kinds, chosen)) == set().union(
        *(list_kinds(step) for name in NAMES for step in steps[name])
    )


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name == WHOLE else pytest.mark.sweep) for name in NAMES]
)
def test_a_lesson_is_gone_through_from_first_to_last(student, name):
    student.begin_lesson(name)
    lesson = student.lessons.lesson
    assert student.pane.isVisible()
    assert student.lessons.find_completed_steps(lesson) == frozenset()
    for number in range(len(lesson.steps)):
        complete_step(student, number)
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


@pytest.mark.parametrize(("name", "numbers"), STEPS, ids=[name for name, _ in STEPS])
def test_steps_of_further_kinds_are_completed(student, name, numbers):
    student.begin_lesson(name)
    lesson = student.lessons.lesson
    for number in numbers:
        student.teaching.open_lesson(lesson, number)
        student.wait_for_step()
        complete_step(student, number)
    assert student.lessons.find_completed_steps(lesson) >= set(numbers)


def complete_step(student, number):
    """Answer a step's question, or do its task, first wrong and then right."""
    lesson = student.lessons.lesson
    step = lesson.steps[number]
    assert student.lessons.step_number == number
    assert student.pane.heading.text() == step.title
    if step.question_kind:
        answer_wrong_then_right(student)
    elif step.task is not None:
        write_wrong_then_right(student)
    assert (number in student.lessons.find_completed_steps(lesson)) == bool(step.question_kind or step.task)


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
