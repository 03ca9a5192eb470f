"""The Compare tab: variants over sizes, by measured throughput, recorded throughput, modeled times or counts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from PyQt6.QtCore import QEvent, QSize, Qt, pyqtSignal
from PyQt6.QtGui import QEnterEvent, QHideEvent, QPaintEvent, QResizeEvent, QShowEvent
from PyQt6.QtWidgets import (
    QComboBox,
    QGridLayout,
    QScrollArea,
    QStackedWidget,
    QWidget,
)

from gpu.base.errors import InputError
from gpu.bench.device_records import DeviceRecord, read_records
from gpu.declaration.pattern import Pattern, Variant
from gpu.declaration.roles import Role
from gpu.engines.base import SIMULATION_TIME_LABEL, Device
from gpu.messages.modeled_time import ModelPattern, format_duration, name_with_article
from gpu.messages.runs.pattern_runs import RunPattern
from gpu.messages.shared_arrays import SharedArray
from gpu.timing.gpus import GpuScaling, find_gpu
from gui.compare_view.comparisons import (
    Comparison,
    describe_setting_differences,
    list_comparisons,
    list_recorded_points,
)
from gui.compare_view.modeled_curves import ModeledCurves
from gui.compare_view.modeled_views import VIEWS, Modelable, ModeledViews
from gui.compare_view.sweep import Point, Sweep, SweepPlan, find_skip_reason
from gui.compare_view.workers import WorkersView
from gui.editor.sources import KernelSources
from gui.model.request_queue import RequestQueue
from gui.model.time_modeler import SETTLE_MS, TimeModeler
from gui.painting.painters import create_smooth_painter
from gui.painting.theme import look
from gui.plots.throughput_plot import ThroughputPlot, format_power, variant_pen
from gui.qt.events import StyleListener
from gui.qt.timers import create_single_shot_timer
from gui.widgets.basic import Card, ElidedLabel, Segments, button, column, format_figure, label, restyle, row, wrap_tip
from gui.widgets.elided_box import ElidedBox, WrappedCheck
from gui.widgets.wrapping import WrappingLayout

MIN_EXPONENT = 10
MAX_EXPONENT = 28
DEFAULT_MAX_EXPONENT = 22
MIN_SIDE_EXPONENT = 5
MAX_SIDE_EXPONENT = 13
DEFAULT_MAX_SIDE_EXPONENT = 9
UNITS = ("Melements/s", "GB/s")
_WORK_UNITS = {
    "FLOP": ("GFLOP/s", "GB/s"),
    "key": ("Mkeys/s", "GB/s"),
    "pixel": ("Mpixels/s", "GB/s"),
    "interaction": ("Minteractions/s", "GB/s"),
}
CURVES, WORKERS = "Curves", "Workers"
_LARGEST_SIZE_TITLE, _SINGLE_SIZE_TITLE = "Up to n =", "At n ="
_VARIANTS_TITLE = "Variants"
_CARD_MARGIN = 12
_SIMULATION_TIME_UNIT = f"ms {SIMULATION_TIME_LABEL}"


@dataclass(frozen=True)
class Range:
    """A range of sizes as powers of two.

    Parameters
    ----------
    choices : range
        Exponents of the possible largest sizes.
    default : int
        The initial largest size.
    """

    smallest: int
    choices: range
    default: int


_MEASURED_RANGES = {
    "elements": Range(MIN_EXPONENT, range(MIN_EXPONENT + 4, MAX_EXPONENT + 1, 2), DEFAULT_MAX_EXPONENT),
    "sides": Range(MIN_SIDE_EXPONENT, range(MIN_SIDE_EXPONENT + 2, MAX_SIDE_EXPONENT + 1), DEFAULT_MAX_SIDE_EXPONENT),
    "pixels": Range(6, range(8, 14), 12),
}
_MODELED_RANGES = {
    "elements": Range(12, range(14, 27, 2), 24),
    "sides": Range(6, range(8, 13), 10),
    "pixels": Range(7, range(8, 13), 11),
}
_COUNT_RANGES = {
    "elements": Range(5, range(7, 15), 11),
    "sides": Range(3, range(5, 9), 6),
    "pixels": Range(4, range(5, 10), 7),
}
"""Smaller sizes for counting: the lockstep executor is slow, and counts per element do not need a full GPU."""


def _find_work_unit(pattern: Pattern) -> str:
    """Return the unit of the work in the pattern's throughput."""
    params = pattern.check(pattern.params_for_role(Role.SIZE, 1))
    pixel = {"image": np.zeros((1, 1), np.uint8), "maxval": np.array(255)} if pattern.is_image_pattern else {}
    return pattern.work(pattern.prepare_inputs(pixel, params, 0), params).unit


class LineSample(QWidget):
    """A sample of a variant's curve, for the list of variants."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self._number = number
        self.setFixedSize(QSize(24, look().px(26)))

    def paintEvent(self, event: QPaintEvent | None) -> None:
        painter = create_smooth_painter(self)
        painter.setPen(variant_pen(self._number, 3))
        painter.drawLine(0, self.height() // 2, self.width(), self.height() // 2)
        painter.end()


class VariantRow(QWidget):
    """A variant's checkbox, curve sample and figure."""

    entered = pyqtSignal(object)
    """The variant's number, or None when the pointer leaves."""

    def __init__(self, number: int, variant: Variant) -> None:
        super().__init__()
        self._number = number
        self._variant = variant
        self.name = variant.name
        # In a narrow row the title wraps, never the figure nor the sign alone.
        sign = "\u00a0\u00a0⚠" if variant.deliberate_error else ""
        self.box = WrappedCheck(f"{number + 1}  {variant.title}{sign}")
        self.box.setChecked(not variant.deliberate_error)
        self._tip = wrap_tip(f"{variant.title}\n{variant.deliberate_error or variant.idea}")
        self.box.setToolTip(self._tip)
        self.figure = label("", "code", name=f"Throughput of {variant.title}")
        line = row(LineSample(number), self.box, self.figure, stretch=1)
        self.setLayout(line)

    def show_device(self, device: Device) -> None:
        """Enable the variant, or show why the device cannot run it."""
        reason = self._variant.unsupported_reason(device)
        if self.box.isEnabled() == bool(reason):
            self.box.setEnabled(not reason)
            self.box.setChecked(not reason)
            self.box.setToolTip(wrap_tip(reason) or self._tip)

    def show_figure(self, text: str, *, best: bool, tip: str = "") -> None:
        """Show a figure, or the reason for its absence."""
        self.figure.setText(text)
        self.figure.setToolTip(wrap_tip(tip))
        restyle(self.figure, "tone", "best" if best else "muted" if tip else "")

    def enterEvent(self, event: QEnterEvent | None) -> None:
        self.entered.emit(self._number)
        super().enterEvent(event)

    def leaveEvent(self, event: QEvent | None) -> None:
        self.entered.emit(None)
        super().leaveEvent(event)


class CompareTab(StyleListener, QWidget):
    """Measure, count or model the ticked variants, and draw the results as they arrive.

    Parameters
    ----------
    pattern : Pattern
        A pattern with a size, or of images, whose sides are the sizes.
    jobs : RequestQueue
        The engine's queue.
    get_params : callable
        Returns the parameters selected on the Run tab.
    get_image_inputs : callable
        Returns the inputs of the open image; empty without one.
    modeling : TimeModeler
        Predicts the variants' times on a GPU.
    get_current_variant : callable
        Returns the name of the current variant.
    """

    failed = pyqtSignal(str, str)
    """A problem, and advice."""
    succeeded = pyqtSignal()
    """A measurement or a model succeeded."""

    def __init__(
        self,
        pattern: Pattern,
        sources: KernelSources,
        jobs: RequestQueue,
        get_params: Callable[[], Mapping[str, Any]],
        get_image_inputs: Callable[[], Mapping[str, SharedArray]],
        modeling: TimeModeler,
        get_current_variant: Callable[[], str],
    ) -> None:
        super().__init__()
        self._pattern, self._sources, self._jobs, self._modeling = pattern, sources, jobs, modeling
        self._get_params, self._get_image_inputs = get_params, get_image_inputs
        self._get_current_variant = get_current_variant
        self._simulated = False
        self._device: Device | None = None
        self.points: list[Point] = []
        """The points measured, counted or modeled here."""
        self._reasons: dict[str, str] = {}
        self._cursor_size: int | None = None
        self._has_matrices = pattern.dimensions == 2
        self._uses_work_unit = self._has_matrices or pattern.presentation.kind in ("image", "bodies")
        self._records: list[DeviceRecord] = []
        self._record_error = ""
        try:
            self._records = [record for record in read_records() if record.verified_runs(pattern.name)]
        except InputError as error:
            self._record_error = error.message
        self.sweep = Sweep(jobs, modeling, self)
        self.modeled_curves = ModeledCurves(jobs, modeling, self)
        self.modeled_views = ModeledViews(modeling)
        self.workers = WorkersView(jobs)
        self._create_controls()
        self._offer_comparisons()
        self._range = _MEASURED_RANGES["elements"]
        self._offer_sizes()
        self._edit_timer = create_single_shot_timer(SETTLE_MS, self._remodel, self)
        self._lay_out()
        self._connect_controls()
        self._connect_work()
        self._on_quantity_changed()
        if jobs.device is not None:
            self._on_device(jobs.device)

    def _create_controls(self) -> None:
        """Create the plot, and the controls for what it shows."""
        self.views = Segments((CURVES, *VIEWS, WORKERS), "Compare by")
        self.views.buttons[WORKERS].hide()
        self.measure_button = button("Measure", "primary", tip="Run every ticked variant at every size (F5)")
        self.largest = QComboBox()
        self.largest.setAccessibleName("Largest size")
        self.quantity = ElidedBox("Quantity", "Plotted quantity")
        self.quantity.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)
        self.quantity.setMinimumWidth(110)
        self.curves = ThroughputPlot()
        self._units = _WORK_UNITS.get(_find_work_unit(self._pattern), UNITS)
        self.unit = Segments(self._units, "Unit")
        self.unit.buttons[self._units[1]].setToolTip("Minimum traffic per second of kernel time")
        self.scale = Segments(("log", "linear"), "Scale")
        self.status_label = ElidedLabel("caption", "Status of the comparison")
        self.rows = [VariantRow(number, variant) for number, variant in enumerate(self._pattern.variants)]

    def _connect_controls(self) -> None:
        self.views.picked.connect(lambda _: self._on_view_changed())
        self.measure_button.clicked.connect(self.toggle)
        self.quantity.currentIndexChanged.connect(self._on_quantity_changed)
        self.unit.picked.connect(self._show_curves)
        self.scale.picked.connect(self._update_scale)
        self.curves.hovered.connect(self._on_size_hovered)
        for each in self.rows:
            each.entered.connect(self.curves.emphasize)

    def _connect_work(self) -> None:
        self.sweep.added.connect(self._add_point)
        self.sweep.variant_skipped.connect(self._on_variant_skipped)
        self.sweep.measurement_started.connect(
            lambda name, n: self.status_label.show_text(f"{self._pattern.variant(name).title}, n = {format_power(n)}")
        )
        self.sweep.ended.connect(self._on_sweep_ended)
        self.modeled_curves.changed.connect(self._show_modeled_curves)
        self.modeled_curves.runs_requested.connect(self._update_modeled_curves)
        self.modeled_views.results_changed.connect(self._show_modeled)
        self.modeled_views.busy_changed.connect(lambda _: self._update_button())
        self.modeled_views.stale.connect(self._remodel)
        self.workers.busy_changed.connect(lambda _: self._on_workers_busy_changed())
        self.workers.failed.connect(self.failed)
        self._modeling.gpu_changed.connect(self._on_gpu_changed)
        self._sources.text_changed.connect(self._on_edit)
        self._jobs.ready.connect(self._on_device)

    def _lay_out(self) -> None:
        self.card = plot = Card(self._comparison.title, margins=(12, 8, 12, 6))
        plot.body.removeItem(plot.head)
        # In a narrow card the controls move below the title.
        head = WrappingLayout(across=8, down=4, spread=True)
        head.addWidget(plot.title)
        for items in ((self.scale, self.unit), (self.modeled_curves.button, self.quantity)):
            controls = QWidget()
            controls.setLayout(row(*items))
            head.addWidget(controls)
        plot.body.addLayout(head)
        plot.body.addWidget(self.status_label)
        plot.body.addWidget(self.curves, 1)
        self.legend = label("", "caption", wrap=True, name="Legend")
        self.legend.hide()
        plot.body.addWidget(self.legend)
        self.view_stack = QStackedWidget()
        self.view_stack.addWidget(plot)
        self.view_stack.addWidget(self.modeled_views)
        self.view_stack.addWidget(self.workers)
        ladder = Card(_VARIANTS_TITLE, margins=(_CARD_MARGIN, 8, _CARD_MARGIN, 12))
        self.size_label = ElidedLabel("caption", "Size of the figures", right=True)
        ladder.head.addWidget(self.size_label, 1)
        self.listed = QWidget()
        self.listed.setLayout(column(*self.rows, 0, spacing=1))
        scroll = QScrollArea()
        scroll.setWidgetResizable(True)
        scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        scroll.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.workers.figures.hide()
        contents = QWidget()
        contents.setLayout(column(self.listed, self.workers.figures, 0, spacing=0))
        scroll.setWidget(contents)
        ladder.body.addWidget(scroll, 1)
        self._choices = choices = QGridLayout()
        choices.setHorizontalSpacing(8)
        self.size_title = label(_LARGEST_SIZE_TITLE, "caption")
        self.size_title.setBuddy(self.largest)
        choices.addWidget(self.size_title, 0, 0)
        choices.addWidget(self.largest, 0, 1)
        choices.addWidget(self.measure_button, 0, 2)
        choices.setColumnStretch(2, 1)
        ladder.body.addLayout(choices)
        self.variants_card = ladder
        self.setLayout(row(self.view_stack, ladder, stretch=0))

    # --- measuring

    @property
    def busy(self) -> bool:
        """Whether work is in progress."""
        return self.sweep.running or self.modeled_views.busy or self.modeled_curves.sweep.running or self.workers.busy

    @property
    def sizes(self) -> list[int]:
        """The sizes up to the selected largest one."""
        smallest, largest = self._range.smallest, self.largest.currentData()
        return [2**exponent for exponent in range(min(smallest, largest), largest + 1)]

    def toggle(self) -> None:
        """Start measuring, or stop."""
        self.stop() if self.busy else self.measure()

    def measure(self) -> None:
        """Measure, count or model the ticked variants."""
        if self.views.chosen in VIEWS:
            self._remodel()
            return
        if self.views.chosen == WORKERS:
            self._measure_workers()
            return
        if self._comparison.recorded is not None:
            self.quantity.setCurrentIndex(self.quantity.findText(self._local_comparison.name))
        sources = self._sources.find_edits(*self._pattern.kernel_files)
        on_gpu = self._jobs.device is None or self._jobs.device.engine == "cuda"
        if sources and on_gpu and not self._comparison.modeled:
            self.failed.emit(
                "An edited kernel can be compared only in the simulator.", "Select the simulator, or revert the kernel."
            )
            return
        params, inputs = self._params_and_inputs()
        if inputs is None:
            self.failed.emit("Comparing variants needs an image.", "Open one with Ctrl+O.")
            return
        self._offer_sizes()
        self.points, self._reasons = [], {}
        self.curves.clear_points(self.sizes, self._unit)
        self._show_curves()
        ticked = [each.name for each in self.rows if each.box.isChecked()]
        counts_only, gpu_key = self._is_counting, self._comparison.modeled
        self.sweep.start(SweepPlan(self._pattern, ticked, self.sizes, params, inputs, sources, counts_only, gpu_key))
        self._update_modeled_curves()
        self._update_button()

    def _measure_workers(self) -> None:
        """Measure the current variant on increasing numbers of workers."""
        params, inputs = self._params_and_inputs()
        if inputs is None:
            self.failed.emit("Measuring needs an image.", "Open one with Ctrl+O.")
            return
        n, variant = self.sizes[-1], self._pattern.variant(self._get_current_variant())
        params |= self._pattern.params_for_role(Role.SIZE, n)
        sources = self._sources.find_edits(self._pattern.kernel_file_of(variant.name))
        side = n if inputs else 0
        request = RunPattern(self._pattern.name, variant.name, params, inputs, n, sources=sources, side=side)
        subject = f"{n} × {n} pixels" if inputs else f"n = {format_power(n)}"
        self.workers.start(request, f"{variant.title}, {subject}")

    def _on_workers_busy_changed(self) -> None:
        self._update_button()
        if self.workers.plot.speedups:
            self.succeeded.emit()

    def _params_and_inputs(self) -> tuple[dict[str, Any], dict[str, SharedArray] | None]:
        """Return the parameters and input arrays for comparisons; the arrays are None if no image is open."""
        params = dict(self._get_params())
        if self._pattern.input_kind(params) == "text":
            params |= self._pattern.params_for_file("image")
        if self._pattern.input_kind(params) == "image":
            return params, dict(self._get_image_inputs()) or None
        if self._pattern.value(params, Role.SIZE) is None and self._pattern.source is not None:
            params[self._pattern.source.name] = self._pattern.source.default
        return params, {}

    def stop(self) -> None:
        """Stop all work."""
        self.sweep.stop()
        self.modeled_views.stop()
        self.modeled_curves.sweep.stop()
        self.workers.stop()

    # --- modeling

    def _update_modeled_curves(self) -> None:
        """Model the ticked variants with the settings of the drawn curves, if modeled curves are switched on."""
        self.modeled_curves.name_gpu()
        self.modeled_curves.button.setVisible(self._comparison.is_gpu_time)
        params, inputs = self._params_and_inputs()
        if not self.modeled_curves.enabled or inputs is None:
            self.modeled_curves.clear_points()
            self._show_modeled_curves()
            return
        recorded = self._comparison.recorded
        if recorded is not None:
            params |= self._pattern.check(recorded.verified_runs(self._pattern.name)[0].params)
        image = self._pattern.input_kind(params) in ("image", "text")
        max_size = (
            2 ** _MODELED_RANGES["pixels" if image else "sides" if self._has_matrices else "elements"].choices[-1]
        )
        plotted_variants = {point.variant for point in self._plotted_points} or {each.name for each in self.rows}
        ticked = [each.name for each in self.rows if each.box.isChecked() and each.name in plotted_variants]
        sizes = [n for n in self._plotted_sizes if n <= max_size]
        self.modeled_curves.start(SweepPlan(self._pattern, ticked, sizes, params, inputs))
        self._show_modeled_curves()

    def _show_modeled_curves(self) -> None:
        """Draw the modeled curves, and show the legend."""
        enabled, recorded = self.modeled_curves.enabled, self._comparison.recorded
        self.curves.show_modeled(self._collect_figures(self.modeled_curves.points) if enabled else {})
        self.legend.setVisible(enabled)
        self.legend.setText(
            self.modeled_curves.format_legend("measured here" if recorded is None else recorded.label)
            if enabled
            else ""
        )
        self.card.title.setText(f"{self._comparison.title} and modeled" if enabled else self._comparison.title)
        self._update_button()

    def _on_view_changed(self) -> None:
        """Show the curves, the workers, or a view of modeled times, which are computed at once."""
        curves = self.views.chosen == CURVES
        self.view_stack.setCurrentWidget(
            self.card if curves else self.workers if self.views.chosen == WORKERS else self.modeled_views
        )
        self.size_title.setText(_LARGEST_SIZE_TITLE if curves else _SINGLE_SIZE_TITLE)
        # Over workers only the current variant is measured, so there are no checkboxes.
        over_workers = self.views.chosen == WORKERS
        self.listed.setVisible(not over_workers)
        self.workers.figures.setVisible(over_workers)
        self.variants_card.title.setText("Over workers" if over_workers else _VARIANTS_TITLE)
        self._offer_sizes()
        if curves:
            self.modeled_views.stop()
            self._show_curves()
            self._show_status()
        elif self.views.chosen == WORKERS:
            self.stop()
            self._show_figures({})
            self.workers.show_figures()
            self.size_label.show_text("the variant selected above")
        else:
            self.sweep.stop()
            self.modeled_curves.sweep.stop()
            self.workers.stop()
            self.modeled_views.show_view(self.views.chosen)
            self._remodel()
        self._update_button()

    def _remodel(self) -> None:
        """Model the ticked variants if a view of modeled times is visible; cached results appear at once."""
        if self.views.chosen not in VIEWS or not self.isVisible():
            self.modeled_views.clear_results()
            return
        params, inputs = self._params_and_inputs()
        if inputs is None:
            self.failed.emit("Modeling variants needs an image.", "Open one with Ctrl+O.")
            return
        n = self.sizes[-1]
        params |= self._pattern.params_for_role(Role.SIZE, n)
        sources = self._sources.find_edits(*self._pattern.kernel_files)
        block = self._pattern.block
        input_handles = dict(inputs)

        def request_for(variant: str) -> Callable[[GpuScaling, int], ModelPattern]:
            def request(supposed: GpuScaling, threads: int) -> ModelPattern:
                settings = params if block is None or not threads else params | {block.name: str(threads)}
                return ModelPattern(
                    self._pattern.name, variant, self._modeling.gpu, settings, input_handles, n, sources,
                    n if input_handles else 0,
                    supposed, count_operations=True,
                )  # fmt: skip

            return request

        variants = [
            Modelable(
                number, variant.title, request_for(variant.name), find_skip_reason(variant, n), variant.is_quadratic
            )
            for number, variant in enumerate(self._pattern.variants)
            if self.rows[number].box.isChecked() and not variant.library
        ]
        sizes, threads = self._pattern.block_sizes(params)
        subject = f"{n} × {n} pixels" if input_handles else f"n = {format_power(n)}"
        names = [each.name for each in self.rows]
        self.modeled_views.start(variants, subject, sizes, threads, names.index(self._get_current_variant()))

    def _on_gpu_changed(self) -> None:
        """Replace the results that were modeled for the previous GPU."""
        name = self.quantity.currentText()
        modeled = bool(self._comparison.modeled)
        if modeled:
            self.clear_points()
        self._offer_comparisons()
        index = next(
            (index for index in range(self.quantity.count()) if modeled and self.quantity.itemData(index).modeled),
            max(self.quantity.findText(name), 0),
        )
        self.quantity.blockSignals(True)
        self.quantity.setCurrentIndex(index)
        self.quantity.blockSignals(False)
        self._update_modeled_curves()
        self._show_status()

    def on_image_changed(self) -> None:
        """Discard what belongs to the previous image, and model the visible variants for the new one."""
        if self._pattern.input_kind(self._get_params()) not in ("image", "text"):
            return
        self.clear_points()
        self._remodel()

    def _on_edit(self, file: str) -> None:
        """Clear modeled results of an edited source."""
        if file not in self._pattern.kernel_files:
            return
        if self.modeled_views.results or self.modeled_views.busy:
            self.modeled_views.clear_results()
            self._edit_timer.start()
        if any(point.modeled is not None for point in self.points):
            self.clear_points()

    def _show_modeled(self) -> None:
        """Show the modeled time of each variant in the list."""
        if self.views.chosen not in VIEWS:
            return
        times, refusals = self.modeled_views.modeled, self.modeled_views.refusals
        best = min((time.time_us for time in times.values()), default=0.0)
        if times:
            self.succeeded.emit()
        for number, each in enumerate(self.rows):
            model = times.get(number)
            reason = refusals.get(number, "")
            if model is None:
                each.show_figure("–" if reason else "", best=False, tip=reason)
            else:
                each.show_figure(format_duration(model.time_us), best=model.time_us == best, tip=model.reason)
        self.size_label.show_text(f"modeled, {self.modeled_views.input_description}" if times else "")

    def _update_button(self) -> None:
        """Set the button's text to its current action."""
        if self.busy:
            self.measure_button.setText("Stop")
        elif self.views.chosen == WORKERS:
            self.measure_button.setText("Measure")
        elif self.views.chosen in VIEWS or self._comparison.modeled:
            self.measure_button.setText("Model")
        else:
            self.measure_button.setText("Count" if self._is_counting else "Measure")

    def clear_points(self) -> None:
        """Stop all work, and discard all points: they belong to another engine, GPU, source or quantity."""
        self.stop()
        self.workers.clear_measurements()
        if not self.points and not self._reasons:
            return  # recorded curves need no redrawing, which on every page would block the window
        self.points, self._reasons = [], {}
        self.curves.clear_points(self._plotted_sizes, self._unit)
        self._show_curves()
        self._show_status()

    # --- compared quantity

    @property
    def _comparison(self) -> Comparison:
        """The quantity that variants are compared by."""
        quantity: Comparison = self.quantity.currentData()
        return quantity

    @property
    def _local_comparison(self) -> Comparison:
        """The current quantity, or if that is recorded, the one that is measured or counted here."""
        quantities = [self.quantity.itemData(index) for index in range(self.quantity.count())]
        local_quantities = [quantity for quantity in quantities if quantity.recorded is None and not quantity.modeled]
        return self._comparison if self._comparison.recorded is None else local_quantities[0]

    @property
    def _is_counting(self) -> bool:
        """Whether the button counts instead of measuring."""
        return self._local_comparison.quantity is not None

    @property
    def _unit(self) -> str:
        """The unit of the figures."""
        if self._comparison.is_rate:
            return self.unit.chosen
        quantity = self._comparison.quantity
        return _SIMULATION_TIME_UNIT if quantity is None else quantity.unit.format(each=self._per_element)

    @property
    def _plotted_points(self) -> list[Point]:
        """The plotted points."""
        return (
            self.points
            if self._comparison.recorded is None
            else list_recorded_points(self._comparison.recorded, self._pattern)
        )

    @property
    def _plotted_sizes(self) -> list[int]:
        return self.sizes if self._comparison.recorded is None else sorted({point.n for point in self._plotted_points})

    def _offer_comparisons(self) -> None:
        """List the quantities available with this engine, and select the first."""
        self.quantity.blockSignals(True)
        self.quantity.clear()
        for index, comparison in enumerate(
            list_comparisons(self._records, simulated=self._simulated, gpu=self._modeling.gpu)
        ):
            self.quantity.addItem(comparison.name, comparison)
            self.quantity.setItemData(index, comparison.meaning, Qt.ItemDataRole.ToolTipRole)
        self.quantity.blockSignals(False)

    @property
    def _per_element(self) -> str:
        counts = next((point.counts for point in self.points if point.counts is not None), None)
        return f"per {counts.unit}" if counts is not None else "per element"

    def _on_quantity_changed(self) -> None:
        """Switch the quantity; counted, modeled and measured points replace each other."""
        kind = (self._is_counting, bool(self._comparison.modeled))
        if self.points and (self.points[0].counts is not None, self.points[0].modeled is not None) != kind:
            self.clear_points()
        self.unit.setVisible(self._comparison.is_rate)
        self.quantity.setVisible(self.quantity.count() > 1)
        self._offer_sizes()
        self.scale.choose("linear" if self._comparison.quantity is not None else "log")
        self.curves.clear_points(self._plotted_sizes, self._unit)
        self._show_curves()
        self._update_modeled_curves()
        self._show_status()

    def _offer_sizes(self, *, reset: bool = False) -> None:
        """List the sizes for the current quantity, and keep the selection if possible; `reset` selects the default."""
        image = self._pattern.input_kind(self._get_params()) in ("image", "text")
        kind = "pixels" if image else "sides" if self._has_matrices else "elements"
        size = self._pattern.size
        self.curves.set_size_quantity("pixels per side" if image or size is None else size.unit)
        on_workers = self.views.chosen == WORKERS
        modeled = self.views.chosen in VIEWS or (bool(self._comparison.modeled) and not on_workers)
        counted = self._is_counting and not on_workers
        sizes = (_MODELED_RANGES if modeled else _COUNT_RANGES if counted else _MEASURED_RANGES)[kind]
        if sizes == self._range and self.largest.count() and not reset:
            return
        self._range = sizes
        max_exponent = max(size.maximum, 1).bit_length() - 1 if size is not None and not image else sizes.choices[-1]
        exponents = [exponent for exponent in sizes.choices if exponent <= max_exponent] or [max_exponent]
        self.largest.clear()
        for exponent in exponents:
            self.largest.addItem(format_power(2**exponent), exponent)
        preferred = sizes.default
        if modeled and size is not None and size.on_gpu is not None and not image:
            # Where more is not needed to fill the GPU, more would only take longer to generate.
            multiprocessors = find_gpu(self._modeling.gpu).multiprocessors
            preferred = min(preferred, size.on_gpu(multiprocessors).bit_length() - 1)
        elif not modeled and not counted:
            preferred = max(preferred, self._find_comparable_exponent(image))
        self.largest.setCurrentIndex(
            self.largest.findData(next((each for each in exponents if each >= preferred), exponents[-1]))
        )

    def _find_comparable_exponent(self, image: bool) -> int:
        """Return the power of two from which variants can be compared on this device; 0 if unknown."""
        device, pattern = self._device, self._pattern
        if device is None or device.executor != "gpu":
            return 0
        if image:
            return 0 if pattern.side_on_gpu is None else pattern.side_on_gpu(device.multiprocessors).bit_length() - 1
        is_size = pattern.device_sized_parameter is not None and pattern.device_sized_parameter is pattern.size
        return pattern.min_comparable_size(device).bit_length() - 1 if is_size else 0

    def _on_device(self, device: Device) -> None:
        simulated = device.engine == "simulator"
        if simulated != self._simulated:
            self._simulated = simulated
            self._offer_comparisons()
            self._on_quantity_changed()
        if device != self._device:
            self._device = device
            self._offer_sizes(reset=True)
        for each in self.rows:
            each.show_device(device)
        has_workers = bool(self._jobs.workers) and self._pattern.distributed is not None
        self.views.buttons[WORKERS].setVisible(has_workers)
        if self.views.chosen == WORKERS and not has_workers:
            self.views.choose(CURVES)

    def _on_sweep_ended(self) -> None:
        self._update_button()
        self._show_status()
        if self._reasons and not self.points:
            self.failed.emit(f"Nothing could be measured: {next(iter(self._reasons.values()))}", "")

    def _show_status(self) -> None:
        recorded = self._comparison.recorded
        if recorded is not None:
            differences = describe_setting_differences(recorded, self._pattern, self._get_params())
            self.status_label.show_text("; ".join(filter(None, (recorded.label, differences, "every point verified"))))
        elif self._comparison.modeled:
            self.status_label.show_text(self._describe_model())
        elif self._record_error:
            self.status_label.show_text(self._record_error)
        elif self._is_counting:
            description = "counted by the simulator: exact, and the same on every machine"
            self.status_label.show_text(description if self.points else "Counts of each variant at each size.")
        elif self._simulated:
            self.status_label.show_text("This CPU's simulation time does not predict a GPU's time.")
        elif self.points:
            last = self.points[-1]
            self.status_label.show_text(f"measured, {last.device}; median of several runs, every point verified")
        else:
            self.status_label.show_text("Kernel time only, each point verified.")

    def _describe_model(self) -> str:
        """Return the GPU, accuracy and source of the modeled times."""
        model = next((point.modeled for point in self.points if point.modeled is not None), None)
        gpu = find_gpu(self._modeling.gpu)
        subject = f"modeled for {name_with_article(gpu.name)}, not measured"
        return subject if model is None else f"{subject}; {model.accuracy}. {model.source_sentence}"

    def _add_point(self, point: Point) -> None:
        self.points.append(point)
        self.succeeded.emit()
        self._show_curves()

    def _on_variant_skipped(self, variant: str, reason: str) -> None:
        self._reasons[variant] = reason
        self._show_curves()

    # --- showing

    def _update_scale(self) -> None:
        self.curves.set_logarithmic(self.scale.chosen == "log")

    def _collect_figures(self, points: Sequence[Point]) -> dict[int, dict[int, float]]:
        numbers = {each.name: number for number, each in enumerate(self.rows)}
        figures: dict[int, dict[int, float]] = {}
        quantity = self._comparison.quantity
        for point in points:
            if quantity is not None:
                if point.counts is None:
                    continue
                value = quantity.value(point.counts)
            elif self._comparison.simulated:
                value = point.kernel_ms
            elif self.unit.chosen == self._units[1]:
                value = point.bytes_per_s / 1e9
            else:
                value = point.work_per_s if self._uses_work_unit else point.elements_per_s / 1e6
            figures.setdefault(numbers[point.variant], {})[point.n] = value
        return figures

    def _on_size_hovered(self, size: int | None) -> None:
        self._cursor_size = size
        self._show_figures(self._collect_figures(self._plotted_points))

    def _show_curves(self) -> None:
        figures = self._collect_figures(self._plotted_points)
        self.curves.show_points(figures, self._unit)
        self.curves.show_modeled(
            self._collect_figures(self.modeled_curves.points) if self.modeled_curves.enabled else {}
        )
        if self.views.chosen == CURVES:
            self._show_figures(figures)

    def _show_figures(self, figures: dict[int, dict[int, float]]) -> None:
        """Show each variant's figure at the size under the pointer, by default at its largest size."""
        current_values = {
            number: by_size.get(self._cursor_size) if self._cursor_size is not None else by_size[max(by_size)]
            for number, by_size in figures.items()
        }
        values = [value for value in current_values.values() if value is not None]
        higher_is_better = self._comparison.is_rate or (
            self._comparison.quantity is not None and self._comparison.quantity.higher_is_better
        )
        best = (max if higher_is_better else min)(values, default=None)
        origin_text = (
            ", recorded," if self._comparison.recorded is not None else ", modeled," if self._comparison.modeled else ""
        )
        self.size_label.show_text(
            f"{self._unit}{origin_text} at n = {format_power(self._cursor_size)}" if self._cursor_size is not None
            else f"{self._unit}{origin_text} at the largest n" if figures else ""
        )  # fmt: skip
        for number, each in enumerate(self.rows):
            value = current_values.get(number)
            reason = self._reasons.get(each.name, "") if self._comparison.recorded is None else ""
            if value is None:
                each.show_figure(
                    "wrong" if "wrong" in reason else "–" if figures or reason else "", best=False, tip=reason
                )
            else:
                is_partial = reason and self._cursor_size is None
                at = f" at {format_power(max(figures[number]))}" if is_partial else ""
                each.show_figure(f"{format_figure(value)}{at}", best=value == best, tip=reason)

    def _resize_ladder(self) -> None:
        """Set the width of the variants card in proportion to the text size, at most 32% of the tab.

        Where the button does not fit beside the sizes, it gets a line of its own.
        """
        width = min(look().px(380), round(0.32 * self.width()))
        self.variants_card.setFixedWidth(width)
        controls = (self.size_title, self.largest, self.measure_button)
        needed = sum(each.sizeHint().width() for each in controls) + 2 * self._choices.horizontalSpacing()
        self._choices.removeWidget(self.measure_button)
        place = (1, 0, 1, 3) if needed > width - 2 * _CARD_MARGIN else (0, 2, 1, 1)
        self._choices.addWidget(self.measure_button, *place)

    def resizeEvent(self, event: QResizeEvent | None) -> None:
        super().resizeEvent(event)
        self._resize_ladder()

    def _restyle(self) -> None:
        self._resize_ladder()

    def showEvent(self, event: QShowEvent | None) -> None:
        super().showEvent(event)
        if not self.sweep.running:  # the settings on the Run tab may have changed
            self._offer_sizes()
            self._show_status()
        if self.views.chosen in VIEWS:
            self._remodel()

    def hideEvent(self, event: QHideEvent | None) -> None:
        assert event is not None
        super().hideEvent(event)
        if not event.spontaneous():  # a minimized window continues
            self.stop()
