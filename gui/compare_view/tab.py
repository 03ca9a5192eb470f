"""The Compare tab: variants over sizes, by measured throughput, recorded throughput, modeled times or counts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from PyQt6.QtCore import QEvent, QSize, Qt, pyqtSignal
from PyQt6.QtGui import QEnterEvent, QHideEvent, QPainter, QPaintEvent, QResizeEvent, QShowEvent
from PyQt6.QtWidgets import (
    QComboBox,
    QGridLayout,
    QHBoxLayout,
    QScrollArea,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from gpu.bench.recorded import DeviceRecord, read_all
from gpu.declaration.pattern import Pattern, Variant
from gpu.declaration.roles import Role
from gpu.engines.base import TO_SIMULATE, Device
from gpu.errors import InputError
from gpu.messages.modeled import article, as_duration, short_name
from gpu.messages.requests import ModelPattern, RunPattern
from gpu.messages.shared_arrays import SharedArray
from gpu.timing.gpus import Supposed, find_gpu
from gui.compare_view.kinds import ComparedBy, comparisons, other_settings, points_of
from gui.compare_view.modeled import VIEWS, Modelable, ModeledViews
from gui.compare_view.modeled_beside import ModeledBeside
from gui.compare_view.sweep import Point, Sweep
from gui.compare_view.workers import WorkersView
from gui.editor.sources import KernelSources
from gui.model.jobs import Jobs
from gui.model.modeling import REST_MS, Modeling
from gui.painting.theme import look
from gui.plots.throughput_plot import ThroughputPlot, as_power, variant_pen
from gui.qt.events import is_of
from gui.qt.later import after
from gui.widgets.basic import Card, ElidedLabel, Segments, as_figure, button, column, label, restyle, row
from gui.widgets.elided_box import ElidedBox, ElidedCheck
from gui.widgets.wrapping import WrappingLayout

SMALLEST = 10
LARGEST = 28
DEFAULT_LARGEST = 22
SMALLEST_SIDE = 5
LARGEST_SIDE = 13
DEFAULT_LARGEST_SIDE = 9
UNITS = ("Melements/s", "GB/s")
_UNITS_OF_WORK = {
    "FLOP": ("GFLOP/s", "GB/s"),
    "key": ("Mkeys/s", "GB/s"),
    "pixel": ("Mpixels/s", "GB/s"),
    "interaction": ("Minteractions/s", "GB/s"),
}
CURVES, WORKERS = "Curves", "Workers"
_UP_TO, _AT = "Up to n =", "At n ="
_VARIANTS = "Variants"
_IN_MS = f"ms {TO_SIMULATE}"


@dataclass(frozen=True)
class Range:
    """A range of sizes as powers of two.

    Parameters
    ----------
    smallest : int
    choices : range
        The possible largest sizes.
    default : int
        The initial largest size.
    """

    smallest: int
    choices: range
    default: int


_MEASURED = {
    "elements": Range(SMALLEST, range(SMALLEST + 4, LARGEST + 1, 2), DEFAULT_LARGEST),
    "sides": Range(SMALLEST_SIDE, range(SMALLEST_SIDE + 2, LARGEST_SIDE + 1), DEFAULT_LARGEST_SIDE),
    "pixels": Range(6, range(8, 14), 12),
}
_MODELED = {
    "elements": Range(12, range(14, 27, 2), 24),
    "sides": Range(6, range(8, 13), 10),
    "pixels": Range(7, range(8, 13), 11),
}
_COUNTED = {
    "elements": Range(5, range(7, 15), 11),
    "sides": Range(3, range(5, 9), 6),
    "pixels": Range(4, range(5, 10), 7),
}
"""Smaller sizes for counting: the lockstep executor is slow, and counts per element do not need a full GPU."""


def _unit_of_work(pattern: Pattern) -> str:
    """Return the unit of the work in the pattern's throughput."""
    params = pattern.check(pattern.with_value(Role.SIZE, 1))
    pixel = {"image": np.zeros((1, 1), np.uint8), "maxval": np.array(255)} if pattern.of_images else {}
    return pattern.work(pattern.inputs(pixel, params, 0), params).unit


class LineSample(QWidget):
    """A sample of a variant's curve, for the list of variants."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self._number = number
        self.setFixedSize(QSize(24, 12))

    def paintEvent(self, event: QPaintEvent | None) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
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
        # In a narrow row the title is elided, not the figure.
        self.box = ElidedCheck(f"{number + 1}  {variant.title}" + ("  ⚠" if variant.cautionary else ""))
        self.box.setChecked(not variant.cautionary)
        self._tip = f"{variant.title}\n{variant.cautionary or variant.idea}"
        self.box.setToolTip(self._tip)
        self.figure = label("", "code", name=f"Throughput of {variant.title}")
        line = row(LineSample(number), self.box, self.figure)
        line.setStretch(1, 1)
        self.setLayout(line)
        self.setMinimumHeight(look().px(26))

    def show_device(self, device: Device) -> None:
        """Enable the variant, or show why the device cannot run it."""
        missing = self._variant.missing(device)
        if self.box.isEnabled() == bool(missing):
            self.box.setEnabled(not missing)
            self.box.setChecked(not missing)
            self.box.setToolTip(missing or self._tip)

    def show_figure(self, text: str, *, best: bool, tip: str = "") -> None:
        """Show a figure, or the reason for its absence."""
        self.figure.setText(text)
        self.figure.setToolTip(tip)
        restyle(self.figure, "tone", "best" if best else "muted" if tip else "")

    def enterEvent(self, event: QEnterEvent | None) -> None:
        self.entered.emit(self._number)
        super().enterEvent(event)

    def leaveEvent(self, event: QEvent | None) -> None:
        self.entered.emit(None)
        super().leaveEvent(event)


class CompareTab(QWidget):
    """Measure, count or model the ticked variants, and draw the results as they arrive.

    Parameters
    ----------
    pattern : Pattern
        A pattern with a size, or of images, whose sides are the sizes.
    sources : KernelSources
        The kernels' sources.
    jobs : Jobs
        The engine's queue.
    params : callable
        Returns the parameters selected on the Run tab.
    image : callable
        Returns the inputs of the open image; empty without one.
    modeling : Modeling
        Predicts the variants' times on a GPU.
    seen : callable
        Returns the name of the current variant.
    """

    failed = pyqtSignal(str, str)
    """A problem, and advice."""
    succeeded = pyqtSignal()
    """A measurement succeeded."""

    def __init__(
        self,
        pattern: Pattern,
        sources: KernelSources,
        jobs: Jobs,
        params: Callable[[], Mapping[str, Any]],
        image: Callable[[], Mapping[str, SharedArray]],
        modeling: Modeling,
        seen: Callable[[], str],
    ) -> None:
        super().__init__()
        self._current_variant = seen
        self._pattern, self._sources, self._params, self._image = pattern, sources, params, image
        self._simulated = False
        self._device: Device | None = None
        self._jobs = jobs
        self.points: list[Point] = []
        """The points measured, counted or modeled here."""
        self._reasons: dict[str, str] = {}
        self._size: int | None = None
        self._modeling = modeling
        self.views = Segments((CURVES, *VIEWS, WORKERS), "Compare by")
        self.views.buttons[WORKERS].hide()
        self.views.picked.connect(lambda _: self._on_view_changed())
        self.modeled = ModeledViews(modeling)
        self.modeled.figured.connect(self._show_modeled)
        self.modeled.busy_changed.connect(lambda _: self._name_button())
        self.modeled.stale.connect(self._remodel)
        self.workers = WorkersView(jobs)
        self.workers.busy_changed.connect(lambda _: self._end_workers())
        self.workers.failed.connect(self.failed)
        modeling.gpu_changed.connect(lambda _: self._on_gpu_changed())
        sources.touched.connect(self._on_edit)
        self.sweep = Sweep(jobs, modeling, self)
        self.sweep.added.connect(self._add)
        self.sweep.left_out.connect(self._leave_out)
        self.sweep.measuring.connect(
            lambda name, n: self.about.say(f"{pattern.variant(name).title}, n = {as_power(n)}")
        )
        self.sweep.ended.connect(self._end)
        self.beside = ModeledBeside(jobs, modeling, self)
        self.beside.changed.connect(self._show_beside)
        self.beside.wanted.connect(self._model_beside)

        self.measure_button = button("Measure", "primary", tip="Run every ticked variant at every size (F5)")
        self.measure_button.clicked.connect(self.toggle)
        self.largest = QComboBox()
        self.largest.setAccessibleName("Largest size")
        self._has_matrices = pattern.dimensions == 2
        self._uses_work_unit = self._has_matrices or pattern.presentation.kind in ("image", "bodies")
        self.quantity = ElidedBox("Quantity", "Plotted quantity")
        self.quantity.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)
        self.quantity.setMinimumWidth(110)
        self._records: list[DeviceRecord] = []
        self._complaint = ""
        try:
            self._records = [each for each in read_all() if each.of(pattern.name)]
        except InputError as error:
            self._complaint = error.message
        self.curves = ThroughputPlot()
        self._offer_comparisons()
        self.quantity.currentIndexChanged.connect(self._on_quantity_changed)
        self._range = _MEASURED["elements"]
        self._offer_sizes()
        self._units = _UNITS_OF_WORK.get(_unit_of_work(pattern), UNITS)
        self.unit = Segments(self._units, "Unit")
        self.unit.buttons[self._units[1]].setToolTip("Minimum traffic per second of kernel time")
        self.scale = Segments(("log", "linear"), "Scale")
        self.unit.picked.connect(self._show)
        self.scale.picked.connect(self._rescale)
        self.about = ElidedLabel("caption", "Status of the comparison")
        self.curves.hovered.connect(self._read)
        self.rows = [VariantRow(number, variant) for number, variant in enumerate(pattern.variants)]
        for each in self.rows:
            each.entered.connect(self.curves.emphasize)
        self._edited = after(REST_MS, self._remodel, self)
        self._lay_out()
        self._on_quantity_changed()
        jobs.ready.connect(self._on_device)
        if jobs.device is not None:
            self._on_device(jobs.device)

    def _lay_out(self) -> None:
        self.card = plot = Card(self._by.title, margins=(12, 8, 12, 6))
        plot.body.removeItem(plot.head)
        # In a narrow card the controls move below the title.
        head = WrappingLayout(across=8, down=4, spread=True)
        head.addWidget(plot.title)
        for items in ((self.scale, self.unit), (self.beside.button, self.quantity)):
            controls = QWidget()
            controls.setLayout(row(*items))
            head.addWidget(controls)
        plot.body.addLayout(head)
        plot.body.addWidget(self.about)
        plot.body.addWidget(self.curves, 1)
        self.legend = label("", "caption", wrap=True, name="Legend")
        self.legend.hide()
        plot.body.addWidget(self.legend)
        self.shown = QStackedWidget()
        self.shown.addWidget(plot)
        self.shown.addWidget(self.modeled)
        self.shown.addWidget(self.workers)
        ladder = Card(_VARIANTS, margins=(12, 8, 12, 12))
        self.at = ElidedLabel("caption", "Size of the figures", right=True)
        ladder.head.addWidget(self.at, 1)
        self.listed = QWidget()
        grid = QVBoxLayout(self.listed)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setSpacing(1)
        for each in self.rows:
            grid.addWidget(each)
        grid.addStretch(1)
        scroll = QScrollArea()
        scroll.setWidgetResizable(True)
        scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        scroll.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.workers.figures.hide()
        contents = QWidget()
        contents.setLayout(column(self.listed, self.workers.figures, 0, spacing=0))
        scroll.setWidget(contents)
        ladder.body.addWidget(scroll, 1)
        choices = QGridLayout()
        choices.setHorizontalSpacing(8)
        self.heading = label(_UP_TO, "caption")
        self.heading.setBuddy(self.largest)
        choices.addWidget(self.heading, 0, 0)
        choices.addWidget(self.largest, 0, 1)
        choices.addWidget(self.measure_button, 0, 2)
        choices.setColumnStretch(2, 1)
        ladder.body.addLayout(choices)
        self.ladder = ladder
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(8)
        layout.addWidget(self.shown, 1)
        layout.addWidget(ladder)

    # --- measuring

    @property
    def busy(self) -> bool:
        """Whether work is in progress."""
        return self.sweep.running or self.modeled.busy or self.beside.sweep.running or self.workers.busy

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
        if self._by.recorded is not None:
            self.quantity.setCurrentIndex(self.quantity.findText(self._here.name))
        sources = self._sources.edits(*self._pattern.files)
        on_gpu = self._jobs.device is None or self._jobs.device.engine == "cuda"
        if sources and on_gpu and not self._by.modeled:
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
        self.curves.begin(self.sizes, self._unit)
        self._show()
        ticked = [each.name for each in self.rows if each.box.isChecked()]
        counted, gpu = self._is_counting, self._by.modeled
        self.sweep.start(self._pattern, ticked, self.sizes, params, sources, inputs, counted=counted, gpu=gpu)
        self._model_beside()
        self._name_button()

    def _measure_workers(self) -> None:
        """Measure the current variant on increasing numbers of workers."""
        params, inputs = self._params_and_inputs()
        if inputs is None:
            self.failed.emit("Measuring needs an image.", "Open one with Ctrl+O.")
            return
        n, variant = self.sizes[-1], self._pattern.variant(self._current_variant())
        params |= self._pattern.with_value(Role.SIZE, n)
        sources = self._sources.edits(self._pattern.file_of(variant.name))
        side = n if inputs else 0
        request = RunPattern(self._pattern.name, variant.name, params, inputs, n, sources=sources, side=side)
        subject = f"{n} × {n} pixels" if inputs else f"n = {as_power(n)}"
        self.workers.start(request, f"{variant.title}, {subject}")

    def _end_workers(self) -> None:
        self._name_button()
        if self.workers.plot.speeds:
            self.succeeded.emit()

    def _params_and_inputs(self) -> tuple[dict[str, Any], dict[str, SharedArray] | None]:
        """Return the parameters and input arrays for comparisons; the arrays are None if no image is open."""
        params = dict(self._params())
        if self._pattern.takes(params) == "text":
            params |= self._pattern.for_file("image")
        if self._pattern.takes(params) == "image":
            return params, dict(self._image()) or None
        if self._pattern.value(params, Role.SIZE) is None and self._pattern.source is not None:
            params[self._pattern.source.name] = self._pattern.source.default
        return params, {}

    def stop(self) -> None:
        """Stop all work."""
        self.sweep.stop()
        self.modeled.stop()
        self.beside.sweep.stop()
        self.workers.stop()

    # --- modeling

    def _model_beside(self) -> None:
        """Model the ticked variants with the settings of the drawn curves, if modeled curves are switched on."""
        self.beside.name_gpu()
        self.beside.button.setVisible(self._by.of_a_gpu)
        params, inputs = self._params_and_inputs()
        if not self.beside.on or inputs is None:
            self.beside.forget()
            self._show_beside()
            return
        recorded = self._by.recorded
        if recorded is not None:
            params |= self._pattern.check(recorded.of(self._pattern.name)[0].params)
        image = self._pattern.takes(params) in ("image", "text")
        most = 2 ** _MODELED["pixels" if image else "sides" if self._has_matrices else "elements"].choices[-1]
        drawn = {point.variant for point in self._plotted_points} or {each.name for each in self.rows}
        ticked = [each.name for each in self.rows if each.box.isChecked() and each.name in drawn]
        self.beside.start(self._pattern, ticked, [n for n in self._plotted_sizes if n <= most], params, inputs)
        self._show_beside()

    def _show_beside(self) -> None:
        """Draw the modeled curves, and show the legend."""
        on, recorded = self.beside.on, self._by.recorded
        self.curves.show_modeled(self._figures(self.beside.points) if on else {})
        self.legend.setVisible(on)
        self.legend.setText(self.beside.words("measured here" if recorded is None else recorded.words) if on else "")
        self.card.title.setText(f"{self._by.title} and modeled" if on else self._by.title)
        self._name_button()

    def _on_view_changed(self) -> None:
        """Show the curves, the workers, or a view of modeled times, which are computed at once."""
        curves = self.views.chosen == CURVES
        self.shown.setCurrentWidget(
            self.card if curves else self.workers if self.views.chosen == WORKERS else self.modeled
        )
        self.heading.setText(_UP_TO if curves else _AT)
        # Over workers only the current variant is measured, so there are no checkboxes.
        over_workers = self.views.chosen == WORKERS
        self.listed.setVisible(not over_workers)
        self.workers.figures.setVisible(over_workers)
        self.ladder.title.setText("Over workers" if over_workers else _VARIANTS)
        self._offer_sizes()
        if curves:
            self.modeled.stop()
            self._show()
            self._show_status()
        elif self.views.chosen == WORKERS:
            self.stop()
            self._show_figures({})
            self.workers.say_figures()
            self.at.say("the variant selected above")
        else:
            self.sweep.stop()
            self.beside.sweep.stop()
            self.workers.stop()
            self.modeled.show_view(self.views.chosen)
            self._remodel()
        self._name_button()

    def _remodel(self) -> None:
        """Model the ticked variants if a view of modeled times is visible; cached results appear at once."""
        if self.views.chosen not in VIEWS or not self.isVisible():
            self.modeled.forget()
            return
        params, inputs = self._params_and_inputs()
        if inputs is None:
            self.failed.emit("Modeling variants needs an image.", "Open one with Ctrl+O.")
            return
        n = self.sizes[-1]
        params |= self._pattern.with_value(Role.SIZE, n)
        sources = self._sources.edits(*self._pattern.files)
        block = self._pattern.block
        own = dict(inputs)

        def request_for(variant: str) -> Callable[[Supposed, int], ModelPattern]:
            def request(supposed: Supposed, threads: int) -> ModelPattern:
                settings = params if block is None or not threads else params | {block.name: str(threads)}
                return ModelPattern(
                    self._pattern.name, variant, self._modeling.gpu, settings, own, n, sources, n if own else 0,
                    supposed, operations=True,
                )  # fmt: skip

            return request

        variants = [
            Modelable(number, self._pattern.variant(each.name).title, request_for(each.name))
            for number, each in enumerate(self.rows)
            if each.box.isChecked() and not self._pattern.variant(each.name).library
        ]
        sizes, threads = self._pattern.block_sizes(params)
        subject = f"{n} × {n} pixels" if own else f"n = {as_power(n)}"
        names = [each.name for each in self.rows]
        self.modeled.start(variants, subject, sizes, threads, names.index(self._current_variant()))

    def _on_gpu_changed(self) -> None:
        """Replace the results that were modeled for the previous GPU."""
        name = self.quantity.currentText()
        modeled = bool(self._by.modeled)
        if modeled:
            self.forget()
        self._offer_comparisons()
        place = next(
            (place for place in range(self.quantity.count()) if modeled and self.quantity.itemData(place).modeled),
            max(self.quantity.findText(name), 0),
        )
        self.quantity.blockSignals(True)
        self.quantity.setCurrentIndex(place)
        self.quantity.blockSignals(False)
        self._model_beside()
        self._show_status()

    def _on_edit(self, file: str) -> None:
        """Clear modeled results of an edited source."""
        if file not in self._pattern.files:
            return
        if self.modeled.found or self.modeled.busy:
            self.modeled.forget()
            self._edited.start()
        if any(point.modeled is not None for point in self.points):
            self.forget()

    def _show_modeled(self) -> None:
        """Show the modeled time of each variant in the list."""
        if self.views.chosen not in VIEWS:
            return
        times, refusals = self.modeled.modeled, self.modeled.refusals
        best = min((each.time_us for each in times.values()), default=0.0)
        for number, each in enumerate(self.rows):
            model = times.get(number)
            reason = refusals.get(number, "")
            if model is None:
                each.show_figure("–" if reason else "", best=False, tip=reason)
            else:
                each.show_figure(as_duration(model.time_us), best=model.time_us == best, tip=model.waits)
        self.at.say(f"modeled, {self.modeled.of}" if times else "")

    def _name_button(self) -> None:
        """Set the button's text to its current action."""
        if self.busy:
            self.measure_button.setText("Stop")
        elif self.views.chosen == WORKERS:
            self.measure_button.setText("Measure")
        elif self.views.chosen in VIEWS or self._by.modeled:
            self.measure_button.setText("Model")
        else:
            self.measure_button.setText("Count" if self._is_counting else "Measure")

    def forget(self) -> None:
        """Discard all points: they belong to another engine."""
        self.stop()
        self.workers.forget()
        if not self.points and not self._reasons:
            return  # recorded curves need no redrawing, which on every page would block the window
        self.points, self._reasons = [], {}
        self.curves.begin(self._plotted_sizes, self._unit)
        self._show()
        self._show_status()

    # --- compared quantity

    @property
    def _by(self) -> ComparedBy:
        """The quantity that variants are compared by."""
        quantity: ComparedBy = self.quantity.currentData()
        return quantity

    @property
    def _here(self) -> ComparedBy:
        """The current quantity, or if that is recorded, the one that is measured or counted here."""
        quantities = [self.quantity.itemData(place) for place in range(self.quantity.count())]
        here = [each for each in quantities if each.recorded is None and not each.modeled]
        return self._by if self._by.recorded is None else here[0]

    @property
    def _is_counting(self) -> bool:
        """Whether the button counts instead of measuring."""
        return self._here.quantity is not None

    @property
    def _unit(self) -> str:
        """The unit of the figures."""
        if self._by.rates:
            return self.unit.chosen
        quantity = self._by.quantity
        return _IN_MS if quantity is None else quantity.unit.format(each=self._per_element)

    @property
    def _plotted_points(self) -> list[Point]:
        """The plotted points."""
        return self.points if self._by.recorded is None else points_of(self._by.recorded, self._pattern)

    @property
    def _plotted_sizes(self) -> list[int]:
        return self.sizes if self._by.recorded is None else sorted({point.n for point in self._plotted_points})

    def _offer_comparisons(self) -> None:
        """List the quantities available with this engine, and select the first."""
        self.quantity.blockSignals(True)
        self.quantity.clear()
        for place, each in enumerate(comparisons(self._records, simulated=self._simulated, gpu=self._modeling.gpu)):
            self.quantity.addItem(each.name, each)
            self.quantity.setItemData(place, each.meaning, Qt.ItemDataRole.ToolTipRole)
        self.quantity.blockSignals(False)

    @property
    def _per_element(self) -> str:
        counted = next((point.counts for point in self.points if point.counts is not None), None)
        return f"per {counted.unit}" if counted is not None else "per element"

    def _on_quantity_changed(self) -> None:
        """Switch the quantity; counted, modeled and measured points replace each other."""
        kind = (self._is_counting, bool(self._by.modeled))
        if self.points and (self.points[0].counts is not None, self.points[0].modeled is not None) != kind:
            self.forget()
        self.unit.setVisible(self._by.rates)
        self.quantity.setVisible(self.quantity.count() > 1)
        self._offer_sizes()
        self.scale.choose("linear" if self._by.quantity is not None else "log")
        self.curves.begin(self._plotted_sizes, self._unit)
        self._show()
        self._model_beside()
        self._show_status()

    def _offer_sizes(self, *, reset: bool = False) -> None:
        """List the sizes for the current quantity, and keep the selection if possible; `reset` selects the default."""
        image = self._pattern.takes(self._params()) in ("image", "text")
        kind = "pixels" if image else "sides" if self._has_matrices else "elements"
        size = self._pattern.size
        self.curves.name_sizes("pixels per side" if image or size is None else size.unit)
        on_workers = self.views.chosen == WORKERS
        modeled = self.views.chosen in VIEWS or (bool(self._by.modeled) and not on_workers)
        counted = self._is_counting and not on_workers
        sizes = (_MODELED if modeled else _COUNTED if counted else _MEASURED)[kind]
        if sizes == self._range and self.largest.count() and not reset:
            return
        self._range = sizes
        greatest = max(size.maximum, 1).bit_length() - 1 if size is not None and not image else sizes.choices[-1]
        exponents = [exponent for exponent in sizes.choices if exponent <= greatest] or [greatest]
        self.largest.clear()
        for exponent in exponents:
            self.largest.addItem(as_power(2**exponent), exponent)
        measured = not counted and not modeled
        preferred = max(sizes.default, self._comparable_from(image)) if measured else sizes.default
        self.largest.setCurrentIndex(
            self.largest.findData(next((each for each in exponents if each >= preferred), exponents[-1]))
        )

    def _comparable_from(self, image: bool) -> int:
        """Return the power of two from which variants can be compared on this device; 0 if unknown."""
        device, pattern = self._device, self._pattern
        if device is None or device.executor != "gpu":
            return 0
        if image:
            return 0 if pattern.side_on_gpu is None else pattern.side_on_gpu(device.multiprocessors).bit_length() - 1
        is_size = pattern.growing is not None and pattern.growing is pattern.size
        return pattern.comparable_from(device).bit_length() - 1 if is_size else 0

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
        several = bool(self._jobs.workers) and self._pattern.distributed is not None
        self.views.buttons[WORKERS].setVisible(several)
        if self.views.chosen == WORKERS and not several:
            self.views.choose(CURVES)

    def _end(self) -> None:
        self._name_button()
        self._show_status()
        if self._reasons and not self.points:
            self.failed.emit(f"Nothing could be measured: {next(iter(self._reasons.values()))}", "")

    def _show_status(self) -> None:
        recorded = self._by.recorded
        if recorded is not None:
            other = other_settings(recorded, self._pattern, self._params())
            self.about.say("; ".join(filter(None, (recorded.words, other, "every point verified"))))
        elif self._by.modeled:
            self.about.say(self._modeled_words())
        elif self._complaint:
            self.about.say(self._complaint)
        elif self._is_counting:
            counted = "counted by the simulator: exact, and the same on every machine"
            self.about.say(counted if self.points else "Counts of each variant at each size.")
        elif self._simulated:
            self.about.say("This CPU's simulation time does not predict a GPU's time.")
        elif self.points:
            last = self.points[-1]
            self.about.say(f"measured, {last.device}; median of several runs, every point verified")
        else:
            self.about.say("Kernel time only, each point verified.")

    def _modeled_words(self) -> str:
        """Return the GPU, accuracy and source of the modeled times."""
        model = next((point.modeled for point in self.points if point.modeled is not None), None)
        gpu = find_gpu(self._modeling.gpu)
        subject = f"modeled for {article(gpu.name)} {short_name(gpu.name)}, not measured"
        return subject if model is None else f"{subject}; {model.sureness}. {model.compiled}"

    def _add(self, point: Point) -> None:
        self.points.append(point)
        self.succeeded.emit()
        self._show()

    def _leave_out(self, variant: str, why: str) -> None:
        self._reasons[variant] = why
        self._show()

    # --- showing

    def _rescale(self) -> None:
        self.curves.set_logarithmic(self.scale.chosen == "log")

    def _figures(self, points: Sequence[Point]) -> dict[int, dict[int, float]]:
        numbers = {each.name: number for number, each in enumerate(self.rows)}
        figures: dict[int, dict[int, float]] = {}
        quantity = self._by.quantity
        for point in points:
            if quantity is not None:
                if point.counts is None:
                    continue
                value = quantity.value(point.counts)
            elif self._by.simulated:
                value = point.kernel_ms
            elif self.unit.chosen == self._units[1]:
                value = point.bytes_per_s / 1e9
            else:
                value = point.work_per_s if self._uses_work_unit else point.elements_per_s / 1e6
            figures.setdefault(numbers[point.variant], {})[point.n] = value
        return figures

    def _read(self, size: int | None) -> None:
        self._size = size
        self._show_figures(self._figures(self._plotted_points))

    def _show(self) -> None:
        figures = self._figures(self._plotted_points)
        self.curves.show_points(figures, self._unit)
        self.curves.show_modeled(self._figures(self.beside.points) if self.beside.on else {})
        if self.views.chosen == CURVES:
            self._show_figures(figures)

    def _show_figures(self, figures: dict[int, dict[int, float]]) -> None:
        """Show each variant's figure at the size under the pointer, by default at its largest size."""
        shown = {
            number: by_size.get(self._size) if self._size is not None else by_size[max(by_size)]
            for number, by_size in figures.items()
        }
        values = [value for value in shown.values() if value is not None]
        more = self._by.rates or (self._by.quantity is not None and self._by.quantity.more_is_better)
        best = (max if more else min)(values, default=None)
        recorded = ", recorded," if self._by.recorded is not None else ", modeled," if self._by.modeled else ""
        self.at.say(
            f"{self._unit}{recorded} at n = {as_power(self._size)}" if self._size is not None
            else f"{self._unit}{recorded} at the largest n" if figures else ""
        )  # fmt: skip
        for number, each in enumerate(self.rows):
            value = shown.get(number)
            reason = self._reasons.get(each.name, "") if self._by.recorded is None else ""
            if value is None:
                each.show_figure(
                    "wrong" if "wrong" in reason else "–" if figures or reason else "", best=False, tip=reason
                )
            else:
                each.show_figure(as_figure(value), best=value == best)

    def _resize_ladder(self) -> None:
        """Set the ladder's width in proportion to the text size, but leave the curves the larger part."""
        self.ladder.setFixedWidth(min(look().px(380), round(0.4 * self.width())))

    def resizeEvent(self, event: QResizeEvent | None) -> None:
        super().resizeEvent(event)
        self._resize_ladder()

    def changeEvent(self, event: QEvent | None) -> None:
        super().changeEvent(event)
        if is_of(event, QEvent.Type.StyleChange):
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
