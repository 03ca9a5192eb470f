"""What has been counted so far, beside what it comes to in all and what the textbook says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PyQt6.QtCore import QEvent, Qt
from PyQt6.QtGui import QResizeEvent
from PyQt6.QtWidgets import QGridLayout, QLabel

from gui.painting.theme import look
from gui.qt.events import is_of
from gui.widgets.basic import Card, ElidedLabel, as_count, label

if TYPE_CHECKING:
    from gpu.declaration.pattern import Textbook
    from gpu.stepping.tally import Counts

FIGURES = {
    "operations": "Operations on data, of all threads together",
    "steps": "Operations that follow each other: those of one step are done at the same time",
    "parallelism": "Operations a step, on average",
    "efficiency": "Work efficiency: the operations of one thread that does all alone, as a part of these",
    "idle lanes": "Of the 32 lanes of each warp that executed a statement which operates on data: those that did nothing,\n"
    "be it by a branch, because they have ended, or because the block does not have them",
}
ROWS = ("so far", "in all", "textbook")
_FIRST_TO_GO = ("efficiency", "parallelism", "idle lanes")
"""Figures that leave their room to the others where there is too little for all."""


class CountersCard(Card):
    """A small table: operations, steps, parallelism, work efficiency and idle lanes, counted and by the book."""

    def __init__(self) -> None:
        super().__init__("Counted", margins=(12, 6, 12, 8))
        self.body.removeItem(self.head)
        self.setToolTip("Exact numbers from the recording, neither measured nor modelled")
        self.cells: dict[tuple[str, str], ElidedLabel] = {}
        self._names: dict[str, QLabel] = {}
        self._detailed = True
        grid = QGridLayout()
        grid.setHorizontalSpacing(look().px(8))
        grid.setVerticalSpacing(1)
        grid.addWidget(self.title, 0, 0)
        right = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
        for column, (name, what) in enumerate(FIGURES.items(), 1):
            head = self._names[name] = label(name, "caption")
            head.setToolTip(what)
            grid.addWidget(head, 0, column, right)
            grid.setColumnStretch(column, 1)
            for number, row in enumerate(ROWS, 1):
                cell = ElidedLabel("code" if row == "so far" else "caption", f"{name} {row}", right=True)
                if row == "so far":
                    cell.setStyleSheet("font-weight: 700;")
                self.cells[row, name] = cell
                grid.addWidget(cell, number, column)
        self._heads = {row: label(row, "caption") for row in ROWS}
        for number, row in enumerate(ROWS, 1):
            grid.addWidget(self._heads[row], number, 0)
        self.body.addLayout(grid)

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
        wide = {name: self._names[name].sizeHint().width() + look().px(8) for name in FIGURES}
        words = max(each.sizeHint().width() for each in self._heads.values())
        room = self.width() - sum(self.body.getContentsMargins()[::2])
        left_out: set[str] = set()
        taken = words + sum(wide.values())
        for name in _FIRST_TO_GO:
            if taken > room:
                left_out.add(name)
                taken -= wide[name]
        self.title.setVisible(self.title.sizeHint().width() + sum(wide.values()) <= room)
        self._heads["in all"].setVisible(self._detailed)
        for name, head in self._names.items():
            head.setVisible(name not in left_out)
            for row in ROWS:
                self.cells[row, name].setVisible(name not in left_out and (self._detailed or row != "in all"))

    def text(self, row: str, name: str) -> str:
        """Return what a cell of the table shows."""
        return self.cells[row, name].text()

    def show_counts(self, counts: Counts, row: str = "so far", sequential: int | None = None) -> None:
        """Show what was counted up to a moment; `row` "in all" is for the end, with what one thread alone would do."""
        self._say(row, "operations", as_count(counts.operations))
        self._say(row, "steps", as_count(counts.steps))
        self._say(row, "parallelism", "–" if counts.parallelism is None else f"{counts.parallelism:.1f}")
        self._say(row, "efficiency", _efficiency(sequential, counts.operations))
        self._say(row, "idle lanes", "–" if counts.idle_fraction is None else f"{counts.idle_fraction:.0%}")

    def clear(self) -> None:
        """Show no figures: nothing is recorded."""
        for cell in self.cells.values():
            cell.say("")

    def show_textbook(self, book: Textbook | None, sequential: int | None = None) -> None:
        """Show what the textbook says; None where it says nothing."""
        self._say("textbook", "operations", as_count(book.operations) if book else "–")
        self._say("textbook", "steps", as_count(book.steps) if book else "–")
        self._say("textbook", "parallelism", f"{book.operations / book.steps:.1f}" if book and book.steps else "–")
        self._say("textbook", "efficiency", _efficiency(sequential, book.operations if book else 0))
        self._say("textbook", "idle lanes", "–")

    def _say(self, row: str, name: str, text: str) -> None:
        self.cells[row, name].say(text)


def _efficiency(sequential: int | None, operations: int) -> str:
    return "–" if sequential is None or not operations else f"{sequential / operations:.0%}"
