"""Show lessons: the list of lessons, the pane of the current one, and the page next to it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from PyQt6.QtCore import QObject, pyqtSignal
from PyQt6.QtWidgets import QFileDialog, QStackedWidget, QWidget

from gpu.errors import Diagnostic
from gpu.messages.judgments import Judgment
from gpu.messages.lessons import LessonOutline, LessonShelf, ShownScene
from gpu.messages.requests import CheckSource, Failure, Result
from gui.lessons.page import LessonPage
from gui.lessons.pane import LessonPane
from gui.lessons.shelf import ShelfView
from gui.model.jobs import Jobs
from gui.model.lessons import Lessons, PlayedStep
from gui.model.settings import SavedSettings
from gui.qt.later import after

LESSON = "lesson.md"
KEEP_MS = 400
"""How long a submission must be unchanged before it is saved."""


class Teaching(QObject):
    """Open lessons, and show the current step on the lesson page or on a pattern's page.

    Parameters
    ----------
    stack : QStackedWidget
        The stack that shows the pages, among others.
    jobs : callable
        Returns the queue of the simulator's side process.
    memory : SavedSettings
    drive : callable
        Shows a scene on its pattern's page, and returns the page.
    """

    appeared = pyqtSignal(str)
    """The title of the lesson shown, or "" for the list of lessons."""
    warned = pyqtSignal(str, str)
    """A problem, and advice."""

    def __init__(
        self,
        stack: QStackedWidget,
        jobs: Callable[[], Jobs],
        memory: SavedSettings,
        drive: Callable[[ShownScene], QWidget],
    ) -> None:
        super().__init__(stack)
        self._stack, self._jobs, self._drive = stack, jobs, drive
        self.lessons = Lessons(jobs, memory, self)
        self.pane = LessonPane(self.lessons)
        self._page: LessonPage | None = None
        self._shelf: ShelfView | None = None
        self._pattern_page: QWidget | None = None
        self._scene: ShownScene | None = None
        self._written_in: LessonOutline | None = None
        self._keep = after(KEEP_MS, self._keep_written, self)
        self.lessons.step_opened.connect(self._show_step)
        self.lessons.played.connect(self._play)
        self.lessons.judged.connect(self._on_judgment)
        self.lessons.gone_wrong.connect(self._show_failing)
        self.lessons.failed.connect(self._fail)
        self.pane.left.connect(self.leave)
        self.pane.question.moment_wanted.connect(self._go_to)
        self.pane.task.judge_wanted.connect(self.judge)
        stack.currentChanged.connect(lambda _: self._follow_page())

    # --- visible parts

    @property
    def page(self) -> LessonPage:
        """The page of scenes and tasks, created on first use."""
        if self._page is None:
            self._page = page = LessonPage(self._jobs, self._check)
            self._stack.addWidget(page)
            page.writing.changed.connect(self._on_edit)
            page.explore_wanted.connect(self.explore)
            page.step.element_clicked.connect(self.pane.question.take_cell)
            page.step.lane_clicked.connect(self.pane.question.take_thread)
            self.pane.question.picked.connect(page.step.panes.memory.show_picked)
            self.pane.task.anew_wanted.connect(page.writing.begin_anew)
        return self._page

    @property
    def shelf(self) -> ShelfView:
        """The list of lessons, created on first use."""
        if self._shelf is None:
            self._shelf = ShelfView(self.lessons)
            self._stack.addWidget(self._shelf)
            self._shelf.lesson_wanted.connect(self.open)
            self._shelf.folder_wanted.connect(self.ask)
        return self._shelf

    @property
    def shown(self) -> LessonPage | None:
        """The page, if it is visible."""
        return self._page if self._page is not None and self._stack.currentWidget() is self._page else None

    @property
    def shows_shelf(self) -> bool:
        """Whether the list of lessons is visible."""
        return self._shelf is not None and self._stack.currentWidget() is self._shelf

    @property
    def shows_lessons(self) -> bool:
        """Whether the list of lessons or the lesson page is visible."""
        return self.shows_shelf or self.shown is not None

    def _follow_page(self) -> None:
        """Show the pane only next to a page of the current lesson."""
        page = self._stack.currentWidget()
        is_lesson = page is not None and page in (self._page, self._pattern_page)
        self.pane.setVisible(self.lessons.lesson is not None and is_lesson)

    # --- opening and closing

    def show(self) -> None:
        """Show the current lesson; if it is visible already, or none is open, the list of lessons."""
        lesson = self.lessons.lesson
        if lesson is None or self.pane.isVisible():
            self.show_shelf()
        else:
            self._stack.setCurrentWidget(self._pattern_page or self.page)
            self.appeared.emit(lesson.title)

    def show_shelf(self) -> None:
        """Show the list of lessons."""
        self.lessons.read()
        self._stack.setCurrentWidget(self.shelf)
        self.appeared.emit("")

    def leave(self) -> None:
        """Close the current lesson, and show the list of lessons."""
        self._keep_written()
        self.lessons.close()
        self._pattern_page = None
        self.show_shelf()

    def open(self, lesson: LessonOutline, number: int | None = None) -> None:
        """Open a lesson at a step, by default at the first that is not completed."""
        self._keep_written()
        done = self.lessons.done(lesson)
        if number is None and len(done) == len(lesson.steps):
            number = 0
        self.lessons.open(lesson, number)

    def open_lifting(self, pattern: str, variant: str) -> None:
        """Open the lesson about a variant's limit."""
        lesson = self.lessons.lifting(pattern, variant)
        if lesson is not None:
            self.open(lesson)

    def ask(self) -> None:
        """Ask for a folder of lessons, and open it."""
        name = QFileDialog.getExistingDirectory(self._stack, "Open lessons", str(Path.home()))
        if name:
            self.open_folder(Path(name))

    def takes(self, path: Path) -> bool:
        """Return whether a path contains lessons: a folder, or a lesson's text file."""
        return os.path.isdir(path) or path.name == LESSON

    def open_folder(self, path: Path) -> None:
        """Open a folder of lessons, or the lesson of that folder or file."""
        folder = path if os.path.isdir(path) else path.parent

        def show(shelf: LessonShelf) -> None:
            if len(shelf.lessons) == 1 and not shelf.faults:
                self.open(shelf.lessons[0], 0)
            else:
                self.show_shelf()

        self.lessons.read()
        self.lessons.read(str(folder.absolute()), then=show)

    def explore(self) -> None:
        """Show the current scene on its pattern's page."""
        if self._scene is not None and self._scene.pattern:
            self._pattern_page = self._drive(self._scene)
            self._follow_page()

    # --- the current step

    def _show_step(self) -> None:
        lesson, step = self.lessons.lesson, self.lessons.step
        assert lesson is not None
        self._keep_written()
        self._pattern_page, self._scene = None, None
        page = self.page
        if step.task is not None:
            page.write(step.task, self.lessons.written(step.task))
            self._written_in = lesson
        else:
            page.leave_task()
            if not step.shows:
                page.say("This step has only text.")
        self._stack.setCurrentWidget(page)
        self._follow_page()
        self.appeared.emit(lesson.title)

    def _play(self, played: PlayedStep) -> None:
        self._scene = played.scene
        if played.scene.tab == "step":
            self.page.play(played, explored=bool(played.scene.pattern))
        else:
            self._pattern_page = self._drive(played.scene)
            self._follow_page()
        if played.scene.asked is not None:
            self.pane.ask(played.scene)

    def _go_to(self, moment: int) -> None:
        if self.shown is not None and self.shown.stepping:
            self.shown.step.reveal()
            self.shown.step.go(moment)
        self.pane.bring_into_view()

    def _fail(self, failure: Failure) -> None:
        task = self.lessons.task if self.lessons.lesson is not None else None
        if self.shown is None or task is not None:
            self.warned.emit(failure.message, failure.advice)
        else:
            self.shown.show_failure(failure)

    # --- tasks

    def judge(self) -> None:
        """Grade the current submission."""
        self._keep_written()
        self.pane.task.forget()
        self.lessons.judge(self.page.writing.text)

    def _on_judgment(self, judgment: Judgment, text: str) -> None:
        if self.shown is not None:
            self.shown.writing.show_judgment(judgment, text)
            self.pane.task.show_judgment(judgment, text)
            self.pane.bring_into_view()

    def _show_failing(self, played: PlayedStep) -> None:
        self.page.play(played, explored=False)

    def _on_edit(self) -> None:
        self.pane.task.forget()
        self._keep.start()

    def _keep_written(self) -> None:
        self._keep.stop()
        task = self._page.writing.task if self._page is not None else None
        if task is not None and self.lessons.lesson == self._written_in:
            self.lessons.keep_written(task, self.page.writing.written)

    def _check(self, file: str, text: str, take: Callable[[tuple[Diagnostic, ...]], None]) -> None:
        """Check a submission's source like any kernel's."""

        def on_result(event: Result | Failure) -> None:
            if isinstance(event, Result):
                take(event.diagnostics)

        self._jobs().post("check lesson", CheckSource(file, text), on_result, priority=3)

    # --- called by the window's keys and buttons

    def run(self) -> None:
        """Check the answer, or test the submission."""
        self.pane.check()

    def next(self) -> None:
        """Go to the next step, if a lesson is visible."""
        if self.pane.isVisible():
            self.pane.go_on()

    def back(self) -> None:
        """Go to the previous step, if a lesson is visible."""
        if self.pane.isVisible():
            self.lessons.back()

    def hint(self) -> None:
        """Show the next hint, if a lesson is visible."""
        for hints in (self.pane.question.hints, self.pane.task.hints):
            if hints.more.isVisible():
                hints.more.click()

    def stop(self) -> bool:
        """Stop running work; return whether there was any."""
        return self.lessons.stop()

    def close_down(self) -> None:
        """Save the submission and stop playback: the window closes."""
        self._keep_written()
        if self._page is not None:
            self._page.step.close_down()
