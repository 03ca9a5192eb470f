"""Generation of a lesson's questions: record the scene for a seed, and derive question and answer from it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from gpu.base.errors import InputError
from gpu.lessons.lesson import Lesson, LessonStep, Question
from gpu.lessons.questions import run_questions, statement_questions
from gpu.lessons.scenes import RecordedScene, record_scene
from gpu.messages.lessons import RecordingQuestion

_STATEMENT_GENERATORS: dict[str, Callable[[RecordedScene, Question], RecordingQuestion]] = {
    "cells": statement_questions.ask_cells,
    "lanes": statement_questions.ask_lanes,
    "count": statement_questions.ask_count,
    "value": statement_questions.ask_value,
    "writer": statement_questions.ask_writer,
}
_RUN_GENERATORS: dict[str, Callable[[Lesson, RecordedScene, Question], RecordingQuestion]] = {
    "order": run_questions.ask_order,
    "mistake": run_questions.ask_mistake,
    "faster": run_questions.ask_faster,
    "bound": run_questions.ask_bound,
    "occupancy": run_questions.ask_occupancy,
}


def ask_question(lesson: Lesson, step: LessonStep, seed: int = 0) -> tuple[RecordedScene, RecordingQuestion]:
    """Record a step's scene and ask its question; another seed gives other values, and so another question.

    Raises
    ------
    InputError
        If the step has no question, its scene has no such place, or the requested event does not happen there.
    KernelError
        If a kernel does not compile, or its launch is invalid.
    """
    if step.question is None or step.scene is None:
        raise InputError(f"The step {step.title!r} has no question.")
    recorded_scene = record_scene(lesson, step.scene, seed)
    return recorded_scene, generate_question(lesson, step.question, recorded_scene)


def generate_question(lesson: Lesson, question: Question, recorded_scene: RecordedScene) -> RecordingQuestion:
    """Ask a question about a recorded scene; raises as `ask_question`."""
    if question.kind in _STATEMENT_GENERATORS:
        generated = _STATEMENT_GENERATORS[question.kind](recorded_scene, question)
    else:
        generated = _RUN_GENERATORS[question.kind](lesson, recorded_scene, question)
    prompt = f"{question.prompt} {generated.prompt}" if question.prompt else generated.prompt
    return replace(generated, prompt=prompt, hints=(*question.hints, *_format_last_hint(generated)))


def list_wrong_answers(question: RecordingQuestion) -> tuple[Any, ...]:
    """Return wrong answers, to test that they are marked wrong."""
    match question.answer_type:
        case "cells" | "threads":
            return frozenset(), question.answer | {max(question.answer, default=0) + 1}
        case "number":
            return question.answer + 1, question.answer * 2 + 3, "nothing"
        case "thread":
            return (question.answer[0], question.answer[1] + 1), None
    return tuple(choice for choice in question.choices if choice != question.answer)


def _format_last_hint(question: RecordingQuestion) -> tuple[str, ...]:
    return (f"Look at line {question.line}: {question.source}",) if question.line and question.source else ()
