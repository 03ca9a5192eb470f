"""Handlers of requests about lessons."""

from __future__ import annotations

from pathlib import Path

from gpu.messages.judgments import Judgment
from gpu.messages.lessons import JudgeTask, LessonShelf, ReadLessons, SceneRecording, ShowStep, StepFailure
from gpu.run.handlers.registry import RequestContext, handles


@handles(ReadLessons)
def _read_lessons(context: RequestContext, request: ReadLessons) -> LessonShelf:
    from gpu.lessons.lesson_reader import LIBRARY
    from gpu.lessons.lesson_requests import read_shelf

    return read_shelf(Path(request.folder) if request.folder else LIBRARY)


@handles(ShowStep)
def _show_step(context: RequestContext, request: ShowStep) -> SceneRecording:
    from gpu.lessons import lesson_requests

    return lesson_requests.show_step(request, context.folder)


@handles(JudgeTask)
def _judge_task(context: RequestContext, request: JudgeTask) -> Judgment:
    from gpu.lessons.grading import grade_submission
    from gpu.lessons.lesson_reader import read_lesson

    lesson = read_lesson(Path(request.folder))
    return grade_submission(lesson, lesson.task(request.task), request.text)


@handles(StepFailure)
def _step_failure(context: RequestContext, request: StepFailure) -> SceneRecording:
    from gpu.lessons import lesson_requests

    return lesson_requests.step_failure(request, context.folder)
