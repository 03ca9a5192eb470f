"""The counts of a simulated run: bytes moved per element in large type, the other counts in a grid."""

from __future__ import annotations

from itertools import compress

from PyQt6.QtCore import Qt
from PyQt6.QtGui import QResizeEvent
from PyQt6.QtWidgets import QGridLayout, QLabel, QSizePolicy, QWidget

from gpu.messages.run_counts import CountedFigure, RunCounts, format_figure, list_figures
from gui.painting.theme import look
from gui.qt.events import StyleListener
from gui.widgets.basic import column, label, row
from gui.widgets.glossary_tip import add_definition

_MOVED_BYTES_TIP = "Bytes of the 32-byte sectors that loads, stores and atomics access in global memory, without caches"
_TERMS = {
    "sectors": "sector",
    "wavefronts": "wavefront",
    "conflicts": "bank conflict",
    "lanes": "active lanes",
    "divergent": "divergence",
    "operations": "operation on data",
    "barriers": "barrier",
    "atomics": "atomic operation",
}
"""Terms of the glossary, by figure."""
_MIN_UNIT_WIDTH = 180
"""Minimum pixels of the unit beside the large figure, for two lines of text."""
_CELL_WIDTH = 70
"""Width in pixels of a figure with its name."""

_MAX_COLUMNS = 5


class CountGrid(StyleListener, QWidget):
    """A grid of figures with their names above them, with as many columns as fit."""

    def __init__(self) -> None:
        super().__init__()
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setHorizontalSpacing(8)
        self._grid.setVerticalSpacing(1)
        self._columns = _MAX_COLUMNS
        self.figures: dict[str, QLabel] = {}
        self._names: dict[str, QLabel] = {}

    def show_figures(self, figures: tuple[CountedFigure, ...]) -> None:
        """Show these figures, and rebuild the grid if the names differ."""
        if [figure.name for figure in figures] != list(self.figures):
            for widget in (*self._names.values(), *self.figures.values()):
                self._grid.removeWidget(widget)
                widget.deleteLater()
            self._names = {figure.name: label(figure.name, "caption") for figure in figures}
            self.figures = {figure.name: label("", "code", name=figure.name) for figure in figures}
            self._place_cells()
        for figure in figures:
            self.figures[figure.name].setText(figure.figure)
            for part in (self._names[figure.name], self.figures[figure.name]):
                part.setToolTip(f"{figure.text}\n{figure.meaning}")
                add_definition(part, _TERMS[figure.name])

    def _place_cells(self) -> None:
        for number, name in enumerate(self.figures):
            line, column = divmod(number, self._columns)
            self._grid.addWidget(self._names[name], 2 * line, column, Qt.AlignmentFlag.AlignBottom)
            self._grid.addWidget(self.figures[name], 2 * line + 1, column, Qt.AlignmentFlag.AlignTop)
        for column in range(_MAX_COLUMNS):
            self._grid.setColumnStretch(column, int(column < self._columns))

    def _update_columns(self) -> None:
        columns = max(2, min(_MAX_COLUMNS, self.width() // look().px(_CELL_WIDTH)))
        if columns != self._columns:
            self._columns = columns
            self._place_cells()

    def resizeEvent(self, event: QResizeEvent | None) -> None:
        super().resizeEvent(event)
        self._update_columns()

    def _restyle(self) -> None:
        self._update_columns()
        self._grid.invalidate()
        self.updateGeometry()


class RunCountsView(QWidget):
    """The counts of the newest run, or a message if there are none."""

    def __init__(self) -> None:
        super().__init__()
        self.figure = label("–", "figure", name="Bytes moved")
        self.unit = label("", "muted", wrap=True, name="Unit and minimum")
        self.unit.setAlignment(Qt.AlignmentFlag.AlignBottom)
        self.unit.setMinimumWidth(_MIN_UNIT_WIDTH)
        self.figure.setToolTip(_MOVED_BYTES_TIP)
        self.unit.setToolTip(_MOVED_BYTES_TIP)
        add_definition(self.figure, "sector")
        add_definition(self.unit, "minimum traffic")
        large = row(self.figure, self.unit, spacing=8, stretch=1)
        self.per_element, self.totals = CountGrid(), CountGrid()
        self.input_label = label("", "caption", wrap=True, name="Input of the counts")
        self._per_element_title, self._total_title = label("", "section"), label("", "section")
        parts = (self._per_element_title, self.per_element, self._total_title, self.totals)
        self.setLayout(column(large, *parts, self.input_label, spacing=4))

    def clear_counts(self) -> None:
        """Clear the counts: those of another variant follow."""
        self.figure.setText("–")
        self.unit.setText("")
        self._show_figures((), "", "")
        self.input_label.setText("")

    def show_counts(self, counts: RunCounts) -> None:
        """Show the counts of a run."""
        self.figure.setText(format_figure(counts.per_element(counts.moved_bytes)))
        minimum = format_figure(counts.per_element(counts.least_bytes))
        # The number stays with its name where the line breaks.
        self.unit.setText(f"bytes moved per {counts.unit}, minimum\N{NO-BREAK SPACE}{minimum}")
        self._show_figures(list_figures(counts), counts.per_element_unit, "in all")
        self.input_label.setText(f"Input: {counts.input}.")

    def _show_figures(self, figures: tuple[CountedFigure, ...], per_element: str, total: str) -> None:
        """Show the figures per element and those of the whole input, with a title above each group."""
        groups = (
            (self._per_element_title, self.per_element, per_element, [each.unit == per_element for each in figures]),
            (self._total_title, self.totals, total, [each.unit != per_element for each in figures]),
        )
        for title, grid, text, belongs in groups:
            title.setText(text)
            grid.show_figures(tuple(compress(figures, belongs)))
            for part in (title, grid):
                part.setVisible(any(belongs))
