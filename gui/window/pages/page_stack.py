"""The patterns' pages: created when first shown, and kept."""

from __future__ import annotations

from PyQt6.QtCore import QObject, pyqtSignal
from PyQt6.QtWidgets import QSplitter, QStackedWidget, QWidget

from gpu.declaration.pattern import Progress
from gpu.messages.events import Failure
from gpu.messages.modeled_time import ModelPattern
from gui.editor.source_pane import SourcePane
from gui.model.records import FinishedRun, LevelCounts, OpenImage, OpenValues
from gui.model.request_queue import describe_progress
from gui.model.run_counter import compute_run_key
from gui.model.settings import SavedSettings
from gui.model.time_modeler import ModelFollower
from gui.model.workbench import Workbench
from gui.run_view.bodies.view import BodiesView
from gui.step_view.warps.timeline_requests import TimelineSubject
from gui.widgets.view_keys import accepts_text
from gui.window.messages import Messages
from gui.window.pages.pattern_page import PatternPage


class Pages(QObject):
    """The pattern pages created so far, by pattern name.

    Parameters
    ----------
    stack : QStackedWidget
        The stack that shows them, among other pages.
    bench : Workbench
        Runs the patterns and supplies the results.
    saved_settings : SavedSettings
        The saved state of the pages.
    """

    page_shown = pyqtSignal(str)
    """A pattern's name: its page is shown."""
    variant_chosen = pyqtSignal(str)
    input_description_changed = pyqtSignal()
    """The description of the current page's input may have changed."""
    playing_changed = pyqtSignal()
    page_created = pyqtSignal(object)
    """PatternPage"""

    def __init__(
        self, stack: QStackedWidget, bench: Workbench, saved_settings: SavedSettings, messages: Messages
    ) -> None:
        super().__init__(stack)
        self._stack, self._bench, self._saved_settings, self._messages = stack, bench, saved_settings, messages
        self.pages_by_name: dict[str, PatternPage] = {}
        self.model_followers: dict[str, ModelFollower] = {}
        """The modeled times of the created pages, by pattern name."""
        self._visited_names: set[str] = set()
        bench.image_changed.connect(self._show_image)
        bench.values_changed.connect(self._show_numbers)
        bench.text_changed.connect(self._show_params)
        bench.defaults_changed.connect(self._show_defaults)
        bench.progressed.connect(self._show_progress)
        bench.run_finished.connect(self._show_outcome)
        bench.run_checked.connect(lambda outcome: self.pages_by_name[outcome.pattern].show_check(outcome))
        bench.run_counts_ready.connect(lambda outcome: self.pages_by_name[outcome.pattern].show_run_counts(outcome))
        bench.levels_counted.connect(self._show_counts)
        messages.work_ended.connect(self._clear_progress)

    # --- selection

    @property
    def page(self) -> PatternPage:
        """The page of the current pattern."""
        return self.pages_by_name[self._bench.pattern_name]

    def show_page(self, name: str) -> None:
        """Show a pattern's page."""
        page = self.place_page(name)
        self._bench.pattern_name = name
        if name not in self._visited_names:
            page.select_tab(self._saved_settings.tab(name))
        self._visited_names.add(name)
        if self._stack.currentWidget() is not page:
            # Qt would return the focus to the text last typed in, and digits would change it instead of the variant.
            for widget in filter(accepts_text, page.findChildren(QWidget)):
                widget.clearFocus()
        self._stack.setCurrentWidget(page)
        self.page_shown.emit(name)

    def is_visible(self, name: str) -> bool:
        """Return whether a pattern's page is visible."""
        return self._stack.currentWidget() is self.pages_by_name.get(name)

    def return_to_page(self) -> None:
        """Show the current pattern's page, if another page is visible."""
        if self._stack.currentWidget() is not self.page:
            self.show_page(self._bench.pattern_name)

    def choose_pattern(self, name: str) -> None:
        """Show a pattern's page, and run the pattern if it changed."""
        again = name == self._bench.pattern_name and name in self.pages_by_name
        self.show_page(name)
        if not again:
            self._bench.choose_pattern(name)

    def step_pattern(self, offset: int) -> None:
        """Go to the next (`offset` = 1) or the previous (-1) pattern."""
        names = list(self._bench.patterns)
        self.choose_pattern(names[(names.index(self._bench.pattern_name) + offset) % len(names)])

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
        for page in self.pages_by_name.values():
            page.show_image(image)
        if self.page.pattern.subject is not None:
            self._show_params()

    def _show_numbers(self, values: OpenValues) -> None:
        for page in self.pages_by_name.values():
            page.show_numbers(values)
        self._show_params()

    def _show_params(self, *_: object) -> None:
        self.page.show_values(self._bench.settings[self._bench.pattern_name].params)

    def _show_defaults(self) -> None:
        for name, page in self.pages_by_name.items():
            page.show_values(self._bench.settings[name].params)

    def _show_progress(self, pattern: str, progress: Progress) -> None:
        self.pages_by_name[pattern].show_progress(describe_progress(progress))

    def _clear_progress(self) -> None:
        for page in self.pages_by_name.values():
            page.show_progress("")

    def _show_outcome(self, outcome: FinishedRun) -> None:
        self.pages_by_name[outcome.pattern].show_outcome(outcome)

    def _show_counts(self, counts: LevelCounts) -> None:
        for page in self.pages_by_name.values():
            page.show_counts(counts)

    def clear_measurements(self) -> None:
        """Discard measurements: the engine changes."""
        for page in self.pages_by_name.values():
            if page.has_all_tabs:
                page.compare.clear_points()

    def repeat_atomics_study(self) -> None:
        """Repeat the atomics study on the new engine."""
        for page in self.pages_by_name.values():
            if page.has_all_tabs and page.atomics is not None and self._bench.image is not None:
                page.atomics.show_image(self._bench.image)

    # --- creation

    def place_page(self, name: str) -> PatternPage:
        """Return a pattern's page, added to the stack."""
        page = self.pages_by_name.get(name) or self.create_page(name)
        if self._stack.indexOf(page) < 0:
            self._stack.addWidget(page)
        return page

    def create_page(self, name: str) -> PatternPage:
        """Create a pattern's page."""
        bench, saved_settings = self._bench, self._saved_settings
        page = self.pages_by_name[name] = PatternPage(
            bench.patterns[name],
            bench.settings[name],
            bench.sources,
            lambda: bench.side_jobs,
            bench.jobs,
            TimelineSubject(bench.modeling, bench.build_timeline_request, bench.block_sizes),
            lambda: {} if bench.image is None else bench.image.inputs,
        )
        page.step_tab_created.connect(lambda: self._connect_step_tab(page))
        page.measuring_tabs_created.connect(lambda: self._connect_measuring_tabs(page))
        page.params_changed.connect(bench.choose_params)
        self._follow_model(page)
        page.variant_requested.connect(self.choose_variant)
        if isinstance(page.view, BodiesView):
            self._connect_bodies(page.view)
        page.tabs.currentChanged.connect(lambda: self._report_input_description(page))
        self._connect_source(page.source)
        if page.view.levels is not None:
            page.view.levels.set_scale(saved_settings.scale)
            page.view.levels.scale.picked.connect(self._set_scale)
        for key, splitter in (("page", page.splitter), ("view", page.view.splitter)):
            self._restore_splitter(page, key, splitter)
        if bench.image is not None:
            page.show_image(bench.image)
        if bench.values is not None:
            page.show_numbers(bench.values)
        self.page_created.emit(page)
        return page

    def _connect_source(self, source: SourcePane) -> None:
        messages = self._messages
        source.failed.connect(messages.banner.show_message)
        source.saved.connect(self._bench.saved)
        source.hint_changed.connect(messages.status.show_message)

    def _connect_step_tab(self, page: PatternPage) -> None:
        step, messages = page.step, self._messages
        step.settings.restore(*self._saved_settings.step(page.pattern))
        step.record_soon()
        step.settings.changed.connect(lambda: self._report_input_description(page))
        step.exports.status_message.connect(messages.status.show_message)
        step.exports.failed.connect(messages.banner.show_message)
        self._connect_source(step.source)
        self._restore_splitter(page, "step", step.panes.splitter)

    def _report_input_description(self, page: PatternPage) -> None:
        if self._stack.currentWidget() is page:
            self.input_description_changed.emit()

    def _restore_splitter(self, page: PatternPage, key: str, splitter: QSplitter) -> None:
        sizes = self._saved_settings.sizes(f"{page.pattern.name}/{key}")
        if len(sizes) == splitter.count():
            splitter.setSizes(sizes)

    def _follow_model(self, page: PatternPage) -> None:
        """Keep a page's modeled time up to date while it is visible."""
        bench, card = self._bench, page.modeled_card

        def request_if_visible() -> ModelPattern | None:
            return bench.build_model_request() if card.isVisible() and bench.pattern_name == page.pattern.name else None

        def show_measured() -> None:
            run, request = bench.outcomes.get(page.pattern.name), request_if_visible()
            is_same = (
                run is not None
                and run.request is not None
                and request is not None
                and bench.modeling.models_local_gpu
                and not (run.report.simulated or run.distributed)
                and compute_run_key(run.request) == compute_run_key(request)
            )
            card.show_measured(run.report.time_ms.kernel * 1e3 if run is not None and is_same else None)

        followed = ModelFollower(bench.modeling, request_if_visible, lambda: bench.jobs.busy, page)
        followed.changed.connect(card.show_model)
        for changed in (followed.changed, bench.run_finished):
            changed.connect(lambda _: show_measured())
        followed.bound_found.connect(card.show_bound)
        followed.changed.connect(page.show_machine_code)
        bench.modeling.gpu_changed.connect(card.show_gpu)
        card.show_gpu(bench.modeling.gpu)
        card.show_model(None)
        card.became_visible.connect(followed.update_model)
        for changed in (bench.settings_changed, bench.run_finished, bench.sources.text_changed):
            changed.connect(followed.update_model)
        self.model_followers[page.pattern.name] = followed

    def _connect_measuring_tabs(self, page: PatternPage) -> None:
        compare, atomics, image = page.compare, page.atomics, self._bench.image
        for tab in (compare, atomics):
            if tab is not None:
                tab.failed.connect(self._show_study_failure)
                tab.succeeded.connect(lambda: self._messages.banner.hide_topic("study"))
        started = (
            compare.sweep.measurement_started,
            compare.modeled_views.busy_changed,
            compare.workers.busy_changed,
        )
        for changed in (*started, compare.sweep.ended):
            changed.connect(lambda *_: self.playing_changed.emit())
        if atomics is not None and image is not None:
            atomics.show_image(image)

    def _show_study_failure(self, message: str, advice: str) -> None:
        self._messages.banner.show_message(message, advice, tone="neutral", topics=("study", "text"))

    def _connect_bodies(self, view: BodiesView) -> None:
        view.status_message.connect(self._messages.status.show_message)
        view.status_message_ended.connect(self._messages.status.clear_message)
        view.failed.connect(self._show_bodies_failure)
        view.simulation.playing_changed.connect(self._bench.set_simulation_playing)
        view.simulation.playing_changed.connect(self.playing_changed)

    def _show_bodies_failure(self, failure: Failure) -> None:
        """Report a failure; the next successful run hides a report about invalid input."""
        self._messages.show_failure(failure, *(("run",) if failure.kind == "input" else ()))

    def _set_scale(self, chosen: str) -> None:
        """Apply a scale chosen in one histogram to all of them."""
        self._saved_settings.scale = chosen
        for page in self.pages_by_name.values():
            if page.view.levels is not None:
                page.view.levels.set_scale(chosen)

    # --- closing

    def close_down(self) -> None:
        """Stop all pages and save their state: the window closes."""
        saved_settings = self._saved_settings
        for name, page in self.pages_by_name.items():
            if page.has_new_step_settings:
                saved_settings.store_step(name, page.step.settings.params, page.step.settings.schedule)
            if name in self._visited_names:  # the others have no layout yet
                saved_settings.store_tab(name, page.tabs.tabText(page.tabs.currentIndex()))
                saved_settings.store_sizes(f"{name}/page", page.splitter.sizes())
                saved_settings.store_sizes(f"{name}/view", page.view.splitter.sizes())
                if page.has_step_tab and page.step.models is not None:
                    saved_settings.store_sizes(f"{name}/step", page.step.panes.splitter.sizes())
            if page.has_step_tab:
                page.step.close_down()
            if isinstance(page.view, BodiesView):
                page.view.close_down()
