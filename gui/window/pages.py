"""The patterns' pages: created when first shown, and kept."""

from __future__ import annotations

from typing import Any

from PyQt6.QtCore import QObject, pyqtSignal
from PyQt6.QtWidgets import QStackedWidget

from gpu.declaration.pattern import Progress
from gpu.messages.requests import Failure, ModelPattern
from gui.bodies_view.view import BodiesView
from gui.model.jobs import spelled
from gui.model.modeling import FollowedModel
from gui.model.records import FinishedRun, LevelCounts, OpenImage, OpenValues
from gui.model.settings import SavedSettings
from gui.model.workbench import Workbench
from gui.step_view.warps.asked import Timed
from gui.window.messages import Messages
from gui.window.pattern_page import PatternPage


class Pages(QObject):
    """The pattern pages created so far, by pattern name.

    Parameters
    ----------
    stack : QStackedWidget
        The stack that shows them, among other pages.
    bench : Workbench
        Runs the patterns and supplies the results.
    memory : SavedSettings
        The saved state of the pages.
    messages : Messages
    """

    shown = pyqtSignal(str)
    """A pattern's name: its page is shown."""
    variant_chosen = pyqtSignal(str)
    words_changed = pyqtSignal()
    """The description of the current page's input may have changed."""
    playing_changed = pyqtSignal()
    page_made = pyqtSignal(object)
    """PatternPage"""

    def __init__(self, stack: QStackedWidget, bench: Workbench, memory: SavedSettings, messages: Messages) -> None:
        super().__init__(stack)
        self._stack, self._bench, self._memory, self._messages = stack, bench, memory, messages
        self.made: dict[str, PatternPage] = {}
        self.followed: dict[str, FollowedModel] = {}
        """The modeled times of the created pages, by pattern name."""
        self._seen: set[str] = set()
        bench.image_changed.connect(self._show_image)
        bench.values_changed.connect(self._show_numbers)
        bench.text_changed.connect(self._show_params)
        bench.defaults_changed.connect(self._show_defaults)
        bench.progressed.connect(self._show_progress)
        bench.run_finished.connect(self._show_outcome)
        bench.run_checked.connect(lambda outcome: self.made[outcome.pattern].show_check(outcome))
        bench.run_counted.connect(lambda outcome: self.made[outcome.pattern].show_run_counts(outcome))
        bench.counted.connect(self._show_counts)
        messages.given_up.connect(self._forget_progress)

    # --- selection

    @property
    def page(self) -> PatternPage:
        """The page of the current pattern."""
        return self.made[self._bench.chosen]

    def show(self, name: str) -> None:
        """Show a pattern's page."""
        page = self._ready_page(name)
        self._seen.add(name)
        self._bench.chosen = name
        self._stack.setCurrentWidget(page)
        self.shown.emit(name)

    def come_back(self) -> None:
        """Show the current pattern's page, if another page is visible."""
        if self._stack.currentWidget() is not self.page:
            self.show(self._bench.chosen)

    def choose(self, name: str) -> None:
        """Show a pattern's page, and run the pattern if it changed."""
        again = name == self._bench.chosen and name in self.made
        self.show(name)
        if not again:
            self._bench.choose_pattern(name)

    def step(self, by: int) -> None:
        """Go to the next (`by` = 1) or the previous (-1) pattern."""
        names = list(self._bench.patterns)
        self.choose(names[(names.index(self._bench.chosen) + by) % len(names)])

    def choose_variant(self, name: str) -> None:
        """Run another variant of the pattern."""
        self.variant_chosen.emit(name)
        self.page.show_variant(name)
        self._bench.choose_variant(name)

    def choose_variant_at(self, index: int) -> None:
        """Run the variant at an index of the ladder, if it exists."""
        variants = self._bench.pattern.variants
        if index < len(variants) and self._stack.currentWidget() is self.page:
            self.choose_variant(variants[index].name)

    def toggle_scale(self) -> None:
        """Switch between linear and logarithmic histograms."""
        levels = self.page.view.levels
        if levels is not None:
            levels.set_scale("linear" if levels.scale.chosen == "log" else "log")

    # --- contents

    def _show_image(self, image: OpenImage) -> None:
        for page in self.made.values():
            page.show_image(image)
        if self.page.pattern.subject is not None:
            self._show_params()

    def _show_numbers(self, opened: OpenValues) -> None:
        for page in self.made.values():
            page.show_numbers(opened)
        self._show_params()

    def _show_params(self, *_: object) -> None:
        self.page.show_values(self._bench.settings[self._bench.chosen].params)

    def _show_defaults(self) -> None:
        for name, page in self.made.items():
            page.show_values(self._bench.settings[name].params)

    def _show_progress(self, pattern: str, progress: Progress) -> None:
        self.made[pattern].show_progress(spelled(progress))

    def _forget_progress(self) -> None:
        for page in self.made.values():
            page.show_progress("")

    def _show_outcome(self, outcome: FinishedRun) -> None:
        self.made[outcome.pattern].show_outcome(outcome)

    def _show_counts(self, counts: LevelCounts) -> None:
        for page in self.made.values():
            page.show_counts(counts)

    def forget_measurements(self) -> None:
        """Discard measurements: the engine changes."""
        for page in self.made.values():
            if page.compare is not None:
                page.compare.forget()

    def study_again(self) -> None:
        """Repeat the atomics study on the new engine."""
        for page in self.made.values():
            if page.atomics is not None and self._bench.image is not None:
                page.atomics.show_image(self._bench.image)

    # --- creation

    def _ready_page(self, name: str) -> PatternPage:
        """Return a pattern's page, with all of its tabs and added to the stack."""
        page = self.made.get(name) or self.make(name)
        if not page.complete:
            self.complete(page)
        if self._stack.indexOf(page) < 0:
            self._stack.addWidget(page)
        return page

    def make(self, name: str) -> PatternPage:
        """Create a pattern's page, without the tabs that measure."""
        bench, memory, messages = self._bench, self._memory, self._messages
        page = self.made[name] = PatternPage(
            bench.patterns[name],
            bench.settings[name],
            bench.sources,
            lambda: bench.side_jobs,
            bench.jobs,
            Timed(bench.modeling, bench.to_time, bench.block_sizes),
        )
        page.params_changed.connect(bench.choose_params)
        self._follow(page)
        page.variant_wanted.connect(self.choose_variant)
        if isinstance(page.view, BodiesView):
            self._connect_bodies(page.view)
        page.step.settings.restore(*memory.step(page.pattern))
        page.step.record_soon()
        for changed in (page.tabs.currentChanged, page.step.settings.changed):
            changed.connect(lambda: self.words_changed.emit() if self._stack.currentWidget() is page else None)
        page.step.exports.said.connect(messages.status.say)
        page.step.exports.failed.connect(messages.banner.say)
        for source in (page.source, page.step.source):
            source.failed.connect(messages.banner.say)
            source.saved.connect(bench.saved)
            source.typing.connect(messages.status.say)
        if page.view.levels is not None:
            page.view.levels.set_scale(memory.scale)
            page.view.levels.scale.picked.connect(self._set_scale)
        for key, splitter in self._splitters(page).items():
            sizes = memory.sizes(f"{name}/{key}")
            if len(sizes) == splitter.count():
                splitter.setSizes(sizes)
        if bench.image is not None:
            page.show_image(bench.image)
        if bench.values is not None:
            page.show_numbers(bench.values)
        self.page_made.emit(page)
        return page

    def _follow(self, page: PatternPage) -> None:
        """Keep a page's modeled time up to date while it is visible."""
        bench, card = self._bench, page.modeled

        def request_if_visible() -> ModelPattern | None:
            return bench.to_model() if card.isVisible() and bench.chosen == page.pattern.name else None

        followed = FollowedModel(bench.modeling, request_if_visible, lambda: bench.jobs.busy, page)
        followed.changed.connect(card.show_model)
        followed.changed.connect(page.show_machine_code)
        bench.modeling.gpu_changed.connect(card.show_gpu)
        card.show_gpu(bench.modeling.gpu)
        card.show_model(None)
        card.appeared.connect(followed.follow)
        for changed in (bench.settings_changed, bench.run_finished, bench.sources.touched):
            changed.connect(followed.follow)
        self.followed[page.pattern.name] = followed

    def complete(self, page: PatternPage) -> None:
        """Add the tabs that measure to a page."""
        bench = self._bench
        page.add_studies(lambda: {} if bench.image is None else bench.image.inputs, bench.modeling)
        for tab in (page.compare, page.atomics):
            if tab is not None:
                tab.failed.connect(self._show_study_failure)
                tab.succeeded.connect(lambda: self._messages.banner.over("study"))
        if page.compare is not None:
            compare = page.compare
            started = compare.sweep.measuring, compare.modeled.busy_changed, compare.workers.busy_changed
            for changed in (*started, compare.sweep.ended):
                changed.connect(lambda *_: self.playing_changed.emit())
        image = self._bench.image
        if page.atomics is not None and image is not None:
            page.atomics.show_image(image)
        page.turn_to(self._memory.tab(page.pattern.name))

    def _show_study_failure(self, message: str, advice: str) -> None:
        self._messages.banner.say(message, advice, tone="neutral", about=("study", "text"))

    def _connect_bodies(self, view: BodiesView) -> None:
        view.said.connect(self._messages.status.say)
        view.over.connect(self._messages.status.take_back)
        view.failed.connect(self._show_bodies_failure)
        view.simulation.playing_changed.connect(self._bench.set_live)
        view.simulation.playing_changed.connect(self.playing_changed)

    def _show_bodies_failure(self, failure: Failure) -> None:
        """Report a failure; the next successful run hides a report about invalid input."""
        self._messages.show_failure(failure, *(("run",) if failure.kind == "input" else ()))

    def _set_scale(self, chosen: str) -> None:
        """Apply a scale chosen in one histogram to all of them."""
        self._memory.scale = chosen
        for page in self.made.values():
            if page.view.levels is not None:
                page.view.levels.set_scale(chosen)

    # --- closing

    def close_down(self) -> None:
        """Stop all pages and save their state: the window closes."""
        memory = self._memory
        for name, page in self.made.items():
            memory.store_step(name, page.step.settings.params, page.step.settings.schedule)
            if name in self._seen:  # the others have no layout yet
                memory.store_tab(name, page.tabs.tabText(page.tabs.currentIndex()))
                for key, splitter in self._splitters(page).items():
                    if key != "step" or page.step.models is not None:
                        memory.store_sizes(f"{name}/{key}", splitter.sizes())
            page.step.close_down()
            if isinstance(page.view, BodiesView):
                page.view.close_down()

    @staticmethod
    def _splitters(page: PatternPage) -> dict[str, Any]:
        return {"page": page.splitter, "view": page.view.splitter, "step": page.step.panes.splitter}
