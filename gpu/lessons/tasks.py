"""What a student starts a task with: the reference solution with a gap, a mistake, or its lines shuffled.

A solution says by comments of its own which lines a student writes:

    // gap: Each thread adds its own element.        // lines: Put these into order.
    ...                                              ...
    // end                                           // end
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterator

import numpy as np

from gpu.errors import InputError
from gpu.lessons.lesson import Lesson, Task
from gpu.lessons.reading import kernel_file, solution_text

_MARKED = re.compile(
    r"^(?P<indent>[ \t]*)// (?P<kind>gap|lines): *(?P<says>[^\n]*)\n(?P<body>.*?)^[ \t]*// end[ \t]*\n",
    re.MULTILINE | re.DOTALL,
)


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
            return kernel_file(lesson.folder, task.start)
        case "repair":
            return task.mistakes[0].made_in(solution)
        case "order":
            return _replaced(solution, "lines", lambda found: shuffled(found["body"], seed), task)
    return _replaced(
        solution, "gap", lambda found: f"{found['indent']}// Write here: {found['says']}\n", task
    )  # fmt: skip


def pieces(lesson: Lesson, task: Task, seed: int = 0) -> tuple[str, ...]:
    """Return the lines that a task of order is about, shuffled and without their common indent."""
    found = next(_marked(reference(lesson, task), "lines"), None)
    if found is None:
        raise InputError(f"The solution of {task.name} has no lines to order: // lines: ... // end.")
    return tuple(textwrap.dedent(shuffled(found["body"], seed)).rstrip("\n").split("\n"))


def put_together(lesson: Lesson, task: Task, lines: tuple[str, ...]) -> str:
    """Return the solution with a task's lines in another order, which may also be indented otherwise."""
    found = next(_marked(reference(lesson, task), "lines"), None)
    if found is None:
        raise InputError(f"The solution of {task.name} has no lines to order: // lines: ... // end.")
    body = "".join(f"{found['indent']}{line}\n" for line in lines)
    return _replaced(reference(lesson, task), "lines", lambda _: body, task)


def shuffled(body: str, seed: int) -> str:
    """Return lines in another order: the seed says which."""
    lines = body.rstrip("\n").split("\n")
    generator = np.random.default_rng([seed, 4])
    order = list(range(len(lines)))
    while len(set(lines)) > 1 and [lines[place] for place in order] == lines:
        order = generator.permutation(len(lines)).tolist()
    return "".join(f"{lines[place]}\n" for place in order)


def _marked(text: str, kind: str) -> Iterator[re.Match[str]]:
    return (found for found in _MARKED.finditer(text) if found["kind"] == kind)


def _replaced(text: str, kind: str, by: Callable[[re.Match[str]], str], task: Task) -> str:
    made = _MARKED.sub(lambda found: by(found) if found["kind"] == kind else found[0], text)
    if made == text:
        raise InputError(f"The solution of {task.name} has nothing between // {kind}: ... and // end.")
    return made
