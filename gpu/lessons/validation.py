"""Validation of a lesson: its places exist, its questions have answers, and its tasks can be solved."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from gpu.base.errors import InputError, LockstepError
from gpu.files.text import read_text
from gpu.lessons.expressions import ExpressionError, evaluate_number
from gpu.lessons.grading import grade_submission
from gpu.lessons.lesson import Lesson, LessonStep, Task
from gpu.lessons.lesson_reader import LESSON_FILE, LIBRARY
from gpu.lessons.questions.evaluation import mark_answer
from gpu.lessons.questions.generation import ask_question, list_wrong_answers
from gpu.lessons.scenes import record_scene
from gpu.lessons.task_texts import initial_text, reference_solution

SEEDS = (0, 1, 2)
"""Seeds with which scenes are recorded and questions asked."""


@dataclass(frozen=True)
class LessonFault:
    """Error in a lesson, at a line of its file."""

    file: str
    line: int
    reason: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.reason}"


def find_faults(lesson: Lesson) -> Iterator[LessonFault]:
    """Try everything in a lesson and yield its errors."""
    file = f"{lesson.name}/{LESSON_FILE}"
    for name in lesson.prerequisites:
        if not any((folder / name / LESSON_FILE).is_file() for folder in (lesson.folder.parent, LIBRARY)):
            yield LessonFault(
                file, 1, f"needs: There is no lesson {name!r}, neither next to this one nor in Lockstep's own."
            )
    previous_scene = None
    for step in lesson.steps:
        has_own_scene, previous_scene = step.scene is not previous_scene, step.scene
        for line, reason in _check_step(lesson, step, has_own_scene=has_own_scene):
            yield LessonFault(file, line, reason)


def find_warnings(lesson: Lesson) -> Iterator[LessonFault]:
    """Yield parameters of tasks' kernels that could be replaced by their usual number without being rejected.

    Raises
    ------
    InputError
        If an expression of the lesson cannot be computed.
    """
    for task in lesson.tasks:
        solution = reference_solution(lesson, task)
        for name, number, mutant in _replace_parameters(lesson, task, solution):
            if mutant != solution and grade_submission(lesson, task, mutant).accepted:
                reason = f"{task.name}: {number} instead of {name} is accepted; let {name} depend on trial or n."
                yield LessonFault(f"{lesson.name}/{LESSON_FILE}", task.line, reason)


def _replace_parameters(lesson: Lesson, task: Task, solution: str) -> Iterator[tuple[str, str, str]]:
    """Yield parameters of launches that do not depend on n, their number, and the solution with the number."""
    stage = lesson.stage(task.stage)
    names = [stage.evaluate_names(n) for n in task.sizes]
    for extent in ("block", "grid"):
        for axis in range(3):
            texts = {text for each in stage.launches for text in (*getattr(each, extent), 1, 1)[axis : axis + 1]}
            numbers = {evaluate_number(text, each) for text in texts for each in names}
            if len(numbers) == 1:
                name, number = f"{extent}Dim.{'xyz'[axis]}", f"{numbers.pop():g}"
                yield name, number, re.sub(rf"\b{re.escape(name)}\b", number, solution)
    for launch in stage.launches:
        head = re.search(rf"\b{re.escape(launch.kernel)}\s*\((?P<parameters>[^)]*)\)\s*{{", solution)
        parameters = head["parameters"].split(",") if head else []
        for argument, parameter in zip(launch.arguments, parameters, strict=False):
            uses_array = any(re.search(rf"\b{re.escape(name)}\b", str(argument)) for name in stage.arrays)
            numbers = set() if uses_array else {evaluate_number(argument, each) for each in names}
            if head and len(numbers) == 1:
                name, number = parameter.split()[-1], f"{numbers.pop():g}"
                yield name, number, f"{solution[: head.end()]} {name} = {number};{solution[head.end() :]}"


def _check_step(lesson: Lesson, step: LessonStep, *, has_own_scene: bool) -> Iterator[tuple[int, str]]:
    try:
        if step.question is not None:
            for seed in SEEDS:
                yield from _check_question(lesson, step, seed)
        elif step.scene is not None and has_own_scene:
            record_scene(lesson, step.scene)
    except LockstepError as error:
        line = step.question.line if step.question else step.line
        yield _find_expression(lesson, error, line), f"{step.title}: {error.message} {error.advice}".strip()
    if step.task is not None:
        try:
            yield from ((step.task.line, reason) for reason in _check_task(lesson, step.task))
        except InputError as error:
            yield _find_expression(lesson, error, step.task.line), f"{step.task.name}: {error.message}"


def _find_expression(lesson: Lesson, error: LockstepError, line: int) -> int:
    """Return the first line of the lesson's file with an error's expression; without one, the given line."""
    if not isinstance(error, ExpressionError):
        return line
    lines = read_text(lesson.folder / LESSON_FILE).split("\n")
    return next((number for number, text in enumerate(lines, 1) if error.expression in text), line)


def _check_question(lesson: Lesson, step: LessonStep, seed: int) -> Iterator[tuple[int, str]]:
    assert step.question is not None
    _, generated = ask_question(lesson, step, seed)
    if not mark_answer(generated, generated.answer).is_correct:
        yield step.question.line, f"{step.title}: Its own answer {generated.answer} is marked wrong."
    for wrong in list_wrong_answers(generated):
        if mark_answer(generated, wrong).is_correct:
            yield step.question.line, f"{step.title}: {wrong!r} is marked right, but the answer is {generated.answer}."


def _check_task(lesson: Lesson, task: Task) -> Iterator[str]:
    judgment = grade_submission(lesson, task, reference_solution(lesson, task))
    if not judgment.accepted:
        yield f"{task.name}: The reference solution is rejected: {' '.join(judgment.sentences)}"
    if grade_submission(lesson, task, initial_text(lesson, task)).accepted:
        yield f"{task.name}: The initial text is already accepted."
    for mistake in task.mistakes[1 if task.kind == "repair" else 0 :]:
        if grade_submission(lesson, task, mistake.apply_to(reference_solution(lesson, task))).accepted:
            yield f"{task.name}: This mistake is accepted: {mistake.says}"
