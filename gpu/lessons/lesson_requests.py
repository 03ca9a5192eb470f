"""Outlines of lessons, and recordings of their steps and of failing submissions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from gpu.base.errors import InputError
from gpu.lessons.grading import record_failure
from gpu.lessons.lesson import Lesson, LessonStep, Scene, Task
from gpu.lessons.lesson_reader import find_lesson_folders, read_lesson
from gpu.lessons.questions.generation import generate_question
from gpu.lessons.questions.run_questions import DEFAULT_GPU
from gpu.lessons.scenes import choose_parameters, record_scene
from gpu.lessons.task_texts import initial_text, line_frame, shuffled_lines
from gpu.messages.lessons import (
    LessonOutline,
    LessonShelf,
    SceneRecording,
    ShowStep,
    StepFailure,
    StepOutline,
    StepScene,
    TaskOutline,
)
from gpu.messages.shared_arrays import SharedFolder
from gpu.patterns import find_pattern
from gpu.run.handlers.recordings import share_recording


def read_shelf(folder: Path) -> LessonShelf:
    """Read the lessons in a folder; unreadable ones are reported in `faults`.

    Raises
    ------
    InputError
        If the folder contains no lesson.
    """
    folders = find_lesson_folders(folder)
    if not folders:
        raise InputError(f"There is no lesson in {folder.name}: each lesson is a folder with a lesson.md.")
    read: list[tuple[int, LessonOutline]] = []
    faults: list[str] = []
    for each in folders:
        try:
            lesson = read_lesson(each)
            read.append((lesson.order, _outline_lesson(lesson)))
        except InputError as error:
            faults.append(f"{error.message} {error.advice}".strip())
    read.sort(key=lambda pair: (pair[0], pair[1].name))
    return LessonShelf(str(folder), tuple(outline for _, outline in read), tuple(faults))


def _outline_lesson(lesson: Lesson) -> LessonOutline:
    return LessonOutline(
        str(lesson.folder),
        lesson.name,
        lesson.title,
        lesson.minutes,
        lesson.prerequisites,
        lesson.text,
        tuple(_outline_step(lesson, step) for step in lesson.steps),
        lesson.unlocked_variants,
    )


def _outline_step(lesson: Lesson, step: LessonStep) -> StepOutline:
    return StepOutline(
        step.title,
        step.text,
        step.question.kind if step.question is not None else "",
        _outline_task(lesson, step.task) if step.task is not None else None,
        step.scene is not None,
    )


def _outline_task(lesson: Lesson, task: Task) -> TaskOutline:
    ordered = task.kind == "order"
    try:
        return TaskOutline(
            task.name,
            task.kind,
            task.prompt,
            lesson.stage(task.stage).file,
            initial_text(lesson, task),
            shuffled_lines(lesson, task) if ordered else (),
            line_frame(lesson, task) if ordered else None,
            tuple(_format_limits(task)),
            task.hints,
        )
    except InputError as error:
        raise InputError(f"{lesson.name}/lesson.md:{task.line}: {error.message}", advice=error.advice) from None


def _format_limits(task: Task) -> Iterator[str]:
    for counter, most in task.limits.items():
        yield f"{counter.replace('_', ' ')}: at most {most}"
    for counter, least in task.requirements.items():
        yield f"{counter.replace('_', ' ')}: at least {least}"
    if task.modeled_limit:
        gpu, times = task.modeled_limit.get("gpu", DEFAULT_GPU).upper(), task.modeled_limit["times"]
        size = task.modeled_limit["n"]
        yield f"modeled time on {gpu}, n = {size:,}: at most {times:g} times the reference solution's"


def show_step(request: ShowStep, folder: SharedFolder) -> SceneRecording:
    """Return a step's scene; record it if the step has a question or shows the recording.

    Raises
    ------
    InputError
        If there is no such step, it has no scene, or its question does not apply to the recording.
    """
    lesson = read_lesson(Path(request.folder))
    if not 0 <= request.step < len(lesson.steps):
        raise InputError(
            f"The lesson {lesson.name} has {len(lesson.steps)} steps; there is no step {request.step + 1}."
        )
    step = lesson.steps[request.step]
    if step.scene is None:
        raise InputError(f"The step {step.title!r} has no scene.")
    scene = _describe_scene(lesson, step.scene, request.seed)
    if step.question is None and scene.tab != "step":
        return SceneRecording({}, scene)
    try:
        recorded_scene = record_scene(lesson, step.scene, request.seed)
        generated = generate_question(lesson, step.question, recorded_scene) if step.question is not None else None
    except InputError as error:
        line = step.question.line if step.question is not None else step.line
        raise InputError(f"{lesson.name}/lesson.md:{line}: {error.message}", advice=error.advice) from None
    shown = replace(scene, moment=recorded_scene.moment, question=generated)
    return SceneRecording(share_recording(recorded_scene.recording, folder).arrays, shown)


def _describe_scene(lesson: Lesson, scene: Scene, seed: int) -> StepScene:
    parameters = choose_parameters(scene, seed)
    if scene.stage:
        stage = lesson.stage(scene.stage)
        kernel = stage.launches[0].kernel
        title = f"{stage.file}: n = {parameters['n']}"
        return StepScene(scene.tab, "", "", parameters, title, stage.file, kernel)
    pattern = find_pattern(scene.pattern)
    variant = pattern.variant(scene.variant)
    title = f"{pattern.title}: {variant.title}"
    kernel = variant.kernels[0] if variant.kernels else ""
    return StepScene(
        scene.tab, pattern.name, variant.name, parameters, title, pattern.kernel_file_of(variant.name), kernel
    )


def step_failure(request: StepFailure, folder: SharedFolder) -> SceneRecording:
    """Record the smallest failing input of a submission; raise InputError if there is none."""
    lesson = read_lesson(Path(request.task.folder))
    task = lesson.task(request.task.task)
    failure = record_failure(lesson, task, request.task.text, request.judgment)
    if failure is None or request.judgment.case is None:
        raise InputError("The submission does not fail on any input.")
    stage = lesson.stage(task.stage)
    moment = min(failure.moment + 1, failure.recording.event_count)  # right after the failing statement
    parameters = {"n": request.judgment.case.n}
    title = f"{stage.file}: {request.judgment.case}"
    scene = StepScene("step", "", "", parameters, title, stage.file, stage.launches[0].kernel, moment)
    return SceneRecording(share_recording(failure.recording, folder).arrays, scene)
