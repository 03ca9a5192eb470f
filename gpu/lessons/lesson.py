"""What a lesson is: steps that say something, show a moment, and may ask a question or set a task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gpu.errors import InputError
from gpu.lessons.stage import Stage

TABS = ("run", "step", "compare", "atomics")
"""The tabs that a step may want."""


@dataclass(frozen=True)
class Place:
    """A moment of a recording, told by what happens there.

    Parameters
    ----------
    line : int or str
        The line of the kernel's file, or a part of its text; 0 for any.
    time : int or tuple of int
        The how many-th time that a statement of the line is executed, from 1; from the end where it is negative. Of
        several one, which the seed chooses.
    phase : str
        The phase's name, as the kernel's comments have it; "" for any.
    barrier : int
        Just behind the how many-th barrier, from 1; 0 for any.
    launch : int
        The how many-th launch, from 1; 0 for any.
    end : bool
        The end of the recording.
    """

    line: int | str = 0
    time: int | tuple[int, ...] = 1
    phase: str = ""
    barrier: int = 0
    launch: int = 0
    end: bool = False


@dataclass(frozen=True)
class Scene:
    """What a step shows: a variant of a pattern, or a kernel of the lesson's own, at a moment.

    Parameters
    ----------
    pattern, variant : str
        "" where it is a kernel of the lesson's own.
    parameters : mapping
        The pattern's. One that is a list is one of these, which the seed chooses.
    stage : str
        The name of a kernel in the lesson's `kernels`; "" where it is a pattern.
    sizes : tuple of int
        What n is, one of these; nothing for a pattern.
    tab : str
        One of TABS.
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
    """What is asked at a scene; the recording has the answer.

    Parameters
    ----------
    ask : str
        One of `gpu.lessons.question_kinds.KINDS`.
    prompt : str
        The author's words; "" for those of the kind.
    hints : tuple of str
        One after the other.
    options : mapping
        What the kind takes: "array", "element", "of", "over", "until", "with", "gpu", "block".
    line : int
        Of the lesson's file.
    """

    ask: str
    prompt: str = ""
    hints: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    line: int = 0


@dataclass(frozen=True)
class PlannedMistake:
    """A mistake that is made in the reference solution, and has to be found.

    Parameters
    ----------
    says : str
        What it is.
    replace, by : str
        The solution's text that is replaced, which it has once, and by what.
    """

    says: str
    replace: str
    by: str

    def made_in(self, text: str) -> str:
        """Return a solution with the mistake; InputError where it has not that place once."""
        if text.count(self.replace) != 1:
            raise InputError(f"The solution has {self.replace!r} {text.count(self.replace)} times, not once.")
        return text.replace(self.replace, self.by)


@dataclass(frozen=True)
class Task:
    """Something to write.

    Parameters
    ----------
    name : str
        What `grade` calls it.
    kind : {"gap", "repair", "order", "rewrite"}
        Write what is missing, mend a mistake, put lines into order, or rewrite until limits are met.
    prompt : str
    stage : str
        The lesson's kernel that is to be written; its file is the reference solution.
    start : str
        The file with which a "rewrite" starts.
    sizes : tuple of int
        On which inputs it is judged, ascending.
    kinds : tuple of str
        How they are made.
    limits : mapping of str to (str or float)
        By the name of a counter the most that is allowed, as an expression of n.
    orders : int
        In how many orders of threads it is run.
    modeled : mapping
        "gpu", "n" and "times": how long it may take on a modeled GPU, compared with the reference.
    mistakes : tuple of PlannedMistake
        What has to be rejected; a "repair" starts with the first.
    hints : tuple of str
    line : int
        Of the lesson's file.
    """

    name: str
    kind: str
    prompt: str
    stage: str
    start: str = ""
    sizes: tuple[int, ...] = ()
    kinds: tuple[str, ...] = ()
    limits: Mapping[str, str | float] = field(default_factory=dict)
    orders: int = 0
    modeled: Mapping[str, Any] = field(default_factory=dict)
    mistakes: tuple[PlannedMistake, ...] = ()
    hints: tuple[str, ...] = ()
    line: int = 0


@dataclass(frozen=True)
class LessonStep:
    """A step: a title, a few sentences in Markdown, and what is shown, asked and wanted.

    `scene` is that of the step before where the step has none of its own; None where none had one.
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
    folder : Path
    title : str
    order : int
        Its place among the lessons.
    needs : tuple of str
        The folders' names of lessons that come before it.
    minutes : int
        About how long it takes.
    text : str
        What comes before the first step, in Markdown.
    stages : mapping of str to Stage
        The kernels of its own.
    steps : tuple of LessonStep
    texts : mapping of str to str
        Kernel files that were read already, by name.
    lifts : tuple of (str, str)
        Patterns and variants whose limits it lifts.
    """

    folder: Path
    title: str
    order: int
    needs: tuple[str, ...]
    minutes: int
    text: str
    stages: Mapping[str, Stage]
    steps: tuple[LessonStep, ...]
    texts: Mapping[str, str] = field(default_factory=dict)
    lifts: tuple[tuple[str, str], ...] = ()

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
        """Return the task of a name; InputError where there is none."""
        for task in self.tasks:
            if task.name == name:
                return task
        has = ", ".join(task.name for task in self.tasks) or "none"
        raise InputError(f"The lesson {self.name} has no task {name!r}; its tasks: {has}.")

    def stage(self, name: str) -> Stage:
        """Return a kernel of the lesson's own; InputError where there is none of that name."""
        if name not in self.stages:
            has = ", ".join(self.stages) or "none"
            raise InputError(f"The lesson {self.name} has no kernel {name!r}; its kernels: {has}.")
        return self.stages[name]
