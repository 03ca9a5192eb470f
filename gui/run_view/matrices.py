"""The Run tab of a pattern of matrices: each matrix as an image, a product next to and below its factors."""

from __future__ import annotations

import numpy as np
from PyQt6.QtCore import QEvent, Qt
from PyQt6.QtGui import QResizeEvent
from PyQt6.QtWidgets import QBoxLayout, QFrame, QGridLayout, QSplitter, QWidget

from gpu.declaration.matrices import every
from gpu.declaration.pattern import Array, Pattern
from gpu.declaration.presentation import MatrixPresentation, Product
from gui.model.records import FinishedRun, PointedElement
from gui.painting.theme import look
from gui.qt.events import is_of
from gui.run_view.image_pane import ImagePane
from gui.run_view.rates import RatesCard
from gui.run_view.view import RunView
from gui.widgets.basic import HEAD_HEIGHT, ElidedLabel, as_figure, column, label, role

_PICTURE = " picture"
_BESIDE = 200
"""Minimum width of a card, in pixels at the normal text size, for a title next to the picture."""
_ANY_WIDTH = 16777215  # Qt's maximum


class MatrixCard(QFrame):
    """A matrix as a picture, with its title above, or beside it if that leaves the picture larger."""

    def __init__(self, name: str) -> None:
        super().__init__()
        role(self, "card")
        self.values: Array = np.zeros((1, 1), np.float32)
        self.span = (0.0, 0.0)
        self.shape = (1, 1)
        self.first = 0
        self.pane = ImagePane(name)
        title = label(name, "card-title")
        title.setMinimumHeight(HEAD_HEIGHT)
        self.text = ElidedLabel("caption", f"{name}: element under the pointer", right=True)
        self.lines = label("", "caption", wrap=True)
        self.lines.setAlignment(Qt.AlignmentFlag.AlignTop)
        self._head_widget = QWidget()
        self._head = QBoxLayout(QBoxLayout.Direction.LeftToRight, self._head_widget)
        self._head.setContentsMargins(12, 0, 12, 0)
        self._head.setSpacing(6)
        self._head.addWidget(title)
        self._head.addWidget(self.text, 1)
        self._head.addWidget(self.lines, 1)
        self._layout = QBoxLayout(QBoxLayout.Direction.TopToBottom, self)
        self._layout.setSpacing(6)
        self._layout.addWidget(self._head_widget)
        self._layout.addWidget(self.pane, 1)
        self._prefers_beside = False
        self.stand(beside=False)

    def stand(self, *, beside: bool) -> None:
        """Place the title beside the picture if the card is wide enough, else above it."""
        self._prefers_beside = beside
        beside = beside and self.width() >= look().px(_BESIDE)
        direction = QBoxLayout.Direction
        self._layout.setDirection(direction.LeftToRight if beside else direction.TopToBottom)
        self._layout.setContentsMargins(*((1, 1, 1, 1) if beside else (1, 8, 1, 1)))
        self._head.setDirection(direction.TopToBottom if beside else direction.LeftToRight)
        self._head.setContentsMargins(12, 8 if beside else 0, 0 if beside else 12, 0)
        width = look().px(112)
        self._head_widget.setMinimumWidth(width if beside else 0)
        self._head_widget.setMaximumWidth(width if beside else _ANY_WIDTH)
        self.text.setVisible(not beside)
        self.lines.setVisible(beside)

    def changeEvent(self, event: QEvent | None) -> None:
        super().changeEvent(event)
        if is_of(event, QEvent.Type.StyleChange):
            self.stand(beside=self._prefers_beside)

    def resizeEvent(self, event: QResizeEvent | None) -> None:
        super().resizeEvent(event)
        self.stand(beside=self._prefers_beside)

    def say(self, *parts: str) -> None:
        """Show texts about the matrix or one element, each on a line of its own if the title is beside the picture."""
        self.text.say("   ".join(parts))
        self.lines.setText("\n".join(parts))

    def describe(self) -> None:
        """Show the size, the range of values, and the part of the matrix that is shown."""
        low, high = self.span
        parts = [f"{self.shape[0]} × {self.shape[1]}"]
        if np.isfinite(low):
            parts.append(f"{as_figure(low)} … {as_figure(high)}".replace("e-0", "e-"))
        if self.first:
            parts.append(f"from row {self.first} on")
        if (stride := every(self.shape)) > 1:
            parts.append(f"1 of {stride} rows and columns shown")
        self.say(*parts)

    def place(self, row: int, column: int) -> str:
        """Return an element's row, column and value as text."""
        stride = every(self.shape)
        return f"[{self.first + row * stride}][{column * stride}] = {float(self.values[row, column]):.7g}"


class MatricesView(RunView):
    """The Run tab of a pattern that turns matrices into a matrix.

    Parameters
    ----------
    pattern : Pattern
        One with a MatrixPresentation.
    """

    def __init__(self, pattern: Pattern) -> None:
        super().__init__()
        assert isinstance(pattern.presentation, MatrixPresentation)
        self._product, self._result = pattern.presentation.product, pattern.result
        self._turned = pattern.presentation.turned
        self.shown: dict[str, MatrixCard] = {}
        self.rates = RatesCard(pattern)
        self.product = label("", "caption", wrap=True, name="The element under the pointer")
        self.product.setMinimumHeight(2 * look().small_px + look().px(6))
        self.rates.body.addWidget(self.product)
        self.splitter = QSplitter(Qt.Orientation.Vertical)
        self._inside = QWidget()
        self._grid = QGridLayout(self._inside)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setSpacing(8)
        self.splitter.addWidget(self._inside)
        self.setLayout(column(self.splitter))

    def show_outcome(self, outcome: FinishedRun) -> None:
        names = [name.removesuffix(_PICTURE) for name in outcome.arrays if name.endswith(_PICTURE)]
        if not self.shown:
            self._lay_out(names)
        for name, card in self.shown.items():
            rows, columns = outcome.arrays[f"{name} shape"].tolist()
            low, high = outcome.arrays[f"{name} range"].tolist()
            card.values, card.span, card.shape = outcome.arrays[name], (low, high), (rows, columns)
            card.first = int(outcome.arrays[f"{name} first"])
            card.pane.show_picture(outcome.arrays[name + _PICTURE])
            card.stand(beside=self._product is not None and columns <= rows)
        if self._product is not None:
            (m, n), k = self.shown[self._product.result].shape, self.shown[self._product.left].shape[1]
            self.rates.add(outcome, n if m == n == k else None)
        self._read("", None)

    def _lay_out(self, names: list[str]) -> None:
        for name in names:
            self.shown[name] = MatrixCard(name)
            self.shown[name].pane.hovered.connect(lambda pixel, name=name: self._read(name, pixel))
        self.shown[names[-1]].pane.picked.connect(lambda pixel: self._point(names[-1], pixel))
        if self._product is not None:
            self._grid.addWidget(self.rates, 0, 0)
            self._grid.addWidget(self.shown[self._product.right], 0, 1)
            self._grid.addWidget(self.shown[self._product.left], 1, 0)
            self._grid.addWidget(self.shown[self._product.result], 1, 1)
        else:
            first = next(iter(self.shown.values()))
            for line, each in enumerate(self.shown.values()):
                self._grid.addWidget(each, 0, line)
                if each is not first and not self._turned:
                    each.pane.link(first.pane)
        for line in range(self._grid.rowCount()):
            self._grid.setRowStretch(line, 1)
        for line in range(self._grid.columnCount()):
            self._grid.setColumnStretch(line, 1)

    def _point(self, name: str, pixel: tuple[int, int]) -> None:
        """Request the thread that wrote an element of the result, which is the last matrix."""
        card = self.shown[name]
        stride = every(card.shape)
        element = card.first + pixel[1] * stride, pixel[0] * stride
        title = f"{name}[{element[0]}][{element[1]}]"
        self.pointed.emit(PointedElement(self._result, element, title), card.pane.anchor())

    def _read(self, name: str, pixel: tuple[int, int] | None) -> None:
        """Show the element under the pointer of one matrix, and mark the related elements of the others."""
        for each in self.shown.values():
            each.describe()
            each.pane.mark_row(None)
            each.pane.mark_column(None)
        if self._product is not None:
            self._read_product(self._product, name, pixel)
        elif pixel is None or name not in self.shown:
            for each in self.shown.values():
                each.pane.mark(None)
        else:
            for each in self.shown.values():
                same = not self._turned or each is self.shown[name]
                column, row = pixel if same else pixel[::-1]
                each.pane.mark((column, row))
                if same:
                    each.pane.mark_row(row)
                else:
                    each.pane.mark_column(column)
                each.say(each.place(row, column))

    def _read_product(self, product: Product, name: str, pixel: tuple[int, int] | None) -> None:
        left, right, result = (self.shown[each] for each in (product.left, product.right, product.result))
        text = f"Point at an element to frame its row of {product.left} and its column of {product.right}."
        if pixel is not None:
            column, row = pixel
            if name == product.right:
                result.pane.mark_column(column)
            elif name == product.left:
                result.pane.mark_row(row)
            else:
                left.pane.mark_row(row)
                right.pane.mark_column(column)
                stride = every(result.shape)
                text = (
                    f"{product.result}{result.place(row, column)}\nrow {row * stride} of {product.left} times "
                    f"column {column * stride} of {product.right}, {left.shape[1]} products"
                )
            self.shown[name].say(name + self.shown[name].place(row, column))
        self.product.setText(text)
