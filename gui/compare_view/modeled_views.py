"""Modeled variants or launches side by side: limits, roofline, occupancy, and what-if sliders."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from PyQt6.QtCore import pyqtSignal
from PyQt6.QtWidgets import QStackedWidget

from gpu.declaration.pattern import Progress
from gpu.messages.events import Failure
from gpu.messages.modeled_time import ModeledTime, format_duration, name_with_article
from gpu.timing.gpus import GpuScaling, find_gpu
from gui.compare_view.hypothetical_gpu import HypotheticalGpuSliders
from gui.compare_view.limits import LimitsTable
from gui.compare_view.occupancy import OccupancyView
from gui.model.time_modeler import ModelRequest, TimeModeler
from gui.plots.roofline_plot import RooflineDot, RooflinePlot, Roofs
from gui.qt.events import StyleListener
from gui.qt.timers import create_single_shot_timer
from gui.widgets.basic import Card, ElidedLabel, label
from gui.widgets.glossary_tip import add_definition

LIMITS_VIEW, ROOFLINE, OCCUPANCY = "Limits", "Roofline", "Occupancy"
VIEWS = (LIMITS_VIEW, ROOFLINE, OCCUPANCY)
_TERMS = {LIMITS_VIEW: "limiting resource", ROOFLINE: "roofline", OCCUPANCY: "occupancy"}
"""Terms of the glossary, by view."""
_SLIDER_DELAY_MS = 150
"""How long a slider must rest before its supposition is modeled."""


@dataclass(frozen=True)
class Modelable:
    """A variant or launch to model.

    Parameters
    ----------
    number : int
        Its position in the ladder, which determines its color and number.
    request : callable
        (GpuScaling, threads per block or 0 for the current block size) -> the request.
    skip_reason : str
        Why it is not modeled; "" if it is.
    is_slow : bool
        Whether it takes longer than others, which are modeled first.
    """

    number: int
    title: str
    request: Callable[[GpuScaling, int], ModelRequest]
    skip_reason: str = ""
    is_slow: bool = False


class ModeledViews(StyleListener, Card):
    """Model a list of variants one after the other, and show the results as they arrive."""

    results_changed = pyqtSignal()
    """Results were added or removed."""
    busy_changed = pyqtSignal(bool)
    stale = pyqtSignal()
    """The list must be updated: another GPU was selected, or a supposition changed."""

    def __init__(self, modeling: TimeModeler) -> None:
        super().__init__("", margins=(12, 8, 12, 6))
        self._modeling = modeling
        self._channel = f"compare modeled {id(self)}"
        self._modelables: dict[int, Modelable] = {}
        self._todo: list[tuple[int, int]] = []
        self._request_number = 0
        self._input_description = ""
        self.results: dict[tuple[int, int], ModeledTime | Failure] = {}
        """Results by number and threads per block; 0 is the current block size."""
        self._bounds: dict[int, str] = {}
        """Clauses with a bound of the time, by number."""
        self.selected = -1
        """The number of the selected variant."""
        self._selected_by_user = False
        self.view = LIMITS_VIEW
        self.status_label = ElidedLabel("caption", "GPU, input and accuracy", right=True)
        self.head.addWidget(self.status_label, 1)
        self.limits = LimitsTable()
        self.roofline = RooflinePlot()
        self.occupancy = OccupancyView()
        self.stack = QStackedWidget()
        for widget in (self.limits, self.roofline, self.occupancy):
            self.stack.addWidget(widget)
        self.limit_label = label("", wrap=True, name="Limiting resource")
        add_definition(self.limit_label, "limiting resource")
        self.what_if = HypotheticalGpuSliders()
        self.body.addWidget(self.stack, 1)
        self.body.addWidget(self.limit_label)
        self.body.addWidget(self.what_if)
        self._slider_timer = create_single_shot_timer(_SLIDER_DELAY_MS, self.stale.emit, self)
        # Drawn once per batch of results: a roofline per variant would block the window.
        self._draw_timer = create_single_shot_timer(0, self._draw_view, self)
        self.what_if.changed.connect(self._slider_timer.start)
        self.limits.row_selected.connect(self._on_row_selected)
        self.roofline.picked.connect(self.select)
        modeling.gpu_changed.connect(self.stale)
        self.show_view(LIMITS_VIEW)

    def show_view(self, name: str) -> None:
        """Show the view with this name."""
        self.view = name
        self.stack.setCurrentIndex(VIEWS.index(name))
        self.title.setText({LIMITS_VIEW: "Limiting resources"}.get(name, name))
        self.title.setToolTip("")
        add_definition(self.title, _TERMS[name])
        self._update_view()

    # --- modeling

    @property
    def busy(self) -> bool:
        """Whether models are pending."""
        return bool(self._todo)

    @property
    def modeled(self) -> dict[int, ModeledTime]:
        """The modeled times by number, under the current suppositions."""
        return {number: model for number, model in self._current_results().items() if isinstance(model, ModeledTime)}

    @property
    def input_description(self) -> str:
        """Description of the input, such as "n = 2²⁰"."""
        return self._input_description

    @property
    def refusals(self) -> dict[int, str]:
        """The reasons of failed models by number."""
        return {
            number: model.message for number, model in self._current_results().items() if isinstance(model, Failure)
        }

    def _current_results(self) -> dict[int, ModeledTime | Failure]:
        return {number: model for (number, threads), model in self.results.items() if threads == 0}

    def start(
        self,
        modelables: Sequence[Modelable],
        input_description: str,
        blocks: Sequence[int],
        threads: int,
        first: int = -1,
    ) -> None:
        """Model the given variants, unless their results are cached.

        Parameters
        ----------
        input_description : str
            Description of the input, such as "n = 2²⁰".
        blocks : sequence of int
            The possible block sizes; empty if they cannot be changed.
        threads : int
            The current block size.
        first : int
            The number of the variant selected by default.
        """
        self.stop()
        self.what_if.set_block_sizes(blocks, threads)
        self._modelables = {modelable.number: modelable for modelable in modelables}
        self._input_description = input_description
        self.results = {(each.number, 0): Failure("input", each.skip_reason) for each in modelables if each.skip_reason}
        self._bounds = {}
        self._todo = [(each.number, 0) for each in modelables if not each.skip_reason]
        if not self._selected_by_user or self.selected not in self._modelables:
            self.selected = first if first in self._modelables else next(iter(self._modelables), -1)
            self._selected_by_user = False
        self.limits.show_titles([f"{modelable.number + 1}  {modelable.title}" for modelable in modelables])
        self._todo.sort(key=lambda key: (key[0] != self.selected, self._modelables[key[0]].is_slow))
        self._request_block_sizes()
        self._add_cached_results()
        self._request_number += 1
        self._update_view()
        self.results_changed.emit()
        if self._todo:
            self.busy_changed.emit(True)
            self._model_next()

    def stop(self) -> None:
        """Stop modeling."""
        if self.busy:
            self._todo = []
            self._request_number += 1
            self._modeling.cancel_request(self._channel)
            self._finish()

    def clear_results(self) -> None:
        """Clear the results, which are outdated."""
        self.stop()
        self.results = {}
        self.limits.show_times({})
        self._update_view()
        self.results_changed.emit()

    def select(self, number: int) -> None:
        """Select a variant."""
        if number not in self._modelables or number == self.selected:
            return
        self.selected, self._selected_by_user = number, True
        busy = self.busy
        self._request_block_sizes()
        self._update_view()
        if self._todo and not busy:
            self._request_number += 1
            self.busy_changed.emit(True)
            self._model_next()

    def _on_row_selected(self, line: int) -> None:
        numbers = list(self._modelables)
        if 0 <= line < len(numbers):
            self.select(numbers[line])

    def _request_block_sizes(self) -> None:
        """Request the other block sizes of the selected variant next, if the occupancy view shows them."""
        if self.view == OCCUPANCY and self.selected in self._modelables:
            keys = [(self.selected, threads) for threads in self.what_if.blocks]
            if self._modelables[self.selected].skip_reason:
                return
            # The first request may be running.
            self._todo[1:1] = [key for key in keys if key not in self.results and key not in self._todo]

    def _add_cached_results(self) -> None:
        """Add all cached results at once: drawing after each would block the window."""
        for number, threads in self._todo:
            if (cached := self._modeling.find_cached_model(self._build_request(number, threads))) is not None:
                self._store(number, threads, cached)
        self._todo = [each for each in self._todo if each not in self.results]

    def _build_request(self, number: int, threads: int) -> ModelRequest:
        return self._modelables[number].request(self.what_if.supposed, threads or self.what_if.threads)

    def _model_next(self) -> None:
        number, threads = self._todo[0]
        turn = self._request_number
        request = self._build_request(number, threads)
        self._show_status(f"modeling {self._modelables[number].title} …")

        def on_result(model: ModeledTime | Failure) -> None:
            if turn == self._request_number:
                self._on_model(number, threads, model)

        def on_progress(progress: Progress) -> None:
            # Compiling may take seconds: until then a bound is shown.
            if turn == self._request_number and not threads:
                self._bounds[number] = progress.message
                self._update_view()

        self._modeling.request_model(self._channel, request, on_result, on_progress=on_progress)

    def _on_model(self, number: int, threads: int, model: ModeledTime | Failure) -> None:
        if isinstance(model, Failure) and model.kind == "cancelled":
            self.stop()
            return
        del self._todo[0]
        self._store(number, threads, model)
        self._update_view()
        self.results_changed.emit()
        if self._todo:
            self._model_next()
        else:
            self._finish()

    def _store(self, number: int, threads: int, model: ModeledTime | Failure) -> None:
        self.results[number, threads] = model
        if isinstance(model, ModeledTime) and not self._selected_by_user and self.selected in self.refusals:
            self.selected = number  # prefer a variant that can be modeled
            self._request_block_sizes()

    def _finish(self) -> None:
        self._update_view()
        self.busy_changed.emit(False)

    # --- drawing

    def _draw_view(self) -> None:
        numbers = list(self._modelables)
        if self.view == LIMITS_VIEW:
            current = {numbers.index(number): model for number, model in self._current_results().items()}
            bounds = {numbers.index(number): bound for number, bound in self._bounds.items()}
            self.limits.show_times(current, bounds)
        elif self.view == ROOFLINE:
            self._show_roofline()
        else:
            self._show_occupancy()

    def _update_view(self) -> None:
        self._draw_timer.start()
        model = self._current_results().get(self.selected)
        title = self._modelables[self.selected].title if self.selected in self._modelables else ""
        if isinstance(model, ModeledTime):
            self.limit_label.setText(
                f"{title}: {format_duration(model.time_us)} – {model.reason}.{self._explain_missing_dot(model)}"
            )
        elif model is not None:
            self.limit_label.setText(f"{title}: {model.message}")
        else:
            bound = self._bounds.get(self.selected, "")
            self.limit_label.setText(f"{title}: {bound}." if bound else "")
        if not self.busy:
            self._show_status("")

    def _explain_missing_dot(self, model: ModeledTime) -> str:
        """Return a sentence if the selected variant is missing in the roofline, else ""."""
        missing = self.view == ROOFLINE and not model.operations
        return " It has no operations on data, so it has no dot." if missing else ""

    def _show_status(self, activity: str) -> None:
        """Show the current activity, or else the GPU, the input and the accuracy."""
        gpu = find_gpu(self._modeling.gpu)
        subject = f"modeled for {name_with_article(gpu.name)}"
        if self.what_if.has_changes:
            subject += f", supposing {self.what_if.description}"
        model = next(iter(self.modeled.values()), None)
        accuracy = model.accuracy if model is not None else ""
        self.status_label.show_text(
            "; ".join(filter(None, (activity or subject, self._input_description, "" if activity else accuracy)))
        )

    def _show_roofline(self) -> None:
        gpu = self.what_if.supposed.scale_gpu(find_gpu(self._modeling.gpu))
        # A multiply-add is two operations.
        peak = 2 * gpu.float_lanes * gpu.multiprocessors * gpu.clock_ghz
        dots = [
            RooflineDot(
                number,
                model.operations / max(model.dram_bytes, 1.0),
                model.operations / max(model.l2_bytes, 1.0),
                model.operations / model.time_us / 1e3,
            )
            for number, model in self.modeled.items()
            if model.operations > 0
        ]
        self.roofline.show_dots(dots, Roofs(gpu.memory_gb_s, gpu.last_cache_gb_s, peak), self.selected)

    def _show_occupancy(self) -> None:
        model = self.modeled.get(self.selected)
        if model is None or model.longest_kernel is None:
            return
        gpu = self.what_if.supposed.scale_gpu(find_gpu(self._modeling.gpu))
        self.occupancy.show_kernel(gpu, model.longest_kernel)
        times = {
            threads or self.what_if.threads: result.time_us
            for (number, threads), result in self.results.items()
            if number == self.selected and (threads or self.what_if.threads) and isinstance(result, ModeledTime)
        }
        self.occupancy.show_times(self.selected, self._modelables[self.selected].title, times, self.what_if.blocks)

    def _restyle(self) -> None:
        self.limits.restyle()
