"""The page of a pattern, the same for every pattern: settings, results, kernel source, numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from PyQt6.QtCore import QEvent, Qt, pyqtSignal
from PyQt6.QtGui import QResizeEvent
from PyQt6.QtWidgets import (
    QFrame,
    QLabel,
    QSizePolicy,
    QStackedWidget,
    QTabBar,
    QVBoxLayout,
    QWidget,
)

from gpu.declaration.pattern import Integer, Pattern, Preset
from gpu.declaration.presentation import ATOMICS
from gpu.messages.distributed import DistributedRun
from gpu.messages.modeled import ModeledTime
from gpu.messages.requests import Failure, StepWriter
from gpu.messages.shared_arrays import SharedArray
from gui.atomics_view.tab import AtomicsTab
from gui.bodies_view.view import BodiesView
from gui.compare_view.tab import CompareTab
from gui.editor.source_pane import SourcePane
from gui.editor.sources import KernelSources
from gui.model.jobs import Jobs
from gui.model.modeling import Modeling
from gui.model.records import FinishedRun, LevelCounts, OpenImage, OpenValues, Settings
from gui.painting.theme import look
from gui.qt.events import is_of
from gui.run_view.devices_card import DevicesCard
from gui.run_view.examples import Examples
from gui.run_view.modeled import ModeledCard, code_of
from gui.run_view.numbers import NumbersCard
from gui.step_view.machines.view import MachinesView
from gui.step_view.recording.steppable import stepped_variant
from gui.step_view.tab import StepTab
from gui.step_view.warps.asked import Timed
from gui.widgets.basic import Card, Ground, Segments, as_count, as_figure, label, role, row, split
from gui.widgets.folding import FoldingForm
from gui.widgets.forms import ParameterForm
from gui.widgets.scrolled import Scrolled
from gui.window.pointing import Pointing
from gui.window.rung_card import RungCard
from gui.window.views import shown_parameters, view_for

_CODE = 100
"""Pixels that the code is high at least."""
_LOW = 40
"""Lines of text that a window is high in which settings fold."""
_WORKERS = "Workers"
"""The tab of what several devices did."""


class Caution(QFrame):
    """Says that a variant is wrong on purpose, why, and what that has just done."""

    def __init__(self) -> None:
        super().__init__()
        self.setProperty("banner", "warn")
        self.setAccessibleName("Caution")
        self.why = label("", wrap=True, name="Why this variant is wrong")
        self.lesson = QLabel()
        role(self.lesson, "card-title")
        self.lesson.setWordWrap(True)
        self.lesson.setAccessibleName("What went wrong in this run")
        layout = QVBoxLayout(self)
        layout.setContentsMargins(14, 8, 14, 8)
        layout.setSpacing(2)
        layout.addWidget(self.lesson)
        layout.addWidget(self.why)
        self.hide()

    def show_variant(self, why: str) -> None:
        """Show why a variant is wrong; empty text hides all."""
        self.why.setText(why)
        self.lesson.setText("Wrong on purpose")
        self.setVisible(bool(why))

    def show_outcome(self, outcome: FinishedRun) -> None:
        """Show what went wrong in a run."""
        self.lesson.setText(lesson_of(outcome))


def lesson_of(outcome: FinishedRun) -> str:
    """Return what a run of a cautionary variant did to its result, in one sentence."""
    counts = outcome.arrays.get("counts")
    if counts is not None and outcome.image is not None:
        due = outcome.image.values.size
        lost = due - int(counts.sum(dtype="int64"))
        if lost:
            return f"{as_count(lost)} of {as_count(due)} updates lost ({lost / due:.1%})"
        return "No update was lost this time; nothing makes sure of that"
    deviation = outcome.report.deviation
    if deviation is not None and outcome.report.verified is False:
        return f"The result is off by up to {as_figure(deviation.max_abs)}"
    return "Right this time; nothing makes sure of that"


class PatternPage(Ground):
    """One pattern's settings, and its tabs: Run, Step, and Compare for a pattern of arrays.

    Parameters
    ----------
    pattern : Pattern
    settings : Settings
        What is chosen at first.
    sources : KernelSources
        The kernels' texts, which are edited here.
    jobs : callable
        Returns the queue of the simulator that records what the Step tab plays.
    engine : Jobs
        The queue of the engine that is chosen, on which the Compare tab measures.
    timed : Timed
        What the Step tab's timeline is of.
    """

    params_changed = pyqtSignal(dict)
    variant_wanted = pyqtSignal(str)

    def __init__(
        self,
        pattern: Pattern,
        settings: Settings,
        sources: KernelSources,
        jobs: Callable[[], Jobs],
        engine: Jobs,
        timed: Timed,
    ) -> None:
        super().__init__()
        self.pattern = pattern
        self._settings = settings
        self._ran: FinishedRun | None = None
        self.form = ParameterForm(shown_parameters(pattern))
        self._enter(settings.params)
        self.caution = Caution()
        self.view = view_for(pattern, self.form, engine)
        self.source = SourcePane(sources)
        self.source.left.connect(self.setFocus)
        self.numbers = NumbersCard()
        self.numbers.larger_wanted.connect(self._enlarge)
        self.devices: DevicesCard | None = None
        """What a run on several devices came to, once there was one."""
        self.machines: MachinesView | None = None
        """Its tasks and workers."""
        self.modeled = ModeledCard()
        self.tabs = QTabBar()
        self.tabs.setExpanding(False)
        self.tabs.setDrawBase(False)
        self.tabs.setUsesScrollButtons(False)
        self.tabs.setElideMode(Qt.TextElideMode.ElideNone)
        self.tabs.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self.corner = QStackedWidget()
        self.corner.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Maximum)
        self.stack = QStackedWidget()
        self.tabs.currentChanged.connect(self.stack.setCurrentIndex)
        self.tabs.currentChanged.connect(self.corner.setCurrentIndex)
        self.examples = Examples(pattern)
        self.examples.chosen.connect(self.show_example)
        self.beside = Segments(("Plots", "Kernel"), "Beside")
        self.add_tab("Run", self._run_tab(), self._corner())
        self.variant = pattern.variant(settings.variant)
        """The variant that is shown."""
        self.step = StepTab(stepped_variant(pattern, self.variant), sources, jobs, timed)
        self.add_tab("Step", self.step, self.step.corner())
        self.pointing = Pointing(self.view, jobs, engine)
        self.pointing.step_wanted.connect(self._step_from)
        self.pointing.line_wanted.connect(self._show_line)
        self.compare: CompareTab | None = None
        self.atomics: AtomicsTab | None = None
        self._sources, self._jobs, self._engine = sources, jobs, engine
        self.complete = False
        """Whether it has all of its tabs."""

        layout = QVBoxLayout(self)
        layout.setContentsMargins(8, 8, 8, 8)
        layout.setSpacing(8)
        layout.addLayout(row(self.tabs, self.corner))
        layout.addWidget(self.stack, 1)
        self.form.changed.connect(self._take_params)
        sources.settled.connect(self._take_edit)
        self.show_variant(settings.variant)
        self._show_params(settings.params)

    def add_studies(self, image: Callable[[], Mapping[str, SharedArray]], modeling: Modeling) -> None:
        """Add the tabs that measure: all at once a page would hold the window up while it is made.

        `image` returns the inputs of the image that is open, `modeling` says how long variants would take on a GPU.
        """
        pattern, settings = self.pattern, self._settings
        if ATOMICS in pattern.lessons:
            self.atomics = AtomicsTab(pattern, self._jobs, self._engine, lambda: settings.params)
            self.add_tab("Atomics", self.atomics)

        def chosen() -> Mapping[str, Any]:
            return settings.params

        def seen() -> str:
            return self.variant.name

        self.compare = CompareTab(pattern, self._sources, self._engine, chosen, image, modeling, seen)
        self.add_tab("Compare", self.compare, self.compare.views)
        self.complete = True

    def add_tab(self, title: str, content: QWidget, corner: QWidget | None = None) -> None:
        """Add a way to look at the pattern; `corner` stands at the other end of the tabs' line."""
        holder = QWidget()
        wide = corner is not None and corner.sizePolicy().horizontalPolicy() == QSizePolicy.Policy.Expanding
        holder.setLayout(row(0) if corner is None else row(corner) if wide else row(0, corner))
        self.corner.addWidget(holder)
        self.stack.addWidget(content)
        self.tabs.addTab(title)

    def turn_to(self, title: str) -> None:
        """Show the tab of that title, where there is one."""
        titles = [self.tabs.tabText(number) for number in range(self.tabs.count())]
        if title in titles:
            self.tabs.setCurrentIndex(titles.index(title))

    @property
    def stepping(self) -> bool:
        """Whether the Step tab is shown."""
        return self.stack.currentWidget() is self.step

    @property
    def bodies(self) -> BodiesView | None:
        """Return the view of bodies where it is shown."""
        shown = self.stack.currentIndex() == 0
        return self.view if shown and isinstance(self.view, BodiesView) else None

    @property
    def comparing(self) -> CompareTab | None:
        """Return the Compare tab where it is shown."""
        return self.compare if self.stack.currentWidget() is self.compare else None

    def _corner(self) -> QWidget:
        """Return what stands in the line of the tabs."""
        if self.view.beside is None or self.view.about is None:
            return self.examples
        corner = QWidget()
        line = row(self.view.about, self.beside, spacing=16)
        line.setStretch(0, 1)
        corner.setLayout(line)
        corner.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        return corner

    @property
    def studying(self) -> AtomicsTab | None:
        """Return the Atomics tab where it is shown."""
        return self.atomics if self.stack.currentWidget() is self.atomics else None

    def _run_tab(self) -> QWidget:
        bar = Card(self.pattern.title, margins=(12, 8, 12, 10))
        bar.title.hide()
        bar.body.setSpacing(0)
        self.settings = FoldingForm(self.form)
        bar.body.addWidget(self.settings)
        left = Scrolled()
        column = left.column
        column.addWidget(bar)
        if self.view.about is None:
            column.addWidget(self.examples.about)
        column.addWidget(self.caution)
        column.addWidget(self.view, 1)
        column.addWidget(self.modeled)
        right = Scrolled()
        column = right.column
        self.idea = RungCard(self.pattern)
        self.idea.variant_wanted.connect(self.variant_wanted)
        column.addWidget(self.idea)
        column.addWidget(self.source, 1)
        # All of it is scrolled where it is long: the code need not be as low as it may be.
        self.source.code.setMinimumHeight(_CODE)
        column.addWidget(self.numbers)
        self._beside_kernel = column
        sizes = (look().px(720), look().px(390))
        self.splitter = split(Qt.Orientation.Horizontal, left, self._beside(right), sizes=sizes, stretch=(5, 3))
        holder = QWidget()
        holder.setLayout(row(self.splitter))
        return holder

    def resizeEvent(self, event: QResizeEvent | None) -> None:
        super().resizeEvent(event)
        self._share_room()

    def changeEvent(self, event: QEvent | None) -> None:
        super().changeEvent(event)
        if is_of(event, QEvent.Type.StyleChange):
            self._share_room()

    def _share_room(self) -> None:
        """Let the settings fold where large text in a low window would leave what is run below the edge."""
        window = self.window()
        self.settings.let_fold(window is not None and window.height() < _LOW * look().text_px)

    def _beside(self, kernel: QWidget) -> QWidget:
        """Return what stands beside the view: the kernel, or what the view has there until the kernel is wanted."""
        if self.view.beside is None:
            return kernel
        stack = QStackedWidget()
        stack.addWidget(self.view.beside)
        stack.addWidget(kernel)
        self.beside.picked.connect(lambda name: stack.setCurrentIndex(int(name == "Kernel")))
        return stack

    def _step_from(self, request: StepWriter) -> None:
        """Step through the block that wrote an element."""
        self.step.record_writer(request)
        self.turn_to("Step")

    def _show_line(self, file: str, line: int) -> None:
        """Show a line of what ran."""
        self.beside.choose("Kernel")
        self.source.show_kernel(file, self.source.code.kernel, line)
        self.source.code.go_to_line(line)

    def show_variant(self, name: str) -> None:
        """Show a variant's kernel and idea."""
        self.pointing.take_run(None)
        self.variant = variant = self.pattern.variant(name)
        self.idea.show_variant(variant)
        self.caution.show_variant(variant.cautionary)
        stepped = stepped_variant(self.pattern, variant)
        self.source.show_source(stepped.file, stepped.kernel, stepped.library)
        self.view.show_variant(name)
        self.step.show_steppable(stepped)
        self.numbers.forget_verdict()
        if self.view.about is None:
            self.examples.show_params(self._settings.params, name)

    def show_image(self, image: OpenImage) -> None:
        """Show another input."""
        self.view.show_image(image)
        if self.pattern.takes(self._settings.params) == "image":
            self._ran = None
            self.numbers.forget_verdict()
        if self.pattern.of_images:
            self.step.show_input("image", {"image": image.values, "maxval": np.array(image.maxval, np.uint32)})
        if self.atomics is not None:
            self.atomics.show_image(image)

    def show_progress(self, words: str) -> None:
        """Say what a run is at that cannot tell how far it is, where there is no result to look at yet."""
        self.view.show_note(words if self._ran is None else "")

    def show_outcome(self, outcome: FinishedRun) -> None:
        """Show what a run gave."""
        self.view.show_note("")
        # Not its arrays, which may be large.
        self._ran = replace(outcome, image=None, handles={}, arrays={})
        self.view.show_outcome(outcome)
        # What wrote an element is found where one device computes all of them.
        self.pointing.take_run(outcome.asked if outcome.distributed is None else None)
        self._show_devices(outcome.distributed)
        variant = self.pattern.variant(outcome.variant)
        if variant.cautionary:
            self.caution.show_outcome(outcome)
        self._show_numbers(outcome)

    def _show_devices(self, done: DistributedRun | None) -> None:
        if self.devices is None and done is not None:
            self.devices = DevicesCard()
            self._beside_kernel.addWidget(self.devices)
            self.devices.workers_wanted.connect(lambda: self.turn_to(_WORKERS))
            self.machines = MachinesView(self.pattern.over_devices())
            self.add_tab(_WORKERS, self.machines)
        if self.devices is not None and self.machines is not None:
            self.devices.setVisible(done is not None)
            self.tabs.setTabVisible(self.stack.indexOf(self.machines), done is not None)
            if done is not None:
                self.devices.show_run(done, self._engine.dashboard)
                self.machines.show_run(done)

    def show_check(self, outcome: FinishedRun) -> None:
        """Show what the checkers found in the text of the newest run."""
        if self._ran is not None:
            self._ran = replace(self._ran, check=outcome.check)
            self._show_numbers(self._ran)

    def show_run_counts(self, outcome: FinishedRun) -> None:
        """Show what was counted of the newest run."""
        if self._ran is not None:
            self._ran = replace(self._ran, counts=outcome.counts, uncounted=outcome.uncounted)
            self._show_numbers(self._ran)

    def _show_numbers(self, outcome: FinishedRun) -> None:
        """Show what a run cost; whether it was right only while its variant and text are the ones that are seen."""
        lesson = self.pattern.variant(outcome.variant).cautionary
        self.numbers.show_report(outcome.report, outcome.verdict(lesson))
        if outcome.report.simulated:
            self.numbers.show_counts(outcome.counts, outcome.uncounted)
        if outcome.variant != self.variant.name:
            self.numbers.forget_verdict()
        elif self._sources.edits(self.pattern.file_of(outcome.variant)) != outcome.sources:
            self.numbers.take_back()

    def _take_edit(self, file: str) -> None:
        ran = self._ran
        if ran is not None and (ran.variant, self.pattern.file_of(ran.variant)) == (self.variant.name, file):
            self._show_numbers(ran)

    def show_machine_code(self, found: ModeledTime | Failure | None) -> None:
        """Show beside the kernel's source what its lines became, where an assembler says that."""
        self.source.show_machine_code(code_of(found, self.pattern.file_of(self.variant.name)))

    def show_counts(self, counts: LevelCounts) -> None:
        """Show counted levels."""
        self.view.show_counts(counts)

    def show_example(self, preset: Preset) -> None:
        """Take an example's settings, and its variant where it has one."""
        params = self.pattern.check(preset.params)
        self._enter(params)
        self._take(params)
        self.step.settings.take_example(preset.params)
        if preset.variant:
            self.variant_wanted.emit(preset.variant)

    def _enlarge(self, parameter: str, value: int) -> None:
        """Run with a value from which variants can be compared; images are compared at such a size."""
        if parameter:
            params = {**self._settings.params, parameter: value}
            self._enter(params)
            self._take(params)
        elif self.compare is not None:
            self.tabs.setCurrentIndex(self.stack.indexOf(self.compare))

    def show_numbers(self, opened: OpenValues) -> None:
        """Step through another file of numbers, where that has as many dimensions as are taken."""
        if opened.values.ndim == self.pattern.dimensions:
            self.step.show_input("values", {"values": opened.values})

    def show_values(self, params: dict[str, Any]) -> None:
        """Show settings that were changed elsewhere."""
        self._enter(params)
        self._show_params(params)

    def _enter(self, params: Mapping[str, Any]) -> None:
        self.form.set_values({name: value for name, value in params.items() if name in self.form.fields})

    def _take_params(self, entered: dict[str, Any]) -> None:
        params = self.view.complete({**self._settings.params, **entered, **self._own_defaults(entered)})
        self._enter({name: value for name, value in params.items() if value is not entered.get(name)})
        self._take(params)

    def _own_defaults(self, entered: Mapping[str, Any]) -> dict[str, Any]:
        """Return the defaults that come with another choice, of what has others with it and was not entered too."""
        before = self._settings.params
        return {
            each.name: each.initial_with(entered)
            for each in self.pattern.parameters
            if isinstance(each, Integer)
            and each.name in entered
            and each.initial_with(entered) != each.initial_with(before)
            and entered[each.name] == before[each.name]
        }

    def _take(self, params: dict[str, Any]) -> None:
        self._show_params(params)
        self.params_changed.emit(params)

    def _show_params(self, params: dict[str, Any]) -> None:
        self.settings.say(params)
        self.view.show_params(params)
        if self.view.about is None:
            self.examples.show_params(params, self.variant.name)
        self.step.settings.follow_input(params)
        if self.atomics is not None:
            self.atomics.study_soon()
