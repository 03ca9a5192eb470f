"""Flow layout: widgets in lines, like the words of a paragraph."""

from __future__ import annotations

from PyQt6.QtCore import QRect, QSize, Qt
from PyQt6.QtWidgets import QLayout, QLayoutItem, QWidget


class WrappingLayout(QLayout):
    """Place the visible widgets side by side at their preferred widths, on as many lines as needed.

    If their minimum widths need fewer lines, use those lines, and let the widgets share the available width.

    Parameters
    ----------
    parent : QWidget, optional
    across, down : int
        Pixels between neighbors and between lines.
    spread : bool
        Justify each line: distribute its spare width between the widgets.
    """

    def __init__(
        self, parent: QWidget | None = None, *, across: int = 20, down: int = 10, spread: bool = False
    ) -> None:
        # By width: Qt asks hundreds of times between two changes. The base class calls `invalidate` when it is made.
        self._heights: dict[int, int] = {}
        super().__init__(parent)
        self.setContentsMargins(0, 0, 0, 0)
        self._horizontal_spacing, self._vertical_spacing, self._spread = across, down, spread
        self._items: list[QLayoutItem] = []

    def addItem(self, item: QLayoutItem | None) -> None:
        if item is not None:
            self._items.append(item)
            self._heights.clear()

    def invalidate(self) -> None:
        super().invalidate()
        self._heights.clear()

    def count(self) -> int:
        return len(self._items)

    def itemAt(self, index: int) -> QLayoutItem | None:
        return self._items[index] if 0 <= index < len(self._items) else None

    def takeAt(self, index: int) -> QLayoutItem | None:
        self._heights.clear()
        return self._items.pop(index) if 0 <= index < len(self._items) else None

    def expandingDirections(self) -> Qt.Orientation:
        return Qt.Orientation(0)

    def hasHeightForWidth(self) -> bool:
        return True

    def heightForWidth(self, width: int) -> int:
        if width not in self._heights:
            around = self.contentsMargins()
            inside = width - around.left() - around.right()
            height = self._place_lines(QRect(0, 0, inside, 0), apply=False)
            self._heights[width] = height + around.top() + around.bottom()
        return self._heights[width]

    def sizeHint(self) -> QSize:
        return self.minimumSize()

    def minimumSize(self) -> QSize:
        size = QSize()
        for item in self._visible_items():
            size = size.expandedTo(item.minimumSize())
        return size.grownBy(self.contentsMargins())

    def setGeometry(self, rect: QRect) -> None:
        super().setGeometry(rect)
        self._place_lines(rect.marginsRemoved(self.contentsMargins()), apply=True)

    def _visible_items(self) -> list[QLayoutItem]:
        return [item for item in self._items if not item.isEmpty()]

    def _place_lines(self, rect: QRect, *, apply: bool) -> int:
        """Place the lines, if `apply` is set; return their total height."""
        preferred = self._break_lines(rect.width(), narrow=False)
        narrow = self._break_lines(rect.width(), narrow=True)
        y = rect.y()
        for line in narrow if len(narrow) < len(preferred) else preferred:
            widths = [min(item.sizeHint().width(), rect.width()) for item in line]
            over = sum(widths) + self._horizontal_spacing * (len(line) - 1) - rect.width()
            slack = [width - self._min_width(item, rect.width()) for item, width in zip(line, widths, strict=True)]
            x, height = rect.x(), max(item.sizeHint().height() for item in line)
            between = -over // (len(line) - 1) if self._spread and over < 0 and len(line) > 1 else 0
            for item, width, spare in zip(line, widths, slack, strict=True):
                if over > 0:
                    width -= -(-over * spare // max(1, sum(slack)))
                if apply:
                    lower = (height - item.sizeHint().height()) // 2 if self._spread else 0
                    item.setGeometry(QRect(x, y + lower, width, item.sizeHint().height()))
                x += width + self._horizontal_spacing + between
            y += height + self._vertical_spacing
        return max(0, y - self._vertical_spacing - rect.y())

    def _break_lines(self, width: int, *, narrow: bool) -> list[list[QLayoutItem]]:
        lines: list[list[QLayoutItem]] = []
        used = 0
        for item in self._visible_items():
            item_width = self._min_width(item, width) if narrow else min(item.sizeHint().width(), width)
            if not lines or used + self._horizontal_spacing + item_width > width:
                lines.append([])
                used = -self._horizontal_spacing
            lines[-1].append(item)
            used += self._horizontal_spacing + item_width
        return lines

    @staticmethod
    def _min_width(item: QLayoutItem, width: int) -> int:
        return min(item.minimumSize().width(), item.sizeHint().width(), width)
