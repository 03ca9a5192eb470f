"""Launches side by side by what they do: a column each, a line for each quantity, and how long they are as bars."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PyQt6.QtCore import QModelIndex, QRectF, Qt
from PyQt6.QtGui import QColor, QFont, QPainter
from PyQt6.QtWidgets import (
    QAbstractItemView,
    QHeaderView,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTableWidget,
    QTableWidgetItem,
)

from gpu.engines.base import TO_SIMULATE
from gpu.messages.counted import QUANTITIES, Quantity, short
from gpu.messages.kernels import CountedLaunch
from gpu.messages.verdicts import mistakes_in_words
from gui.painting.theme import code_font, look


def _in_words(quantity: Quantity) -> str:
    """Return what a quantity's line is called: with the unit of those that are no sums."""
    return quantity.name if "{each}" in quantity.unit else f"{quantity.name}, {quantity.unit.removeprefix('lanes ')}"


FINDINGS = "findings"
TIME = f"ms {TO_SIMULATE}"
RESULT = "result"
LINES = (FINDINGS, RESULT, *(_in_words(quantity) for quantity in QUANTITIES), TIME)
_TIPS = {
    RESULT: "Whether the arrays hold the same afterwards as after the first launch, floats but for rounding",
    FINDINGS: "Races, accesses out of bounds, reads of what nobody wrote, barriers and masks",
    **{_in_words(quantity): quantity.meaning for quantity in QUANTITIES},
    TIME: "Under the eyes of counters and checkers. It says nothing of a GPU",
}
_BAR = Qt.ItemDataRole.UserRole
_BAR_PX = 3


@dataclass(frozen=True)
class Cell:
    """A figure as it is shown: its text, its share of the line's largest, whether it is the best, what a tip says."""

    text: str
    share: float = 0.0
    best: bool = False
    tone: str = ""
    tip: str = ""


class _Bars(QStyledItemDelegate):
    """Paints under a figure a bar as long as its share, and under that the line's end."""

    def paint(self, painter: QPainter | None, option: QStyleOptionViewItem, index: QModelIndex) -> None:
        super().paint(painter, option, index)
        if painter is None:
            return
        ground = option.rect
        painter.fillRect(ground.left(), ground.bottom(), ground.width(), 1, QColor(look().theme.border))
        share = index.data(_BAR)
        if not share:
            return
        room = QRectF(option.rect).adjusted(8, 0, -8, -3)
        length = max(2.0, share * room.width())
        best = (font := index.data(Qt.ItemDataRole.FontRole)) is not None and font.bold()
        painter.fillRect(
            QRectF(room.right() - length, room.bottom() - _BAR_PX, length, _BAR_PX),
            QColor(look().theme.accent if best else look().theme.faint),
        )


class CountsTable(QTableWidget):
    """Shows what launches do, those side by side that are compared."""

    def __init__(self) -> None:
        super().__init__(len(LINES), 0)
        self.setAccessibleName("What is counted, a column for each launch")
        self.setItemDelegate(_Bars(self))
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setSelectionMode(QAbstractItemView.SelectionMode.NoSelection)
        self.setShowGrid(False)
        self.setTabKeyNavigation(False)
        self.setWordWrap(False)
        self.setVerticalHeaderLabels(LINES)
        names, heads = self.verticalHeader(), self.horizontalHeader()
        assert names is not None
        assert heads is not None
        names.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        names.setDefaultAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        heads.setSectionResizeMode(QHeaderView.ResizeMode.Stretch)
        heads.setDefaultAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        for line, name in enumerate(LINES):
            item = self.verticalHeaderItem(line)
            assert item is not None
            item.setToolTip(_TIPS[name])
        self.fit()

    def fit(self) -> None:
        """Take the sizes that go with the text's."""
        names, heads = self.verticalHeader(), self.horizontalHeader()
        assert names is not None
        assert heads is not None
        names.setDefaultSectionSize(look().px(34))
        names.setFixedWidth(look().px(190))
        heads.setMinimumSectionSize(look().px(92))

    def begin(self, titles: Sequence[str]) -> None:
        """Take away what is shown; launches of these titles are to come."""
        self.setColumnCount(0)
        self.setColumnCount(len(titles))
        self.setHorizontalHeaderLabels(titles)
        for column, title in enumerate(titles):
            item = self.horizontalHeaderItem(column)
            assert item is not None
            item.setToolTip(title)

    def show_counts(self, counted: Sequence[CountedLaunch | str | None], same: Sequence[bool | None]) -> None:
        """Show what was counted of each launch, or the sentence that says why nothing was; None is yet to come.

        `same` is whether its result is the first one's; None says nothing of it.
        """
        for line, cells in enumerate(cells_of(counted, same)):
            for column, cell in enumerate(cells):
                item = QTableWidgetItem(cell.text)
                item.setTextAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
                item.setData(_BAR, cell.share)
                item.setToolTip(cell.tip)
                font = code_font(look().small_px)
                font.setWeight(QFont.Weight.Bold if cell.best else QFont.Weight.Normal)
                item.setFont(font)
                if cell.tone:
                    item.setForeground(QColor({"bad": look().theme.bad, "good": look().theme.good}[cell.tone]))
                self.setItem(line, column, item)


def cells_of(counted: Sequence[CountedLaunch | str | None], same: Sequence[bool | None]) -> list[list[Cell]]:
    """Return the cells of each line.

    In a line that tells launches apart the best is marked, but not in that of the time, which is no GPU's. What a
    launch with a mistake does is no merit of it. One that is alone has nothing to be a share of.
    """
    agreeing = {True: Cell("the same"), False: Cell("another"), None: Cell("")}
    lines = [[_finding(each) for each in counted], [agreeing[each] for each in same]]
    for quantity in QUANTITIES:
        figures = [quantity.value(each.counts) if isinstance(each, CountedLaunch) else None for each in counted]
        right = [
            figure
            for figure, each in zip(figures, counted, strict=True)
            if figure is not None and isinstance(each, CountedLaunch) and not each.mistakes
        ]
        best = (max if quantity.more_is_better else min)(right) if len({*right}) > 1 else None
        largest = max((figure for figure in figures if figure is not None), default=0.0)
        lines.append(
            [
                Cell("")
                if figure is None
                else Cell(
                    short(figure),
                    figure / largest if largest and len(counted) > 1 else 0.0,
                    figure == best and isinstance(each, CountedLaunch) and not each.mistakes,
                )
                for figure, each in zip(figures, counted, strict=True)
            ]
        )
    lines.append([Cell(short(each.simulated_ms) if isinstance(each, CountedLaunch) else "") for each in counted])
    return lines


def _finding(counted: CountedLaunch | str | None) -> Cell:
    if counted is None:
        return Cell("")
    if isinstance(counted, str):
        return Cell("failed", tone="bad", tip=counted)
    if counted.mistakes:
        words = f"it {mistakes_in_words(counted.mistakes)}"
        return Cell(words, tone="bad", tip=words)
    return Cell("none", tone="good")
