"""The counts of a simulated run: bytes moved per element in large type, the other counts in a grid."""

from __future__ import annotations

from PyQt6.QtCore import QEvent, Qt
from PyQt6.QtGui import QResizeEvent
from PyQt6.QtWidgets import QGridLayout, QLabel, QSizePolicy, QWidget

from gpu.messages.counted import CountedFigure, RunCounts, figures_of, short
from gui.painting.theme import look
from gui.qt.events import is_of
from gui.widgets.basic import column, label, row
from gui.widgets.glossary_tip import add_definition

_MOVED = "Bytes of the 32-byte sectors that loads, stores and atomics access in global memory, without caches"
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
_CELL = 70
"""Width in pixels of a figure with its name."""

_MOST_COLUMNS = 5


class CountedCells(QWidget):
    """A grid of figures with their names above them, with as many columns as fit."""

    def __init__(self) -> None:
        super().__init__()
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setHorizontalSpacing(8)
        self._grid.setVerticalSpacing(1)
        self._columns = _MOST_COLUMNS
        self.figures: dict[str, QLabel] = {}
        self._names: dict[str, QLabel] = {}

    def show_figures(self, figures: tuple[CountedFigure, ...]) -> None:
        """Show these figures, and rebuild the grid if the names differ."""
        if [each.name for each in figures] != list(self.figures):
            for widget in (*self._names.values(), *self.figures.values()):
                self._grid.removeWidget(widget)
                widget.deleteLater()
            self._names = {each.name: label(each.name, "caption") for each in figures}
            self.figures = {each.name: label("", "code", name=each.name) for each in figures}
            self._place()
        for each in figures:
            self.figures[each.name].setText(each.figure)
            for part in (self._names[each.name], self.figures[each.name]):
                part.setToolTip(f"{each.text}\n{each.meaning}")
                add_definition(part, _TERMS[each.name])

    def _place(self) -> None:
        for number, name in enumerate(self.figures):
            line, place = divmod(number, self._columns)
            self._grid.addWidget(self._names[name], 2 * line, place, Qt.AlignmentFlag.AlignBottom)
            self._grid.addWidget(self.figures[name], 2 * line + 1, place, Qt.AlignmentFlag.AlignTop)
        for place in range(_MOST_COLUMNS):
            self._grid.setColumnStretch(place, int(place < self._columns))

    def _fit(self) -> None:
        columns = max(2, min(_MOST_COLUMNS, self.width() // look().px(_CELL)))
        if columns != self._columns:
            self._columns = columns
            self._place()

    def resizeEvent(self, event: QResizeEvent | None) -> None:
        super().resizeEvent(event)
        self._fit()

    def changeEvent(self, event: QEvent | None) -> None:
        super().changeEvent(event)
        if is_of(event, QEvent.Type.StyleChange):
            self._fit()
            self._grid.invalidate()
            self.updateGeometry()


class CountedRun(QWidget):
    """The counts of the newest run, or a message if there are none."""

    def __init__(self) -> None:
        super().__init__()
        self.figure = label("–", "figure", name="Bytes moved")
        self.unit = label("", "muted", wrap=True, name="Unit and minimum")
        self.unit.setAlignment(Qt.AlignmentFlag.AlignBottom)
        self.unit.setMinimumWidth(250)
        self.figure.setToolTip(_MOVED)
        self.unit.setToolTip(_MOVED)
        add_definition(self.figure, "sector")
        add_definition(self.unit, "minimum traffic")
        large = row(self.figure, self.unit, spacing=8)
        large.setStretch(1, 1)
        self.cells = CountedCells()
        self.about = label("", "caption", wrap=True, name="Input of the counts")
        self.setLayout(column(large, self.cells, self.about, spacing=4))

    def forget(self) -> None:
        """Clear the counts: those of another variant follow."""
        self.figure.setText("–")
        self.unit.setText("")
        self.cells.show_figures(())
        self.about.setText("")

    def show_counts(self, counts: RunCounts) -> None:
        """Show the counts of a run."""
        self.figure.setText(short(counts.per_element(counts.moved_bytes)))
        minimum = short(counts.per_element(counts.least_bytes))
        self.unit.setText(f"bytes moved per {counts.unit}, minimum {minimum}")
        self.cells.show_figures(figures_of(counts))
        per = [each.name for each in figures_of(counts) if each.unit == counts.each]
        self.about.setText(f"Input: {counts.input}. Per {counts.unit}: {', '.join(per)}.")
