"""What is made ready while nothing else is to be done, so that going there takes no time."""

from __future__ import annotations

from PyQt6.QtCore import QObject
from PyQt6.QtWidgets import QStackedWidget

from gui.model.lessons import Lessons
from gui.model.workbench import Workbench
from gui.qt.later import after, every
from gui.window.pages import Pages

IDLE_MS = 150
REST_MS = 1000
"""How long nothing has been left to do when what may come next is prepared."""


class Preparation(QObject):
    """Makes the pages that have not been seen yet, one step at a time, and then starts the simulator that steps.

    Parameters
    ----------
    pages : Pages
    stack : QStackedWidget
        Where the pages are shown.
    bench : Workbench
        Says when nothing is to be done.
    lessons : Lessons
        Which are read then.
    """

    def __init__(self, pages: Pages, stack: QStackedWidget, bench: Workbench, lessons: Lessons) -> None:
        super().__init__(pages)
        self._pages, self._stack, self._bench, self._lessons = pages, stack, bench, lessons
        self._idle = every(IDLE_MS, self._prepare, self)
        self._rest = after(REST_MS, self._rehearse, self)
        bench.run_finished.connect(self._begin)

    def _begin(self) -> None:
        if len(self._pages.made) < len(self._bench.patterns):
            self._idle.start()

    def stop(self) -> None:
        """Prepare nothing more."""
        self._idle.stop()
        self._rest.stop()

    def _prepare(self) -> None:
        if self._bench.jobs.busy:
            return  # somebody waits for something
        made = self._pages.made
        unseen = next((name for name in self._bench.patterns if name not in made), None)
        begun = next((page for page in made.values() if not page.complete), None)
        unplaced = next((page for page in made.values() if self._stack.indexOf(page) < 0), None)
        if begun is not None:
            self._pages.complete(begun)
        elif unplaced is not None:
            self._stack.addWidget(unplaced)
        elif unseen is not None:
            self._pages.make(unseen)
        else:
            self._idle.stop()
            self._rest.start()

    def _rehearse(self) -> None:
        """Start the simulator that steps while nobody waits for it; the process of a run comes first."""
        if self._bench.side_started:
            self._lessons.prepare()
            return
        if self._bench.jobs.busy or self._bench.pending:
            self._rest.start()
        else:
            self._pages.page.step.rehearse()
            self._lessons.prepare()
