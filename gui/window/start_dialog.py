"""The dialog of the first start: three ways to begin. It does not block the window."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PyQt6.QtCore import Qt
from PyQt6.QtWidgets import QDialog, QGridLayout, QPushButton, QWidget

from gui.painting.theme import look
from gui.widgets.basic import button, dialog_column, label, row

Choice = tuple[str, str, str, Callable[[], object]]
"""For whom it is, a sentence about it, the text of its button, and what the button does."""


class StartDialog(QDialog):
    """Offers ways to begin."""

    def __init__(self, window: QWidget, choices: Sequence[Choice]) -> None:
        super().__init__(window)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle("Where to begin")
        self.buttons: list[QPushButton] = []
        grid = QGridLayout()
        grid.setHorizontalSpacing(look().px(24))
        grid.setVerticalSpacing(look().px(2))
        for number, (reader, sentence, text, begin) in enumerate(choices):
            choice = button(text, "primary" if not number else "")
            choice.clicked.connect(lambda _=False, begin=begin: self._begin(begin))
            explanation = label(sentence, "muted", wrap=True)
            explanation.setMinimumWidth(look().px(300))
            grid.addWidget(label(reader, "card-title"), 3 * number, 0)
            grid.addWidget(explanation, 3 * number + 1, 0)
            grid.addWidget(choice, 3 * number, 1, 2, 1, Qt.AlignmentFlag.AlignVCenter)
            grid.setRowMinimumHeight(3 * number + 2, look().px(12))
            self.buttons.append(choice)
        grid.setColumnStretch(0, 1)
        close = button("Close", "flat", tip="Begin with the pattern in the window")
        close.clicked.connect(self.reject)
        self.setLayout(dialog_column("Where would you like to begin?", grid, row(0, close)))
        self.buttons[0].setFocus()

    def _begin(self, begin: Callable[[], object]) -> None:
        self.accept()
        begin()
