"""What has been counted, beside what the textbook says; and how the last step used lanes and memory."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from PyQt6.QtCore import QEvent, QRegularExpression, Qt, pyqtSignal
from PyQt6.QtGui import QRegularExpressionValidator, QResizeEvent
from PyQt6.QtWidgets import QGridLayout, QLabel, QLineEdit, QWidget

from gpu.warp import WARP
from gui.painting.theme import look
from gui.qt.events import is_of
from gui.widgets.basic import Card, ElidedLabel, as_count, label, role

if TYPE_CHECKING:
    from gpu.stepping.tally import Counts
    from gui.step_view.recording.steppable import Figures

N = "n"
WORK = {
    N: "How many elements there are; type another number to see what the textbook says of that, without a run",
    "operations": "Operations on data, of all threads together",
    "steps": "Operations that follow each other: those of one step are done at the same time",
    "average": "Average parallelism: operations a step",
    "peak": "Peak parallelism: the most operations of one step",
    "efficiency": "Work efficiency: the operations of one thread that does all alone, as a part of these",
}
USE = {
    "idle lanes": f"Of the {WARP} lanes of each warp that executes a statement which operates on data: those that\n"
    "do nothing, be it by a branch, because they have ended, or because the block does not have them",
    "lanes/warp": f"Active lanes when a warp executes a statement or tests a condition, on average, of {WARP}",
    "divergent": "Branches that parted the lanes of a warp, each once for every such warp",
    "sectors": "32-byte sectors of global memory that were moved",
    "conflicts": "Bank conflicts: passes over the banks of shared memory beyond the least possible",
}
FIGURES = {**WORK, **USE}
_THIS_STEP = (
    "What the last statement that operates on data did, with all that led to it since the one before: a step of the\n"
    "algorithm, of all warps that execute the statement for the same time"
)
_WORK_ROWS, _USE_ROWS = ("so far", "in all", "textbook"), ("this step", "in all")
_FIRST_TO_GO = ("efficiency", "peak", "average")
"""Figures that leave their room to the others where there is too little for all."""
_DIGITS = 12
_SIMPLE = 64
"""Parts of lanes are told as fractions, such as 7/8, where their denominators are below this."""


class CountersCard(Card):
    """Two small tables: work and steps, counted and by the book, and the use of lanes and memory by a step and by all.

    A cell is known by its row and its figure: "this step" and "idle lanes", "textbook" and "operations".
    """

    n_changed = pyqtSignal()
    """The textbook is asked about another number of elements: `n_typed`."""

    def __init__(self) -> None:
        super().__init__("Counted", margins=(12, 6, 12, 8))
        self.body.removeItem(self.head)
        self.setToolTip("Exact numbers from the recording, neither measured nor modelled")
        self.cells: dict[tuple[str, str], ElidedLabel] = {}
        self._names: dict[str, QLabel] = {}
        self._heads: dict[tuple[str, int], QLabel] = {}
        self._detailed = True
        grid = QGridLayout()
        grid.setHorizontalSpacing(look().px(8))
        grid.setVerticalSpacing(1)
        grid.addWidget(self.title, 0, 0)
        self.n = self._make_n()
        self._add(grid, 0, WORK, _WORK_ROWS)
        self._add(grid, 1 + len(_WORK_ROWS), USE, _USE_ROWS)
        self._heads["this step", 1 + len(_WORK_ROWS)].setToolTip(_THIS_STEP)
        for place in range(1, 1 + len(WORK)):
            grid.setColumnStretch(place, 1)
        self.body.addLayout(grid)

    def _make_n(self) -> QLineEdit:
        field = QLineEdit()
        field.setAccessibleName("Textbook for n elements")
        field.setToolTip(WORK[N])
        field.setAlignment(Qt.AlignmentFlag.AlignRight)
        role(field, "inline")
        field.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        field.setValidator(QRegularExpressionValidator(QRegularExpression(f"[0-9]{{0,{_DIGITS}}}"), field))
        field.textChanged.connect(lambda: self.n_changed.emit())
        return field

    def _add(self, grid: QGridLayout, top: int, figures: dict[str, str], rows: tuple[str, ...]) -> None:
        """Add a table below a line of the grid."""
        right = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
        for place, row in enumerate(rows, top + 1):
            head = self._heads[row, top] = label(row, "caption")
            grid.addWidget(head, place, 0)
        for column, (name, what) in enumerate(figures.items(), 1):
            caption = self._names[name] = label(name, "caption")
            caption.setToolTip(what)
            grid.addWidget(caption, top, column, right)
            for place, row in enumerate(rows, top + 1):
                if (row, name) == ("textbook", N):
                    grid.addWidget(self.n, place, column)
                    continue
                first = place == top + 1
                cell = ElidedLabel("code" if first else "caption", f"{name} {row}", right=True)
                if first:
                    cell.setStyleSheet("font-weight: 700;")
                self.cells[row, name] = cell
                grid.addWidget(cell, place, column)

    def show_details(self, shown: bool) -> None:
        """Show what it comes to in all, or leave its room to others."""
        self._detailed = shown
        self._lay_out()

    def resizeEvent(self, event: QResizeEvent | None) -> None:
        super().resizeEvent(event)
        self._lay_out()

    def changeEvent(self, event: QEvent | None) -> None:
        super().changeEvent(event)
        if is_of(event, QEvent.Type.StyleChange):
            self._lay_out()

    def _lay_out(self) -> None:
        """Show as many figures as there is room for, and the card's title where there is room for that too."""
        self.n.setMinimumWidth(self.n.fontMetrics().horizontalAdvance("1000000") + look().px(10))
        columns = dict.fromkeys(WORK, 0)
        for place, name in enumerate(WORK):
            columns[name] = self._names[name].sizeHint().width() + look().px(8)
            if place < len(USE):
                columns[name] = max(columns[name], self._names[list(USE)[place]].sizeHint().width() + look().px(8))
        columns[N] = max(columns[N], self.n.minimumWidth() + look().px(8))
        words = max(each.sizeHint().width() for each in self._heads.values())
        room = self.width() - sum(self.body.getContentsMargins()[::2])
        left_out: set[str] = set()
        taken = words + sum(columns.values())
        for name in _FIRST_TO_GO:
            if taken > room:
                left_out.add(name)
                taken -= columns[name] - self._under(name)
        self.title.setVisible(max(words, self.title.sizeHint().width()) + taken - words <= room)
        for (row, _), head in self._heads.items():
            head.setVisible(self._detailed or row != "in all")
        for name, caption in self._names.items():
            caption.setVisible(name not in left_out)
        for (row, name), cell in self.cells.items():
            cell.setVisible(name not in left_out and (self._detailed or row != "in all"))

    def _under(self, name: str) -> int:
        """Return the room that the figure below one takes."""
        place = list(WORK).index(name)
        below: QWidget | None = self._names[list(USE)[place]] if place < len(USE) else None
        return below.sizeHint().width() + look().px(8) if below is not None else 0

    def text(self, row: str, name: str) -> str:
        """Return what a cell of the table shows."""
        return self.cells[row, name].text()

    def show_counts(self, counts: Counts, step: Counts) -> None:
        """Show what was counted up to a moment, and in the step that was done last."""
        self._show_work("so far", counts, None)
        self._show_use("this step", step)

    def show_total(self, counts: Counts, figures: Figures | None) -> None:
        """Show what was counted in all, and of how many elements, beside one thread that does all of it alone."""
        self._show_work("in all", counts, figures.sequential if figures is not None else None)
        self._show_use("in all", counts)
        n = "" if figures is None else as_count(figures.n)
        self._say("in all", N, n)
        self.n.setPlaceholderText(n)
        self.n.setVisible(figures is not None and figures.textbook is not None)

    def clear(self) -> None:
        """Show no figures: nothing is recorded."""
        for cell in self.cells.values():
            cell.say("")
        self.n.setVisible(False)

    def show_textbook(self, figures: Figures | None) -> None:
        """Show what the textbook says; None, or figures without it, where it says nothing."""
        book = figures.textbook if figures is not None else None
        sequential = figures.sequential if figures is not None else None
        self._say("textbook", "operations", as_count(book.operations) if book else "–")
        self._say("textbook", "steps", as_count(book.steps) if book else "–")
        self._say("textbook", "average", _parallelism(book.average if book else None))
        self._say("textbook", "peak", as_count(book.peak) if book else "–")
        self._say("textbook", "efficiency", _efficiency(sequential, book.operations if book else 0))

    @property
    def n_typed(self) -> int | None:
        """The number of elements that is asked about; None for that of the recording."""
        return int(self.n.text()) if self.n.text() else None

    def _show_work(self, row: str, counts: Counts, sequential: int | None) -> None:
        self._say(row, "operations", as_count(counts.operations))
        self._say(row, "steps", as_count(counts.steps))
        self._say(row, "average", _parallelism(counts.parallelism))
        self._say(row, "peak", as_count(counts.peak))
        self._say(row, "efficiency", _efficiency(sequential, counts.operations))

    def _show_use(self, row: str, counts: Counts) -> None:
        self._say(row, "idle lanes", _part(counts.idle_fraction))
        self._say(row, "lanes/warp", "–" if counts.lanes_per_warp is None else f"{counts.lanes_per_warp:.1f}")
        self._say(row, "divergent", f"{as_count(counts.divergent_branches)} of {as_count(counts.branches)}")
        self._say(row, "sectors", as_count(counts.sectors))
        self._say(row, "conflicts", as_count(counts.bank_conflicts))

    def _say(self, row: str, name: str, text: str) -> None:
        self.cells[row, name].say(text)


def _efficiency(sequential: int | None, operations: int) -> str:
    return "–" if sequential is None or not operations else f"{sequential / operations:.0%}"


def _parallelism(average: float | None) -> str:
    if average is None:
        return "–"
    return f"{average:.1f}" if average < 1000 else as_count(round(average))


def _part(fraction: float | None) -> str:
    """Return a part of lanes: 7/8 where it is as simple, else in percent."""
    if fraction is None:
        return "–"
    simple = Fraction(fraction).limit_denominator(_SIMPLE)
    exact = abs(float(simple) - fraction) < 1e-9 and simple.denominator <= WARP
    return str(simple) if exact and 0 < simple < 1 else f"{fraction:.0%}"
