"""Execution of the window's requests about lessons, in the engine's process."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from gpu.errors import InputError
from gpu.lessons.judging import judge, opened
from gpu.lessons.lesson import Lesson, LessonStep, Scene, Task
from gpu.lessons.questions.ask import asked_of
from gpu.lessons.questions.of_runs import DEFAULT_GPU
from gpu.lessons.reading import LIBRARY, lesson_folders, read_lesson
from gpu.lessons.scenes import chosen, play
from gpu.lessons.tasks import frame, pieces, start
from gpu.messages.lessons import (
    JudgeTask,
    LessonOutline,
    LessonRequest,
    LessonShelf,
    ReadLessons,
    ShownScene,
    ShowStep,
    StepJudged,
    StepOutline,
    TaskOutline,
)
from gpu.messages.requests import Result
from gpu.messages.shared_arrays import SharedFolder
from gpu.patterns import find_pattern
from gpu.run.execute import shared_recording


def execute_lesson(request: LessonRequest, folder: SharedFolder) -> Result:
    """Execute a request; a recording is a new file in `folder`."""
    match request:
        case ReadLessons(where):
            return Result({}, shelf=shelf_of(Path(where) if where else LIBRARY))
        case ShowStep():
            return _show(request, folder)
        case JudgeTask(where, name, text):
            lesson = read_lesson(Path(where))
            return Result({}, judgment=judge(lesson, lesson.task(name), text))
        case StepJudged():
            return _step(request, folder)


def shelf_of(folder: Path) -> LessonShelf:
    """Read the lessons in a folder; unreadable ones are reported in `faults`.

    Raises
    ------
    InputError
        If the folder contains no lesson.
    """
    folders = lesson_folders(folder)
    if not folders:
        raise InputError(f"There is no lesson in {folder.name}: each lesson is a folder with a lesson.md.")
    read: list[tuple[int, LessonOutline]] = []
    faults: list[str] = []
    for each in folders:
        try:
            lesson = read_lesson(each)
            read.append((lesson.order, _outline(lesson)))
        except InputError as error:
            faults.append(f"{error.message} {error.advice}".strip())
    read.sort(key=lambda pair: (pair[0], pair[1].name))
    return LessonShelf(str(folder), tuple(outline for _, outline in read), tuple(faults))


def _outline(lesson: Lesson) -> LessonOutline:
    return LessonOutline(
        str(lesson.folder),
        lesson.name,
        lesson.title,
        lesson.minutes,
        lesson.needs,
        lesson.text,
        tuple(_step_outline(lesson, step) for step in lesson.steps),
        lesson.lifts,
    )


def _step_outline(lesson: Lesson, step: LessonStep) -> StepOutline:
    return StepOutline(
        step.title,
        step.text,
        step.question.ask if step.question is not None else "",
        _task_outline(lesson, step.task) if step.task is not None else None,
        step.scene is not None,
    )


def _task_outline(lesson: Lesson, task: Task) -> TaskOutline:
    ordered = task.kind == "order"
    try:
        return TaskOutline(
            task.name,
            task.kind,
            task.prompt,
            lesson.stage(task.stage).file,
            start(lesson, task),
            pieces(lesson, task) if ordered else (),
            frame(lesson, task) if ordered else None,
            tuple(_limits(task)),
            task.hints,
        )
    except InputError as error:
        raise InputError(f"{lesson.name}/lesson.md:{task.line}: {error.message}", advice=error.advice) from None


def _limits(task: Task) -> Iterator[str]:
    for counter, most in task.limits.items():
        yield f"{counter.replace('_', ' ')}: at most {most}"
    if task.modeled:
        gpu, times = task.modeled.get("gpu", DEFAULT_GPU).upper(), task.modeled["times"]
        yield f"modeled time on {gpu}, n = {task.modeled['n']:,}: at most {times:g} times the reference solution's"


def _show(request: ShowStep, folder: SharedFolder) -> Result:
    lesson = read_lesson(Path(request.folder))
    if not 0 <= request.step < len(lesson.steps):
        raise InputError(
            f"The lesson {lesson.name} has {len(lesson.steps)} steps; there is no step {request.step + 1}."
        )
    step = lesson.steps[request.step]
    if step.scene is None:
        raise InputError(f"The step {step.title!r} has no scene.")
    scene = _scene(lesson, step.scene, request.seed)
    if step.question is None and scene.tab != "step":
        return Result({}, scene=scene)
    try:
        played = play(lesson, step.scene, request.seed)
        asked = asked_of(lesson, step.question, played) if step.question is not None else None
    except InputError as error:
        line = step.question.line if step.question is not None else step.line
        raise InputError(f"{lesson.name}/lesson.md:{line}: {error.message}", advice=error.advice) from None
    shown = replace(scene, moment=played.moment, asked=asked)
    return replace(shared_recording(played.recording, folder), scene=shown)


def _scene(lesson: Lesson, scene: Scene, seed: int) -> ShownScene:
    parameters = chosen(scene, seed)
    if scene.stage:
        stage = lesson.stage(scene.stage)
        kernel = stage.launches[0].kernel
        title = f"{stage.file}: n = {parameters['n']}"
        return ShownScene(scene.tab, "", "", parameters, title, stage.file, kernel)
    pattern = find_pattern(scene.pattern)
    variant = pattern.variant(scene.variant)
    title = f"{pattern.title}: {variant.title}"
    kernel = variant.kernels[0] if variant.kernels else ""
    return ShownScene(scene.tab, pattern.name, variant.name, parameters, title, pattern.file_of(variant.name), kernel)


def _step(request: StepJudged, folder: SharedFolder) -> Result:
    lesson = read_lesson(Path(request.task.folder))
    task = lesson.task(request.task.task)
    failure = opened(lesson, task, request.task.text, request.judgment)
    if failure is None or request.judgment.case is None:
        raise InputError("The submission does not fail on any input.")
    stage = lesson.stage(task.stage)
    moment = min(failure.moment + 1, failure.recording.moments)  # right after the failing statement
    parameters = {"n": request.judgment.case.n}
    title = f"{stage.file}: {request.judgment.case}"
    scene = ShownScene("step", "", "", parameters, title, stage.file, stage.launches[0].kernel, moment)
    return replace(shared_recording(failure.recording, folder), scene=scene)
