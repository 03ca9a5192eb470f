"""Side-by-side view of two variants on the same input and one timeline, with their lanes, banks and counts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from PyQt6.QtCore import Qt
from PyQt6.QtGui import QResizeEvent
from PyQt6.QtWidgets import QComboBox, QGridLayout, QWidget

from gpu.messages.events import Failure
from gpu.messages.runs.recordings import StepPattern
from gui.model.request_queue import RequestQueue
from gui.painting.theme import look
from gui.step_view.cards.lanes import LaneGrid, list_state_texts
from gui.step_view.cards.traffic import BankRow
from gui.step_view.dataflow.view import FlowView
from gui.step_view.recording.models import RecordingModels
from gui.step_view.recording.steppable import OtherVariant, RunRequest
from gui.step_view.recording.stepper import Stepper
from gui.step_view.time.snapshots import Snapshots, make_snapshots
from gui.widgets.basic import ElidedLabel, Segments, column, format_count, label, restyle, row

if TYPE_CHECKING:
    from gpu.stepping.alignment import Alignment
    from gpu.stepping.tally import Counts

_MIN_HEIGHTS = ((34, "lane_states"), (30, "banks"), (27, "line"), (24, "grid"))
"""Minimum height of the view, in lines of text, for each optional part."""

BY_PHASE, BY_BARRIER = "by phase", "by barrier"

_COUNT_COLUMNS: Mapping[str, tuple[str, Callable[[Counts], float | None], Callable[[float], str]]] = {
    "steps": ("Consecutive operations: the algorithm's critical path", lambda counts: counts.steps, format_count),
    "operations": ("Operations on data, all threads together", lambda counts: counts.operations, format_count),
    "barriers": ("Barriers, counted once per block", lambda counts: counts.barriers, format_count),
    "idle lanes": ("Share of idle lanes in warps that execute an operation on data", lambda counts: (
        counts.idle_fraction), lambda value: f"{value:.0%}"),
    "divergent": ("Divergent branches, counted once per warp", lambda counts: counts.divergent_branches, format_count),
    "sectors": ("32-byte sectors of global memory transferred", lambda counts: counts.sectors, format_count),
    "conflicts": ("Bank conflicts: wavefronts beyond the minimum possible", lambda counts: (
        counts.bank_conflicts), format_count),
}  # fmt: skip


class VariantSide(QWidget):
    """One variant's dataflow, source line, lanes and banks."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.title = ElidedLabel("card-title", f"{name} variant")
        self.flow = FlowView(fits_all=True)
        self.flow.setMinimumSize(120, 90)
        self.flow.setAccessibleName(f"Dataflow of the {name} variant")
        self.line = ElidedLabel("code", f"Line of the {name} variant")
        self.lane_states = ElidedLabel("caption", f"Lanes of the {name} variant")
        self.grid = LaneGrid()
        self.grid.max_rows = 2
        self.banks = BankRow()
        self.models: RecordingModels | None = None
        self.moment = 0
        self._height_in_lines = 99.0
        self._title = ""
        self._snapshots: Snapshots | None = None
        below = QWidget()
        below.setLayout(column(self.line, self.grid, self.banks, self.lane_states, spacing=4, margins=(14, 0, 14, 0)))
        self.title.setContentsMargins(14, 0, 14, 0)
        self.setLayout(column(self.title, self.flow, below, spacing=3, stretch=1))

    def open(self, title: str, models: RecordingModels | None) -> None:
        """Set the variant's recording; None shows an empty view."""
        self._title, self.models = title, models
        self._snapshots = make_snapshots(models) if models is not None else None
        self.title.show_text(title)
        if models is None:
            self.flow.open(None)
            self.grid.show_lanes(None, 0, 1, -1)
        else:
            self.flow.open(models.layout)
        for each in (self.line, self.lane_states):
            each.show_text("")
        self.fit_to_height(self._height_in_lines)

    def fit_to_height(self, lines: float) -> None:
        """Hide the less important parts in a view with a height of `lines` lines of text."""
        self._height_in_lines = lines
        for min_lines, name in _MIN_HEIGHTS:
            applies = name != "banks" or (self.models is not None and "shared" in self.models.spaces)
            getattr(self, name).setVisible(lines >= min_lines and applies)

    def show_moment(self, moment: int) -> None:
        """Show the variant at a moment."""
        models, self.moment = self.models, moment
        if models is None or self._snapshots is None or not models.recording.event_count:
            return
        now = self._snapshots(moment, None)
        step = f"step {moment} of {models.recording.event_count}"
        self.title.show_text("  ·  ".join(part for part in (self._title, now.phase, step) if part))
        self.flow.show_moment(moment)
        line = int(models.lines[moment - 1]) if moment else 0
        self.line.show_text(f"{line}  {now.code.strip()}" if line else "")
        self.grid.show_lanes(now.lanes, now.block, now.threads, -1)
        self.banks.show_wavefronts(now.traffic.banks if now.traffic is not None else None)
        self.lane_states.show_text(*list_state_texts(now.lanes, now.block))


class VariantCounts(QWidget):
    """Counts of two variants, so far and in total, one row each; the smaller total is highlighted."""

    def __init__(self) -> None:
        super().__init__()
        self.setAccessibleName("Counts of both variants")
        self.setToolTip("So far / total: exact numbers from the recordings")
        grid = QGridLayout(self)
        grid.setContentsMargins(14, 0, 14, 0)
        grid.setHorizontalSpacing(look().px(10))
        grid.setVerticalSpacing(1)
        self.names = (ElidedLabel("caption", "First of the counts"), ElidedLabel("caption", "Second of the counts"))
        self.cells: dict[tuple[int, str], ElidedLabel] = {}
        for place, (name, (tip, _, _)) in enumerate(_COUNT_COLUMNS.items(), 1):
            head = label(name, "caption")
            head.setToolTip(tip)
            grid.addWidget(head, 0, place, Qt.AlignmentFlag.AlignRight)
            grid.setColumnStretch(place, 1)
            for side in (0, 1):
                cell = self.cells[side, name] = ElidedLabel("code", f"{name} of variant {side + 1}", right=True)
                grid.addWidget(cell, side + 1, place)
        for line, each in enumerate(self.names, 1):
            grid.addWidget(each, line, 0)
        grid.setColumnStretch(0, 3)

    def show_counts(self, index: int, name: str, so_far: Counts, total: Counts) -> None:
        """Show the counts of a variant.

        Parameters
        ----------
        index : int
            0 for the first variant, 1 for the second.
        name : str
            The variant's title.
        so_far, total : Counts
            Counts up to the current moment, and of the whole recording.
        """
        self.names[index].show_text(name)
        for figure, (_, count, as_words) in _COUNT_COLUMNS.items():
            values = (count(so_far), count(total))
            self.cells[index, figure].show_text(
                " / ".join("–" if value is None else as_words(value) for value in values)
            )

    def compare(self, totals: Sequence[Counts]) -> None:
        """Highlight the smaller of the two totals of each count."""
        for figure, (_, count, _) in _COUNT_COLUMNS.items():
            first, second = (count(each) for each in totals)
            for index, (total, other_total) in enumerate(((first, second), (second, first))):
                better = total is not None and other_total is not None and total < other_total
                restyle(self.cells[index, figure], "tone", "best" if better else "")

    def clear(self) -> None:
        """Clear all cells."""
        for each in (*self.names, *self.cells.values()):
            each.show_text("")


class VariantsView(QWidget):
    """The current recording side by side with another variant of its pattern.

    Parameters
    ----------
    jobs : callable
        Returns the job queue of the recording simulator.
    channel : str
        The queue's channel for this view's requests.
    """

    def __init__(self, jobs: Callable[[], RequestQueue], channel: str) -> None:
        super().__init__()
        self.setAccessibleName("Side by side")
        self.stepper = Stepper(jobs, channel, self)
        self.sides = (VariantSide("first"), VariantSide("second"))
        self.counts = VariantCounts()
        self.other_variants = QComboBox()
        self.other_variants.setAccessibleName("Other variant")
        self.other_variants.setToolTip("The variant to compare with, on the same input")
        self.other_variants.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.alignment_kinds = Segments((BY_PHASE, BY_BARRIER), "Aligned")
        self.state = ElidedLabel("muted", "Recording of the other variant")
        self.alignment: Alignment | None = None
        self._request: RunRequest | None = None
        self._moment = 0
        head = row(
            label("versus", "caption"),
            self.other_variants,
            label("aligned", "caption"),
            self.alignment_kinds,
            self.state,
            margins=(14, 0, 14, 0),
            stretch=4,
        )
        sides = row(*self.sides, spacing=4, stretch=0)
        sides.setStretch(1, 1)
        self.setLayout(column(head, sides, self.counts, spacing=4, stretch=1))
        self.other_variants.activated.connect(lambda _: self._record())
        self.alignment_kinds.picked.connect(lambda _: self._align())
        self.stepper.loaded.connect(self._receive_recording)
        self.stepper.failed.connect(self._show_failure)

    def resizeEvent(self, event: QResizeEvent | None) -> None:
        super().resizeEvent(event)
        for side in self.sides:
            side.fit_to_height(self.height() / look().text_px)

    @property
    def models(self) -> tuple[RecordingModels | None, RecordingModels | None]:
        """Return the models of both variants."""
        return self.sides[0].models, self.sides[1].models

    def start_comparison(
        self, title: str, request: RunRequest, models: RecordingModels, other_variants: Sequence[OtherVariant]
    ) -> None:
        """Show the current recording, and record another variant: the last selected, or the first of `other_variants`.

        Parameters
        ----------
        title : str
            Title of the current variant.
        request : RunRequest
            The request that made the current recording.
        models : RecordingModels
            The current recording.
        """
        chosen = self.other_variants.currentData()
        self._request = request
        self.other_variants.clear()
        for each in other_variants:
            self.other_variants.addItem(each.title, each.name)
        self.other_variants.setCurrentIndex(max(self.other_variants.findData(chosen), 0))
        self.counts.clear()
        self.alignment = None
        self.sides[0].open(title, models)
        self.sides[1].open("", None)
        self._record()

    def select_variant(self, name: str) -> None:
        """Select the variant to compare with."""
        self.other_variants.setCurrentIndex(self.other_variants.findData(name))
        self._record()

    def _record(self) -> None:
        request: Any = self._request
        if isinstance(request, StepPattern) and self.other_variants.currentData():
            self.state.show_text("recording…")
            self.stepper.record(replace(request, variant=self.other_variants.currentData()))

    def _receive_recording(self, request: RunRequest, models: RecordingModels) -> None:
        self.state.show_text("" if models.recording.event_count else models.recording.failure)
        self.sides[1].open(self.other_variants.currentText(), models)
        self._align()

    def _show_failure(self, failure: Failure) -> None:
        self.sides[1].open("", None)
        self.state.show_text(failure.message)

    def _align(self) -> None:
        from gpu.stepping.alignment import align_by_barriers, align_by_phases

        first, second = self.models
        if first is None or second is None:
            return
        ends = (first.recording.event_count, second.recording.event_count)
        alignment = (
            align_by_phases(first.data.phases, second.data.phases, ends)
            if self.alignment_kinds.chosen == BY_PHASE
            else None
        )
        own_starts, other_starts = ([segment.first for segment in models.data.segments] for models in (first, second))
        self.alignment = alignment or align_by_barriers(own_starts, other_starts, ends)
        self.counts.compare(
            [models.data.tally.counts_at(end) for models, end in zip((first, second), ends, strict=True)]
        )
        self.show_moment(self._moment)

    def show_moment(self, moment: int) -> None:
        """Show the first variant at a moment, and the other one at the aligned moment."""
        self._moment = moment
        moments = (moment, self.alignment.map_moment(moment) if self.alignment is not None else 0)
        for side_index, (side, side_moment) in enumerate(zip(self.sides, moments, strict=True)):
            if side.models is None:
                continue
            side.show_moment(side_moment)
            tally, end = side.models.data.tally, side.models.recording.event_count
            self.counts.show_counts(
                side_index, side.title.text().partition("  ·  ")[0], tally.counts_at(side_moment), tally.counts_at(end)
            )
