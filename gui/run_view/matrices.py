"""The Run tab of a pattern of matrices: each matrix as an image, a product next to and below its factors."""

from __future__ import annotations

import numpy as np
from PyQt6.QtCore import Qt
from PyQt6.QtGui import QResizeEvent
from PyQt6.QtWidgets import QBoxLayout, QFrame, QGridLayout, QSplitter, QWidget

from gpu.declaration.matrices import display_stride
from gpu.declaration.pattern import Array, Pattern
from gpu.declaration.presentation import MatrixPresentation, Product
from gui.model.records import FinishedRun, PointedElement
from gui.painting.theme import look
from gui.qt.events import StyleListener
from gui.run_view.image_pane import ImagePane
from gui.run_view.rates import RatesCard
from gui.run_view.view import RunView
from gui.widgets.basic import HEAD_HEIGHT, ElidedLabel, column, format_figure, label, set_role

_PICTURE_SUFFIX = " picture"
_MIN_WIDTH_FOR_SIDE_TITLE = 200
"""Minimum width of a card, in pixels at the normal text size, for a title next to the picture."""
_MAX_WIDGET_WIDTH = 16777215  # Qt's maximum


class MatrixCard(StyleListener, QFrame):
    """A matrix as a picture, with its title above, or at its left if that leaves the picture larger."""

    def __init__(self, name: str) -> None:
        super().__init__()
        set_role(self, "card")
        self.values: Array = np.zeros((1, 1), np.float32)
        self.value_range = (0.0, 0.0)
        self.shape = (1, 1)
        self.first_row = 0
        self.pane = ImagePane(name)
        title = label(name, "card-title")
        title.setMinimumHeight(HEAD_HEIGHT)
        self.element_label = ElidedLabel("caption", f"{name}: element under the pointer", right=True)
        self.side_label = label("", "caption", wrap=True)
        self.side_label.setAlignment(Qt.AlignmentFlag.AlignTop)
        self._head_widget = QWidget()
        self._head = QBoxLayout(QBoxLayout.Direction.LeftToRight, self._head_widget)
        self._head.setContentsMargins(12, 0, 12, 0)
        self._head.setSpacing(6)
        self._head.addWidget(title)
        self._head.addWidget(self.element_label, 1)
        self._head.addWidget(self.side_label, 1)
        self._layout = QBoxLayout(QBoxLayout.Direction.TopToBottom, self)
        self._layout.setSpacing(6)
        self._layout.addWidget(self._head_widget)
        self._layout.addWidget(self.pane, 1)
        self._prefers_side_title = False
        self.place_title(at_side=False)

    def place_title(self, *, at_side: bool) -> None:
        """Place the title at the left of the picture, if requested and the card is wide enough, else above it."""
        self._prefers_side_title = at_side
        at_side = at_side and self.width() >= look().px(_MIN_WIDTH_FOR_SIDE_TITLE)
        direction = QBoxLayout.Direction
        self._layout.setDirection(direction.LeftToRight if at_side else direction.TopToBottom)
        self._layout.setContentsMargins(*((1, 1, 1, 1) if at_side else (1, 8, 1, 1)))
        self._head.setDirection(direction.TopToBottom if at_side else direction.LeftToRight)
        self._head.setContentsMargins(12, 8 if at_side else 0, 0 if at_side else 12, 0)
        width = look().px(112)
        self._head_widget.setMinimumWidth(width if at_side else 0)
        self._head_widget.setMaximumWidth(width if at_side else _MAX_WIDGET_WIDTH)
        self.element_label.setVisible(not at_side)
        self.side_label.setVisible(at_side)

    def _restyle(self) -> None:
        self.place_title(at_side=self._prefers_side_title)

    def resizeEvent(self, event: QResizeEvent | None) -> None:
        super().resizeEvent(event)
        self.place_title(at_side=self._prefers_side_title)

    def show_texts(self, *parts: str) -> None:
        """Show texts about the matrix or an element: in one line above the picture, or line by line at its left."""
        self.element_label.show_text("   ".join(parts))
        self.side_label.setText("\n".join(parts))

    def show_description(self) -> None:
        """Show the size, the range of values, and the part of the matrix that is shown."""
        low, high = self.value_range
        parts = [f"{self.shape[0]} × {self.shape[1]}"]
        if np.isfinite(low):
            parts.append(f"{format_figure(low)} … {format_figure(high)}".replace("e-0", "e-"))
        if self.first_row:
            parts.append(f"from row {self.first_row} on")
        if (stride := display_stride(self.shape)) > 1:
            parts.append(f"1 of {stride} rows and columns shown")
        self.show_texts(*parts)

    def format_element(self, row: int, column: int) -> str:
        """Return an element's row, column and value as text."""
        stride = display_stride(self.shape)
        return f"[{self.first_row + row * stride}][{column * stride}] = {float(self.values[row, column]):.7g}"


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
        self._transposed = pattern.presentation.transposed
        self.cards: dict[str, MatrixCard] = {}
        self.rates = RatesCard(pattern)
        self.product_label = label("", "caption", wrap=True, name="The element under the pointer")
        self.product_label.setMinimumHeight(2 * look().small_px + look().px(6))
        self.rates.body.addWidget(self.product_label)
        self.splitter = QSplitter(Qt.Orientation.Vertical)
        self._grid_widget = QWidget()
        self._grid = QGridLayout(self._grid_widget)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setSpacing(8)
        self.splitter.addWidget(self._grid_widget)
        self.setLayout(column(self.splitter))

    def show_outcome(self, outcome: FinishedRun) -> None:
        names = [name.removesuffix(_PICTURE_SUFFIX) for name in outcome.arrays if name.endswith(_PICTURE_SUFFIX)]
        if not self.cards:
            self._lay_out(names)
        for name, card in self.cards.items():
            rows, columns = outcome.arrays[f"{name} shape"].tolist()
            low, high = outcome.arrays[f"{name} range"].tolist()
            card.values, card.value_range, card.shape = outcome.arrays[name], (low, high), (rows, columns)
            card.first_row = int(outcome.arrays[f"{name} first"])
            card.pane.show_picture(outcome.arrays[name + _PICTURE_SUFFIX], card.values)
            card.place_title(at_side=self._product is not None and columns <= rows)
        if self._product is not None:
            (m, n), k = self.cards[self._product.result].shape, self.cards[self._product.left].shape[1]
            self.rates.add_run(outcome, n if m == n == k else None)
        self._show_element("", None)

    def _lay_out(self, names: list[str]) -> None:
        for name in names:
            self.cards[name] = MatrixCard(name)
            self.cards[name].pane.hovered.connect(lambda pixel, name=name: self._show_element(name, pixel))
        self.cards[names[-1]].pane.picked.connect(lambda pixel: self._request_writer(names[-1], pixel))
        if self._product is not None:
            self._grid.addWidget(self.rates, 0, 0)
            self._grid.addWidget(self.cards[self._product.right], 0, 1)
            self._grid.addWidget(self.cards[self._product.left], 1, 0)
            self._grid.addWidget(self.cards[self._product.result], 1, 1)
        else:
            first = next(iter(self.cards.values()))
            for line, card in enumerate(self.cards.values()):
                self._grid.addWidget(card, 0, line)
                if card is not first and not self._transposed:
                    card.pane.link_to(first.pane)
        for line in range(self._grid.rowCount()):
            self._grid.setRowStretch(line, 1)
        for line in range(self._grid.columnCount()):
            self._grid.setColumnStretch(line, 1)

    def _request_writer(self, name: str, pixel: tuple[int, int]) -> None:
        """Request the thread that wrote an element of the result, which is the last matrix."""
        card = self.cards[name]
        stride = display_stride(card.shape)
        element = card.first_row + pixel[1] * stride, pixel[0] * stride
        title = f"{name}[{element[0]}][{element[1]}]"
        self.element_selected.emit(PointedElement(self._result, element, title), card.pane.find_cursor_position())

    def _show_element(self, name: str, pixel: tuple[int, int] | None) -> None:
        """Show the element under the pointer of one matrix, and mark the related elements of the others."""
        for card in self.cards.values():
            card.show_description()
            card.pane.frame_row(None)
            card.pane.frame_column(None)
        if self._product is not None:
            self._show_product_element(self._product, name, pixel)
        elif pixel is None or name not in self.cards:
            for card in self.cards.values():
                card.pane.frame_pixel(None)
        else:
            for card in self.cards.values():
                same = not self._transposed or card is self.cards[name]
                column, row = pixel if same else pixel[::-1]
                card.pane.frame_pixel((column, row))
                if same:
                    card.pane.frame_row(row)
                else:
                    card.pane.frame_column(column)
                card.show_texts(card.format_element(row, column))

    def _show_product_element(self, product: Product, name: str, pixel: tuple[int, int] | None) -> None:
        left, right, result = (self.cards[each] for each in (product.left, product.right, product.result))
        text = f"Point at an element to frame its row of {product.left} and its column of {product.right}."
        if pixel is not None:
            column, row = pixel
            if name == product.right:
                result.pane.frame_column(column)
            elif name == product.left:
                result.pane.frame_row(row)
            else:
                left.pane.frame_row(row)
                right.pane.frame_column(column)
                stride = display_stride(result.shape)
                text = (
                    f"{product.result}{result.format_element(row, column)}\nrow {row * stride} of {product.left} times "
                    f"column {column * stride} of {product.right}, {left.shape[1]} products"
                )
            self.cards[name].show_texts(name + self.cards[name].format_element(row, column))
        self.product_label.setText(text)
