"""What a student starts a task with: the reference solution with a gap, a mistake, or its lines shuffled.

A solution says by comments of its own which lines a student writes:

    // gap: Each thread adds its own element.        // lines: Put these into order.
    ...                                              ...
    // end                                           // end
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable

import numpy as np

from gpu.errors import InputError
from gpu.lessons.lesson import Lesson, Task
from gpu.lessons.reading import MARKED, kernel_file, solution_text, unmarked
from gpu.messages.lessons import LineFrame

_TRIES = 200
"""Orders that are tried, so that no line stands in its own place."""


def reference(lesson: Lesson, task: Task) -> str:
    """Return a task's reference solution."""
    return solution_text(lesson, task.stage)


def start(lesson: Lesson, task: Task, seed: int = 0) -> str:
    """Return the text that a student starts with.

    Raises
    ------
    InputError
        The solution has no gap or no lines that are marked, or not the text of the mistake.
    """
    solution = reference(lesson, task)
    match task.kind:
        case "rewrite":
            return unmarked(kernel_file(lesson.folder, task.start))
        case "repair":
            return task.mistakes[0].made_in(solution)
        case "order":
            return _replaced(solution, "lines", lambda found: shuffled(found["body"], seed), task)
    return _replaced(
        solution, "gap", lambda found: f"{found['indent']}// Write here: {found['says']}\n", task
    )  # fmt: skip


def pieces(lesson: Lesson, task: Task, seed: int = 0) -> tuple[str, ...]:
    """Return the lines that a task of order is about, shuffled and without their common indent."""
    found = _ordered(reference(lesson, task), task)
    return tuple(textwrap.dedent(shuffled(found["body"], seed)).rstrip("\n").split("\n"))


def frame(lesson: Lesson, task: Task) -> LineFrame:
    """Return the solution around the lines that a task of order is about."""
    solution = reference(lesson, task)
    found = _ordered(solution, task)
    return LineFrame(solution[: found.start()], found["indent"], solution[found.end() :])


def put_together(lesson: Lesson, task: Task, lines: tuple[str, ...]) -> str:
    """Return the solution with a task's lines in another order, which may also be indented otherwise."""
    return frame(lesson, task).filled(lines)


def shuffled(body: str, seed: int) -> str:
    """Return lines in another order, which the seed chooses: as far as that can be with no line in its own place."""
    lines = body.rstrip("\n").split("\n")
    generator = np.random.default_rng([seed, 4])
    best = lines
    for _ in range(_TRIES):
        mixed = [lines[place] for place in generator.permutation(len(lines)).tolist()]
        if _moved(mixed, lines) > _moved(best, lines):
            best = mixed
    return "".join(f"{line}\n" for line in best)


def _moved(mixed: list[str], lines: list[str]) -> int:
    return sum(one != other for one, other in zip(mixed, lines, strict=True))


def _ordered(solution: str, task: Task) -> re.Match[str]:
    found = next((each for each in MARKED.finditer(solution) if each["kind"] == "lines"), None)
    if found is None:
        raise InputError(f"The solution of {task.name} has no lines to order: // lines: ... // end.")
    return found


def _replaced(text: str, kind: str, by: Callable[[re.Match[str]], str], task: Task) -> str:
    made = MARKED.sub(lambda found: by(found) if found["kind"] == kind else found[0], text)
    if made == text:
        raise InputError(f"The solution of {task.name} has nothing between // {kind}: ... and // end.")
    return made
