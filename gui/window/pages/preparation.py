"""Create pages and start the stepping simulator while the window is idle, so that both open at once later."""

from __future__ import annotations

from collections.abc import Callable

from PyQt6.QtCore import QObject
from PyQt6.QtWidgets import QStackedWidget

from gui.model.lessons import Lessons
from gui.model.workbench import Workbench
from gui.qt.timers import create_repeating_timer, create_single_shot_timer
from gui.window.pages.page_stack import Pages

IDLE_MS = 150
SIMULATOR_DELAY_MS = 1000
"""How long the window must have been idle before the simulator is prepared."""


class Preparation(QObject):
    """Create the missing pages one by one, then start the simulator that records for the Step tab.

    Parameters
    ----------
    stack : QStackedWidget
        The stack that shows the pages.
    bench : Workbench
        Reports when no work is left.
    lessons : Lessons
        Loaded last.
    is_lecturing : callable
        Returns whether a lecture is shown: a page would delay the answer to a key by 0.2 s.
    """

    def __init__(
        self,
        pages: Pages,
        stack: QStackedWidget,
        bench: Workbench,
        lessons: Lessons,
        is_lecturing: Callable[[], bool],
    ) -> None:
        super().__init__(pages)
        self._is_lecturing = is_lecturing
        self._pages, self._stack, self._bench, self._lessons = pages, stack, bench, lessons
        self._page_timer = create_repeating_timer(IDLE_MS, self._prepare_next_page, self)
        self._simulator_timer = create_single_shot_timer(SIMULATOR_DELAY_MS, self._start_simulator, self)
        bench.run_finished.connect(self._start_preparing)

    def _start_preparing(self) -> None:
        if len(self._pages.pages_by_name) < len(self._bench.patterns):
            self._page_timer.start()

    def stop(self) -> None:
        """Stop preparing."""
        self._page_timer.stop()
        self._simulator_timer.stop()

    def _prepare_next_page(self) -> None:
        # Meanwhile the window shows modeled times as they come.
        if self._bench.jobs.busy or self._bench.modeling.busy or self._is_lecturing():
            return
        pages = self._pages.pages_by_name
        missing = next((name for name in self._bench.patterns if name not in pages), None)
        without_step_tab = next((page for page in pages.values() if not page.has_step_tab), None)
        incomplete = next((page for page in pages.values() if not page.has_all_tabs), None)
        unplaced = next((page for page in pages.values() if self._stack.indexOf(page) < 0), None)
        if without_step_tab is not None:
            without_step_tab.create_step_tab()
        elif incomplete is not None:
            incomplete.create_measuring_tabs()
        elif unplaced is not None:
            self._stack.addWidget(unplaced)
        elif missing is not None:
            self._pages.create_page(missing)
        else:
            self._page_timer.stop()
            self._simulator_timer.start()

    def _start_simulator(self) -> None:
        """Start the simulator for the Step tab; a run's own process takes precedence."""
        if self._bench.side_started:
            self._lessons.preload_builtin_lessons()
            return
        if self._bench.jobs.busy or self._bench.pending:
            self._simulator_timer.start()
        else:
            self._pages.page.step.warm_up()
            self._lessons.preload_builtin_lessons()
