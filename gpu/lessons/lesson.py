"""Structure of a lesson: steps with text, a scene, and a question or a task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from gpu.base.errors import InputError
from gpu.lessons.stage import Stage

TABS = ("run", "step", "compare", "atomics")
"""Tabs that a step's scene can use."""


@dataclass(frozen=True)
class Place:
    """Position in a recording, defined by an event there.

    Parameters
    ----------
    line : int or str
        Number or part of the text of a line of the kernel's file; 0 for any.
    time : int or tuple of int
        Which execution of the line's statement, from 1; negative counts from the end. The seed selects one of several.
    phase : str
        Name of the phase in the kernel's comments; "" for any.
    barrier : int
        Right after this barrier, counted from 1; 0 for any.
    launch : int
        Number of the launch, from 1; 0 for any.
    end : bool
        Whether it is the end of the recording.
    """

    line: int | str = 0
    time: int | tuple[int, ...] = 1
    phase: str = ""
    barrier: int = 0
    launch: int = 0
    end: bool = False


@dataclass(frozen=True)
class Scene:
    """Scene of a step: a variant of a pattern or a kernel of the lesson, at a place.

    Parameters
    ----------
    pattern, variant : str
        "" for a kernel of the lesson.
    parameters : mapping
        The pattern's parameters; the seed selects one value of each list.
    stage : str
        Name of a kernel in the lesson's `kernels`; "" for a pattern.
    sizes : tuple of int
        Values of n, of which the seed selects one; empty for a pattern.
    tab : str
        One of `TABS`.
    place : Place or None
        None for the beginning.
    """

    pattern: str = ""
    variant: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    stage: str = ""
    sizes: tuple[int, ...] = ()
    tab: str = "step"
    place: Place | None = None


@dataclass(frozen=True)
class Question:
    """Question about a scene; the recording supplies the answer.

    Parameters
    ----------
    kind : str
        One of `gpu.lessons.question_kinds.QUESTION_KINDS`.
    prompt : str
        The author's text; "" for the kind's default.
    hints : tuple of str
        Hints in order.
    options : mapping
        Options of the kind: "array", "element", "of", "over", "until", "with", "gpu", "block".
    line : int
        Line in the lesson's file.
    """

    kind: str
    prompt: str = ""
    hints: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    line: int = 0


@dataclass(frozen=True)
class PlannedMistake:
    """Common mistake: an edit of the reference solution that the grader has to reject.

    Parameters
    ----------
    says : str
        Explanation of the mistake.
    replace, by : str
        Text that occurs once in the solution, and its replacement.
    """

    says: str
    replace: str
    by: str

    def apply_to(self, text: str) -> str:
        """Return the solution with the mistake; raise InputError unless the text to replace occurs once."""
        if text.count(self.replace) != 1:
            raise InputError(f"The solution has {self.replace!r} {text.count(self.replace)} times, not once.")
        return text.replace(self.replace, self.by)


@dataclass(frozen=True)
class Task:
    """Kernel to write.

    Parameters
    ----------
    name : str
        Name for the command `grade`.
    kind : {"gap", "repair", "order", "rewrite"}
        Write missing lines, correct a mistake, order lines, or rewrite a kernel until it meets limits.
    stage : str
        The lesson's kernel to write; its file is the reference solution.
    start : str
        File with the initial text of a "rewrite".
    sizes : tuple of int
        Input sizes, ascending.
    hidden_sizes : tuple of int
        The least and the greatest of the sizes from which the seed selects another one; empty if there is none.
    kinds : tuple of str
        How inputs are generated.
    limits : mapping of str to (str or float)
        The limit of each counter, as an expression of n.
    requirements : mapping of str to (str or float)
        The least value of each counter, as an expression of n.
    schedule_count : int
        Number of additional schedules.
    modeled_limit : mapping
        "gpu", "n" and "times": limit of the modeled time, relative to the reference solution.
    mistakes : tuple of PlannedMistake
        Mistakes that must be rejected; a "repair" starts with the first.
    line : int
        Line in the lesson's file.
    """

    name: str
    kind: str
    prompt: str
    stage: str
    start: str = ""
    sizes: tuple[int, ...] = ()
    hidden_sizes: tuple[int, ...] = ()
    kinds: tuple[str, ...] = ()
    limits: Mapping[str, str | float] = field(default_factory=dict)
    requirements: Mapping[str, str | float] = field(default_factory=dict)
    schedule_count: int = 0
    modeled_limit: Mapping[str, Any] = field(default_factory=dict)
    mistakes: tuple[PlannedMistake, ...] = ()
    hints: tuple[str, ...] = ()
    line: int = 0

    def select_hidden_sizes(self, seed: int) -> tuple[int, ...]:
        """Return the size that a seed selects from the hidden ones; empty if there is none."""
        if not self.hidden_sizes:
            return ()
        least, greatest = self.hidden_sizes
        return (int(np.random.default_rng(seed).integers(least, greatest, endpoint=True)),)


@dataclass(frozen=True)
class LessonStep:
    """Step of a lesson: a title, text in Markdown, and a scene, question or task.

    `scene` is the previous step's unless the step has its own; None if there is none yet.
    """

    title: str
    text: str
    line: int
    scene: Scene | None = None
    question: Question | None = None
    task: Task | None = None


@dataclass(frozen=True)
class Lesson:
    """A lesson.

    Parameters
    ----------
    order : int
        Position among the lessons.
    prerequisites : tuple of str
        Folder names of prerequisite lessons.
    minutes : int
        Estimated duration.
    text : str
        Introduction before the first step, in Markdown.
    stages : mapping of str to Stage
        The lesson's kernels.
    texts : mapping of str to str
        Kernel files that were already read, by name.
    unlocked_variants : tuple of (str, str)
        Patterns and variants that it unlocks.
    """

    folder: Path
    title: str
    order: int
    prerequisites: tuple[str, ...]
    minutes: int
    text: str
    stages: Mapping[str, Stage]
    steps: tuple[LessonStep, ...]
    texts: Mapping[str, str] = field(default_factory=dict)
    unlocked_variants: tuple[tuple[str, str], ...] = ()

    @property
    def name(self) -> str:
        """The folder's name."""
        return self.folder.name

    @property
    def tasks(self) -> tuple[Task, ...]:
        """All tasks, in order."""
        return tuple(step.task for step in self.steps if step.task is not None)

    @property
    def questions(self) -> tuple[Question, ...]:
        """All questions, in order."""
        return tuple(step.question for step in self.steps if step.question is not None)

    def task(self, name: str) -> Task:
        """Return the task with a name; raise InputError if there is none."""
        for task in self.tasks:
            if task.name == name:
                return task
        has = ", ".join(task.name for task in self.tasks) or "none"
        raise InputError(f"The lesson {self.name} has no task {name!r}; its tasks: {has}.")

    def stage(self, name: str) -> Stage:
        """Return the lesson's kernel with a name; raise InputError if there is none."""
        if name not in self.stages:
            has = ", ".join(self.stages) or "none"
            raise InputError(f"The lesson {self.name} has no kernel {name!r}; its kernels: {has}.")
        return self.stages[name]
