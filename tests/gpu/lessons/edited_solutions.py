"""Submissions that differ from a task's solution, graded."""

from __future__ import annotations

from dataclasses import replace

from gpu.lessons.grading import grade_submission
from gpu.lessons.lesson_reader import LIBRARY, MARKED_LINES, read_lesson
from gpu.lessons.task_texts import reference_solution
from gpu.messages.judgments import Judgment

Edits = tuple[tuple[str, str], ...]


def grade(name: str, change: str | Edits, *, size: int = 0) -> Judgment:
    """Grade the solution of "LESSON/TASK" with other marked lines, or with pieces replaced; with one size if given."""
    lesson = read_lesson(LIBRARY / name.split("/")[0])
    task = lesson.task(name.split("/")[1])
    text = reference_solution(lesson, task)
    if size:
        task = replace(task, sizes=(size,), hidden_sizes=())
    if isinstance(change, str):
        return grade_submission(lesson, task, MARKED_LINES.sub(lambda found: f"{change}\n", text), seed=7)
    for before, after in change:
        assert before in text
        text = text.replace(before, after)
    return grade_submission(lesson, task, text, seed=7)
