"""The patterns' pages: made when they are first seen or while nothing else is to be done, and remembered."""

from __future__ import annotations

from collections import UserDict
from typing import TYPE_CHECKING, Any

from PyQt6.QtCore import QTimer

from gui.bodies_view.view import BodiesView
from gui.window.pattern_page import PatternPage

if TYPE_CHECKING:
    from gui.window.main_window import MainWindow

IDLE_MS = 150
REST_MS = 1000
"""How long nothing has been left to do when what may come next is prepared."""


class Pages(UserDict[str, PatternPage]):
    """The pages of one window that have been made, by pattern."""

    def __init__(self, window: MainWindow) -> None:
        super().__init__()
        self._window = window
        self._idle = QTimer(window, interval=IDLE_MS)
        self._idle.timeout.connect(self._prepare)
        self._rest = QTimer(window, singleShot=True, interval=REST_MS)
        self._rest.timeout.connect(self._rehearse)

    def placed(self, name: str) -> PatternPage:
        """Return a pattern's page, which is in the window's stack."""
        page = self.get(name) or self._make(name)
        if not page.complete:
            self._complete(page)
        if self._window.stack.indexOf(page) < 0:
            self._window.stack.addWidget(page)
        return page

    def prepare_others(self) -> None:
        """Make the pages that have not been seen yet, when there is time, so that going there takes none."""
        if len(self) < len(self._window.bench.patterns):
            self._idle.start()

    def _prepare(self) -> None:
        if self._window.jobs.busy:
            return  # somebody waits for something
        stack = self._window.stack
        unseen = next((name for name in self._window.bench.patterns if name not in self), None)
        begun = next((page for page in self.values() if not page.complete), None)
        unplaced = next((page for page in self.values() if stack.indexOf(page) < 0), None)
        if begun is not None:
            self._complete(begun)
        elif unplaced is not None:
            stack.addWidget(unplaced)
        elif unseen is not None:
            self._make(unseen)
        else:
            self._idle.stop()
            self._rest.start()

    def _rehearse(self) -> None:
        """Start the simulator that steps while nobody waits for it; the process of a run comes first."""
        window = self._window
        if window.bench.side_started:
            return
        if window.jobs.busy or window.bench.pending:
            self._rest.start()
        else:
            window.page.step.rehearse()

    # --- making them

    def _make(self, name: str) -> PatternPage:
        window, bench, memory = self._window, self._window.bench, self._window.memory
        page = self[name] = PatternPage(
            bench.patterns[name], bench.settings[name], bench.sources, lambda: bench.side_jobs, window.jobs
        )
        page.params_changed.connect(bench.choose_params)
        page.variant_wanted.connect(window.choose_variant)
        if isinstance(page.view, BodiesView):
            self._connect_bodies(page.view)
        page.step.settings.restore(*memory.step(page.pattern))
        page.step.record_soon()
        for changed in (page.tabs.currentChanged, page.step.settings.changed):
            changed.connect(lambda: window.stack.currentWidget() is page and window.name_input())
        page.step.exports.said.connect(window.status.say)
        page.step.exports.failed.connect(window.banner.say)
        for source in (page.source, page.step.source):
            source.failed.connect(window.banner.say)
            source.saved.connect(bench.saved)
        if page.view.levels is not None:
            page.view.levels.set_scale(memory.scale)
            page.view.levels.scale.group.buttonToggled.connect(self._take_scale)
        for key, splitter in self._splitters(page).items():
            if state := memory.bytes(f"{name}/{key}"):
                splitter.restoreState(state)
        if bench.image is not None:
            page.show_image(bench.image)
        return page

    def _complete(self, page: PatternPage) -> None:
        page.add_studies()
        for tab in (page.compare, page.atomics):
            if tab is not None:
                tab.failed.connect(self._say_of_study)
                tab.succeeded.connect(lambda: self._window.banner.over("study"))
        image = self._window.bench.image
        if page.atomics is not None and image is not None:
            page.atomics.show_image(image)

    def _say_of_study(self, message: str, advice: str) -> None:
        self._window.banner.say(message, advice, tone="neutral", about=("study", "text"))

    def _connect_bodies(self, view: BodiesView) -> None:
        window = self._window
        view.said.connect(window.status.say)
        view.over.connect(window.status.take_back)
        view.failed.connect(window.show_failure)
        view.simulation.playing_changed.connect(window.bench.set_live)
        view.simulation.playing_changed.connect(window.show_busy)

    def _take_scale(self, chosen: Any, on: bool) -> None:
        """Let all histograms have the scale that one of them was given."""
        if on:
            self._window.memory.scale = chosen.text()
            for page in self.values():
                if page.view.levels is not None:
                    page.view.levels.set_scale(chosen.text())

    # --- the end

    def close_down(self) -> None:
        """Let nothing run on, and remember how the pages were: the window closes."""
        self._idle.stop()
        self._rest.stop()
        memory = self._window.memory
        for name, page in self.items():
            memory.store_step(name, page.step.settings.params, page.step.settings.schedule)
            for key, splitter in self._splitters(page).items():
                memory.store_bytes(f"{name}/{key}", splitter.saveState())
            page.step.close_down()
            if isinstance(page.view, BodiesView):
                page.view.close_down()

    @staticmethod
    def _splitters(page: PatternPage) -> dict[str, Any]:
        return {"page": page.splitter, "view": page.view.splitter}
