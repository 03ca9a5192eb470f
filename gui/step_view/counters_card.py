"""What has been counted so far, beside what the textbook says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PyQt6.QtCore import Qt
from PyQt6.QtWidgets import QGridLayout, QLabel

from gui.theme import look
from gui.widgets import Badge, Card, as_count, label, role

if TYPE_CHECKING:
    from gpu.pattern import Textbook

_FIGURES = ("operations", "steps", "lane use", "parallelism", "idle lanes")


class CountersCard(Card):
    """Operations, steps, how many lanes worked, and the textbook's figures."""

    def __init__(self) -> None:
        super().__init__("Counted so far", margins=(12, 7, 12, 9))
        self.body.setSpacing(4)
        badge = Badge("counted", "neutral")
        badge.setToolTip("Exact numbers from the recording, not measured and not modelled")
        self.head.addStretch(1)
        self.head.addWidget(badge)
        self.figures: dict[str, QLabel] = {}
        self.beside: dict[str, QLabel] = {}
        grid = QGridLayout()
        grid.setHorizontalSpacing(look().px(10))
        grid.setVerticalSpacing(3)
        for number, name in enumerate(_FIGURES):
            row, column = divmod(number, 2)
            figure = QLabel()
            role(figure, "code")
            figure.setAccessibleName(name)
            figure.setStyleSheet("font-weight: 700;")
            figure.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
            self.figures[name], self.beside[name] = figure, label("", "caption")
            grid.addWidget(label(name, "caption"), row, 4 * column)
            grid.addWidget(figure, row, 4 * column + 1)
            grid.addWidget(self.beside[name], row, 4 * column + 2)
        grid.setColumnStretch(2, 1)
        grid.setColumnStretch(6, 1)
        self.body.addLayout(grid)

    def show_counts(
        self, operations: int, steps: int, lane_use: float | None, parallelism: float | None, idle: float | None
    ) -> None:
        """Show what was counted; None where nothing has run yet."""
        self.figures["operations"].setText(as_count(operations))
        self.figures["steps"].setText(as_count(steps))
        self.figures["lane use"].setText("–" if lane_use is None else f"{lane_use:.0%}")
        self.figures["parallelism"].setText("–" if parallelism is None else f"{parallelism:.1f}")
        self.figures["idle lanes"].setText("–" if idle is None else f"{idle:.0%}")

    def show_totals(self, operations: int, steps: int, textbook: Textbook | None) -> None:
        """Show how much there will be, and what the textbook says."""
        for name, total, book in (
            ("operations", operations, textbook and textbook.operations),
            ("steps", steps, textbook and textbook.steps),
        ):
            text = f"of {as_count(total)}"
            self.beside[name].setText(text + (f", textbook {as_count(book)}" if book is not None else ""))
        self.beside["parallelism"].setText(
            f"textbook {textbook.operations / textbook.steps:.1f}" if textbook and textbook.steps else ""
        )
