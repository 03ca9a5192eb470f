"""The page of a pattern, the same for every pattern: settings, results, kernel source, statistics."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from PyQt6.QtCore import Qt, pyqtSignal
from PyQt6.QtGui import QResizeEvent
from PyQt6.QtWidgets import QFrame, QLabel, QSizePolicy, QStackedWidget, QWidget

from gpu.declaration.pattern import Inputs, Integer, Pattern, Preset
from gpu.declaration.presentation import ATOMICS, InputKind
from gpu.messages.events import Failure
from gpu.messages.modeled_time import ModeledTime
from gpu.messages.runs.distributed_run import DistributedRun
from gpu.messages.runs.writer import StepWriter
from gpu.messages.shared_arrays import SharedArray
from gui.compare_view.atomics_tab import AtomicsTab
from gui.compare_view.tab import CompareTab
from gui.editor.source_pane import SourcePane
from gui.editor.sources import KernelSources
from gui.model.records import FinishedRun, LevelCounts, OpenImage, OpenValues, Settings
from gui.model.request_queue import RequestQueue
from gui.painting.theme import look
from gui.qt.events import StyleListener
from gui.run_view.bodies.view import BodiesView
from gui.run_view.cards.devices_card import DevicesCard
from gui.run_view.cards.modeled_card import ModeledCard, find_line_code
from gui.run_view.examples import Examples
from gui.run_view.numbers import NumbersCard
from gui.step_view.machines.view import MachinesView
from gui.step_view.recording.settings_panel import SettingsPanel
from gui.step_view.recording.steppable import make_variant_steppable
from gui.step_view.tab import StepTab
from gui.step_view.warps.timeline_requests import TimelineSubject
from gui.widgets.basic import (
    Card,
    Ground,
    Segments,
    column,
    create_tab_bar,
    format_count,
    format_figure,
    label,
    row,
    set_role,
    split,
)
from gui.widgets.folding import FoldingForm
from gui.widgets.forms import ParameterForm
from gui.widgets.scroll_column import ScrollColumn
from gui.window.pages.rung_card import RungCard
from gui.window.pages.views import create_view, list_form_parameters
from gui.window.pages.writer_search import WriterSearch

_MIN_CODE_HEIGHT = 100
"""Minimum height of the code in pixels."""
_FOLDING_HEIGHT = 40
"""Height of a window in lines of text below which the settings can be folded."""
_ATOMICS = "Atomics"
_COMPARE = "Compare"
_STEP = "Step"
_WORKERS = "Workers"
"""Title of the tab about the workers of a distributed run."""


class Caution(QFrame):
    """A banner for a cautionary variant: why it is wrong, and the error of the latest run."""

    def __init__(self) -> None:
        super().__init__()
        self.setProperty("banner", "warn")
        self.setAccessibleName("Caution")
        self.reason_label = label("", wrap=True, name="Why this variant is wrong")
        self.outcome_label = QLabel()
        set_role(self.outcome_label, "card-title")
        self.outcome_label.setWordWrap(True)
        self.outcome_label.setAccessibleName("What went wrong in this run")
        self.setLayout(column(self.outcome_label, self.reason_label, spacing=2, margins=(14, 8, 14, 8)))
        self.hide()

    def show_reason(self, reason: str) -> None:
        """Show why a variant is wrong; an empty text hides the banner."""
        self.reason_label.setText(reason)
        self.outcome_label.setText("Wrong by design")
        self.setVisible(bool(reason))

    def show_outcome(self, outcome: FinishedRun) -> None:
        """Show the error of a run."""
        self.outcome_label.setText(describe_flawed_outcome(outcome))


def describe_flawed_outcome(outcome: FinishedRun) -> str:
    """Return a sentence about how a cautionary variant's run affected its result."""
    counts = outcome.arrays.get("counts")
    if counts is not None and outcome.image is not None:
        expected = outcome.image.values.size
        lost = expected - int(counts.sum(dtype="int64"))
        if lost:
            return f"{format_count(lost)} of {format_count(expected)} updates lost ({lost / expected:.1%})"
        return "No update was lost this time, but that is not guaranteed"
    deviation = outcome.report.deviation
    if deviation is not None and outcome.report.verified is False:
        return f"The result differs by up to {format_figure(deviation.max_abs)}"
    return "Correct this time, but not guaranteed"


def _hold_corner(corner: QWidget | None) -> QWidget:
    holder = QWidget()
    wide = corner is not None and corner.sizePolicy().horizontalPolicy() == QSizePolicy.Policy.Expanding
    holder.setLayout(row(0) if corner is None else row(corner) if wide else row(0, corner))
    return holder


class PatternPage(StyleListener, Ground):
    """One pattern's settings, and its tabs: Run, Step, and Compare for a pattern of arrays.

    Parameters
    ----------
    settings : Settings
        The initial settings.
    sources : KernelSources
        The kernels' texts, editable on this page.
    jobs : callable
        Returns the queue of the simulator that records for the Step tab.
    engine : RequestQueue
        The queue of the selected engine; the Compare tab measures on it.
    timed : TimelineSubject
        Supplies the Step tab's timeline; its TimeModeler also predicts the variants' times on a GPU.
    image : callable
        Returns the inputs of the open image; empty without one.
    """

    params_changed = pyqtSignal(dict)
    variant_requested = pyqtSignal(str)
    step_tab_created = pyqtSignal()
    """The Step tab was created, with the initial settings of the Run tab."""
    measuring_tabs_created = pyqtSignal()
    """The tabs that measure were created."""

    def __init__(
        self,
        pattern: Pattern,
        settings: Settings,
        sources: KernelSources,
        jobs: Callable[[], RequestQueue],
        engine: RequestQueue,
        timed: TimelineSubject,
        image: Callable[[], Mapping[str, SharedArray]],
    ) -> None:
        super().__init__()
        self.pattern, self._settings = pattern, settings
        self._sources, self._jobs, self._engine, self._image = sources, jobs, engine, image
        self._timed, self._modeling = timed, timed.modeling
        self._last_run: FinishedRun | None = None
        self.variant = pattern.variant(settings.variant)
        """The variant shown."""
        self.form = ParameterForm(list_form_parameters(pattern))
        self._fill_form(settings.params)
        self.view = create_view(pattern, self.form, engine)
        self._step: StepTab | None = None
        self._step_inputs: dict[InputKind, Inputs] = {}
        """Opened inputs for the Step tab, until it is created."""
        self._step_updates: list[Callable[[SettingsPanel], None]] = []
        """Changes of the Step tab's settings, until it is created."""
        self._initial_params = dict(settings.params)
        self.writer_search = WriterSearch(self.view, jobs, engine)
        self._create_cards()
        self._create_tabs()
        self.setLayout(column(row(self.tabs, self.corner), self.stack, margins=(8, 8, 8, 8), stretch=1))
        self._connect_parts()
        self.show_variant(settings.variant)
        self._show_params(settings.params)
        self._step_updates.clear()  # `create_step_tab` applies the initial parameters

    def _create_cards(self) -> None:
        """Create the parts of the Run tab, except the form and the view."""
        self.caution = Caution()
        self.source = SourcePane(self._sources)
        self.numbers = NumbersCard()
        self.devices: DevicesCard | None = None
        """The summary of a distributed run; created by the first one."""
        self.machines: MachinesView | None = None
        """The tasks and workers of that run."""
        self.modeled_card = ModeledCard()
        self.examples = Examples(self.pattern)
        self.side_choice = Segments(("Plots", "Kernel"), "Side panel")

    def _create_tabs(self) -> None:
        """Create the tabs; all but the first are empty, because they take long and are created later."""
        self.tabs = create_tab_bar()
        self.tabs.setElideMode(Qt.TextElideMode.ElideNone)
        self.corner = QStackedWidget()
        self.corner.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Maximum)
        self.stack = QStackedWidget()
        self.tabs.currentChanged.connect(self._on_tab_changed)
        self.tabs.currentChanged.connect(self.corner.setCurrentIndex)
        self._compare: CompareTab | None = None
        self._atomics: AtomicsTab | None = None
        self.add_tab("Run", self._create_run_tab(), self._create_corner())
        self.add_tab(_STEP, QWidget())
        if ATOMICS in self.pattern.lessons:
            self.add_tab(_ATOMICS, QWidget())
        self.add_tab(_COMPARE, QWidget())

    def _connect_parts(self) -> None:
        self.form.changed.connect(self._on_form_changed)
        self._sources.settled.connect(self._on_edit)
        self.source.exited.connect(self.setFocus)
        self.numbers.larger_size_requested.connect(self._run_larger)
        self.examples.preset_selected.connect(self.show_example)
        self.writer_search.step_requested.connect(self._record_writer)
        self.writer_search.line_requested.connect(self._show_line)

    def create_step_tab(self) -> None:
        """Create the Step tab: in idle time or when it is first needed, for it has half of the page's widgets."""
        if self._step is not None:
            return
        steppable = make_variant_steppable(self.pattern, self.variant)
        self._step = step = StepTab(steppable, self._sources, self._jobs, self._timed)
        self._replace_tab(_STEP, step, step.corner())
        step.show_steppable(steppable)
        step.settings.follow_input(self._initial_params)
        self.step_tab_created.emit()
        for kind, inputs in self._step_inputs.items():
            step.show_input(kind, inputs)
        for update in self._step_updates:
            update(step.settings)
        self._step_inputs.clear()
        self._step_updates.clear()

    @property
    def has_step_tab(self) -> bool:
        """Whether the Step tab exists."""
        return self._step is not None

    @property
    def step(self) -> StepTab:
        """The Step tab, created when it is first needed."""
        self.create_step_tab()
        assert self._step is not None
        return self._step

    @property
    def has_new_step_settings(self) -> bool:
        """Whether the Step tab's settings may differ from those of the last session."""
        return self._step is not None or bool(self._step_updates)

    def _show_step_input(self, kind: InputKind, inputs: Inputs) -> None:
        if self._step is None:
            self._step_inputs[kind] = inputs
        else:
            self._step.show_input(kind, inputs)

    def _update_step_settings(self, update: Callable[[SettingsPanel], None]) -> None:
        if self._step is None:
            self._step_updates.append(update)
        else:
            update(self._step.settings)

    def create_measuring_tabs(self) -> None:
        """Create the tabs that measure: in idle time or when they are first needed, for they take long to create."""
        if self._compare is not None:
            return
        pattern, settings = self.pattern, self._settings

        def get_params() -> Mapping[str, Any]:
            return settings.params

        if ATOMICS in pattern.lessons:
            self._atomics = AtomicsTab(pattern, self._jobs, self._engine, get_params)
            self._replace_tab(_ATOMICS, self._atomics)
        self._compare = CompareTab(
            pattern, self._sources, self._engine, get_params, self._image, self._modeling, lambda: self.variant.name
        )
        self._replace_tab(_COMPARE, self._compare, self._compare.views)
        self.measuring_tabs_created.emit()

    @property
    def has_all_tabs(self) -> bool:
        """Whether the tabs that measure exist."""
        return self._compare is not None

    @property
    def compare(self) -> CompareTab:
        """The Compare tab, created when it is first needed."""
        self.create_measuring_tabs()
        assert self._compare is not None
        return self._compare

    @property
    def atomics(self) -> AtomicsTab | None:
        """The Atomics tab of a pattern that has one, created when it is first needed."""
        if ATOMICS in self.pattern.lessons:
            self.create_measuring_tabs()
        return self._atomics

    def add_tab(self, title: str, content: QWidget, corner: QWidget | None = None) -> None:
        """Add a tab; `corner` is placed at the right end of the tab bar."""
        self.corner.addWidget(_hold_corner(corner))
        self.stack.addWidget(content)
        self.tabs.addTab(title)

    def _replace_tab(self, title: str, content: QWidget, corner: QWidget | None = None) -> None:
        index = self.tab_titles.index(title)
        for stack, widget in ((self.corner, _hold_corner(corner)), (self.stack, content)):
            replaced = stack.widget(index)
            assert replaced is not None
            stack.insertWidget(index, widget)
            stack.removeWidget(replaced)
            replaced.deleteLater()

    @property
    def tab_titles(self) -> list[str]:
        """The titles of the tabs, in order."""
        return [self.tabs.tabText(number) for number in range(self.tabs.count())]

    def _on_tab_changed(self, index: int) -> None:
        title = self.tabs.tabText(index)
        if title == _STEP:
            self.create_step_tab()
        elif title in (_ATOMICS, _COMPARE):
            self.create_measuring_tabs()
        self.stack.setCurrentIndex(index)

    def select_tab(self, title: str) -> None:
        """Show the tab with this title, if it exists."""
        if title in self.tab_titles:
            self.tabs.setCurrentIndex(self.tab_titles.index(title))

    @property
    def stepping(self) -> bool:
        """Whether the Step tab is visible."""
        return self.stack.currentWidget() is self._step

    @property
    def bodies(self) -> BodiesView | None:
        """The view of bodies if it is visible, else None."""
        is_result_tab = self.stack.currentIndex() == 0
        return self.view if is_result_tab and isinstance(self.view, BodiesView) else None

    @property
    def comparing(self) -> CompareTab | None:
        """The Compare tab if it is visible, else None."""
        return self._compare if self.stack.currentWidget() is self._compare else None

    def _create_corner(self) -> QWidget:
        """Return the widget at the right end of the tab bar."""
        if self.view.side_panel is None or self.view.description is None:
            return self.examples
        corner = QWidget()
        line = row(self.view.description, self.side_choice, spacing=16, stretch=0)
        corner.setLayout(line)
        corner.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        return corner

    @property
    def studying(self) -> AtomicsTab | None:
        """The Atomics tab if it is visible, else None."""
        return self._atomics if self.stack.currentWidget() is self._atomics else None

    def _create_run_tab(self) -> QWidget:
        bar = Card(self.pattern.title, margins=(12, 8, 12, 10))
        bar.title.hide()
        bar.body.setSpacing(0)
        self.settings = FoldingForm(self.form)
        bar.body.addWidget(self.settings)
        left = ScrollColumn()
        column = left.column
        column.addWidget(bar)
        if self.view.description is None:
            column.addWidget(self.examples.description_banner)
        column.addWidget(self.caution)
        column.addWidget(self.view, 1)
        column.addWidget(self.modeled_card)
        right = ScrollColumn()
        column = right.column
        self.idea = RungCard(self.pattern)
        self.idea.variant_requested.connect(self.variant_requested)
        column.addWidget(self.idea)
        column.addWidget(self.source, 1)
        # The whole column scrolls if it is too high, so the code needs no larger minimum.
        self.source.code.setMinimumHeight(_MIN_CODE_HEIGHT)
        column.addWidget(self.numbers)
        self._kernel_column = column
        sizes = (look().px(720), look().px(390))
        self.splitter = split(
            Qt.Orientation.Horizontal, left, self._create_right_side(right), sizes=sizes, stretch=(5, 3)
        )
        holder = QWidget()
        holder.setLayout(row(self.splitter))
        return holder

    def resizeEvent(self, event: QResizeEvent | None) -> None:
        super().resizeEvent(event)
        self._update_folding()

    def _restyle(self) -> None:
        self._update_folding()

    def _update_folding(self) -> None:
        """Allow folding the settings where large text in a low window would push the results out of sight."""
        window = self.window()
        self.settings.set_foldable(window is not None and window.height() < _FOLDING_HEIGHT * look().text_px)

    def _create_right_side(self, kernel: QWidget) -> QWidget:
        """Return the right-hand widget: the kernel, or a stack of the view's plots and the kernel."""
        if self.view.side_panel is None:
            return kernel
        stack = QStackedWidget()
        stack.addWidget(self.view.side_panel)
        stack.addWidget(kernel)
        self.side_choice.picked.connect(lambda name: stack.setCurrentIndex(int(name == "Kernel")))
        return stack

    def _record_writer(self, request: StepWriter) -> None:
        """Step through the block that wrote an element."""
        self.step.record_writer(request)
        self.select_tab(_STEP)

    def _show_line(self, file: str, line: int) -> None:
        """Show a line of the kernel that ran."""
        self.side_choice.choose("Kernel")
        self.source.show_kernel(file, self.source.code.kernel, line)
        self.source.code.go_to_line(line)

    def show_variant(self, name: str) -> None:
        """Show a variant's kernel and idea."""
        self.writer_search.set_run(None)
        self.variant = variant = self.pattern.variant(name)
        self.idea.show_variant(variant)
        self.caution.show_reason(variant.deliberate_error)
        stepped = make_variant_steppable(self.pattern, variant)
        self.source.show_source(stepped.file, stepped.kernel, stepped.library)
        self.view.show_variant(name)
        if self._step is not None:
            self._step.show_steppable(stepped)
        self.numbers.clear_verdict()
        if self.view.description is None:
            self.examples.show_params(self._settings.params, name)

    def show_image(self, image: OpenImage) -> None:
        """Show the new input image."""
        self.view.show_image(image)
        if self.pattern.input_kind(self._settings.params) == "image":
            self._last_run = None
            self.numbers.clear_verdict()
        if self.pattern.is_image_pattern:
            self._show_step_input("image", {"image": image.values, "maxval": np.array(image.maxval, np.uint32)})
        if self._atomics is not None:
            self._atomics.show_image(image)
        if self._compare is not None:
            self._compare.on_image_changed()

    def show_progress(self, text: str) -> None:
        """Show the phase of a run without known progress, while there is no result to show."""
        self.view.show_note(text if self._last_run is None else "")

    def show_outcome(self, outcome: FinishedRun) -> None:
        """Show the results of a run."""
        self.view.show_note("")
        # Without its arrays, which may be large.
        self._last_run = replace(outcome, image=None, handles={}, arrays={})
        self.view.show_outcome(outcome)
        # A single device's run can be searched for the thread that wrote an element.
        self.writer_search.set_run(outcome.request if outcome.distributed is None else None)
        self._show_devices(outcome.distributed)
        variant = self.pattern.variant(outcome.variant)
        if variant.deliberate_error:
            self.caution.show_outcome(outcome)
        self._show_numbers(outcome)

    def _show_devices(self, run: DistributedRun | None) -> None:
        if self.devices is None and run is not None:
            self.devices = DevicesCard()
            self._kernel_column.addWidget(self.devices)
            self.devices.workers_requested.connect(lambda: self.select_tab(_WORKERS))
            self.machines = MachinesView(self.pattern.require_distributed())
            self.add_tab(_WORKERS, self.machines)
        if self.devices is not None and self.machines is not None:
            self.devices.setVisible(run is not None)
            self.tabs.setTabVisible(self.stack.indexOf(self.machines), run is not None)
            if run is not None:
                self.devices.show_run(run, self._engine.dashboard)
                self.machines.show_run(run)

    def show_check(self, outcome: FinishedRun) -> None:
        """Show the checkers' findings for the newest run."""
        if self._last_run is not None:
            self._last_run = replace(self._last_run, check=outcome.check)
            self._show_numbers(self._last_run)

    def show_run_counts(self, outcome: FinishedRun) -> None:
        """Show the counts of the newest run."""
        if self._last_run is not None:
            self._last_run = replace(self._last_run, counts=outcome.counts, count_error=outcome.count_error)
            self._show_numbers(self._last_run)

    def _show_numbers(self, outcome: FinishedRun) -> None:
        """Show a run's cost, and its verdict while its variant and source are still the ones shown."""
        lesson = self.pattern.variant(outcome.variant).deliberate_error
        self.numbers.show_report(outcome.report, outcome.verdict(lesson))
        if outcome.report.simulated:
            self.numbers.show_counts(outcome.counts, outcome.count_error)
        if outcome.variant != self.variant.name:
            self.numbers.clear_verdict()
        elif self._sources.find_edits(self.pattern.kernel_file_of(outcome.variant)) != outcome.sources:
            self.numbers.mark_outdated()

    def _on_edit(self, file: str) -> None:
        ran = self._last_run
        if ran is not None and (ran.variant, self.pattern.kernel_file_of(ran.variant)) == (self.variant.name, file):
            self._show_numbers(ran)

    def show_machine_code(self, model: ModeledTime | Failure | None) -> None:
        """Annotate the kernel's source lines with their machine code, if an assembler provides it."""
        self.source.show_machine_code(find_line_code(model, self.pattern.kernel_file_of(self.variant.name)))

    def show_counts(self, counts: LevelCounts) -> None:
        """Show the counts of the image's levels."""
        self.view.show_counts(counts)

    def show_example(self, preset: Preset) -> None:
        """Apply an example's settings, and its variant if it has one."""
        params = self.pattern.check(preset.params)
        self._fill_form(params)
        self._apply_params(params)
        self._update_step_settings(lambda step: step.apply_example(preset.params))
        if preset.variant:
            self.variant_requested.emit(preset.variant)

    def _run_larger(self, parameter: str, value: int) -> None:
        """Run at a size where variants can be compared; for images, open the Compare tab."""
        if parameter:
            params = {**self._settings.params, parameter: value}
            self._fill_form(params)
            self._apply_params(params)
        else:
            self.select_tab(_COMPARE)

    def show_numbers(self, values: OpenValues) -> None:
        """Use another file of numbers for stepping, if it has the pattern's number of dimensions."""
        if values.values.ndim == self.pattern.dimensions:
            self._show_step_input("values", {"values": values.values})

    def show_values(self, params: dict[str, Any]) -> None:
        """Show settings that changed elsewhere."""
        self._fill_form(params)
        self._show_params(params)

    def _fill_form(self, params: Mapping[str, Any]) -> None:
        self.form.set_values({name: value for name, value in params.items() if name in self.form.fields})

    def _on_form_changed(self, entered: dict[str, Any]) -> None:
        params = self.view.add_dependent_params(
            {**self._settings.params, **entered, **self._dependent_defaults(entered)}
        )
        self._fill_form({name: value for name, value in params.items() if value is not entered.get(name)})
        self._apply_params(params)

    def _dependent_defaults(self, entered: Mapping[str, Any]) -> dict[str, Any]:
        """Return new defaults of the parameters that depend on a changed choice and were not edited themselves."""
        before = self._settings.params
        return {
            parameter.name: parameter.initial_for(entered)
            for parameter in self.pattern.parameters
            if isinstance(parameter, Integer)
            and parameter.name in entered
            and parameter.initial_for(entered) != parameter.initial_for(before)
            and entered[parameter.name] == before[parameter.name]
        }

    def _apply_params(self, params: dict[str, Any]) -> None:
        self._show_params(params)
        self.params_changed.emit(params)

    def _show_params(self, params: dict[str, Any]) -> None:
        self.settings.show_values(params)
        self.view.show_params(params)
        if self.view.description is None:
            self.examples.show_params(params, self.variant.name)
        followed = dict(params)
        self._update_step_settings(lambda step: step.follow_input(followed))
        if self._atomics is not None:
            self._atomics.study_soon()
