"""Lessons as the window works through them: what there is, where one is, what has been done, what the engine is asked.

It knows no widget. Everything that takes time is asked of the simulator's own process.
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
    """What a step shows, and the recording of it.

    Parameters
    ----------
    scene : ShownScene
    path : str
        The recording's file; "" where there is none.
    handle : object
        What keeps the file.
    """

    scene: ShownScene
    path: str
    handle: object


class Lessons(QObject):
    """What there is to learn, and how far one has come.

    Parameters
    ----------
    jobs : callable
        Returns the queue of the simulator's own process.
    memory : SavedSettings
    """

    shelf_changed = pyqtSignal()
    """Other lessons are there, or more of one has been done."""
    step_opened = pyqtSignal()
    """Another step, or the same anew: `lesson`, `number` and `step` say which."""
    played = pyqtSignal(object)
    """PlayedStep: what the step that is open shows."""
    judged = pyqtSignal(object, str)
    """Judgment, and the text that was judged."""
    gone_wrong = pyqtSignal(object)
    """PlayedStep: the input on which a text fails, at the moment at which it does."""
    failed = pyqtSignal(object)
    """Failure: of reading lessons, of a step, or of judging."""
    busy_changed = pyqtSignal(bool)

    def __init__(self, jobs: Callable[[], Jobs], memory: SavedSettings, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._jobs, self._memory = jobs, memory
        self.shelves: dict[str, LessonShelf] = {}
        """By folder; "" is Lockstep's own."""
        self.lesson: LessonOutline | None = None
        self.number = 0
        self.seed = 0
        self._seeds: dict[tuple[str, int], int] = {}
        self._asked_for = 0
        self.showing = False
        """Whether a step's recording is on its way."""
        self.judging = False
        """Whether a text is judged, or the input on which it fails is recorded."""

    # --- what there is

    @property
    def lessons(self) -> tuple[LessonOutline, ...]:
        """All lessons that could be read, Lockstep's own first."""
        return tuple(lesson for shelf in self.shelves.values() for lesson in shelf.lessons)

    @property
    def faults(self) -> tuple[str, ...]:
        """What is wrong with lessons that could not be read: file, line, reason."""
        return tuple(fault for shelf in self.shelves.values() for fault in shelf.faults)

    def prepare(self) -> None:
        """Read the lessons when nothing else is to be done, unless they have been read."""
        self._read("", priority=-1)

    def read(self, folder: str = "", *, then: Callable[[LessonShelf], None] | None = None) -> None:
        """Read the lessons of a folder; Lockstep's own, and those that were opened before, where none is said."""
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

        def done(event: Result | Failure) -> None:
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

        self._jobs().post(f"{_READ} {folder}", ReadLessons(folder), done, priority=priority)
        if not folder:
            for other in self._memory.lesson_folders:
                self._read_again(other)

    def _read_again(self, folder: str) -> None:
        """Read a folder that was opened the last time; where it has gone nobody hears of it."""

        def done(event: Result | Failure) -> None:
            if isinstance(event, Result) and event.shelf is not None:
                self.shelves.setdefault(folder, event.shelf)
                self.shelf_changed.emit()
            elif isinstance(event, Failure) and event.kind == "input":
                self._memory.forget_lessons(folder)

        self._jobs().post(f"{_READ} {folder}", ReadLessons(folder), done, priority=-1)

    def _follow_texts(self, shelf: LessonShelf) -> None:
        """Let the lesson that is open be as its file is now."""
        if self.lesson is not None:
            for lesson in shelf.lessons:
                if lesson.folder == self.lesson.folder:
                    self.lesson = lesson
                    self.number = min(self.number, len(lesson.steps) - 1)

    def lifting(self, pattern: str, variant: str) -> LessonOutline | None:
        """Return the lesson that lifts a rung's limit; None where there is none."""
        return next((lesson for lesson in self.lessons if (pattern, variant) in lesson.lifts), None)

    # --- how far one has come

    def _key(self, lesson: LessonOutline) -> str:
        own = self.shelves.get("")
        return lesson.name if own is not None and lesson in own.lessons else lesson.folder

    def done(self, lesson: LessonOutline) -> frozenset[int]:
        """Return the numbers of a lesson's steps that have been done."""
        titles = self._memory.lesson_steps(self._key(lesson))
        return frozenset(number for number, step in enumerate(lesson.steps) if step.title in titles)

    @property
    def progress(self) -> tuple[int, int]:
        """How many steps of how many have been done: of Lockstep's own lessons, as far as is known."""
        own = self.shelves.get("")
        if own is None:
            return self._memory.lesson_progress
        found = sum(len(self.done(each)) for each in own.lessons), sum(len(each.steps) for each in own.lessons)
        if found != self._memory.lesson_progress:
            self._memory.lesson_progress = found
        return found

    def finish_step(self) -> None:
        """Remember that the step that is open has been done."""
        if self.lesson is None or self.number in self.done(self.lesson):
            return
        key = self._key(self.lesson)
        self._memory.store_lesson_steps(key, [*self._memory.lesson_steps(key), self.step.title])
        self.shelf_changed.emit()

    def begin_anew(self, lesson: LessonOutline) -> None:
        """Forget what has been done of a lesson, and what was written for its tasks."""
        key = self._key(lesson)
        self._memory.store_lesson_steps(key, [])
        for step in lesson.steps:
            if step.task is not None:
                self._memory.store_written(key, step.task.name, "")
        self.shelf_changed.emit()

    @property
    def for_class(self) -> bool:
        """Whether questions are shown to a class, and nothing is marked."""
        return self._memory.shows_class

    @for_class.setter
    def for_class(self, on: bool) -> None:
        self._memory.shows_class = on
        if self.lesson is not None and self.step.asks:
            self.step_opened.emit()
            self._show()

    # --- where one is

    @property
    def step(self) -> StepOutline:
        """The step that is open."""
        assert self.lesson is not None, "no lesson is open"
        return self.lesson.steps[self.number]

    @property
    def task(self) -> TaskOutline | None:
        """The task of the step that is open."""
        return self.step.task if self.lesson is not None else None

    def open(self, lesson: LessonOutline, number: int | None = None) -> None:
        """Open a lesson at a step, or at the first that has not been done."""
        done = self.done(lesson)
        first = next((each for each in range(len(lesson.steps)) if each not in done), 0)
        self.lesson = lesson
        self._go(first if number is None else number)

    def close(self) -> None:
        """Leave the lesson that is open."""
        self._asked_for += 1
        self.lesson = None
        self._set_busy(judging=False, showing=False)

    def next(self) -> None:
        """Go to the next step; of one that only tells, it has been read by that."""
        if self.lesson is None:
            return
        if not self.step.asks and self.step.task is None:
            self.finish_step()
        if self.number + 1 < len(self.lesson.steps):
            self._go(self.number + 1)

    def back(self) -> None:
        """Go to the step before."""
        if self.lesson is not None and self.number:
            self._go(self.number - 1)

    def retry(self) -> None:
        """Ask the question of the step anew, of another input."""
        if self.lesson is not None:
            place = self.lesson.folder, self.number
            self._seeds[place] = self._seeds.get(place, 0) + 1
            self._go(self.number)

    def _go(self, number: int) -> None:
        assert self.lesson is not None
        self.number = number
        self.seed = self._seeds.get((self.lesson.folder, number), 0)
        self._asked_for += 1
        if self.judging:
            self.stop()
        self.step_opened.emit()
        self._show()

    def _show(self) -> None:
        """Ask for what the step shows."""
        lesson = self.lesson
        if lesson is None or not self.step.shows or self.step.task is not None:
            self._set_busy(judging=False, showing=False)
            return
        self._set_busy(judging=False, showing=True)
        self._post(_SHOW, ShowStep(lesson.folder, self.number, self.seed), self._take_scene)

    def show_again(self) -> None:
        """Ask once more for what the step shows."""
        self._asked_for += 1
        self._show()

    def _take_scene(self, event: Result) -> None:
        self._set_busy(judging=False, showing=False)
        assert event.scene is not None
        self.played.emit(PlayedStep(event.scene, event.path, event.arrays))

    # --- answers and tasks

    def mark(self, scene: ShownScene, given: Any) -> AnswerMark:
        """Compare an answer with what happened, and remember the step where it is right."""
        assert scene.asked is not None
        found = mark(scene.asked, given)
        if found.right:
            self.finish_step()
        return found

    def written(self, task: TaskOutline) -> str:
        """Return what was last written for a task of the lesson that is open; "" for nothing."""
        assert self.lesson is not None
        return self._memory.written(self._key(self.lesson), task.name)

    def keep_written(self, task: TaskOutline, text: str) -> None:
        """Remember what is written for a task of the lesson that is open."""
        if self.lesson is not None:
            self._memory.store_written(self._key(self.lesson), task.name, "" if text == task.start else text)

    def judge(self, text: str) -> None:
        """Have a text judged that was written for the task that is open."""
        lesson, task = self.lesson, self.task
        if lesson is None or task is None:
            return
        self._asked_for += 1
        self._set_busy(judging=True, showing=False)

        def take(event: Result) -> None:
            self._set_busy(judging=False, showing=False)
            assert event.judgment is not None
            if event.judgment.accepted:
                self.finish_step()
            self.judged.emit(event.judgment, text)

        self._post(_JUDGE, JudgeTask(lesson.folder, task.name, text), take)

    def show_failing(self, judgment: Judgment, text: str) -> None:
        """Record the smallest input on which a text fails."""
        lesson, task = self.lesson, self.task
        if lesson is None or task is None or judgment.case is None:
            return
        self._asked_for += 1
        self._set_busy(judging=True, showing=False)

        def take(event: Result) -> None:
            self._set_busy(judging=False, showing=False)
            assert event.scene is not None
            self.gone_wrong.emit(PlayedStep(event.scene, event.path, event.arrays))

        self._post(_JUDGE, StepJudged(JudgeTask(lesson.folder, task.name, text), judgment), take)

    @property
    def busy(self) -> bool:
        """Whether anything is under way that can be stopped."""
        return self.judging or self.showing

    def stop(self) -> bool:
        """Stop what is under way; return whether there was anything."""
        if not self.busy:
            return False
        self._asked_for += 1
        self._jobs().stop()
        self._set_busy(judging=False, showing=False)
        return True

    def _post(self, channel: str, request: Request, take: Callable[[Result], None]) -> None:
        number = self._asked_for

        def done(event: Result | Failure) -> None:
            if number != self._asked_for:
                return
            if isinstance(event, Result):
                take(event)
            else:
                self._set_busy(judging=False, showing=False)
                self._fail(event)

        self._jobs().post(channel, request, done, priority=2)

    def _fail(self, failure: Failure) -> None:
        if failure.kind != "cancelled":
            self.failed.emit(failure)

    def _set_busy(self, *, judging: bool, showing: bool) -> None:
        if (judging, showing) != (self.judging, self.showing):
            self.judging, self.showing = judging, showing
            self.busy_changed.emit(self.busy)
