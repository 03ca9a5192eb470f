"""Flow layout: widgets in lines, like the words of a paragraph."""

from __future__ import annotations

from typing import NamedTuple

from PyQt6.QtCore import QRect, QSize, Qt
from PyQt6.QtWidgets import QLayout, QLayoutItem, QWidget


class _SizedItem(NamedTuple):
    """An item with its preferred and minimum width and its height in pixels; each is asked for once."""

    item: QLayoutItem
    width: int
    min_width: int
    height: int


class WrappingLayout(QLayout):
    """Place the visible widgets side by side at their preferred widths, on as many lines as needed.

    If their minimum widths need fewer lines, use those lines, and let the widgets share the available width.

    Parameters
    ----------
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
        room, sized = rect.width(), []
        for item in self._visible_items():
            hint = item.sizeHint()
            wide = min(hint.width(), room)
            sized.append(_SizedItem(item, wide, min(item.minimumSize().width(), wide), hint.height()))
        preferred = self._break_lines(sized, [each.width for each in sized], room)
        narrow = self._break_lines(sized, [each.min_width for each in sized], room)
        y = rect.y()
        for line in narrow if len(narrow) < len(preferred) else preferred:
            over = sum(each.width for each in line) + self._horizontal_spacing * (len(line) - 1) - room
            slack = sum(each.width - each.min_width for each in line)
            x, height = rect.x(), max(each.height for each in line)
            between = -over // (len(line) - 1) if self._spread and over < 0 and len(line) > 1 else 0
            for each in line:
                width = each.width
                if over > 0:
                    width -= -(-over * (width - each.min_width) // max(1, slack))
                if apply:
                    lower = (height - each.height) // 2 if self._spread else 0
                    each.item.setGeometry(QRect(x, y + lower, width, each.height))
                x += width + self._horizontal_spacing + between
            y += height + self._vertical_spacing
        return max(0, y - self._vertical_spacing - rect.y())

    def _break_lines(self, sized: list[_SizedItem], widths: list[int], room: int) -> list[list[_SizedItem]]:
        lines: list[list[_SizedItem]] = []
        used = 0
        for each, width in zip(sized, widths, strict=True):
            if not lines or used + self._horizontal_spacing + width > room:
                lines.append([])
                used = -self._horizontal_spacing
            lines[-1].append(each)
            used += self._horizontal_spacing + width
        return lines
