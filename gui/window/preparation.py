"""Create pages and start the stepping simulator while the window is idle, so that both open at once later."""

from __future__ import annotations

from PyQt6.QtCore import QObject
from PyQt6.QtWidgets import QStackedWidget

from gui.model.lessons import Lessons
from gui.model.workbench import Workbench
from gui.qt.later import after, every
from gui.window.pages import Pages

IDLE_MS = 150
REST_MS = 1000
"""How long the window must have been idle before the simulator is prepared."""


class Preparation(QObject):
    """Create the missing pages one by one, then start the simulator that records for the Step tab.

    Parameters
    ----------
    pages : Pages
    stack : QStackedWidget
        The stack that shows the pages.
    bench : Workbench
        Reports when no work is left.
    lessons : Lessons
        Loaded last.
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
        """Stop preparing."""
        self._idle.stop()
        self._rest.stop()

    def _prepare(self) -> None:
        if self._bench.jobs.busy:
            return  # a request is running
        pages = self._pages.made
        missing = next((name for name in self._bench.patterns if name not in pages), None)
        incomplete = next((page for page in pages.values() if not page.complete), None)
        unplaced = next((page for page in pages.values() if self._stack.indexOf(page) < 0), None)
        if incomplete is not None:
            self._pages.complete(incomplete)
        elif unplaced is not None:
            self._stack.addWidget(unplaced)
        elif missing is not None:
            self._pages.make(missing)
        else:
            self._idle.stop()
            self._rest.start()

    def _rehearse(self) -> None:
        """Start the simulator for the Step tab; a run's own process takes precedence."""
        if self._bench.side_started:
            self._lessons.prepare()
            return
        if self._bench.jobs.busy or self._bench.pending:
            self._rest.start()
        else:
            self._pages.page.step.rehearse()
            self._lessons.prepare()
