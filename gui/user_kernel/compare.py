"""The Compare tab of a kernel file: counts of its kernels, or of one kernel with several block sizes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from PyQt6.QtCore import pyqtSignal
from PyQt6.QtGui import QHideEvent, QShowEvent
from PyQt6.QtWidgets import QScrollArea, QStackedWidget, QWidget

from gpu.base.errors import InputError
from gpu.declaration.pattern import Array
from gpu.messages.events import Failure
from gpu.messages.kernels import CountedLaunch, CountKernel, KernelCounts, KernelLaunch, Signature, are_results_equal
from gpu.messages.modeled_time import ModelKernel
from gpu.messages.verdicts import describe_mistakes
from gpu.timing.gpus import GpuScaling
from gui.compare_view.modeled_views import VIEWS, Modelable, ModeledViews
from gui.model.request_queue import RequestQueue
from gui.model.time_modeler import TimeModeler
from gui.painting.theme import look
from gui.qt.events import StyleListener
from gui.user_kernel.contenders import Contender, list_block_size_contenders, list_kernel_contenders
from gui.user_kernel.counts_table import CountsTable
from gui.widgets.basic import Card, ElidedLabel, Segments, button, column, label, row, wrap_tip
from gui.widgets.elided_box import WrappedCheck

COUNTS = "Counts"
KERNELS, BLOCKS = "Kernels", "Block sizes"
_CHANNEL = "own compare"
_CHOICES_WIDTH = 270
"""Width in pixels of the list of launches."""
_IDLE_TEXT = "Totals for each launch, counted by the simulator."
_COUNTS_TEXT = "totals per launch, counted by the simulator: exact, and the same on every machine"


class UserCompareTab(StyleListener, QWidget):
    """Count the ticked launches one after the other, and show them side by side.

    Parameters
    ----------
    jobs : callable
        Returns the queue of the simulator's process.
    get_launch : callable
        Returns the selected launch; raises InputError if there is none.
    get_kernels : callable
        Returns the kernels of the file.
    modeling : TimeModeler
        Predicts the launches' times on a GPU.
    """

    failed = pyqtSignal(object)
    """Failure"""
    busy_changed = pyqtSignal(bool)

    def __init__(
        self,
        jobs: Callable[[], RequestQueue],
        get_launch: Callable[[], KernelLaunch],
        get_kernels: Callable[[], Sequence[Signature]],
        modeling: TimeModeler,
    ) -> None:
        super().__init__()
        self._jobs, self._get_launch, self._get_kernels = jobs, get_launch, get_kernels
        self.contenders: list[Contender] = []
        self.counts: dict[str, CountedLaunch | str] = {}
        """Counts by contender title, or the reason why there are none."""
        self.results_equal: dict[str, bool] = {}
        """Whether the result equals that of the first counted launch, by contender title."""
        self._first_arrays: dict[str, Array] | None = None
        self._todo: list[Contender] = []
        self._request_number = 0
        self._columns: list[str] = []
        self._ticked: dict[str, bool] = {}
        self._modeling = modeling
        self.views = Segments((COUNTS, *VIEWS), "Compare by")
        self.views.picked.connect(lambda _: self._on_view_changed())
        self.modeled_views = ModeledViews(modeling)
        self.modeled_views.stale.connect(self.model_launches)
        self.modeled_views.busy_changed.connect(lambda _: self._update_button())
        self.comparison = Segments((KERNELS, BLOCKS), "Compare")
        self.comparison.picked.connect(lambda _: self.refresh())
        self.boxes: list[WrappedCheck] = []
        self.count_button = button("Count", "primary", tip="Run the ticked launches in the simulator and count (F5)")
        self.count_button.clicked.connect(self.toggle)
        self.table = CountsTable()
        self.status_label = ElidedLabel("caption", "Source of the counts")
        self.findings_label = label("", "caption", wrap=True, name="Findings")
        self.findings_label.hide()
        self.hint = label("", "caption", wrap=True, name="Compared launches")
        self._lay_out()

    def _lay_out(self) -> None:
        counts = Card("Side by side", margins=(12, 8, 12, 10))
        counts.head.addWidget(self.status_label, 1)
        counts.body.addWidget(self.table, 1)
        counts.body.addWidget(self.findings_label)
        choices = Card("Compare", margins=(12, 8, 12, 12))
        choices.head.addStretch(1)
        choices.head.addWidget(self.comparison)
        container = QWidget()
        self._list = column(0, spacing=4)
        container.setLayout(self._list)
        scroll = QScrollArea()
        scroll.setWidgetResizable(True)
        scroll.setWidget(container)
        choices.body.addWidget(self.hint)
        choices.body.addWidget(scroll, 1)
        choices.body.addLayout(row(0, self.count_button))
        choices.setFixedWidth(look().px(_CHOICES_WIDTH))
        self._choices = choices
        self.view_stack = QStackedWidget()
        self.view_stack.addWidget(counts)
        self.view_stack.addWidget(self.modeled_views)
        self.setLayout(row(self.view_stack, choices, stretch=0))

    @property
    def busy(self) -> bool:
        """Whether launches remain to be counted."""
        return bool(self._todo)

    @property
    def ticked(self) -> list[Contender]:
        """The ticked launches."""
        return [contender for contender, box in zip(self.contenders, self.boxes, strict=True) if box.isChecked()]

    def refresh(self) -> None:
        """Update the list of launches after a change of the source or the launch."""
        try:
            launch = self._get_launch()
        except InputError as error:
            self.stop()
            self._list_contenders([], error.message)
            return
        in_blocks = self.comparison.chosen == BLOCKS
        contenders = (
            list_block_size_contenders(launch) if in_blocks else list_kernel_contenders(launch, self._get_kernels())
        )
        if contenders == self.contenders:
            return
        self.stop()
        others = sum(not contender.refusal for contender in contenders) - 1
        if in_blocks:
            hint = f"{launch.kernel} with several block sizes; the grid is adapted to the number of threads."
        elif others:
            hint = "With the same grid, block size and arguments."
        else:
            hint = f"No other kernel of the file has the parameters of {launch.kernel}."
        self._list_contenders(contenders, hint)

    def _list_contenders(self, contenders: list[Contender], hint: str) -> None:
        self._ticked |= {
            contender.title: box.isChecked() for contender, box in zip(self.contenders, self.boxes, strict=True)
        }
        for box in self.boxes:
            self._list.removeWidget(box)
            box.deleteLater()
        self.contenders, self.boxes = contenders, []
        for index, contender in enumerate(contenders):
            box = WrappedCheck(contender.title)
            box.setEnabled(not contender.refusal)
            box.setChecked(not contender.refusal and self._ticked.get(contender.title, True))
            box.setToolTip(wrap_tip(contender.refusal) or _describe_launch(contender.launch))
            box.toggled.connect(lambda _: self._on_choice_changed())
            self._list.insertWidget(index, box)
            self.boxes.append(box)
        self.hint.setText(hint)
        self._clear_counts()
        if self.views.chosen != COUNTS:
            self.model_launches()

    def _on_choice_changed(self) -> None:
        self.count_button.setEnabled(self.busy or bool(self.ticked))
        if not self.busy and not self.counts:
            self._clear_counts()

    def _clear_counts(self) -> None:
        self.counts, self.results_equal, self._first_arrays = {}, {}, None
        self._columns = [each.title for each in self.ticked]
        self.table.show_titles(self._columns)
        self._show_counts()
        self.count_button.setEnabled(bool(self._columns))
        self.status_label.show_text(_IDLE_TEXT)

    # --- modeling

    def _on_view_changed(self) -> None:
        """Show the counts, or a view of the modeled times, which are computed at once."""
        counts = self.views.chosen == COUNTS
        self.view_stack.setCurrentIndex(0 if counts else 1)
        if counts:
            self.modeled_views.stop()
        else:
            self.modeled_views.show_view(self.views.chosen)
            self.model_launches()
        self._update_button()

    def model_launches(self) -> None:
        """Model the ticked launches, if a view of modeled times is visible."""
        if self.views.chosen == COUNTS or not self.isVisible():
            self.modeled_views.clear_results()
            return
        in_blocks = self.comparison.chosen == BLOCKS
        block_size_contenders = (
            list_block_size_contenders(self.contenders[0].launch) if self.contenders and not in_blocks else ()
        )
        launches_by_threads = {
            math.prod(contender.launch.block): contender.launch for contender in block_size_contenders
        }

        def request_for(launch: KernelLaunch) -> Callable[[GpuScaling, int], ModelKernel]:
            def request(supposed: GpuScaling, threads: int) -> ModelKernel:
                shape = launches_by_threads.get(threads, launch)
                resized = replace(launch, grid=shape.grid, block=shape.block)
                return ModelKernel(resized, self._modeling.gpu, supposed, count_operations=True)

            return request

        variants = [Modelable(index, each.title, request_for(each.launch)) for index, each in enumerate(self.ticked)]
        block_size = math.prod(self.contenders[0].launch.block) if self.contenders else 0
        powers = [threads for threads in launches_by_threads if threads & (threads - 1) == 0]
        self.modeled_views.start(variants, "", powers, block_size)

    def _update_button(self) -> None:
        """Set the button's text to its current action."""
        busy = self.busy or self.modeled_views.busy
        self.count_button.setText("Stop" if busy else "Count" if self.views.chosen == COUNTS else "Model")

    # --- counting

    def toggle(self) -> None:
        """Start counting, or stop."""
        self.stop() if self.busy or self.modeled_views.busy else self.count_launches()

    def count_launches(self) -> None:
        """Count or model the ticked launches."""
        if self.views.chosen != COUNTS:
            self.model_launches()
            return
        self.refresh()
        self.stop()
        self._clear_counts()
        self._todo = self.ticked
        if self._todo:
            self._update_button()
            self.busy_changed.emit(True)
            self._count_next()

    def stop(self) -> None:
        """Stop counting and modeling."""
        self.modeled_views.stop()
        if self.busy:
            self._todo = []
            self._request_number += 1
            self._jobs().drop(_CHANNEL)
            if self._jobs().has_request(_CHANNEL):
                self._jobs().stop()
            self._finish_counting()

    def _count_next(self) -> None:
        contender, request_number = self._todo[0], self._request_number
        self.status_label.show_text(f"counting {contender.title} …")

        def on_result(event: KernelCounts | Failure) -> None:
            if request_number == self._request_number:
                self._on_counts(contender, event)

        self._jobs().post(_CHANNEL, CountKernel(contender.launch), on_result, priority=1)

    def _on_counts(self, contender: Contender, event: KernelCounts | Failure) -> None:
        if isinstance(event, KernelCounts):
            self.counts[contender.title] = event.counted_launch
            self._compare_arrays(contender.title, {name: handle.open() for name, handle in event.arrays.items()})
        elif event.kind in ("input", "compile", "launch"):
            self.counts[contender.title] = f"{event.message} {event.advice}".strip()
        else:
            self._todo = []
            if event.kind != "cancelled":
                self.failed.emit(event)
            self._finish_counting()
            return
        del self._todo[0]
        self._show_counts()
        if self._todo:
            self._count_next()
        else:
            self._finish_counting()

    def _compare_arrays(self, title: str, arrays: dict[str, Array]) -> None:
        if self._first_arrays is None:
            self._first_arrays = {name: np.array(array) for name, array in arrays.items()}
        else:
            first = self._first_arrays
            self.results_equal[title] = all(
                name in first and are_results_equal(array, first[name]) for name, array in arrays.items()
            )

    def _finish_counting(self) -> None:
        self._update_button()
        self.status_label.show_text(_COUNTS_TEXT if self.counts else _IDLE_TEXT)
        self._on_choice_changed()
        self.busy_changed.emit(False)

    def _show_counts(self) -> None:
        self.table.show_counts(
            [self.counts.get(title) for title in self._columns],
            [self.results_equal.get(title) for title in self._columns],
        )
        sentences = [
            sentence for title in self._columns if (sentence := _describe_problem(title, self.counts.get(title)))
        ]
        self.findings_label.setText("\n".join(sentences))
        self.findings_label.setVisible(bool(sentences))

    def _restyle(self) -> None:
        self._choices.setFixedWidth(look().px(_CHOICES_WIDTH))
        self.table.resize_with_text()
        self._show_counts()

    def showEvent(self, event: QShowEvent | None) -> None:
        super().showEvent(event)
        self.refresh()
        if self.views.chosen != COUNTS and not self.modeled_views.busy:
            self.model_launches()

    def hideEvent(self, event: QHideEvent | None) -> None:
        assert event is not None
        super().hideEvent(event)
        if not event.spontaneous():  # a minimized window continues
            self.stop()


def _describe_problem(title: str, counts: CountedLaunch | str | None) -> str:
    """Return a sentence about a launch's failure or findings, or ""."""
    if isinstance(counts, str):
        return f"{title}: {counts}"
    if counts is not None and counts.mistakes:
        return f"{title}: {describe_mistakes(counts.mistakes)}. Its counts are those of an incorrect kernel."
    return ""


def _describe_launch(launch: KernelLaunch) -> str:
    grid, block = (" × ".join(map(str, each)) for each in (launch.grid, launch.block))
    return f"{launch.kernel}: grid {grid}, block {block}"
