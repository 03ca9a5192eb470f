"""The Run tab of a pattern of matrices: each as an image, a product with its factors beside and above it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from PyQt6.QtCore import Qt
from PyQt6.QtWidgets import QFrame, QGridLayout, QSplitter, QVBoxLayout, QWidget

from gpu.pattern import Array
from gpu.patterns.matrices import every
from gui.records import Outcome
from gui.run_view.image_pane import ImagePane
from gui.run_view.view import RunView, titled_pane
from gui.widgets import ElidedLabel, as_figure, label

_PICTURE = " picture"


@dataclass
class Shown:
    """A matrix on the screen: what is shown of it, its least and greatest value, its rows and columns."""

    card: QFrame
    pane: ImagePane
    text: ElidedLabel
    values: Array
    span: tuple[float, float] = (0.0, 0.0)
    shape: tuple[int, int] = (1, 1)

    @property
    def about(self) -> str:
        """Its size, the values it has, and which of them are shown."""
        low, high = self.span
        span = f"   {as_figure(low)} … {as_figure(high)}" if np.isfinite(low) else ""
        apart = every(self.shape)
        shown = f"   1 of {apart} rows and columns shown" if apart > 1 else ""
        return f"{self.shape[0]} × {self.shape[1]}{span}{shown}"

    def place(self, row: int, column: int) -> str:
        """The element's row and column, and its value."""
        apart = every(self.shape)
        return f"[{row * apart}][{column * apart}] = {float(self.values[row, column]):.7g}"


class MatricesView(RunView):
    """The Run tab of a pattern that turns matrices into a matrix."""

    def __init__(self) -> None:
        super().__init__()
        self.shown: dict[str, Shown] = {}
        self.product = label("", "muted", wrap=True, name="The element under the pointer")
        self.product.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.splitter = QSplitter(Qt.Orientation.Vertical)
        self._inside = QWidget()
        self._grid = QGridLayout(self._inside)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setSpacing(8)
        self.splitter.addWidget(self._inside)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self.splitter)

    @property
    def _is_product(self) -> bool:
        return len(self.shown) == 3

    def show_outcome(self, outcome: Outcome) -> None:
        names = [name.removesuffix(_PICTURE) for name in outcome.arrays if name.endswith(_PICTURE)]
        if not self.shown:
            self._lay_out(names)
        for name, shown in self.shown.items():
            rows, columns = outcome.arrays[f"{name} shape"].tolist()
            low, high = outcome.arrays[f"{name} range"].tolist()
            shown.values, shown.span, shown.shape = outcome.arrays[name], (low, high), (rows, columns)
            shown.pane.show_picture(outcome.arrays[name + _PICTURE])
        self._read("", None)

    def _lay_out(self, names: list[str]) -> None:
        for name in names:
            pane = ImagePane(name)
            card, text = titled_pane(pane, name)
            self.shown[name] = Shown(card, pane, text, np.zeros((1, 1), np.float32))
            pane.hovered.connect(lambda pixel, name=name: self._read(name, pixel))
        first, *others = self.shown.values()
        if self._is_product:
            above, beside = others
            self._grid.addWidget(self.product, 0, 0)
            self._grid.addWidget(above.card, 0, 1)
            self._grid.addWidget(first.card, 1, 0)
            self._grid.addWidget(beside.card, 1, 1)
        else:
            for line, each in enumerate(self.shown.values()):
                self._grid.addWidget(each.card, 0, line)
                if each is not first:
                    each.pane.link(first.pane)
        for line in range(self._grid.rowCount()):
            self._grid.setRowStretch(line, 1)
        for line in range(self._grid.columnCount()):
            self._grid.setColumnStretch(line, 1)

    def _read(self, name: str, pixel: tuple[int, int] | None) -> None:
        """Tell of the element under the pointer of one matrix, and of what belongs to it in the others."""
        for each in self.shown.values():
            each.text.say(each.about)
            each.pane.mark_row(None)
            each.pane.mark_column(None)
        if self._is_product:
            self._read_product(name, pixel)
        elif pixel is None or name not in self.shown:
            for each in self.shown.values():
                each.pane.mark(None)
        else:
            column, row = pixel
            for each in self.shown.values():
                each.pane.mark(pixel)
                each.pane.mark_row(row)
                each.text.say(each.place(row, column))

    def _read_product(self, name: str, pixel: tuple[int, int] | None) -> None:
        left, right, product = self.shown.values()
        said = "Point at an element: its row of A and its column of B are framed."
        if pixel is not None:
            column, row = pixel
            if name == list(self.shown)[1]:
                product.pane.mark_column(column)
            elif self.shown[name] is left:
                product.pane.mark_row(row)
            else:
                left.pane.mark_row(row)
                right.pane.mark_column(column)
                apart = every(product.shape)
                said = (
                    f"C{product.place(row, column)}\nrow {row * apart} of A times column {column * apart} of B, "
                    f"{left.shape[1]} products"
                )
            self.shown[name].text.say(name + self.shown[name].place(row, column))
        self.product.setText(said)
