"""Whether a lesson holds what it promises: places are reached, questions have answers, tasks can be done."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gpu.errors import InputError, LockstepError
from gpu.lessons.judging import judge
from gpu.lessons.lesson import Lesson, LessonStep, Task
from gpu.lessons.questions.ask import ask, wrong_answers
from gpu.lessons.questions.asked import mark
from gpu.lessons.reading import FILE, LIBRARY
from gpu.lessons.scenes import play
from gpu.lessons.tasks import reference, start

SEEDS = (0, 1, 2)
"""With which scenes are recorded and questions asked."""


@dataclass(frozen=True)
class LessonFault:
    """What is wrong with a lesson, at a line of its file."""

    file: str
    line: int
    reason: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.reason}"


def faults(lesson: Lesson) -> Iterator[LessonFault]:
    """Try all that a lesson has, and yield what is wrong."""
    file = f"{lesson.name}/{FILE}"
    for name in lesson.needs:
        if not any((place / name / FILE).is_file() for place in (lesson.folder.parent, LIBRARY)):
            yield LessonFault(file, 1, f"needs: there is no lesson {name!r}, neither beside this one nor among ours.")
    before = None
    for step in lesson.steps:
        shown, before = step.scene is not before, step.scene
        for line, reason in _of_step(lesson, step, shown=shown):
            yield LessonFault(file, line, reason)


def _of_step(lesson: Lesson, step: LessonStep, *, shown: bool) -> Iterator[tuple[int, str]]:
    try:
        if step.question is not None:
            for seed in SEEDS:
                yield from _of_question(lesson, step, seed)
        elif step.scene is not None and shown:
            play(lesson, step.scene)
    except LockstepError as error:
        yield (
            step.question.line if step.question else step.line,
            f"{step.title}: {error.message} {error.advice}".strip(),
        )
    if step.task is not None:
        try:
            yield from ((step.task.line, reason) for reason in _of_task(lesson, step.task))
        except InputError as error:
            yield step.task.line, f"{step.task.name}: {error.message}"


def _of_question(lesson: Lesson, step: LessonStep, seed: int) -> Iterator[tuple[int, str]]:
    assert step.question is not None
    _, asked = ask(lesson, step, seed)
    if not mark(asked, asked.answer).right:
        yield step.question.line, f"{step.title}: its own answer {asked.answer} is marked wrong."
    for wrong in wrong_answers(asked):
        if mark(asked, wrong).right:
            yield step.question.line, f"{step.title}: {wrong!r} is marked right, and the answer is {asked.answer}."


def _of_task(lesson: Lesson, task: Task) -> Iterator[str]:
    judgment = judge(lesson, task, reference(lesson, task))
    if not judgment.accepted:
        yield f"{task.name}: its own solution is rejected: {' '.join(judgment.sentences)}"
    if judge(lesson, task, start(lesson, task)).accepted:
        yield f"{task.name}: what a student starts with is accepted already."
    for mistake in task.mistakes[1 if task.kind == "repair" else 0 :]:
        if judge(lesson, task, mistake.made_in(reference(lesson, task))).accepted:
            yield f"{task.name}: this mistake is accepted: {mistake.says}"
