"""Card of counts: operations and steps with the textbook's, and the use of lanes and memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from fractions import Fraction
from itertools import starmap, zip_longest
from typing import TYPE_CHECKING

from PyQt6.QtCore import QRegularExpression, QSize, Qt, pyqtSignal
from PyQt6.QtGui import QRegularExpressionValidator, QResizeEvent
from PyQt6.QtWidgets import QGridLayout, QLineEdit, QWidget

from gpu.base.warp import WARP
from gui.painting.theme import look
from gui.qt.events import StyleListener
from gui.widgets.basic import Card, ElidedLabel, format_count, label, set_role
from gui.widgets.glossary_tip import add_definition

if TYPE_CHECKING:
    from gpu.stepping.tally import Counts
    from gui.step_view.recording.steppable import ExpectedCounts

N = "n"
WORK = {
    N: "Number of elements. Enter another number for the textbook's counts at that size; nothing is run",
    "operations": "Operations on data, all threads together",
    "steps": "Consecutive steps: the operations of one step run at the same time",
    "average": "Average parallelism: operations per step",
    "peak": "Peak parallelism: the most operations in one step",
    "efficiency": "Work efficiency: a sequential program's operations divided by these",
}
USE = {
    "idle lanes": f"Share of the {WARP} lanes of each warp that executes an operation on data which are idle:\n"
    "they branched elsewhere, have returned, or do not exist because the block has no more threads",
    "lanes/warp": f"Average number of active lanes, of {WARP}, when a warp executes a statement or tests a condition",
    "divergent": "Divergent branches, counted once per warp",
    "sectors": "32-byte sectors of global memory transferred",
    "conflicts": "Bank conflicts: wavefronts beyond the minimum possible",
}
_TERMS = {
    "operations": "operation on data",
    "efficiency": "work efficiency",
    "idle lanes": "active lanes",
    "lanes/warp": "active lanes",
    "divergent": "divergence",
    "sectors": "sector",
    "conflicts": "bank conflict",
}
"""Terms of the glossary, by count."""
_THIS_STEP_TOOLTIP = (
    "The last operation on data, with all statements since the one before: a step of the algorithm,\n"
    "of all warps that execute the statement in the same iteration"
)
_WORK_ROWS, _USE_ROWS = ("so far", "total", "textbook"), ("this step", "total")
ROWS = (*_WORK_ROWS, "this step")
_HIDE_ORDER = ("efficiency", "peak", "average", "lanes/warp", "sectors")
"""Counts to hide where space is short, in this order."""
_COLUMNS = len(WORK)
_DIGITS = 12
_MAX_DENOMINATOR = 64
"""Denominator limit for showing a share of lanes as a fraction, such as 7/8."""


class CountTable:
    """A table of counts, one column per count.

    Parameters
    ----------
    rows : tuple of str
        Names of the rows; the first one is bold.
    corner : QWidget or None
        Widget above the row names.
    """

    def __init__(self, tooltips: Mapping[str, str], rows: tuple[str, ...], corner: QWidget | None = None) -> None:
        self.grid = QGridLayout()
        self.grid.setHorizontalSpacing(look().px(8))
        self.grid.setVerticalSpacing(1)
        self.count_names = tuple(tooltips)
        self.cells: dict[tuple[str, str], ElidedLabel] = {}
        self.heads = {row: label(row, "caption") for row in rows}
        self.names = {name: label(name, "caption") for name in tooltips}
        if corner is not None:
            self.grid.addWidget(corner, 0, 0)
        right = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
        for index, head in enumerate(self.heads.values(), 1):
            self.grid.addWidget(head, index, 0)
        for column, (name, caption) in enumerate(self.names.items(), 1):
            caption.setToolTip(tooltips[name])
            if name in _TERMS:
                add_definition(caption, _TERMS[name])
            self.grid.addWidget(caption, 0, column, right)
            for index, row in enumerate(rows, 1):
                cell = self.cells[row, name] = ElidedLabel(
                    "code" if index == 1 else "caption", f"{name} {row}", right=True
                )
                if index == 1:
                    cell.setStyleSheet("font-weight: 700;")
                self.grid.addWidget(cell, index, column)

    @property
    def row_name_width(self) -> int:
        """Return the width of the row names."""
        return max(each.sizeHint().width() for each in self.heads.values())

    def column_widths(self) -> list[int]:
        """Return the minimum width of each column: of its name, and of its total in the bold print of the first row."""
        row = next(iter(self.heads))
        widths = []
        for name, caption in self.names.items():
            total = self.cells["total", name].accessibleDescription() if ("total", name) in self.cells else ""
            number = self.cells[row, name].fontMetrics().horizontalAdvance(total)
            widths.append(max(caption.sizeHint().width(), number + 2 if total else 0))
        return widths

    def lay_out(self, row_name_width: int, widths: Sequence[int], rows: Set[str]) -> None:
        """Show the given rows, and the columns with a width above 0."""
        self.grid.setColumnMinimumWidth(0, row_name_width)
        for column in range(1, _COLUMNS + 1):
            width = widths[column - 1] if column <= len(widths) else 0
            self.grid.setColumnMinimumWidth(column, width)
            self.grid.setColumnStretch(column, int(width > 0))
        has_rows = not rows.isdisjoint(self.heads)
        visible = {name for name, width in zip(self.count_names, widths, strict=False) if width and has_rows}
        for row, head in self.heads.items():
            head.setVisible(row in rows)
        for name, caption in self.names.items():
            caption.setVisible(name in visible)
        for (row, name), cell in self.cells.items():
            cell.setVisible(row in rows and name in visible)


class CountersCard(StyleListener, Card):
    """Two small tables: work and steps, counted and from the textbook; use of lanes and memory, per step and in total.

    Cells are addressed by row and count, such as ("this step", "idle lanes") or ("textbook", "operations").
    """

    n_changed = pyqtSignal()
    """The number of elements for the textbook's counts changed; see `entered_n`."""

    def __init__(self) -> None:
        super().__init__("Counted", margins=(12, 6, 12, 8))
        self.body.removeItem(self.head)
        self.body.setSpacing(1)
        self.setToolTip("Exact numbers from the recording, neither measured nor modeled")
        self._rows: Set[str] = frozenset(ROWS)
        self.n = self._make_n_field()
        self.work = CountTable(WORK, _WORK_ROWS, self.title)
        self.use = CountTable(USE, _USE_ROWS)
        self.work.grid.replaceWidget(self.work.cells.pop(("textbook", N)), self.n)
        self.use.heads["this step"].setToolTip(_THIS_STEP_TOOLTIP)
        self.cells = {**self.work.cells, **self.use.cells}
        for table in (self.work, self.use):
            self.body.addLayout(table.grid)
        self._has_textbook = False

    def _make_n_field(self) -> QLineEdit:
        field = QLineEdit()
        field.setAccessibleName("Textbook for n elements")
        field.setToolTip(WORK[N])
        field.setAlignment(Qt.AlignmentFlag.AlignRight)
        set_role(field, "inline")
        field.setValidator(QRegularExpressionValidator(QRegularExpression(f"[0-9]{{0,{_DIGITS}}}"), field))
        field.textChanged.connect(lambda: self.n_changed.emit())
        return field

    def show_rows(self, rows: Set[str]) -> None:
        """Show only the given rows."""
        self._rows = rows
        self._lay_out()

    def resizeEvent(self, event: QResizeEvent | None) -> None:
        super().resizeEvent(event)
        self._lay_out()

    def _restyle(self) -> None:
        self._lay_out()

    @property
    def _horizontal_margins(self) -> int:
        return sum(self.body.getContentsMargins()[::2])

    def _preferred_widths(self) -> tuple[int, list[int], list[int]]:
        """Return the width of the row names, and the column widths of both tables."""
        work, use = self.work.column_widths(), self.use.column_widths()
        min_width = self.n.fontMetrics().horizontalAdvance("1000000") + look().px(10)
        work[0] = max(work[0], min_width) if "textbook" in self._rows else work[0]
        return max(self.work.row_name_width, self.use.row_name_width), work, use

    def minimumSizeHint(self) -> QSize:
        """Return a size with room for the counts that are never hidden."""
        words, work, use = self._preferred_widths()
        gap = self.work.grid.horizontalSpacing()
        required = [
            sum(width + gap for name, width in zip(table.count_names, widths, strict=True) if name not in _HIDE_ORDER)
            for table, widths in ((self.work, work), (self.use, use))
        ]
        return QSize(words + max(required) + self._horizontal_margins, super().minimumSizeHint().height())

    def _lay_out(self) -> None:
        """Show as many counts as fit, and the card's title if it fits too.

        The columns of the two tables are aligned if all of them fit.
        """
        gap = self.work.grid.horizontalSpacing()
        room = self.width() - self._horizontal_margins
        words, work, use = self._preferred_widths()
        joined = list(starmap(max, zip_longest(work, use, fillvalue=0)))
        if words + sum(joined) + gap * len(joined) <= room:
            work = use = joined
        else:
            for table, widths in ((self.work, work), (self.use, use)):
                _hide_columns(widths, table.count_names, room - words, gap)
        spare = room - sum(width + gap for width in work if width)
        self.title.setVisible(self.title.sizeHint().width() + gap <= spare and "total" in self._rows)
        self.work.lay_out(words, work, self._rows)
        self.use.lay_out(words, use, self._rows)
        self.n.setVisible(self._has_textbook and "textbook" in self._rows)

    def text(self, row: str, name: str) -> str:
        """Return the text of a cell."""
        return self.cells[row, name].text()

    def show_counts(self, counts: Counts, step: Counts) -> None:
        """Show the counts up to the current moment, and those of the last step."""
        self._show_work("so far", counts, None)
        self._show_use("this step", step)

    def show_total(self, counts: Counts, expected: ExpectedCounts | None) -> None:
        """Show the total counts, the number of elements, and the efficiency relative to a sequential program."""
        self._show_work("total", counts, expected.sequential if expected is not None else None)
        self._show_use("total", counts)
        n = "" if expected is None else format_count(expected.n)
        self._set_text("total", N, n)
        self.n.setPlaceholderText(n)
        self._has_textbook = expected is not None and expected.textbook is not None
        self._lay_out()

    def clear(self) -> None:
        """Clear all cells."""
        for cell in self.cells.values():
            cell.show_text("")
        self._has_textbook = False
        self._lay_out()

    def show_textbook(self, expected: ExpectedCounts | None) -> None:
        """Show the textbook's counts; clear them if `count_names` is None or has none."""
        book = expected.textbook if expected is not None else None
        sequential = expected.sequential if expected is not None else None
        self._set_text("textbook", "operations", format_count(book.operations) if book else "–")
        self._set_text("textbook", "steps", format_count(book.steps) if book else "–")
        self._set_text("textbook", "average", _format_parallelism(book.average_parallelism if book else None))
        self._set_text("textbook", "peak", format_count(book.peak) if book else "–")
        self._set_text("textbook", "efficiency", _format_efficiency(sequential, book.operations if book else 0))

    @property
    def entered_n(self) -> int | None:
        """Return the entered number of elements; None for the recording's."""
        return int(self.n.text()) if self.n.text() else None

    def _show_work(self, row: str, counts: Counts, sequential: int | None) -> None:
        self._set_text(row, "operations", format_count(counts.operations))
        self._set_text(row, "steps", format_count(counts.steps))
        self._set_text(row, "average", _format_parallelism(counts.parallelism))
        self._set_text(row, "peak", format_count(counts.peak))
        self._set_text(row, "efficiency", _format_efficiency(sequential, counts.operations))

    def _show_use(self, row: str, counts: Counts) -> None:
        self._set_text(row, "idle lanes", _format_share(counts.idle_fraction))
        self._set_text(row, "lanes/warp", "–" if counts.lanes_per_warp is None else f"{counts.lanes_per_warp:.1f}")
        self._set_text(
            row, "divergent", f"{format_count(counts.divergent_branches)} of {format_count(counts.branches)}"
        )
        self._set_text(row, "sectors", format_count(counts.sectors))
        self._set_text(row, "conflicts", format_count(counts.bank_conflicts))

    def _set_text(self, row: str, name: str, text: str) -> None:
        self.cells[row, name].show_text(text)


def _hide_columns(widths: list[int], names: Sequence[str], room: int, gap: int) -> None:
    """Hide counts, by setting their width to 0, until the others fit."""
    for name in _HIDE_ORDER:
        if sum(width + gap for width in widths if width) > room and name in names:
            widths[names.index(name)] = 0


def _format_efficiency(sequential: int | None, operations: int) -> str:
    return "–" if sequential is None or not operations else f"{sequential / operations:.0%}"


def _format_parallelism(average: float | None) -> str:
    if average is None:
        return "–"
    return f"{average:.1f}" if average < 1000 else format_count(round(average))


def _format_share(fraction: float | None) -> str:
    """Return a share of lanes as a simple fraction such as 7/8, or else in percent."""
    if fraction is None:
        return "–"
    simple = Fraction(fraction).limit_denominator(_MAX_DENOMINATOR)
    exact = abs(float(simple) - fraction) < 1e-9 and simple.denominator <= WARP
    return str(simple) if exact and 0 < simple < 1 else f"{fraction:.0%}"
