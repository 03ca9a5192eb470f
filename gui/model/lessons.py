"""The state of the lessons: available lessons, current step, progress, and requests to the engine; without widgets.

Reading, recording and grading run in the simulator's side process.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from PyQt6.QtCore import QObject, pyqtSignal

from gpu.lessons.questions.asked import mark
from gpu.messages.judgments import Judgment
from gpu.messages.lessons import (
    AnswerMark,
    JudgeTask,
    LessonOutline,
    LessonShelf,
    ReadLessons,
    ShownScene,
    ShowStep,
    StepJudged,
    StepOutline,
    TaskOutline,
)
from gpu.messages.requests import Failure, Request, Result
from gui.model.jobs import Jobs
from gui.model.settings import SavedSettings

_READ, _SHOW, _JUDGE = "lessons", "lesson step", "lesson task"


@dataclass(frozen=True, eq=False)
class PlayedStep:
    """A step's scene and its recording.

    Parameters
    ----------
    scene : ShownScene
    path : str
        The recording's file; "" without a recording.
    handle : object
        Keeps the file alive.
    """

    scene: ShownScene
    path: str
    handle: object


class Lessons(QObject):
    """The available lessons and the user's progress.

    Parameters
    ----------
    jobs : callable
        Returns the queue of the simulator's side process.
    memory : SavedSettings
    """

    shelf_changed = pyqtSignal()
    """The list of lessons or their progress has changed."""
    step_opened = pyqtSignal()
    """A step was opened, or opened again: see `lesson`, `number` and `step`."""
    played = pyqtSignal(object)
    """PlayedStep: the scene of the current step."""
    judged = pyqtSignal(object, str)
    """Judgment, and the submission that it is about."""
    gone_wrong = pyqtSignal(object)
    """PlayedStep: the recording of the input on which a submission fails, at the moment of the failure."""
    failed = pyqtSignal(object)
    """Failure of reading lessons, of a step, or of grading."""
    busy_changed = pyqtSignal(bool)

    def __init__(self, jobs: Callable[[], Jobs], memory: SavedSettings, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._jobs, self._memory = jobs, memory
        self.shelves: dict[str, LessonShelf] = {}
        """The lessons by folder; the built-in lessons have the folder ""."""
        self.lesson: LessonOutline | None = None
        self.number = 0
        self.seed = 0
        self._seeds: dict[tuple[str, int], int] = {}
        self._request_number = 0
        self.showing = False
        """Whether a step's recording is pending."""
        self.judging = False
        """Whether a submission is being graded, or its failing input recorded."""

    # --- available lessons

    @property
    def lessons(self) -> tuple[LessonOutline, ...]:
        """All lessons that could be read, the built-in ones first."""
        return tuple(lesson for shelf in self.shelves.values() for lesson in shelf.lessons)

    @property
    def faults(self) -> tuple[str, ...]:
        """Errors of lessons that could not be read: file, line, reason."""
        return tuple(fault for shelf in self.shelves.values() for fault in shelf.faults)

    def prepare(self) -> None:
        """Read the built-in lessons at low priority, unless they have been read."""
        self._read("", priority=-1)

    def read(self, folder: str = "", *, then: Callable[[LessonShelf], None] | None = None) -> None:
        """Read the lessons of a folder; without a folder, the built-in and the previously opened ones."""
        if folder or "" not in self.shelves:
            self._read(folder, then=then, again=bool(folder))
        elif then is not None:
            then(self.shelves[""])

    def _read(
        self,
        folder: str,
        *,
        priority: int = 2,
        then: Callable[[LessonShelf], None] | None = None,
        again: bool = False,
    ) -> None:
        if folder in self.shelves and not again:
            return

        def on_result(event: Result | Failure) -> None:
            if isinstance(event, Failure):
                self._fail(event)
                return
            assert event.shelf is not None
            if folder:
                self._memory.remember_lessons(folder)
            self.shelves[folder] = event.shelf
            self._follow_texts(event.shelf)
            self.shelf_changed.emit()
            if then is not None:
                then(event.shelf)

        self._jobs().post(f"{_READ} {folder}", ReadLessons(folder), on_result, priority=priority)
        if not folder:
            for other in self._memory.lesson_folders:
                self._read_again(other)

    def _read_again(self, folder: str) -> None:
        """Read a folder that was opened in an earlier session; if it no longer exists, forget it silently."""

        def on_result(event: Result | Failure) -> None:
            if isinstance(event, Result) and event.shelf is not None:
                self.shelves.setdefault(folder, event.shelf)
                self.shelf_changed.emit()
            elif isinstance(event, Failure) and event.kind == "input":
                self._memory.forget_lessons(folder)

        self._jobs().post(f"{_READ} {folder}", ReadLessons(folder), on_result, priority=-1)

    def _follow_texts(self, shelf: LessonShelf) -> None:
        """Update the open lesson from its reloaded file."""
        if self.lesson is not None:
            for lesson in shelf.lessons:
                if lesson.folder == self.lesson.folder:
                    self.lesson = lesson
                    self.number = min(self.number, len(lesson.steps) - 1)

    def lifting(self, pattern: str, variant: str) -> LessonOutline | None:
        """Return the lesson about a variant's limit, or None."""
        return next((lesson for lesson in self.lessons if (pattern, variant) in lesson.lifts), None)

    # --- progress

    def _key(self, lesson: LessonOutline) -> str:
        builtin = self.shelves.get("")
        return lesson.name if builtin is not None and lesson in builtin.lessons else lesson.folder

    def done(self, lesson: LessonOutline) -> frozenset[int]:
        """Return the numbers of a lesson's completed steps."""
        titles = self._memory.lesson_steps(self._key(lesson))
        return frozenset(number for number, step in enumerate(lesson.steps) if step.title in titles)

    @property
    def progress(self) -> tuple[int, int]:
        """Completed and total steps of the built-in lessons, as far as known."""
        builtin = self.shelves.get("")
        if builtin is None:
            return self._memory.lesson_progress
        progress = (
            sum(len(self.done(each)) for each in builtin.lessons),
            sum(len(each.steps) for each in builtin.lessons),
        )
        if progress != self._memory.lesson_progress:
            self._memory.lesson_progress = progress
        return progress

    def finish_step(self) -> None:
        """Mark the current step as completed."""
        if self.lesson is None or self.number in self.done(self.lesson):
            return
        key = self._key(self.lesson)
        self._memory.store_lesson_steps(key, [*self._memory.lesson_steps(key), self.step.title])
        self.shelf_changed.emit()

    def begin_anew(self, lesson: LessonOutline) -> None:
        """Reset a lesson's progress and the submissions for its tasks."""
        key = self._key(lesson)
        self._memory.store_lesson_steps(key, [])
        for step in lesson.steps:
            if step.task is not None:
                self._memory.store_written(key, step.task.name, "")
        self.shelf_changed.emit()

    @property
    def for_class(self) -> bool:
        """Whether questions are shown to a class, without marking answers."""
        return self._memory.shows_class

    @for_class.setter
    def for_class(self, on: bool) -> None:
        self._memory.shows_class = on
        if self.lesson is not None and self.step.asks:
            self.step_opened.emit()
            self._show()

    # --- navigation

    @property
    def step(self) -> StepOutline:
        """The current step."""
        assert self.lesson is not None, "no lesson is open"
        return self.lesson.steps[self.number]

    @property
    def task(self) -> TaskOutline | None:
        """The task of the current step, if any."""
        return self.step.task if self.lesson is not None else None

    def open(self, lesson: LessonOutline, number: int | None = None) -> None:
        """Open a lesson at a step, by default at the first that is not completed."""
        done = self.done(lesson)
        first = next((each for each in range(len(lesson.steps)) if each not in done), 0)
        self.lesson = lesson
        self._go(first if number is None else number)

    def close(self) -> None:
        """Close the current lesson."""
        self._request_number += 1
        self.lesson = None
        self._set_busy(judging=False, showing=False)

    def next(self) -> None:
        """Go to the next step; a step without question or task counts as completed."""
        if self.lesson is None:
            return
        if not self.step.asks and self.step.task is None:
            self.finish_step()
        if self.number + 1 < len(self.lesson.steps):
            self._go(self.number + 1)

    def back(self) -> None:
        """Go to the previous step."""
        if self.lesson is not None and self.number:
            self._go(self.number - 1)

    def retry(self) -> None:
        """Repeat the step's question with another input."""
        if self.lesson is not None:
            place = self.lesson.folder, self.number
            self._seeds[place] = self._seeds.get(place, 0) + 1
            self._go(self.number)

    def _go(self, number: int) -> None:
        assert self.lesson is not None
        self.number = number
        self.seed = self._seeds.get((self.lesson.folder, number), 0)
        self._request_number += 1
        if self.judging:
            self.stop()
        self.step_opened.emit()
        self._show()

    def _show(self) -> None:
        """Request the step's scene."""
        lesson = self.lesson
        if lesson is None or not self.step.shows or self.step.task is not None:
            self._set_busy(judging=False, showing=False)
            return
        self._set_busy(judging=False, showing=True)
        self._post(_SHOW, ShowStep(lesson.folder, self.number, self.seed), self._on_scene)

    def show_again(self) -> None:
        """Request the step's scene again."""
        self._request_number += 1
        self._show()

    def _on_scene(self, event: Result) -> None:
        self._set_busy(judging=False, showing=False)
        assert event.scene is not None
        self.played.emit(PlayedStep(event.scene, event.path, event.arrays))

    # --- answers and tasks

    def mark(self, scene: ShownScene, given: Any) -> AnswerMark:
        """Mark an answer, and complete the step if the answer is right."""
        assert scene.asked is not None
        result = mark(scene.asked, given)
        if result.right:
            self.finish_step()
        return result

    def written(self, task: TaskOutline) -> str:
        """Return the saved submission for a task of the current lesson, or ""."""
        assert self.lesson is not None
        return self._memory.written(self._key(self.lesson), task.name)

    def keep_written(self, task: TaskOutline, text: str) -> None:
        """Save the submission for a task of the current lesson."""
        if self.lesson is not None:
            self._memory.store_written(self._key(self.lesson), task.name, "" if text == task.start else text)

    def judge(self, text: str) -> None:
        """Grade a submission for the current task."""
        lesson, task = self.lesson, self.task
        if lesson is None or task is None:
            return
        self._request_number += 1
        self._set_busy(judging=True, showing=False)

        def take(event: Result) -> None:
            self._set_busy(judging=False, showing=False)
            assert event.judgment is not None
            if event.judgment.accepted:
                self.finish_step()
            self.judged.emit(event.judgment, text)

        self._post(_JUDGE, JudgeTask(lesson.folder, task.name, text), take)

    def show_failing(self, judgment: Judgment, text: str) -> None:
        """Record the smallest input on which a submission fails."""
        lesson, task = self.lesson, self.task
        if lesson is None or task is None or judgment.case is None:
            return
        self._request_number += 1
        self._set_busy(judging=True, showing=False)

        def take(event: Result) -> None:
            self._set_busy(judging=False, showing=False)
            assert event.scene is not None
            self.gone_wrong.emit(PlayedStep(event.scene, event.path, event.arrays))

        self._post(_JUDGE, StepJudged(JudgeTask(lesson.folder, task.name, text), judgment), take)

    @property
    def busy(self) -> bool:
        """Whether a request is running that can be stopped."""
        return self.judging or self.showing

    def stop(self) -> bool:
        """Stop the running request; return whether there was one."""
        if not self.busy:
            return False
        self._request_number += 1
        self._jobs().stop()
        self._set_busy(judging=False, showing=False)
        return True

    def _post(self, channel: str, request: Request, take: Callable[[Result], None]) -> None:
        number = self._request_number

        def on_result(event: Result | Failure) -> None:
            if number != self._request_number:
                return
            if isinstance(event, Result):
                take(event)
            else:
                self._set_busy(judging=False, showing=False)
                self._fail(event)

        self._jobs().post(channel, request, on_result, priority=2)

    def _fail(self, failure: Failure) -> None:
        if failure.kind != "cancelled":
            self.failed.emit(failure)

    def _set_busy(self, *, judging: bool, showing: bool) -> None:
        if (judging, showing) != (self.judging, self.showing):
            self.judging, self.showing = judging, showing
            self.busy_changed.emit(self.busy)
