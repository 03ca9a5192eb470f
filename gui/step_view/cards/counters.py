"""What has been counted, beside what the textbook says; and how the last step used lanes and memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from fractions import Fraction
from itertools import starmap, zip_longest
from typing import TYPE_CHECKING

from PyQt6.QtCore import QEvent, QRegularExpression, QSize, Qt, pyqtSignal
from PyQt6.QtGui import QRegularExpressionValidator, QResizeEvent
from PyQt6.QtWidgets import QGridLayout, QLineEdit, QWidget

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
_THIS_STEP = (
    "What the last statement that operates on data did, with all that led to it since the one before: a step of the\n"
    "algorithm, of all warps that execute the statement for the same time"
)
_WORK_ROWS, _USE_ROWS = ("so far", "in all", "textbook"), ("this step", "in all")
ROWS = (*_WORK_ROWS, "this step")
_FIRST_TO_GO = ("efficiency", "peak", "average", "lanes/warp", "sectors")
"""Figures that leave their room to the others where there is too little for all."""
_COLUMNS = len(WORK)
_DIGITS = 12
_SIMPLE = 64
"""Parts of lanes are told as fractions, such as 7/8, where their denominators are below this."""


class FigureTable:
    """Figures side by side, in rows of cells that are laid out in a grid.

    Parameters
    ----------
    figures : mapping of str to str
        Their names, and what they mean.
    rows : tuple of str
        The first one stands out.
    corner : QWidget or None
        What stands above the names of the rows.
    """

    def __init__(self, figures: Mapping[str, str], rows: tuple[str, ...], corner: QWidget | None = None) -> None:
        self.grid = QGridLayout()
        self.grid.setHorizontalSpacing(look().px(8))
        self.grid.setVerticalSpacing(1)
        self.figures = tuple(figures)
        self.cells: dict[tuple[str, str], ElidedLabel] = {}
        self.heads = {row: label(row, "caption") for row in rows}
        self.names = {name: label(name, "caption") for name in figures}
        if corner is not None:
            self.grid.addWidget(corner, 0, 0)
        right = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
        for place, head in enumerate(self.heads.values(), 1):
            self.grid.addWidget(head, place, 0)
        for column, (name, caption) in enumerate(self.names.items(), 1):
            caption.setToolTip(figures[name])
            self.grid.addWidget(caption, 0, column, right)
            for place, row in enumerate(rows, 1):
                cell = self.cells[row, name] = ElidedLabel(
                    "code" if place == 1 else "caption", f"{name} {row}", right=True
                )
                if place == 1:
                    cell.setStyleSheet("font-weight: 700;")
                self.grid.addWidget(cell, place, column)

    @property
    def words(self) -> int:
        """How wide the names of the rows are."""
        return max(each.sizeHint().width() for each in self.heads.values())

    def widths(self) -> list[int]:
        """Return the least width of each column."""
        return [each.sizeHint().width() for each in self.names.values()]

    def lay_out(self, words: int, widths: Sequence[int], rows: Set[str]) -> None:
        """Show some rows of the figures that have a width; columns beyond the figures stay empty."""
        self.grid.setColumnMinimumWidth(0, words)
        for column in range(1, _COLUMNS + 1):
            width = widths[column - 1] if column <= len(widths) else 0
            self.grid.setColumnMinimumWidth(column, width)
            self.grid.setColumnStretch(column, int(width > 0))
        has_rows = not rows.isdisjoint(self.heads)
        shown = {name for name, width in zip(self.figures, widths, strict=False) if width and has_rows}
        for row, head in self.heads.items():
            head.setVisible(row in rows)
        for name, caption in self.names.items():
            caption.setVisible(name in shown)
        for (row, name), cell in self.cells.items():
            cell.setVisible(row in rows and name in shown)


class CountersCard(Card):
    """Two small tables: work and steps, counted and by the book, and the use of lanes and memory by a step and by all.

    A cell is known by its row and its figure: "this step" and "idle lanes", "textbook" and "operations".
    """

    n_changed = pyqtSignal()
    """The textbook is asked about another number of elements: `n_typed`."""

    def __init__(self) -> None:
        super().__init__("Counted", margins=(12, 6, 12, 8))
        self.body.removeItem(self.head)
        self.body.setSpacing(1)
        self.setToolTip("Exact numbers from the recording, neither measured nor modeled")
        self._rows: Set[str] = frozenset(ROWS)
        self.n = self._make_n()
        self.work = FigureTable(WORK, _WORK_ROWS, self.title)
        self.use = FigureTable(USE, _USE_ROWS)
        self.work.grid.replaceWidget(self.work.cells.pop(("textbook", N)), self.n)
        self.use.heads["this step"].setToolTip(_THIS_STEP)
        self.cells = {**self.work.cells, **self.use.cells}
        for table in (self.work, self.use):
            self.body.addLayout(table.grid)
        self._has_book = False

    def _make_n(self) -> QLineEdit:
        field = QLineEdit()
        field.setAccessibleName("Textbook for n elements")
        field.setToolTip(WORK[N])
        field.setAlignment(Qt.AlignmentFlag.AlignRight)
        role(field, "inline")
        field.setValidator(QRegularExpressionValidator(QRegularExpression(f"[0-9]{{0,{_DIGITS}}}"), field))
        field.textChanged.connect(lambda: self.n_changed.emit())
        return field

    def show_rows(self, rows: Set[str]) -> None:
        """Show some of the rows; the others leave their room to others."""
        self._rows = rows
        self._lay_out()

    def resizeEvent(self, event: QResizeEvent | None) -> None:
        super().resizeEvent(event)
        self._lay_out()

    def changeEvent(self, event: QEvent | None) -> None:
        super().changeEvent(event)
        if is_of(event, QEvent.Type.StyleChange):
            self._lay_out()

    @property
    def _around(self) -> int:
        return sum(self.body.getContentsMargins()[::2])

    def _wanted(self) -> tuple[int, list[int], list[int]]:
        """Return the widths of the rows' names, and of all figures of both tables."""
        work, use = self.work.widths(), self.use.widths()
        least = self.n.fontMetrics().horizontalAdvance("1000000") + look().px(10)
        work[0] = max(work[0], least) if "textbook" in self._rows else work[0]
        return max(self.work.words, self.use.words), work, use

    def minimumSizeHint(self) -> QSize:
        """Ask for the width of the figures that stay, not of those that are shown while there is room for them."""
        words, work, use = self._wanted()
        gap = self.work.grid.horizontalSpacing()
        kept = [
            sum(width + gap for name, width in zip(table.figures, widths, strict=True) if name not in _FIRST_TO_GO)
            for table, widths in ((self.work, work), (self.use, use))
        ]
        return QSize(words + max(kept) + self._around, super().minimumSizeHint().height())

    def _lay_out(self) -> None:
        """Show as many figures as there is room for, and the card's title where there is room for that too.

        The columns of the two tables stand below each other where all of them fit.
        """
        gap = self.work.grid.horizontalSpacing()
        room = self.width() - self._around
        words, work, use = self._wanted()
        joined = list(starmap(max, zip_longest(work, use, fillvalue=0)))
        if words + sum(joined) + gap * len(joined) <= room:
            work = use = joined
        else:
            for table, widths in ((self.work, work), (self.use, use)):
                _drop(widths, table.figures, room - words, gap)
        spare = room - sum(width + gap for width in work if width)
        self.title.setVisible(self.title.sizeHint().width() + gap <= spare and "in all" in self._rows)
        self.work.lay_out(words, work, self._rows)
        self.use.lay_out(words, use, self._rows)
        self.n.setVisible(self._has_book and "textbook" in self._rows)

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
        self._has_book = figures is not None and figures.textbook is not None
        self._lay_out()

    def clear(self) -> None:
        """Show no figures: nothing is recorded."""
        for cell in self.cells.values():
            cell.say("")
        self._has_book = False
        self._lay_out()

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


def _drop(widths: list[int], names: Sequence[str], room: int, gap: int) -> None:
    """Leave out figures, by a width of 0, until the others have room."""
    for name in _FIRST_TO_GO:
        if sum(width + gap for width in widths if width) > room and name in names:
            widths[names.index(name)] = 0


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
