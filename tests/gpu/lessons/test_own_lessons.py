"""Lockstep's own lessons: what all of them have in common."""

from __future__ import annotations

import pytest

from gpu.lessons.lesson_reader import LIBRARY, find_lesson_folders, read_lesson
from gpu.lessons.questions.generation import ask_question

FOLDERS = find_lesson_folders(LIBRARY)


@pytest.mark.parametrize("folder", FOLDERS, ids=[folder.name for folder in FOLDERS])
def test_a_lesson_ends_with_a_summary(folder):
    last = read_lesson(folder).steps[-1]
    assert last.title == "Summary"
    assert last.question is None
    assert last.task is None
    assert 3 <= len(last.text.split("\n- ")) <= 6


@pytest.mark.parametrize(
    ("name", "step"),
    [("01-threads-and-indices", 0), ("13-histogram", 7), ("15-convolution", 4), ("22-float-sums", 0)],
)
def test_a_new_question_has_another_answer(name, step):
    lesson = read_lesson(LIBRARY / name)
    answers = [ask_question(lesson, lesson.steps[step], seed)[1].answer for seed in range(3)]
    assert len(set(answers)) > 1
