"""A lesson that is worked through: its pane, the page of what it shows, and the shelf that it is taken from."""

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
"""How long what is written rests before it is remembered."""


class Teaching(QObject):
    """Opens lessons, and shows the step that is open: in its own page, or on a pattern's.

    Parameters
    ----------
    stack : QStackedWidget
        Where pages are shown, among others.
    jobs : callable
        Returns the queue of the simulator's own process.
    memory : SavedSettings
    drive : callable
        Shows a pattern's page as a scene has it, and returns it.
    """

    appeared = pyqtSignal(str)
    """Lessons are shown, or one with this title."""
    warned = pyqtSignal(str, str)
    """What cannot be done, and what can."""

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
        self._driven: QWidget | None = None
        self._scene: ShownScene | None = None
        self._written_in: LessonOutline | None = None
        self._keep = after(KEEP_MS, self._keep_written, self)
        self.lessons.step_opened.connect(self._show_step)
        self.lessons.played.connect(self._play)
        self.lessons.judged.connect(self._take_judgment)
        self.lessons.gone_wrong.connect(self._show_failing)
        self.lessons.failed.connect(self._fail)
        self.pane.left.connect(self.leave)
        self.pane.question.moment_wanted.connect(self._go_to)
        self.pane.task.judge_wanted.connect(self.judge)
        stack.currentChanged.connect(lambda _: self._follow_page())

    # --- what is shown

    @property
    def page(self) -> LessonPage:
        """The page of what lessons show; it is made when it is first wanted."""
        if self._page is None:
            self._page = page = LessonPage(self._jobs, self._check)
            self._stack.addWidget(page)
            page.writing.changed.connect(self._take_edit)
            page.explore_wanted.connect(self.explore)
            page.step.element_clicked.connect(self.pane.question.take_cell)
            page.step.lane_clicked.connect(self.pane.question.take_thread)
            self.pane.question.picked.connect(page.step.panes.memory.show_picked)
            self.pane.task.anew_wanted.connect(page.writing.begin_anew)
        return self._page

    @property
    def shelf(self) -> ShelfView:
        """The view of all lessons."""
        if self._shelf is None:
            self._shelf = ShelfView(self.lessons)
            self._stack.addWidget(self._shelf)
            self._shelf.lesson_wanted.connect(self.open)
            self._shelf.folder_wanted.connect(self.ask)
        return self._shelf

    @property
    def shown(self) -> LessonPage | None:
        """The page, while it is the one that is shown."""
        return self._page if self._page is not None and self._stack.currentWidget() is self._page else None

    @property
    def shows_shelf(self) -> bool:
        """Whether all lessons are shown."""
        return self._shelf is not None and self._stack.currentWidget() is self._shelf

    @property
    def shows_lessons(self) -> bool:
        """Whether all lessons are shown, or one in its own page."""
        return self.shows_shelf or self.shown is not None

    def _follow_page(self) -> None:
        """Let the pane be seen beside what belongs to the lesson."""
        now = self._stack.currentWidget()
        self.pane.setVisible(self.lessons.lesson is not None and now is not None and now in (self._page, self._driven))

    # --- coming and going

    def show(self) -> None:
        """Show the lesson that is open; where it is shown, or none is open, all lessons."""
        lesson = self.lessons.lesson
        if lesson is None or self.pane.isVisible():
            self.show_shelf()
        else:
            self._stack.setCurrentWidget(self._driven or self.page)
            self.appeared.emit(lesson.title)

    def show_shelf(self) -> None:
        """Show all lessons."""
        self.lessons.read()
        self._stack.setCurrentWidget(self.shelf)
        self.appeared.emit("")

    def leave(self) -> None:
        """Close the lesson that is open, and show all of them."""
        self._keep_written()
        self.lessons.close()
        self._driven = None
        self.show_shelf()

    def open(self, lesson: LessonOutline, number: int | None = None) -> None:
        """Open a lesson."""
        self._keep_written()
        done = self.lessons.done(lesson)
        if number is None and len(done) == len(lesson.steps):
            number = 0
        self.lessons.open(lesson, number)

    def open_lifting(self, pattern: str, variant: str) -> None:
        """Open the lesson that lifts a rung's limit."""
        lesson = self.lessons.lifting(pattern, variant)
        if lesson is not None:
            self.open(lesson)

    def ask(self) -> None:
        """Ask for a folder of lessons, and open it."""
        name = QFileDialog.getExistingDirectory(self._stack, "Open lessons", str(Path.home()))
        if name:
            self.open_folder(Path(name))

    def takes(self, path: Path) -> bool:
        """Whether a path is one of lessons: a folder, or the text of a lesson."""
        return os.path.isdir(path) or path.name == LESSON

    def open_folder(self, path: Path) -> None:
        """Open a folder of lessons, or the lesson of that folder or text."""
        folder = path if os.path.isdir(path) else path.parent

        def show(shelf: LessonShelf) -> None:
            if len(shelf.lessons) == 1 and not shelf.faults:
                self.open(shelf.lessons[0], 0)
            else:
                self.show_shelf()

        self.lessons.read()
        self.lessons.read(str(folder.absolute()), then=show)

    def explore(self) -> None:
        """Go to the page of the pattern that is shown, set as the lesson has it."""
        if self._scene is not None and self._scene.pattern:
            self._driven = self._drive(self._scene)
            self._follow_page()

    # --- the step that is open

    def _show_step(self) -> None:
        lesson, step = self.lessons.lesson, self.lessons.step
        assert lesson is not None
        self._keep_written()
        self._driven, self._scene = None, None
        page = self.page
        if step.task is not None:
            page.write(step.task, self.lessons.written(step.task))
            self._written_in = lesson
        else:
            page.leave_task()
            if not step.shows:
                page.say("This step only tells.")
        self._stack.setCurrentWidget(page)
        self._follow_page()
        self.appeared.emit(lesson.title)

    def _play(self, played: PlayedStep) -> None:
        self._scene = played.scene
        if played.scene.tab == "step":
            self.page.play(played, explored=bool(played.scene.pattern))
        else:
            self._driven = self._drive(played.scene)
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
        """Have what is written judged."""
        self._keep_written()
        self.pane.task.forget()
        self.lessons.judge(self.page.writing.text)

    def _take_judgment(self, judgment: Judgment, text: str) -> None:
        if self.shown is not None:
            self.shown.writing.show_judgment(judgment, text)
            self.pane.task.show_judgment(judgment, text)
            self.pane.bring_into_view()

    def _show_failing(self, played: PlayedStep) -> None:
        self.page.play(played, explored=False)

    def _take_edit(self) -> None:
        self.pane.task.forget()
        self._keep.start()

    def _keep_written(self) -> None:
        self._keep.stop()
        task = self._page.writing.task if self._page is not None else None
        if task is not None and self.lessons.lesson == self._written_in:
            self.lessons.keep_written(task, self.page.writing.written)

    def _check(self, file: str, text: str, take: Callable[[tuple[Diagnostic, ...]], None]) -> None:
        """Find out what is wrong with a text that is written, as with any kernel's."""

        def done(event: Result | Failure) -> None:
            if isinstance(event, Result):
                take(event.diagnostics)

        self._jobs().post("check lesson", CheckSource(file, text), done, priority=3)

    # --- what keys and buttons of the window ask for

    def run(self) -> None:
        """Check the answer, or judge what is written."""
        self.pane.check()

    def next(self) -> None:
        """Go to the next step, where a lesson is seen."""
        if self.pane.isVisible():
            self.pane.go_on()

    def back(self) -> None:
        """Go to the step before, where a lesson is seen."""
        if self.pane.isVisible():
            self.lessons.back()

    def hint(self) -> None:
        """Show one hint more, where a lesson is seen."""
        for hints in (self.pane.question.hints, self.pane.task.hints):
            if hints.more.isVisible():
                hints.more.click()

    def stop(self) -> bool:
        """Stop what is under way; return whether there was anything."""
        return self.lessons.stop()

    def close_down(self) -> None:
        """Keep what is written, and let nothing play on: the window closes."""
        self._keep_written()
        if self._page is not None:
            self._page.step.close_down()
