"""The Compare tab: over sizes, on a GPU the variants' throughput, without one what was recorded, or is counted."""

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
    """Powers of two from which and to which variants are compared.

    Parameters
    ----------
    smallest : int
    choices : range
        The largest that can be chosen.
    default : int
        The largest at first.
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
"""What is counted runs in lockstep, and is the same for each element long before a GPU is full."""


def _unit_of_work(pattern: Pattern) -> str:
    """Return what the pattern's throughput counts."""
    params = pattern.check(pattern.with_value(Role.SIZE, 1))
    dot = {"image": np.zeros((1, 1), np.uint8), "maxval": np.array(255)} if pattern.of_images else {}
    return pattern.work(pattern.inputs(dot, params, 0), params).unit


class LineSample(QWidget):
    """A piece of a variant's curve."""

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
    """A variant to choose, the look of its curve, and its figure."""

    entered = pyqtSignal(object)
    """The variant's number, or None where the pointer has left."""

    def __init__(self, number: int, variant: Variant) -> None:
        super().__init__()
        self._number = number
        self._variant = variant
        self.name = variant.name
        # Where there is no room it is the title that is cut, not the figure.
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
        """Let the variant be measured, or show why it cannot be."""
        missing = self._variant.missing(device)
        if self.box.isEnabled() == bool(missing):
            self.box.setEnabled(not missing)
            self.box.setChecked(not missing)
            self.box.setToolTip(missing or self._tip)

    def show_figure(self, text: str, *, best: bool, tip: str = "") -> None:
        """Show a figure, or why there is none."""
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
    """Measures or counts the variants that are ticked, on the engine that is chosen, and draws them as they come.

    Parameters
    ----------
    pattern : Pattern
        With a size, or of images, whose sides are its sizes.
    sources : KernelSources
        The kernels' texts.
    jobs : Jobs
        The engine's queue.
    params : callable
        Returns what is chosen on the Run tab.
    image : callable
        Returns the inputs of the image that is open; nothing where there is none.
    modeling : Modeling
        Says how long variants would take on a GPU.
    seen : callable
        Returns the name of the variant that is chosen.
    """

    failed = pyqtSignal(str, str)
    """What is the matter, and what to do."""
    succeeded = pyqtSignal()
    """Something was measured."""

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
        self._seen = seen
        self._pattern, self._sources, self._params, self._image = pattern, sources, params, image
        self._simulated = False
        self._device: Device | None = None
        self._jobs = jobs
        self.points: list[Point] = []
        """What has been measured or counted here."""
        self._why: dict[str, str] = {}
        self._size: int | None = None
        self._modeling = modeling
        self.views = Segments((CURVES, *VIEWS, WORKERS), "Compare by")
        self.views.buttons[WORKERS].hide()
        self.views.picked.connect(lambda _: self._take_view())
        self.modeled = ModeledViews(modeling)
        self.modeled.figured.connect(self._show_modeled)
        self.modeled.busy_changed.connect(lambda _: self._name_button())
        self.modeled.stale.connect(self._model_again)
        self.workers = WorkersView(jobs)
        self.workers.busy_changed.connect(lambda _: self._end_workers())
        self.workers.failed.connect(self.failed)
        modeling.gpu_changed.connect(lambda _: self._take_gpu())
        sources.touched.connect(self._take_edit)
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
        self._of_matrices = pattern.dimensions == 2
        self._in_work = self._of_matrices or pattern.presentation.kind in ("image", "bodies")
        self.quantity = ElidedBox("Quantity", "What is drawn")
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
        self.quantity.currentIndexChanged.connect(self._take_quantity)
        self._range = _MEASURED["elements"]
        self._offer_sizes()
        self._units = _UNITS_OF_WORK.get(_unit_of_work(pattern), UNITS)
        self.unit = Segments(self._units, "Unit")
        self.unit.buttons[self._units[1]].setToolTip(
            "The least that must be read and written, per second of kernel time"
        )
        self.scale = Segments(("log", "linear"), "Scale")
        self.unit.picked.connect(self._show)
        self.scale.picked.connect(self._rescale)
        self.about = ElidedLabel("caption", "What is measured")
        self.curves.hovered.connect(self._look_at)
        self.rows = [VariantRow(number, variant) for number, variant in enumerate(pattern.variants)]
        for each in self.rows:
            each.entered.connect(self.curves.emphasize)
        self._edited = after(REST_MS, self._model_again, self)
        self._lay_out()
        self._take_quantity()
        jobs.ready.connect(self._take_device)
        if jobs.device is not None:
            self._take_device(jobs.device)

    def _lay_out(self) -> None:
        self.card = plot = Card(self._by.title, margins=(12, 8, 12, 6))
        plot.body.removeItem(plot.head)
        # What is chosen goes below the title where both have no room.
        head = WrappingLayout(across=8, down=4, spread=True)
        head.addWidget(plot.title)
        for items in ((self.scale, self.unit), (self.beside.button, self.quantity)):
            chosen = QWidget()
            chosen.setLayout(row(*items))
            head.addWidget(chosen)
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
        self.at = ElidedLabel("caption", "Size that the figures are of", right=True)
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
        listed = QWidget()
        listed.setLayout(column(self.listed, self.workers.figures, 0, spacing=0))
        scroll.setWidget(listed)
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
        """Whether anything is measured, counted or modeled."""
        return self.sweep.running or self.modeled.busy or self.beside.sweep.running or self.workers.busy

    @property
    def sizes(self) -> list[int]:
        """Return the sizes up to the largest that is chosen."""
        smallest, largest = self._range.smallest, self.largest.currentData()
        return [2**exponent for exponent in range(min(smallest, largest), largest + 1)]

    def toggle(self) -> None:
        """Measure, or stop."""
        self.stop() if self.busy else self.measure()

    def measure(self) -> None:
        """Measure or count anew what is ticked."""
        if self.views.chosen in VIEWS:
            self._model_again()
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
                "An edited kernel is measured on the simulator only.", "Choose the simulator, or revert the kernel."
            )
            return
        params, inputs = self._asked()
        if inputs is None:
            self.failed.emit("There is no image to compare variants with.", "Open one with Ctrl+O.")
            return
        self._offer_sizes()
        self.points, self._why = [], {}
        self.curves.begin(self.sizes, self._unit)
        self._show()
        chosen = [each.name for each in self.rows if each.box.isChecked()]
        counted, gpu = self._counted, self._by.modeled
        self.sweep.start(self._pattern, chosen, self.sizes, params, sources, inputs, counted=counted, gpu=gpu)
        self._model_beside()
        self._name_button()

    def _measure_workers(self) -> None:
        """Measure the variant that is chosen on more and more workers."""
        params, inputs = self._asked()
        if inputs is None:
            self.failed.emit("There is no image to measure with.", "Open one with Ctrl+O.")
            return
        n, variant = self.sizes[-1], self._pattern.variant(self._seen())
        params |= self._pattern.with_value(Role.SIZE, n)
        sources = self._sources.edits(self._pattern.file_of(variant.name))
        side = n if inputs else 0
        request = RunPattern(self._pattern.name, variant.name, params, inputs, n, sources=sources, side=side)
        of = f"{n} × {n} pixels" if inputs else f"n = {as_power(n)}"
        self.workers.start(request, f"{variant.title}, {of}")

    def _end_workers(self) -> None:
        self._name_button()
        if self.workers.plot.speeds:
            self.succeeded.emit()

    def _asked(self) -> tuple[dict[str, Any], dict[str, SharedArray] | None]:
        """Return with which parameters and images variants are compared; None where there is no image."""
        params = dict(self._params())
        if self._pattern.takes(params) == "text":
            params |= self._pattern.for_file("image")
        if self._pattern.takes(params) == "image":
            return params, dict(self._image()) or None
        if self._pattern.value(params, Role.SIZE) is None and self._pattern.source is not None:
            params[self._pattern.source.name] = self._pattern.source.default
        return params, {}

    def stop(self) -> None:
        """Measure no further."""
        self.sweep.stop()
        self.modeled.stop()
        self.beside.sweep.stop()
        self.workers.stop()

    # --- modeling

    def _model_beside(self) -> None:
        """Model the variants that are ticked as those were set that are drawn, where that is wanted beside them."""
        self.beside.name_gpu()
        self.beside.button.setVisible(self._by.of_a_gpu)
        params, inputs = self._asked()
        if not self.beside.on or inputs is None:
            self.beside.forget()
            self._show_beside()
            return
        recorded = self._by.recorded
        if recorded is not None:
            params |= self._pattern.check(recorded.of(self._pattern.name)[0].params)
        image = self._pattern.takes(params) in ("image", "text")
        most = 2 ** _MODELED["pixels" if image else "sides" if self._of_matrices else "elements"].choices[-1]
        drawn = {point.variant for point in self._shown} or {each.name for each in self.rows}
        ticked = [each.name for each in self.rows if each.box.isChecked() and each.name in drawn]
        self.beside.start(self._pattern, ticked, [n for n in self._shown_sizes if n <= most], params, inputs)
        self._show_beside()

    def _show_beside(self) -> None:
        """Draw what was modeled beside what is shown, and say which is which."""
        on, recorded = self.beside.on, self._by.recorded
        self.curves.show_modeled(self._figures(self.beside.points) if on else {})
        self.legend.setVisible(on)
        self.legend.setText(self.beside.words("measured here" if recorded is None else recorded.words) if on else "")
        self.card.title.setText(f"{self._by.title} and modeled" if on else self._by.title)
        self._name_button()

    def _take_view(self) -> None:
        """Show curves, or one of the views of what is modeled, which is modeled at once."""
        curves = self.views.chosen == CURVES
        self.shown.setCurrentWidget(
            self.card if curves else self.workers if self.views.chosen == WORKERS else self.modeled
        )
        self.heading.setText(_UP_TO if curves else _AT)
        # Over workers one variant is measured, so there is nothing to tick.
        over_workers = self.views.chosen == WORKERS
        self.listed.setVisible(not over_workers)
        self.workers.figures.setVisible(over_workers)
        self.ladder.title.setText("Over workers" if over_workers else _VARIANTS)
        self._offer_sizes()
        if curves:
            self.modeled.stop()
            self._show()
            self._say_at_rest()
        elif self.views.chosen == WORKERS:
            self.stop()
            self._show_figures({})
            self.workers.say_figures()
            self.at.say("the variant that is chosen above")
        else:
            self.sweep.stop()
            self.beside.sweep.stop()
            self.workers.stop()
            self.modeled.show_view(self.views.chosen)
            self._model_again()
        self._name_button()

    def _model_again(self) -> None:
        """Model what is ticked, where that is looked at: what is known already comes at once."""
        if self.views.chosen not in VIEWS or not self.isVisible():
            self.modeled.forget()
            return
        params, inputs = self._asked()
        if inputs is None:
            self.failed.emit("There is no image to model variants with.", "Open one with Ctrl+O.")
            return
        n = self.sizes[-1]
        params |= self._pattern.with_value(Role.SIZE, n)
        sources = self._sources.edits(*self._pattern.files)
        block = self._pattern.block
        own = dict(inputs)

        def requested(variant: str) -> Callable[[Supposed, int], ModelPattern]:
            def request(supposed: Supposed, threads: int) -> ModelPattern:
                chosen = params if block is None or not threads else params | {block.name: str(threads)}
                return ModelPattern(
                    self._pattern.name, variant, self._modeling.gpu, chosen, own, n, sources, n if own else 0,
                    supposed, operations=True,
                )  # fmt: skip

            return request

        offered = [
            Modelable(number, self._pattern.variant(each.name).title, requested(each.name))
            for number, each in enumerate(self.rows)
            if each.box.isChecked() and not self._pattern.variant(each.name).library
        ]
        sizes, threads = self._pattern.block_sizes(params)
        of = f"{n} × {n} pixels" if own else f"n = {as_power(n)}"
        names = [each.name for each in self.rows]
        self.modeled.start(offered, of, sizes, threads, names.index(self._seen()))

    def _take_gpu(self) -> None:
        """Another GPU is chosen: what was modeled for the one before is not shown any more."""
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
        self._say_at_rest()

    def _take_edit(self, file: str) -> None:
        """A text changes: what was modeled of it is not shown beside it."""
        if file not in self._pattern.files:
            return
        if self.modeled.found or self.modeled.busy:
            self.modeled.forget()
            self._edited.start()
        if any(point.modeled is not None for point in self.points):
            self.forget()

    def _show_modeled(self) -> None:
        """Show each variant's modeled time beside it."""
        if self.views.chosen not in VIEWS:
            return
        times, refusals = self.modeled.modeled, self.modeled.refusals
        best = min((each.time_us for each in times.values()), default=0.0)
        for number, each in enumerate(self.rows):
            found = times.get(number)
            why = refusals.get(number, "")
            if found is None:
                each.show_figure("–" if why else "", best=False, tip=why)
            else:
                each.show_figure(as_duration(found.time_us), best=found.time_us == best, tip=found.waits)
        self.at.say(f"modeled, {self.modeled.of}" if times else "")

    def _name_button(self) -> None:
        """Say on the button what it does."""
        if self.busy:
            self.measure_button.setText("Stop")
        elif self.views.chosen == WORKERS:
            self.measure_button.setText("Measure")
        elif self.views.chosen in VIEWS or self._by.modeled:
            self.measure_button.setText("Model")
        else:
            self.measure_button.setText("Count" if self._counted else "Measure")

    def forget(self) -> None:
        """Drop all points: they are another engine's."""
        self.stop()
        self.workers.forget()
        if not self.points and not self._why:
            return  # what was recorded stays drawn: to draw it again on every page would hold the window up
        self.points, self._why = [], {}
        self.curves.begin(self._shown_sizes, self._unit)
        self._show()
        self._say_at_rest()

    # --- what is compared

    @property
    def _by(self) -> ComparedBy:
        """Return what variants are compared by."""
        chosen: ComparedBy = self.quantity.currentData()
        return chosen

    @property
    def _here(self) -> ComparedBy:
        """Return what they are compared by where that is found out here and now."""
        offered = [self.quantity.itemData(place) for place in range(self.quantity.count())]
        here = [each for each in offered if each.recorded is None and not each.modeled]
        return self._by if self._by.recorded is None else here[0]

    @property
    def _counted(self) -> bool:
        """Whether the button counts, or else measures."""
        return self._here.quantity is not None

    @property
    def _unit(self) -> str:
        """Return what the figures count."""
        if self._by.rates:
            return self.unit.chosen
        quantity = self._by.quantity
        return _IN_MS if quantity is None else quantity.unit.format(each=self._each)

    @property
    def _shown(self) -> list[Point]:
        """Return what is drawn."""
        return self.points if self._by.recorded is None else points_of(self._by.recorded, self._pattern)

    @property
    def _shown_sizes(self) -> list[int]:
        return self.sizes if self._by.recorded is None else sorted({point.n for point in self._shown})

    def _offer_comparisons(self) -> None:
        """Offer what variants can be compared by with this engine, and choose the first."""
        self.quantity.blockSignals(True)
        self.quantity.clear()
        for place, each in enumerate(comparisons(self._records, simulated=self._simulated, gpu=self._modeling.gpu)):
            self.quantity.addItem(each.name, each)
            self.quantity.setItemData(place, each.meaning, Qt.ItemDataRole.ToolTipRole)
        self.quantity.blockSignals(False)

    @property
    def _each(self) -> str:
        counted = next((point.counts for point in self.points if point.counts is not None), None)
        return counted.each if counted is not None else "each"

    def _take_quantity(self) -> None:
        """Compare by something else; between what is counted and what is measured here nothing is kept."""
        kind = (self._counted, bool(self._by.modeled))
        if self.points and (self.points[0].counts is not None, self.points[0].modeled is not None) != kind:
            self.forget()
        self.unit.setVisible(self._by.rates)
        self.quantity.setVisible(self.quantity.count() > 1)
        self._offer_sizes()
        self.scale.choose("linear" if self._by.quantity is not None else "log")
        self.curves.begin(self._shown_sizes, self._unit)
        self._show()
        self._model_beside()
        self._say_at_rest()

    def _offer_sizes(self, *, anew: bool = False) -> None:
        """Offer the sizes that suit what is compared, and keep the one that is chosen where it is among them."""
        image = self._pattern.takes(self._params()) in ("image", "text")
        kind = "pixels" if image else "sides" if self._of_matrices else "elements"
        size = self._pattern.size
        self.curves.name_sizes("pixels of a side" if image or size is None else size.unit)
        on_workers = self.views.chosen == WORKERS
        modeled = self.views.chosen in VIEWS or (bool(self._by.modeled) and not on_workers)
        counted = self._counted and not on_workers
        offered = (_MODELED if modeled else _COUNTED if counted else _MEASURED)[kind]
        if offered == self._range and self.largest.count() and not anew:
            return
        self._range = offered
        greatest = max(size.maximum, 1).bit_length() - 1 if size is not None and not image else offered.choices[-1]
        fitting = [exponent for exponent in offered.choices if exponent <= greatest] or [greatest]
        self.largest.clear()
        for exponent in fitting:
            self.largest.addItem(as_power(2**exponent), exponent)
        measured = not counted and not modeled
        wanted = max(offered.default, self._comparable_from(image)) if measured else offered.default
        self.largest.setCurrentIndex(
            self.largest.findData(next((each for each in fitting if each >= wanted), fitting[-1]))
        )

    def _comparable_from(self, image: bool) -> int:
        """Return the power of two from which variants can be compared on this device; 0 where none is known."""
        device, pattern = self._device, self._pattern
        if device is None or device.executor != "gpu":
            return 0
        if image:
            return 0 if pattern.side_on_gpu is None else pattern.side_on_gpu(device.multiprocessors).bit_length() - 1
        of_size = pattern.growing is not None and pattern.growing is pattern.size
        return pattern.comparable_from(device).bit_length() - 1 if of_size else 0

    def _take_device(self, device: Device) -> None:
        simulated = device.engine == "simulator"
        if simulated != self._simulated:
            self._simulated = simulated
            self._offer_comparisons()
            self._take_quantity()
        if device != self._device:
            self._device = device
            self._offer_sizes(anew=True)
        for each in self.rows:
            each.show_device(device)
        several = bool(self._jobs.workers) and self._pattern.distributed is not None
        self.views.buttons[WORKERS].setVisible(several)
        if self.views.chosen == WORKERS and not several:
            self.views.choose(CURVES)

    def _end(self) -> None:
        self._name_button()
        self._say_at_rest()
        if self._why and not self.points:
            self.failed.emit(f"Nothing could be measured: {next(iter(self._why.values()))}", "")

    def _say_at_rest(self) -> None:
        recorded = self._by.recorded
        if recorded is not None:
            other = other_settings(recorded, self._pattern, self._params())
            self.about.say("; ".join(filter(None, (recorded.words, other, "every point verified"))))
        elif self._by.modeled:
            self.about.say(self._modeled_words())
        elif self._complaint:
            self.about.say(self._complaint)
        elif self._counted:
            what = "counted by the simulator: exact, and the same on every machine"
            self.about.say(what if self.points else "What variants do is counted, at each size.")
        elif self._simulated:
            self.about.say("How long this CPU takes says nothing of a GPU.")
        elif self.points:
            last = self.points[-1]
            self.about.say(f"measured, {last.device}; median of several runs, every point verified")
        else:
            self.about.say("Kernel time only, each point verified.")

    def _modeled_words(self) -> str:
        """Return whose times are modeled, how sure that is and from what."""
        known = next((point.modeled for point in self.points if point.modeled is not None), None)
        gpu = find_gpu(self._modeling.gpu)
        whose = f"modeled for {article(gpu.name)} {short_name(gpu.name)}: no GPU ran it"
        return whose if known is None else f"{whose}; {known.sureness}. {known.compiled}"

    def _add(self, point: Point) -> None:
        self.points.append(point)
        self.succeeded.emit()
        self._show()

    def _leave_out(self, variant: str, why: str) -> None:
        self._why[variant] = why
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
                value = point.work_per_s if self._in_work else point.elements_per_s / 1e6
            figures.setdefault(numbers[point.variant], {})[point.n] = value
        return figures

    def _look_at(self, size: int | None) -> None:
        self._size = size
        self._show_figures(self._figures(self._shown))

    def _show(self) -> None:
        figures = self._figures(self._shown)
        self.curves.show_points(figures, self._unit)
        self.curves.show_modeled(self._figures(self.beside.points) if self.beside.on else {})
        if self.views.chosen == CURVES:
            self._show_figures(figures)

    def _show_figures(self, figures: dict[int, dict[int, float]]) -> None:
        """Show each variant's figure at the size under the pointer, else at its largest."""
        shown = {
            number: of_variant.get(self._size) if self._size is not None else of_variant[max(of_variant)]
            for number, of_variant in figures.items()
        }
        known = [value for value in shown.values() if value is not None]
        more = self._by.rates or (self._by.quantity is not None and self._by.quantity.more_is_better)
        best = (max if more else min)(known, default=None)
        recorded = ", recorded," if self._by.recorded is not None else ", modeled," if self._by.modeled else ""
        self.at.say(
            f"{self._unit}{recorded} at n = {as_power(self._size)}" if self._size is not None
            else f"{self._unit}{recorded} at the largest n" if figures else ""
        )  # fmt: skip
        for number, each in enumerate(self.rows):
            value = shown.get(number)
            why = self._why.get(each.name, "") if self._by.recorded is None else ""
            if value is None:
                each.show_figure("wrong" if "wrong" in why else "–" if figures or why else "", best=False, tip=why)
            else:
                each.show_figure(as_figure(value), best=value == best)

    def _share_width(self) -> None:
        """Give the ladder the width that goes with the text's size, but the curves the larger part."""
        self.ladder.setFixedWidth(min(look().px(380), round(0.4 * self.width())))

    def resizeEvent(self, event: QResizeEvent | None) -> None:
        super().resizeEvent(event)
        self._share_width()

    def changeEvent(self, event: QEvent | None) -> None:
        super().changeEvent(event)
        if is_of(event, QEvent.Type.StyleChange):
            self._share_width()

    def showEvent(self, event: QShowEvent | None) -> None:
        super().showEvent(event)
        if not self.sweep.running:  # what is chosen on the Run tab may be other settings by now
            self._offer_sizes()
            self._say_at_rest()
        if self.views.chosen in VIEWS:
            self._model_again()

    def hideEvent(self, event: QHideEvent | None) -> None:
        assert event is not None
        super().hideEvent(event)
        if not event.spontaneous():  # a minimized window goes on
            self.stop()
