"""Widgets one after the other, as words in a paragraph: what does not fit a line begins the next."""

from __future__ import annotations

from PyQt6.QtCore import QRect, QSize, Qt
from PyQt6.QtWidgets import QLayout, QLayoutItem, QWidget


class FlowLayout(QLayout):
    """Puts what is visible side by side, each as wide as it wants to be, on as many lines as it takes.

    Parameters
    ----------
    parent : QWidget, optional
    across, down : int
        Pixels between neighbours and between lines.
    """

    def __init__(self, parent: QWidget | None = None, *, across: int = 20, down: int = 10) -> None:
        super().__init__(parent)
        self.setContentsMargins(0, 0, 0, 0)
        self._across, self._down = across, down
        self._items: list[QLayoutItem] = []

    def addItem(self, item: QLayoutItem | None) -> None:
        if item is not None:
            self._items.append(item)

    def count(self) -> int:
        return len(self._items)

    def itemAt(self, index: int) -> QLayoutItem | None:
        return self._items[index] if 0 <= index < len(self._items) else None

    def takeAt(self, index: int) -> QLayoutItem | None:
        return self._items.pop(index) if 0 <= index < len(self._items) else None

    def expandingDirections(self) -> Qt.Orientation:
        return Qt.Orientation(0)

    def hasHeightForWidth(self) -> bool:
        return True

    def heightForWidth(self, width: int) -> int:
        return self._place(QRect(0, 0, width, 0), apply=False)

    def sizeHint(self) -> QSize:
        return self.minimumSize()

    def minimumSize(self) -> QSize:
        size = QSize()
        for item in self._visible():
            size = size.expandedTo(item.minimumSize())
        return size

    def setGeometry(self, rect: QRect) -> None:
        super().setGeometry(rect)
        self._place(rect, apply=True)

    def _visible(self) -> list[QLayoutItem]:
        return [item for item in self._items if not item.isEmpty()]

    def _place(self, rect: QRect, *, apply: bool) -> int:
        """Go through the lines; return their height together."""
        x, y, line = rect.x(), rect.y(), 0
        for item in self._visible():
            wanted = item.sizeHint()
            width = min(wanted.width(), rect.width())
            if x > rect.x() and x + width > rect.x() + rect.width():
                x, y, line = rect.x(), y + line + self._down, 0
            if apply:
                item.setGeometry(QRect(x, y, width, wanted.height()))
            x += width + self._across
            line = max(line, wanted.height())
        return y + line - rect.y()
