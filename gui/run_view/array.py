"""The Run tab of a pattern of arrays: plots of the input and the result."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from PyQt6.QtCore import QPoint, Qt
from PyQt6.QtGui import QResizeEvent
from PyQt6.QtWidgets import QStackedWidget, QWidget

from gpu.declaration.arrays import outline
from gpu.declaration.pattern import Array, Pattern
from gpu.declaration.presentation import ArrayPresentation
from gpu.declaration.roles import Role
from gui.model.records import FinishedRun, PointedElement
from gui.painting.theme import look
from gui.plots.array_plot import ArrayPlot
from gui.plots.excerpt import ArrayExcerpt
from gui.plots.levels_bar import LevelsBar
from gui.run_view.examples import find_preset
from gui.run_view.partials import PartialResults, PartialsTree
from gui.run_view.passes import PassesBar
from gui.run_view.pieces import PiecesBar
from gui.run_view.view import RunView
from gui.widgets.basic import Card, ElidedLabel, button, column, format_count, format_figure, label, row, split

MAX_PREVIEW_ELEMENTS = 2**16
"""Largest number of elements for which the window generates the input itself, to show it before the run ends."""

_PLOT, _VALUE, _PIECES = range(3)


class SingleResult(QWidget):
    """The page of a result that is one value: the value, the reference result, and the partial results."""

    def __init__(self) -> None:
        super().__init__()
        self.value_label = label("–", "huge", name="Result")
        self.value_label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.reference_label = label("", "muted", name="Reference result")
        self.overflow_label = label(
            "wrapped around modulo 2³²: the exact result exceeds int32", "muted", wrap=True, name="Overflow"
        )
        self.overflow_label.hide()
        for each in (self.value_label, self.reference_label, self.overflow_label):
            each.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.writer_button = button(
            "Which thread?", "flat", tip="Show the thread that wrote the result", name="Which thread wrote it"
        )
        self.partials = PartialsTree()
        self.partials.hide()
        reference = row(0, self.reference_label, self.writer_button, 0)
        layout = column(0, self.value_label, self.overflow_label, reference, self.partials, 0)
        layout.setStretchFactor(self.partials, 6)
        self.setLayout(layout)

    def show_outcome(self, outcome: FinishedRun, result: Array) -> None:
        """Show a run whose result is an array with one element."""
        self.value_label.setText(_format_full_precision(result[0].item()))
        reference = outcome.arrays.get("reference")
        deviation = outcome.report.deviation
        if reference is None or deviation is None:
            self.reference_label.setText("")
        elif deviation.max_abs == 0:
            self.reference_label.setText("equals the reference result")
        else:
            relative = f" (relative {deviation.max_rel:.1e})" if np.isfinite(deviation.max_rel) else ""
            text = _format_full_precision(reference[0, 0].item())
            self.reference_label.setText(f"reference {text}, difference {format_figure(deviation.max_abs)}{relative}")
        self.overflow_label.setVisible(bool(outcome.arrays.get("wrapped", False)))
        rows = _collect_partial_results(outcome.arrays)
        self.partials.show_rows(rows)
        self.partials.setVisible(bool(rows))


class ArrayView(RunView):
    """The Run tab of a pattern that turns an array into an array, or into one value.

    Parameters
    ----------
    pattern : Pattern
        One with an ArrayPresentation.
    """

    def __init__(self, pattern: Pattern) -> None:
        super().__init__()
        assert isinstance(pattern.presentation, ArrayPresentation)
        self._pattern, self._presentation = pattern, pattern.presentation
        self._aligning = False
        self._captions = {"input": "", "result": ""}
        self.before, self.after = ArrayPlot("Input"), ArrayPlot("Result")
        self.error = ArrayPlot("Error against the reference", "error")
        self.error.hide()
        self.single_result = SingleResult()
        # The card opens over the input, so that the value stays visible.
        self.single_result.writer_button.clicked.connect(
            lambda: self._request_writer(0, self.before.mapToGlobal(self.before.rect().center()))
        )
        self.pieces = PiecesBar()
        self.passes = PassesBar()
        self.passes.hide()
        self._frames: Array = np.empty((0, 0))
        self._outcome: FinishedRun | None = None
        self._input_caption, self._result_caption = (
            ElidedLabel("caption", f"About the {of}", right=True) for of in ("input", "result")
        )
        self.bars = LevelsBar(self.before), LevelsBar(self.after)
        self.excerpts = ArrayExcerpt("Elements of the input"), ArrayExcerpt("Elements of the result")
        self._first_excerpt_index, self._excerpt_length = 0, 0
        self._has_histogram: tuple[bool, ...] = (False, False)
        for each in (*self.bars, *self.excerpts):
            each.hide()
        self._lay_out()
        self._connect_parts()

    def _lay_out(self) -> None:
        input_plot, result_plot = (
            _create_plot_row(plot, bar) for plot, bar in zip((self.before, self.after), self.bars, strict=True)
        )
        self.result_stack = QStackedWidget()
        for page in (result_plot, self.single_result, self.pieces):
            self.result_stack.addWidget(page)
        self.splitter = split(Qt.Orientation.Vertical)
        for title, contents, about in (
            ("Input", (input_plot, self.excerpts[0]), self._input_caption),
            ("Result", (self.result_stack, self.error, self.excerpts[1], self.passes), self._result_caption),
        ):
            card = Card(title, margins=(12, 8, 12, 4))
            card.body.setSpacing(2)
            card.head.addWidget(about, 1)
            for content in contents:
                card.body.addWidget(content, {input_plot: 3, self.result_stack: 3, self.error: 2}.get(content, 0))
            self.splitter.addWidget(card)
        self.splitter.setSizes([look().px(150), look().px(230)])
        self.setLayout(column(self.splitter))

    def _connect_parts(self) -> None:
        self.passes.pass_selected.connect(self._show_pass)
        self.after.picked.connect(lambda index: self._request_writer(index, self.after.find_cursor_position()))
        self.excerpts[1].picked.connect(
            lambda index: self._request_writer(index, self.excerpts[1].find_cell_position(index))
        )
        for plot in self._plots:
            plot.hovered.connect(self._show_element)
            plot.range_changed.connect(lambda first, last, plot=plot: self._align(plot, first, last))
            plot.excerpt_moved.connect(lambda index: self._move_excerpts(index - self.excerpts[0].count // 2))
        for stretch in self.excerpts:
            stretch.first_changed.connect(self._move_excerpts)
            stretch.hovered.connect(self._show_element)
        self.excerpts[0].resized.connect(lambda: self._move_excerpts(self._first_excerpt_index))

    @property
    def _plots(self) -> tuple[ArrayPlot, ArrayPlot, ArrayPlot]:
        return self.before, self.after, self.error

    def show_params(self, params: dict[str, Any]) -> None:
        pattern = self._pattern
        size = pattern.value(params, Role.SIZE)
        if (
            pattern.reads_file(params)
            or pattern.make_input is None
            or (size is not None and size > MAX_PREVIEW_ELEMENTS)
        ):
            return
        values = pattern.make_input(params, 0)["values"]
        self.before.show_outline(outline(values), values.size)
        self._set_caption("input", self._describe_input(values.size, params, ""))

    def show_outcome(self, outcome: FinishedRun) -> None:
        arrays, params = outcome.arrays, outcome.params
        elements, result = int(arrays["elements"]), arrays[self._pattern.result]
        kept_flags = arrays.get("kept")
        middle = arrays.get("middle") if kept_flags is None else None
        self.before.show_outline(arrays["input"], elements, highlighted=kept_flags, quartiles=middle)
        description = self._describe_input(elements, params, outcome.file.name if outcome.file is not None else "")
        note = " · dark band: middle half of the values" if middle is not None else ""
        self._set_caption("input", description + note)
        preset = find_preset(self._pattern, params)
        pieces = preset.lengths if preset is not None else None
        if result.shape == (1,) and self._presentation.is_single_value:
            self.single_result.show_outcome(outcome, result)
            self.result_stack.setCurrentIndex(_VALUE)
        elif pieces is not None and arrays["input"].shape[1] == elements == result.size:
            self.pieces.show_pieces(pieces, arrays["input"][0], np.asarray(result))
            self.result_stack.setCurrentIndex(_PIECES)
        else:
            as_curve = "kept" not in arrays
            self.after.show_outline(arrays["output"], result.size, axis_length=elements, draw_curve=as_curve)
            self.result_stack.setCurrentIndex(_PLOT)
        self._show_details(arrays)
        self._show_error(outcome, elements)
        self._set_caption("result", self._describe_result(outcome, elements, result.size))
        self._outcome = outcome
        self._frames = arrays.get("frames", np.empty((0, 0)))
        self.passes.setVisible(len(self._frames) > 0)
        if len(self._frames):
            captions = bytes(np.asarray(arrays["captions"])).decode().split("\n")
            self.passes.show_passes([*captions, "result"])

    def _show_details(self, arrays: Mapping[str, Array]) -> None:
        """Show value histograms and a readable stretch of elements when the plots cannot show each element."""
        values = arrays.get("values")
        self._excerpt_length = 0 if values is None else len(values)
        has_values = values is not None
        keys = (("levels", "level edges"), ("result levels", "result level edges"))
        for bar, (key, edges) in zip(self.bars, keys, strict=True):
            if key in arrays:
                bar.show_counts(arrays[key], arrays[edges])
        self._has_histogram = tuple(key in arrays for key, _ in keys)
        self._update_bars()
        self.before.show_index_axis(True, titled=not has_values)
        result = arrays[self._pattern.result] if self.result_stack.currentIndex() == _PLOT else None
        for stretch, contents in zip(self.excerpts, (values, result), strict=True):
            stretch.show_values(contents, self._excerpt_length)
            stretch.setVisible(has_values and contents is not None)
        self._move_excerpts(min(self._first_excerpt_index, self._excerpt_length))

    def resizeEvent(self, event: QResizeEvent | None) -> None:
        super().resizeEvent(event)
        self._update_bars()

    def _update_bars(self) -> None:
        """Show the value histograms where they leave the plots more than half of the width."""
        for bar, counted in zip(self.bars, self._has_histogram, strict=True):
            bar.setVisible(counted and self.width() >= look().px(330))

    def _move_excerpts(self, first: int) -> None:
        """Show the elements from this index on, in both arrays."""
        count = self.excerpts[0].count
        self._first_excerpt_index = max(0, min(first, self._excerpt_length - count))
        for stretch in self.excerpts:
            stretch.scroll_to(self._first_excerpt_index)
        for plot in (self.before, self.after):
            plot.mark_excerpt(self._first_excerpt_index, count if self._excerpt_length else 0)

    def _show_pass(self, number: int) -> None:
        """Show the keys of a captured pass; the number after the last pass shows the result."""
        if self._outcome is None:
            return
        arrays = self._outcome.arrays
        ended = number == len(self._frames)
        self.excerpts[1].show_values(arrays[self._pattern.result] if ended else None, self._excerpt_length)
        keys = outline(self._frames[number]) if number < len(self._frames) else arrays["output"]
        self.after.show_outline(keys, int(arrays["elements"]), bar_base=float(self._frames.min()))

    def _request_writer(self, index: int, position: QPoint) -> None:
        """Request the thread that wrote an element of the result."""
        outcome, name = self._outcome, self._pattern.result
        if outcome is not None and index < outcome.arrays[name].size:
            title = "Result" if self.result_stack.currentIndex() == _VALUE else f"Element {format_count(index)}"
            self.element_selected.emit(PointedElement(name, (index,), title), position)

    def _show_error(self, outcome: FinishedRun, elements: int) -> None:
        """Plot the error below the result; a run that was not verified leaves the plot unchanged."""
        error = outcome.arrays.get("error")
        is_plotted = (
            error is not None and error.size and self.result_stack.currentIndex() == _PLOT and bool(error.max() > 0)
        )
        if error is not None and is_plotted:
            finite = error[np.isfinite(error)]
            highest = float(finite.max()) if finite.size and finite.max() > 0 else 1.0
            self.error.set_tone("muted" if outcome.report.verified else "bad")
            self.error.show_outline(
                np.minimum(error, 2 * highest), outcome.arrays[self._pattern.result].size, axis_length=elements
            )
        if outcome.report.deviation is not None or self.result_stack.currentIndex() != _PLOT:
            self.error.setVisible(bool(is_plotted))
            self.after.show_index_axis(not is_plotted, titled=not self._excerpt_length)

    def _align(self, changed_plot: ArrayPlot, first: float, last: float) -> None:
        """Align the ranges of all plots, so that an element has the same x in each."""
        if self._aligning:
            return
        self._aligning = True
        for plot in self._plots:
            if plot is not changed_plot:
                plot.show_range(first, last)
        self._aligning = False

    # --- captions

    def _set_caption(self, side: str, text: str) -> None:
        self._captions[side] = text
        (self._input_caption if side == "input" else self._result_caption).show_text(text)

    def _describe_input(self, elements: int, params: Mapping[str, Any], file: str) -> str:
        type, source = (self._pattern.value(params, role) for role in (Role.TYPE, Role.SOURCE))
        return ", ".join(filter(None, (" × ".join(filter(None, (format_count(elements), type))), file or source)))

    def _describe_result(self, outcome: FinishedRun, elements: int, size: int) -> str:
        words = self._presentation.describe(outcome.params)
        if "kept" in outcome.arrays and not words:
            words = (f"{format_count(size)} of {format_count(elements)} kept",)
        return ", ".join([*words, outcome.variant])

    def _show_element(self, index: int | None) -> None:
        """Show the values of one element in both captions; None restores the captions."""
        for plot in self._plots:
            plot.show_cursor(index)
        if index is None:
            for side, text in self._captions.items():
                self._set_caption(side, text)
            return
        self._input_caption.show_text(_describe_element(self.before, index) or self._captions["input"])
        if self.result_stack.currentIndex() == _PLOT:
            text = _describe_element(self.after, index)
            error = _describe_element(self.error, index) if not self.error.isHidden() else ""
            suffix = f"   error {error.split('=')[-1].strip()}" if text and error else ""
            self._result_caption.show_text(text + suffix or "–")


def _create_plot_row(plot: ArrayPlot, bar: LevelsBar) -> QWidget:
    both = QWidget()
    layout = row(plot, bar, spacing=0, stretch=0)
    both.setLayout(layout)
    return both


def _collect_partial_results(arrays: Mapping[str, Array]) -> tuple[PartialResults, ...]:
    """Return the partial results of each launch, or of equal parts computed on the CPU if the kernel stores none."""
    counts = arrays.get("partial counts", np.zeros(0, np.int64)).tolist()
    if counts:
        return tuple(
            PartialResults(arrays[f"partials {number}"], count, "partial results, one per block")
            for number, count in enumerate(counts)
        )
    pieces = arrays.get("pieces")
    if pieces is None:
        return ()
    words = "equal parts, computed on the CPU because this kernel stores no partial results"
    return (PartialResults(outline(pieces), pieces.size, words),)


def _format_full_precision(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.9g}"


def _describe_element(plot: ArrayPlot, index: int) -> str:
    values = plot.find_column_range(index)
    if values is None:
        return ""
    first, last, low, high = values
    if first == last:
        return f"[{format_count(first)}] = {_format_full_precision(low)}"
    indices = f"[{format_count(first)} … {format_count(last)}]"
    return f"{indices} = {_format_full_precision(low)} … {_format_full_precision(high)}"
