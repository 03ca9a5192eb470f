"""The state of the lessons: available lessons, current step, progress, and requests to the engine; without widgets.

Reading, recording and grading run in the simulator's side process.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from PyQt6.QtCore import QObject, pyqtSignal

from gpu.lessons.questions.evaluation import mark_answer
from gpu.messages.events import Failure
from gpu.messages.judgments import Judgment
from gpu.messages.lessons import (
    AnswerMark,
    JudgeTask,
    LessonOutline,
    LessonShelf,
    ReadLessons,
    SceneRecording,
    ShowStep,
    StepFailure,
    StepOutline,
    StepScene,
    TaskOutline,
)
from gpu.messages.requests import R, Request
from gui.model.request_queue import RequestQueue
from gui.model.settings import SavedSettings

_READ_CHANNEL, _SHOW_CHANNEL, _JUDGE_CHANNEL = "lessons", "lesson step", "lesson task"


class Lessons(QObject):
    """The available lessons and the user's progress.

    Parameters
    ----------
    jobs : callable
        Returns the queue of the simulator's side process.
    """

    shelf_changed = pyqtSignal()
    """The list of lessons or their progress has changed."""
    step_opened = pyqtSignal()
    """A step was opened, or opened again: see `lesson`, `step_number` and `step`."""
    scene_ready = pyqtSignal(object)
    """SceneRecording: the scene of the current step."""
    submission_graded = pyqtSignal(object, str)
    """Judgment, and the submission that it is about."""
    failing_input_recorded = pyqtSignal(object)
    """SceneRecording: the recording of the input on which a submission fails, at the moment of the failure."""
    failed = pyqtSignal(object)
    """Failure of reading lessons, of a step, or of grading."""
    busy_changed = pyqtSignal(bool)

    def __init__(
        self, jobs: Callable[[], RequestQueue], saved_settings: SavedSettings, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._jobs, self._saved_settings = jobs, saved_settings
        self.shelves: dict[str, LessonShelf] = {}
        """The lessons by folder; the built-in lessons have the folder ""."""
        self.lesson: LessonOutline | None = None
        self.step_number = 0
        self.seed = 0
        self._seeds: dict[tuple[str, int], int] = {}
        self._request_number = 0
        self.is_recording = False
        """Whether a step's recording is pending."""
        self.is_grading = False
        """Whether a submission is being graded, or its failing input recorded."""

    # --- available lessons

    @property
    def lessons(self) -> tuple[LessonOutline, ...]:
        """All lessons that could be read, the built-in ones first."""
        return tuple(lesson for shelf in self.shelves.values() for lesson in shelf.lessons)

    @property
    def faults(self) -> tuple[str, ...]:
        """Errors of lessons that could not be read: file, line, reason."""
        return tuple(fault for shelf in self.shelves.values() for fault in shelf.errors)

    def preload_builtin_lessons(self) -> None:
        """Read the built-in lessons at low priority, unless they have been read."""
        self._request_lessons("", priority=-1)

    def read_lessons(self, folder: str = "", *, on_read: Callable[[LessonShelf], None] | None = None) -> None:
        """Read the lessons of a folder; without a folder, the built-in and the previously opened ones."""
        if folder or "" not in self.shelves:
            self._request_lessons(folder, on_read=on_read, reload=bool(folder))
        elif on_read is not None:
            on_read(self.shelves[""])

    def _request_lessons(
        self,
        folder: str,
        *,
        priority: int = 2,
        on_read: Callable[[LessonShelf], None] | None = None,
        reload: bool = False,
    ) -> None:
        if folder in self.shelves and not reload:
            return

        def on_result(event: LessonShelf | Failure) -> None:
            if isinstance(event, Failure):
                self._report_failure(event)
                return
            if folder:
                self._saved_settings.add_lesson_folder(folder)
            self.shelves[folder] = event
            self._update_open_lesson(event)
            self.shelf_changed.emit()
            if on_read is not None:
                on_read(event)

        self._jobs().post(f"{_READ_CHANNEL} {folder}", ReadLessons(folder), on_result, priority=priority)
        if not folder:
            for other in self._saved_settings.lesson_folders:
                self._restore_folder(other)

    def _restore_folder(self, folder: str) -> None:
        """Read a folder that was opened in an earlier session; if it no longer exists, forget it silently."""

        def on_result(event: LessonShelf | Failure) -> None:
            if isinstance(event, LessonShelf):
                self.shelves.setdefault(folder, event)
                self.shelf_changed.emit()
            elif event.kind == "input":
                self._saved_settings.remove_lesson_folder(folder)

        self._jobs().post(f"{_READ_CHANNEL} {folder}", ReadLessons(folder), on_result, priority=-1)

    def _update_open_lesson(self, shelf: LessonShelf) -> None:
        """Update the open lesson from its reloaded file."""
        if self.lesson is not None:
            for lesson in shelf.lessons:
                if lesson.folder == self.lesson.folder:
                    self.lesson = lesson
                    self.step_number = min(self.step_number, len(lesson.steps) - 1)

    def find_lesson_about(self, pattern: str, variant: str) -> LessonOutline | None:
        """Return the lesson about a variant's limit, or None."""
        return next((lesson for lesson in self.lessons if (pattern, variant) in lesson.unlocked_variants), None)

    # --- progress

    def _storage_key(self, lesson: LessonOutline) -> str:
        builtin = self.shelves.get("")
        return lesson.name if builtin is not None and lesson in builtin.lessons else lesson.folder

    def find_completed_steps(self, lesson: LessonOutline) -> frozenset[int]:
        """Return the numbers of a lesson's completed steps."""
        titles = self._saved_settings.lesson_steps(self._storage_key(lesson))
        return frozenset(number for number, step in enumerate(lesson.steps) if step.title in titles)

    def find_skipped_steps(self, lesson: LessonOutline) -> tuple[int, ...]:
        """Return the numbers of the steps with a question or task that is not completed."""
        completed = self.find_completed_steps(lesson)
        return tuple(
            number
            for number, step in enumerate(lesson.steps)
            if (step.question_kind or step.task is not None) and number not in completed
        )

    @property
    def progress(self) -> tuple[int, int]:
        """Completed and total steps of the built-in lessons, as far as known."""
        builtin = self.shelves.get("")
        if builtin is None:
            return self._saved_settings.lesson_progress
        progress = (
            sum(len(self.find_completed_steps(lesson)) for lesson in builtin.lessons),
            sum(len(lesson.steps) for lesson in builtin.lessons),
        )
        if progress != self._saved_settings.lesson_progress:
            self._saved_settings.lesson_progress = progress
        return progress

    def finish_step(self) -> None:
        """Mark the current step as completed."""
        if self.lesson is None or self.step_number in self.find_completed_steps(self.lesson):
            return
        key = self._storage_key(self.lesson)
        self._saved_settings.store_lesson_steps(key, [*self._saved_settings.lesson_steps(key), self.step.title])
        self.shelf_changed.emit()

    @property
    def for_class(self) -> bool:
        """Whether questions are shown to a class, without marking answers."""
        return self._saved_settings.shows_class

    @for_class.setter
    def for_class(self, on: bool) -> None:
        self._saved_settings.shows_class = on
        if self.lesson is not None and self.step.question_kind:
            self.step_opened.emit()
            self._request_scene()

    # --- navigation

    @property
    def step(self) -> StepOutline:
        """The current step."""
        assert self.lesson is not None, "no lesson is open"
        return self.lesson.steps[self.step_number]

    @property
    def task(self) -> TaskOutline | None:
        """The task of the current step, if any."""
        return self.step.task if self.lesson is not None else None

    def open_lesson(self, lesson: LessonOutline, number: int | None = None) -> None:
        """Open a lesson at a step, by default at the first that is not completed."""
        done = self.find_completed_steps(lesson)
        first = next((index for index in range(len(lesson.steps)) if index not in done), 0)
        self.lesson = lesson
        self._open_step(first if number is None else number)

    def close_lesson(self) -> None:
        """Close the current lesson."""
        self._request_number += 1
        self.lesson = None
        self._set_busy(judging=False, showing=False)

    def open_next_step(self) -> None:
        """Go to the next step; a step without question or task counts as completed."""
        if self.lesson is None:
            return
        if not self.step.question_kind and self.step.task is None:
            self.finish_step()
        if self.step_number + 1 < len(self.lesson.steps):
            self._open_step(self.step_number + 1)

    def open_previous_step(self) -> None:
        """Go to the previous step."""
        if self.lesson is not None and self.step_number:
            self._open_step(self.step_number - 1)

    def retry_question(self) -> None:
        """Repeat the step's question with another input."""
        if self.lesson is not None:
            key = self.lesson.folder, self.step_number
            self._seeds[key] = self._seeds.get(key, 0) + 1
            self._open_step(self.step_number)

    def _open_step(self, number: int) -> None:
        assert self.lesson is not None
        self.step_number = number
        self.seed = self._seeds.get((self.lesson.folder, number), 0)
        self._request_number += 1
        if self.is_grading:
            self.stop()
        self.step_opened.emit()
        self._request_scene()

    def _request_scene(self) -> None:
        """Request the step's scene."""
        lesson = self.lesson
        if lesson is None or not self.step.has_scene or self.step.task is not None:
            self._set_busy(judging=False, showing=False)
            return
        self._set_busy(judging=False, showing=True)
        self._post_request(_SHOW_CHANNEL, ShowStep(lesson.folder, self.step_number, self.seed), self._on_scene)

    def _on_scene(self, scene_recording: SceneRecording) -> None:
        self._set_busy(judging=False, showing=False)
        self.scene_ready.emit(scene_recording)

    # --- answers and tasks

    def mark_answer(self, scene: StepScene, answer: Any) -> AnswerMark:
        """Mark an answer, and complete the step if the answer is right."""
        assert scene.question is not None
        result = mark_answer(scene.question, answer)
        if result.is_correct:
            self.finish_step()
        return result

    def load_submission(self, task: TaskOutline) -> str:
        """Return the saved submission for a task of the current lesson, or ""."""
        assert self.lesson is not None
        return self._saved_settings.load_submission(self._storage_key(self.lesson), task.name)

    def save_submission(self, task: TaskOutline, text: str) -> None:
        """Save the submission for a task of the current lesson."""
        if self.lesson is not None:
            self._saved_settings.store_submission(
                self._storage_key(self.lesson), task.name, "" if text == task.start else text
            )

    def grade_submission(self, text: str) -> None:
        """Grade a submission for the current task."""
        lesson, task = self.lesson, self.task
        if lesson is None or task is None:
            return
        self._request_number += 1
        self._set_busy(judging=True, showing=False)

        def on_judgment(judgment: Judgment) -> None:
            self._set_busy(judging=False, showing=False)
            if judgment.accepted:
                self.finish_step()
            self.submission_graded.emit(judgment, text)

        self._post_request(_JUDGE_CHANNEL, JudgeTask(lesson.folder, task.name, text), on_judgment)

    def record_failing_input(self, judgment: Judgment, text: str) -> None:
        """Record the smallest input on which a submission fails."""
        lesson, task = self.lesson, self.task
        if lesson is None or task is None or judgment.case is None:
            return
        self._request_number += 1
        self._set_busy(judging=True, showing=False)

        def on_recording(scene_recording: SceneRecording) -> None:
            self._set_busy(judging=False, showing=False)
            self.failing_input_recorded.emit(scene_recording)

        self._post_request(
            _JUDGE_CHANNEL, StepFailure(JudgeTask(lesson.folder, task.name, text), judgment), on_recording
        )

    @property
    def busy(self) -> bool:
        """Whether a request is running that can be stopped."""
        return self.is_grading or self.is_recording

    def stop(self) -> bool:
        """Stop the running request; return whether there was one."""
        if not self.busy:
            return False
        self._request_number += 1
        self._jobs().stop()
        self._set_busy(judging=False, showing=False)
        return True

    def _post_request(self, channel: str, request: Request[R], on_success: Callable[[R], None]) -> None:
        number = self._request_number

        def on_result(event: R | Failure) -> None:
            if number != self._request_number:
                return
            if isinstance(event, Failure):
                self._set_busy(judging=False, showing=False)
                self._report_failure(event)
            else:
                on_success(event)

        self._jobs().post(channel, request, on_result, priority=2)

    def _report_failure(self, failure: Failure) -> None:
        if failure.kind != "cancelled":
            self.failed.emit(failure)

    def _set_busy(self, *, judging: bool, showing: bool) -> None:
        if (judging, showing) != (self.is_grading, self.is_recording):
            self.is_grading, self.is_recording = judging, showing
            self.busy_changed.emit(self.busy)
