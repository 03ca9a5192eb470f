"""Submissions that differ from a task's solution, graded."""

from __future__ import annotations

from dataclasses import replace

from gpu.lessons.grading import grade_submission
from gpu.lessons.lesson import Task
from gpu.lessons.lesson_reader import LIBRARY, MARKED_LINES, read_lesson
from gpu.lessons.task_texts import reference_solution
from gpu.messages.judgments import Judgment

Edits = tuple[tuple[str, str], ...]


_QUICK_SIZE = 33
"""One warp does not hold this size. The larger sizes and the hidden ones mostly repeat what it shows."""


def select_quick_sizes(task: Task) -> Task:
    """Return a task with only the first of its sizes and the largest one that is at most 33."""
    return replace(task, sizes=(task.sizes[0], max(n for n in task.sizes if n <= _QUICK_SIZE)), hidden_sizes=())


def grade(name: str, change: str | Edits, *, size: int = 0, is_quick: bool = False) -> Judgment:
    """Grade the solution of "LESSON/TASK" with other marked lines, or with pieces replaced.

    Parameters
    ----------
    name : str
        The lesson's folder and the task.
    change : str or tuple of pairs of str
        The marked lines, or pairs of a piece of the solution and its replacement.
    size : int
        The only size of the inputs; 0 for all sizes of the task.
    is_quick : bool
        Whether to try only the sizes that `select_quick_sizes` keeps.
    """
    lesson = read_lesson(LIBRARY / name.split("/")[0])
    task = lesson.task(name.split("/")[1])
    text = reference_solution(lesson, task)
    if size:
        task = replace(task, sizes=(size,), hidden_sizes=())
    if is_quick:
        task = select_quick_sizes(task)
    if isinstance(change, str):
        return grade_submission(lesson, task, MARKED_LINES.sub(lambda found: f"{change}\n", text), seed=7)
    for before, after in change:
        assert before in text
        text = text.replace(before, after)
    return grade_submission(lesson, task, text, seed=7)


def is_rejected(name: str, change: str | Edits) -> bool:
    """Return whether a submission is rejected: of the task's sizes a few are tried first, where most mistakes show."""
    return not (grade(name, change, is_quick=True).accepted and grade(name, change).accepted)
