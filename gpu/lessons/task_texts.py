"""Initial texts of tasks: the reference solution with a gap, a mistake, or shuffled lines.

Comments in a solution mark the lines that a student writes:

    // gap: Each thread adds its own element.        // lines: Put these into order.
    ...                                              ...
    // end                                           // end
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable

import numpy as np

from gpu.base.errors import InputError
from gpu.lessons.lesson import Lesson, Task
from gpu.lessons.lesson_reader import MARKED_LINES, read_kernel_file, remove_marks, solution_text
from gpu.messages.lessons import LineFrame

_MAX_PERMUTATIONS = 200
"""Permutations that are tried to find one that moves every line."""


def reference_solution(lesson: Lesson, task: Task) -> str:
    """Return a task's reference solution."""
    return solution_text(lesson, task.stage)


def initial_text(lesson: Lesson, task: Task) -> str:
    """Return a task's initial text.

    Raises
    ------
    InputError
        If the solution has no marked gap or lines, or not the text that the mistake replaces.
    """
    solution = reference_solution(lesson, task)
    match task.kind:
        case "rewrite":
            return remove_marks(read_kernel_file(lesson.folder, task.start))
        case "repair":
            return remove_marks(task.mistakes[0].apply_to(solution))
        case "order":
            return _replace_marked(solution, "lines", lambda match: shuffle_lines(match["body"]), task)
    return _replace_marked(
        solution, "gap", lambda match: f"{match['indent']}// Write here: {match['says']}\n", task
    )  # fmt: skip


def shuffled_lines(lesson: Lesson, task: Task) -> tuple[str, ...]:
    """Return the shuffled lines of an ordering task, without their common indentation."""
    match = _find_marked_lines(reference_solution(lesson, task), task)
    return tuple(textwrap.dedent(shuffle_lines(match["body"])).rstrip("\n").split("\n"))


def line_frame(lesson: Lesson, task: Task) -> LineFrame:
    """Return the solution's text around the lines of an ordering task."""
    solution = reference_solution(lesson, task)
    match = _find_marked_lines(solution, task)
    return LineFrame(solution[: match.start()], match["indent"], solution[match.end() :])


def shuffle_lines(body: str) -> str:
    """Permute lines so that, if possible, every line moves; the same lines always in the same way."""
    lines = body.rstrip("\n").split("\n")
    generator = np.random.default_rng([0, 4])
    best = lines
    for _ in range(_MAX_PERMUTATIONS):
        shuffled = [lines[index] for index in generator.permutation(len(lines)).tolist()]
        if _count_moved(shuffled, lines) > _count_moved(best, lines):
            best = shuffled
    return "".join(f"{line}\n" for line in best)


def _count_moved(shuffled: list[str], lines: list[str]) -> int:
    return sum(moved_line != line for moved_line, line in zip(shuffled, lines, strict=True))


def _find_marked_lines(solution: str, task: Task) -> re.Match[str]:
    match = next((each for each in MARKED_LINES.finditer(solution) if each["kind"] == "lines"), None)
    if match is None:
        raise InputError(f"The solution of {task.name} has no lines to order: // lines: ... // end.")
    return match


def _replace_marked(text: str, kind: str, replacement: Callable[[re.Match[str]], str], task: Task) -> str:
    result = MARKED_LINES.sub(lambda match: replacement(match) if match["kind"] == kind else match[0], text)
    if result == text:
        raise InputError(f"The solution of {task.name} has nothing between // {kind}: ... and // end.")
    return result
