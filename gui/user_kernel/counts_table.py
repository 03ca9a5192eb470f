"""Table of counts: a column per launch, a row per quantity, with bars to compare the figures."""

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

from gpu.engines.base import SIMULATION_TIME_LABEL
from gpu.messages.kernels import CountedLaunch
from gpu.messages.run_counts import QUANTITIES, Quantity, format_figure
from gpu.messages.verdicts import describe_mistakes
from gui.painting.theme import code_font, look
from gui.widgets.basic import wrap_tip


def _row_title(quantity: Quantity) -> str:
    """Return a quantity's row title, with the unit if it is not a total."""
    return quantity.name if "{each}" in quantity.unit else f"{quantity.name}, {quantity.unit.removeprefix('lanes ')}"


FINDINGS = "findings"
TIME = f"ms {SIMULATION_TIME_LABEL}"
RESULT = "result"
LINES = (FINDINGS, RESULT, *(_row_title(quantity) for quantity in QUANTITIES), TIME)
_TIPS = {
    RESULT: "Whether the arrays equal those of the first launch, within the rounding of floats",
    FINDINGS: "Races, out-of-bounds and uninitialized accesses, barriers and masks",
    **{_row_title(quantity): quantity.meaning for quantity in QUANTITIES},
    TIME: "With counters and checkers. It does not predict a GPU's time",
}
_BAR_ROLE = Qt.ItemDataRole.UserRole
_BAR_HEIGHT = 3


@dataclass(frozen=True)
class Cell:
    """A cell: its text, its share of the row's largest figure, whether it is the best, its tone and tooltip."""

    text: str
    share: float = 0.0
    best: bool = False
    tone: str = ""
    tip: str = ""


class _BarDelegate(QStyledItemDelegate):
    """Delegate that paints a bar below a figure, as long as its share, and a line below the row."""

    def paint(self, painter: QPainter | None, option: QStyleOptionViewItem, index: QModelIndex) -> None:
        super().paint(painter, option, index)
        if painter is None:
            return
        ground = option.rect
        painter.fillRect(ground.left(), ground.bottom(), ground.width(), 1, QColor(look().theme.border))
        share = index.data(_BAR_ROLE)
        if not share:
            return
        room = QRectF(option.rect).adjusted(8, 0, -8, -3)
        length = max(2.0, share * room.width())
        best = (font := index.data(Qt.ItemDataRole.FontRole)) is not None and font.bold()
        painter.fillRect(
            QRectF(room.right() - length, room.bottom() - _BAR_HEIGHT, length, _BAR_HEIGHT),
            QColor(look().theme.accent if best else look().theme.faint),
        )


class CountsTable(QTableWidget):
    """Table that compares the counts of launches."""

    def __init__(self) -> None:
        super().__init__(len(LINES), 0)
        self.setAccessibleName("Counts, one column per launch")
        self.setItemDelegate(_BarDelegate(self))
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
        self.resize_with_text()

    def resize_with_text(self) -> None:
        """Set sizes in proportion to the text size."""
        names, heads = self.verticalHeader(), self.horizontalHeader()
        assert names is not None
        assert heads is not None
        names.setDefaultSectionSize(look().px(34))
        names.setFixedWidth(look().px(190))
        heads.setMinimumSectionSize(look().px(92))

    def show_titles(self, titles: Sequence[str]) -> None:
        """Clear the table; counts of launches with these titles follow."""
        self.setColumnCount(0)
        self.setColumnCount(len(titles))
        self.setHorizontalHeaderLabels(titles)
        for column, title in enumerate(titles):
            item = self.horizontalHeaderItem(column)
            assert item is not None
            item.setToolTip(title)

    def show_counts(self, counts: Sequence[CountedLaunch | str | None], same: Sequence[bool | None]) -> None:
        """Show each launch's counts, the reason why there are none, or nothing while they are pending (None).

        `same` is whether a launch's result equals the first one's; None if unknown.
        """
        for line, cells in enumerate(build_cells(counts, same)):
            for column, cell in enumerate(cells):
                item = QTableWidgetItem(cell.text)
                item.setTextAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
                item.setData(_BAR_ROLE, cell.share)
                item.setToolTip(wrap_tip(cell.tip))
                font = code_font(look().small_px)
                font.setWeight(QFont.Weight.Bold if cell.best else QFont.Weight.Normal)
                item.setFont(font)
                if cell.tone:
                    item.setForeground(QColor({"bad": look().theme.bad, "good": look().theme.good}[cell.tone]))
                self.setItem(line, column, item)


def build_cells(counts: Sequence[CountedLaunch | str | None], same: Sequence[bool | None]) -> list[list[Cell]]:
    """Return the cells of each row.

    The best figure of a row is marked, unless all are equal or the launch has findings. The simulation time is not
    compared, because it is not a GPU's. A single launch has no bars.
    """
    agreement = {True: Cell("same"), False: Cell("different"), None: Cell("")}
    lines = [[_build_findings_cell(count) for count in counts], [agreement[each] for each in same]]
    for quantity in QUANTITIES:
        figures = [quantity.value(count.counts) if isinstance(count, CountedLaunch) else None for count in counts]
        right = [
            figure
            for figure, count in zip(figures, counts, strict=True)
            if figure is not None and isinstance(count, CountedLaunch) and not count.mistakes
        ]
        best = (max if quantity.higher_is_better else min)(right) if len({*right}) > 1 else None
        largest = max((figure for figure in figures if figure is not None), default=0.0)
        lines.append(
            [
                Cell("")
                if figure is None
                else Cell(
                    format_figure(figure),
                    figure / largest if largest and len(counts) > 1 else 0.0,
                    figure == best and isinstance(count, CountedLaunch) and not count.mistakes,
                )
                for figure, count in zip(figures, counts, strict=True)
            ]
        )
    lines.append(
        [Cell(format_figure(count.simulated_ms) if isinstance(count, CountedLaunch) else "") for count in counts]
    )
    return lines


def _build_findings_cell(counts: CountedLaunch | str | None) -> Cell:
    if counts is None:
        return Cell("")
    if isinstance(counts, str):
        return Cell("failed", tone="bad", tip=counts)
    if counts.mistakes:
        words = describe_mistakes(counts.mistakes)
        return Cell(words, tone="bad", tip=words)
    return Cell("none", tone="good")
