"""Generation of a lesson's questions: record the scene for a seed, and derive question and answer from it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from gpu.errors import InputError
from gpu.lessons.lesson import Lesson, LessonStep, Question
from gpu.lessons.questions import at_moment, of_runs
from gpu.lessons.scenes import PlayedScene, play
from gpu.messages.lessons import AskedQuestion

_ABOUT_STATEMENTS: dict[str, Callable[[PlayedScene, Question], AskedQuestion]] = {
    "cells": at_moment.cells,
    "lanes": at_moment.lanes,
    "count": at_moment.count,
    "value": at_moment.value,
    "writer": at_moment.writer,
}
_ABOUT_RUNS: dict[str, Callable[[Lesson, PlayedScene, Question], AskedQuestion]] = {
    "order": of_runs.order,
    "mistake": of_runs.mistake,
    "faster": of_runs.faster,
    "bound": of_runs.bound,
}


def ask(lesson: Lesson, step: LessonStep, seed: int = 0) -> tuple[PlayedScene, AskedQuestion]:
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
    played = play(lesson, step.scene, seed)
    return played, asked_of(lesson, step.question, played)


def asked_of(lesson: Lesson, question: Question, played: PlayedScene) -> AskedQuestion:
    """Ask a question about a recorded scene; raises as `ask`."""
    if question.ask in _ABOUT_STATEMENTS:
        asked = _ABOUT_STATEMENTS[question.ask](played, question)
    else:
        asked = _ABOUT_RUNS[question.ask](lesson, played, question)
    prompt = f"{question.prompt} {asked.prompt}" if question.prompt else asked.prompt
    return replace(asked, prompt=prompt, hints=(*question.hints, *_last_hint(asked)))


def wrong_answers(asked: AskedQuestion) -> tuple[Any, ...]:
    """Return wrong answers, to test that they are marked wrong."""
    match asked.form:
        case "cells" | "threads":
            return frozenset(), asked.answer | {max(asked.answer, default=0) + 1}
        case "number":
            return asked.answer + 1, asked.answer * 2 + 3, "nothing"
        case "thread":
            return (asked.answer[0], asked.answer[1] + 1), None
    return tuple(choice for choice in asked.choices if choice != asked.answer)


def _last_hint(asked: AskedQuestion) -> tuple[str, ...]:
    return (f"Look at line {asked.line}: {asked.source}",) if asked.line and asked.source else ()
