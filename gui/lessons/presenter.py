"""Show lessons: the list of lessons, the pane of the current one, and the page next to it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from PyQt6.QtCore import QObject, pyqtSignal
from PyQt6.QtWidgets import QFileDialog, QStackedWidget, QWidget

from gpu.base.errors import Diagnostic
from gpu.messages.events import Failure
from gpu.messages.judgments import Judgment
from gpu.messages.kernels import CheckSource
from gpu.messages.lessons import LessonOutline, LessonShelf, SceneRecording, StepScene
from gui.lessons.page import LessonPage
from gui.lessons.pane import LessonPane
from gui.lessons.shelf import ShelfView
from gui.model.lessons import Lessons
from gui.model.request_queue import RequestQueue
from gui.model.settings import SavedSettings
from gui.qt.timers import create_single_shot_timer

LESSON_FILE = "lesson.md"
SAVE_DELAY_MS = 400
"""How long a submission must be unchanged before it is saved."""


class LessonPresenter(QObject):
    """Open lessons, and show the current step on the lesson page or on a pattern's page.

    Parameters
    ----------
    stack : QStackedWidget
        The stack that shows the pages, among others.
    jobs : callable
        Returns the queue of the simulator's side process.
    show_scene : callable
        Shows a scene on its pattern's page, and returns the page.
    """

    lesson_shown = pyqtSignal(str)
    """The title of the lesson shown, or "" for the list of lessons."""
    warned = pyqtSignal(str, str)
    """A problem, and advice."""
    sequence_requested = pyqtSignal(object)
    """Path of a sequence for a lecture."""

    def __init__(
        self,
        stack: QStackedWidget,
        jobs: Callable[[], RequestQueue],
        saved_settings: SavedSettings,
        show_scene: Callable[[StepScene], QWidget],
    ) -> None:
        super().__init__(stack)
        self._stack, self._jobs, self._show_scene = stack, jobs, show_scene
        self.lessons = Lessons(jobs, saved_settings, self)
        self.pane = LessonPane(self.lessons)
        self._page: LessonPage | None = None
        self._shelf: ShelfView | None = None
        self._pattern_page: QWidget | None = None
        self._scene: StepScene | None = None
        self._submission_lesson: LessonOutline | None = None
        self._save_timer = create_single_shot_timer(SAVE_DELAY_MS, self._save_submission, self)
        self.lessons.step_opened.connect(self._show_step)
        self.lessons.scene_ready.connect(self._play_step)
        self.lessons.submission_graded.connect(self._on_judgment)
        self.lessons.failing_input_recorded.connect(self._play_failing_input)
        self.lessons.failed.connect(self._show_failure)
        self.pane.closed.connect(self.close_lesson)
        self.pane.question.moment_requested.connect(self._show_moment)
        self.pane.task.grading_requested.connect(self.grade_submission)
        stack.currentChanged.connect(lambda _: self._update_pane_visibility())

    # --- visible parts

    @property
    def page(self) -> LessonPage:
        """The page of scenes and tasks, created on first use."""
        if self._page is None:
            self._page = page = LessonPage(self._jobs, self._check_source)
            self._stack.addWidget(page)
            page.writing.changed.connect(self._on_edit)
            page.explore_requested.connect(self.show_pattern_page)
            page.step.element_clicked.connect(self.pane.question.handle_cell_click)
            page.step.lane_clicked.connect(self.pane.question.handle_thread_click)
            self.pane.question.highlight_requested.connect(page.step.panes.arrays.highlight_elements)
            self.pane.task.reset_requested.connect(page.writing.restore_original)
        return self._page

    @property
    def shelf(self) -> ShelfView:
        """The list of lessons, created on first use."""
        if self._shelf is None:
            self._shelf = ShelfView(self.lessons)
            self._stack.addWidget(self._shelf)
            self._shelf.lesson_requested.connect(self.open_lesson)
            self._shelf.folder_requested.connect(self.choose_folder)
            self._shelf.sequence_requested.connect(self.sequence_requested)
        return self._shelf

    @property
    def visible_page(self) -> LessonPage | None:
        """The page, if it is visible."""
        return self._page if self._page is not None and self._stack.currentWidget() is self._page else None

    @property
    def shows_shelf(self) -> bool:
        """Whether the list of lessons is visible."""
        return self._shelf is not None and self._stack.currentWidget() is self._shelf

    @property
    def shows_lessons(self) -> bool:
        """Whether the list of lessons or the lesson page is visible."""
        return self.shows_shelf or self.visible_page is not None

    def _update_pane_visibility(self) -> None:
        """Show the pane only next to a page of the current lesson."""
        page = self._stack.currentWidget()
        is_lesson = page is not None and page in (self._page, self._pattern_page)
        self.pane.setVisible(self.lessons.lesson is not None and is_lesson)

    # --- opening and closing

    def show_current_lesson(self) -> None:
        """Show the current lesson; if it is visible already, or none is open, the list of lessons."""
        lesson = self.lessons.lesson
        if lesson is None or self.pane.isVisible():
            self.show_shelf()
        else:
            self._stack.setCurrentWidget(self._pattern_page or self.page)
            self.lesson_shown.emit(lesson.title)

    def show_shelf(self) -> None:
        """Show the list of lessons."""
        self.lessons.read_lessons()
        self._stack.setCurrentWidget(self.shelf)
        self.lesson_shown.emit("")

    def close_lesson(self) -> None:
        """Close the current lesson, and show the list of lessons."""
        self._save_submission()
        self.lessons.close_lesson()
        self._pattern_page = None
        self.show_shelf()

    def open_lesson(self, lesson: LessonOutline, number: int | None = None) -> None:
        """Open a lesson at a step, by default at the first that is not completed."""
        self._save_submission()
        done = self.lessons.find_completed_steps(lesson)
        if number is None and len(done) == len(lesson.steps):
            number = 0
        self.lessons.open_lesson(lesson, number)

    def open_first_lesson(self) -> None:
        """Open the first built-in lesson at its first step."""
        self.lessons.read_lessons(on_read=lambda shelf: self.open_lesson(shelf.lessons[0], 0))

    def open_lesson_about(self, pattern: str, variant: str) -> None:
        """Open the lesson about a variant's limit."""
        lesson = self.lessons.find_lesson_about(pattern, variant)
        if lesson is not None:
            self.open_lesson(lesson)

    def choose_folder(self) -> None:
        """Ask for a folder of lessons, and open it."""
        name = QFileDialog.getExistingDirectory(self._stack, "Open lessons", str(Path.home()))
        if name:
            self.open_folder(Path(name))

    def contains_lessons(self, path: Path) -> bool:
        """Return whether a path contains lessons: a folder, or a lesson's text file."""
        return os.path.isdir(path) or path.name == LESSON_FILE

    def open_folder(self, path: Path) -> None:
        """Open a folder of lessons, or the lesson of that folder or file."""
        folder = path if os.path.isdir(path) else path.parent

        def show_lessons(shelf: LessonShelf) -> None:
            if len(shelf.lessons) == 1 and not shelf.errors:
                self.open_lesson(shelf.lessons[0], 0)
            else:
                self.show_shelf()

        self.lessons.read_lessons()
        self.lessons.read_lessons(str(folder.absolute()), on_read=show_lessons)

    def show_pattern_page(self) -> None:
        """Show the current scene on its pattern's page."""
        if self._scene is not None and self._scene.pattern:
            self._pattern_page = self._show_scene(self._scene)
            self._update_pane_visibility()

    # --- the current step

    def _show_step(self) -> None:
        lesson, step = self.lessons.lesson, self.lessons.step
        assert lesson is not None
        self._save_submission()
        self._pattern_page, self._scene = None, None
        page = self.page
        if step.task is not None:
            page.show_task(step.task, self.lessons.load_submission(step.task))
            self._submission_lesson = lesson
        else:
            page.leave_task()
            if not step.has_scene:
                page.show_message("This step has only text.")
        self._stack.setCurrentWidget(page)
        self._update_pane_visibility()
        self.lesson_shown.emit(lesson.title)

    def _play_step(self, playable: SceneRecording) -> None:
        self._scene = playable.scene
        if playable.scene.tab == "step":
            self.page.play_step(playable, explored=bool(playable.scene.pattern))
        else:
            self._pattern_page = self._show_scene(playable.scene)
            self._update_pane_visibility()
        if playable.scene.question is not None:
            self.pane.show_question(playable.scene)

    def _show_moment(self, moment: int) -> None:
        if self.visible_page is not None and self.visible_page.stepping:
            self.visible_page.step.show_hidden_results()
            self.visible_page.step.go_to_moment(moment)
        self.pane.scroll_to_verdict()

    def _show_failure(self, failure: Failure) -> None:
        task = self.lessons.task if self.lessons.lesson is not None else None
        if self.visible_page is None or task is not None:
            self.warned.emit(failure.message, failure.advice)
        else:
            self.visible_page.show_failure(failure)

    # --- tasks

    def grade_submission(self) -> None:
        """Grade the current submission."""
        self._save_submission()
        self.pane.task.clear_verdict()
        self.lessons.grade_submission(self.page.writing.text)

    def _on_judgment(self, judgment: Judgment, text: str) -> None:
        if self.visible_page is not None:
            self.visible_page.writing.show_judgment(judgment, text)
            self.pane.task.show_judgment(judgment, text)
            self.pane.scroll_to_verdict()

    def _play_failing_input(self, playable: SceneRecording) -> None:
        self.page.play_step(playable, explored=False)

    def _on_edit(self) -> None:
        self.pane.task.clear_verdict()
        self._save_timer.start()

    def _save_submission(self) -> None:
        self._save_timer.stop()
        task = self._page.writing.task if self._page is not None else None
        if task is not None and self.lessons.lesson == self._submission_lesson:
            self.lessons.save_submission(task, self.page.writing.submission)

    def _check_source(self, file: str, text: str, on_diagnostics: Callable[[tuple[Diagnostic, ...]], None]) -> None:
        """Check a submission's source like any kernel's."""

        def on_result(event: tuple[Diagnostic, ...] | Failure) -> None:
            if not isinstance(event, Failure):
                on_diagnostics(event)

        self._jobs().post("check lesson", CheckSource(file, text), on_result, priority=3)

    # --- called by the window's keys and buttons

    def run(self) -> None:
        """Check the answer, or test the submission."""
        self.pane.submit_answer()

    def open_next_step(self) -> None:
        """Go to the next step, if a lesson is visible."""
        if self.pane.isVisible():
            self.pane.open_next_step()

    def open_previous_step(self) -> None:
        """Go to the previous step, if a lesson is visible."""
        if self.pane.isVisible():
            self.lessons.open_previous_step()

    def show_next_hint(self) -> None:
        """Show the next hint, if a lesson is visible."""
        for hints in (self.pane.question.hints, self.pane.task.hints):
            if hints.hint_button.isVisible():
                hints.hint_button.click()

    def stop(self) -> bool:
        """Stop running work; return whether there was any."""
        return self.lessons.stop()

    def close_down(self) -> None:
        """Save the submission and stop playback: the window closes."""
        self._save_submission()
        if self._page is not None:
            self._page.step.close_down()
