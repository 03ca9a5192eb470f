"""Array elements or threads as a grid of cells, selected with the mouse or with keys."""

from __future__ import annotations

import re
from collections.abc import Collection

from PyQt6.QtCore import QEvent, QRectF, QSize, Qt, pyqtSignal
from PyQt6.QtGui import QColor, QKeyEvent, QMouseEvent, QPaintEvent, QPen, QResizeEvent
from PyQt6.QtWidgets import QSizePolicy, QWidget

from gui.painting.painters import create_smooth_painter
from gui.painting.theme import code_font, look

_COLUMN_COUNTS = (32, 16, 8, 4)
"""Possible numbers of columns; the largest that fits is used, so that columns keep their meaning across rows."""
_MIN_CELL_WIDTH = 25
"""Minimum width of a cell in pixels at the normal text size; three digits fit."""
_HANDLED_KEYS = (Qt.Key.Key_Left, Qt.Key.Key_Right, Qt.Key.Key_Up, Qt.Key.Key_Down, Qt.Key.Key_Space)
_NUMBER_PATTERN = re.compile(r"(\d+)\s*(?:-|–|to|\.{2,3}|…)\s*(\d+)|(\d+)")
_STEP_PATTERN = re.compile(r"(\d+)\s*,\s*(\d+)\s*,?\s*(?:\.{3}|…)\s*,?\s*(\d+)")


def parse_numbers(text: str, size: int) -> frozenset[int]:
    """Parse numbers below a size from text such as "0, 2 and 4 to 7" or "0, 8 … 56"."""
    numbers: set[int] = set()
    for first, second, last in _STEP_PATTERN.findall(text):
        if int(first) < int(second):
            numbers.update(range(int(first), min(int(last), size) + 1, int(second) - int(first)))
    text = _STEP_PATTERN.sub(r"\1, \2, \3", text)
    for first, last, single in _NUMBER_PATTERN.findall(text):
        if single:
            numbers.add(int(single))
        else:
            numbers.update(range(int(first), min(int(last), size) + 1))
    return frozenset(number for number in numbers if number < size)


def format_numbers(numbers: Collection[int]) -> str:
    """Format numbers as `parse_numbers` parses them: "0, 2, 4-7"."""
    parts: list[list[int]] = []
    for number in sorted(numbers):
        if parts and number == parts[-1][-1] + 1:
            parts[-1].append(number)
        else:
            parts.append([number])
    return ", ".join(
        f"{part[0]}-{part[-1]}" if len(part) > 2 else ", ".join(map(str, part)) for part in parts
    )  # fmt: skip


class ElementPad(QWidget):
    """A grid of cells numbered from 0; selected cells are filled, and marked as right or wrong after an answer.

    Parameters
    ----------
    name : str
        The accessible name.
    """

    changed = pyqtSignal()

    def __init__(self, name: str) -> None:
        super().__init__()
        self.setAccessibleName(name)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.cell_count = 0
        self.selected: frozenset[int] = frozenset()
        self.missing: frozenset[int] = frozenset()
        self.extra: frozenset[int] = frozenset()
        self.locked = False
        self._cursor = 0
        self._drag_selects: bool | None = None

    def set_cell_count(self, size: int) -> None:
        """Show this number of cells, none selected."""
        self.cell_count, self.locked, self._cursor = size, False, 0
        self.selected = self.missing = self.extra = frozenset()
        self._update_height()
        self.update()

    def select_cells(self, selection: frozenset[int]) -> None:
        """Select exactly these cells."""
        if not self.locked and selection != self.selected:
            self.selected = selection
            self.setAccessibleDescription(format_numbers(selection))
            self.update()
            self.changed.emit()

    def toggle_cell(self, element: int) -> None:
        """Select or deselect a cell."""
        if 0 <= element < self.cell_count:
            self._cursor = element
            self.select_cells(self.selected ^ {element})

    def show_mark(self, missing: frozenset[int], extra: frozenset[int]) -> None:
        """Mark missing and wrongly selected cells, and lock the selection."""
        self.missing, self.extra, self.locked = missing, extra, True
        self.update()

    # --- positions

    @property
    def _columns(self) -> int:
        room = max(1, int(self.width() // look().px(_MIN_CELL_WIDTH)))
        return next((column_count for column_count in _COLUMN_COUNTS if column_count <= room), room)

    @property
    def _cell(self) -> float:
        return min(self.width() / self._columns, look().px(34))

    def _update_height(self) -> None:
        lines = -(-self.cell_count // self._columns)
        self.setFixedHeight(max(1, round(lines * self._line_height)))

    @property
    def _line_height(self) -> float:
        return look().px(22)

    def compute_cell_rect(self, element: int) -> QRectF:
        """Return a cell's rectangle."""
        row, column = divmod(element, self._columns)
        return QRectF(column * self._cell, row * self._line_height, self._cell, self._line_height)

    def _find_cell(self, event: QMouseEvent) -> int | None:
        column, row = int(event.position().x() // self._cell), int(event.position().y() // self._line_height)
        element = row * self._columns + column
        return element if 0 <= column < self._columns and 0 <= element < self.cell_count else None

    def sizeHint(self) -> QSize:
        return QSize(look().px(_MIN_CELL_WIDTH) * 8, self.height())

    def resizeEvent(self, event: QResizeEvent | None) -> None:
        super().resizeEvent(event)
        self._update_height()

    # --- mouse and keys

    def mousePressEvent(self, event: QMouseEvent | None) -> None:
        if event is None or event.button() != Qt.MouseButton.LeftButton or self.locked:
            return
        element = self._find_cell(event)
        if element is not None:
            self._drag_selects = element not in self.selected
            self.toggle_cell(element)

    def mouseMoveEvent(self, event: QMouseEvent | None) -> None:
        if event is None or self._drag_selects is None:
            return
        element = self._find_cell(event)
        if element is not None and (element in self.selected) != self._drag_selects:
            self.toggle_cell(element)

    def mouseReleaseEvent(self, event: QMouseEvent | None) -> None:
        self._drag_selects = None

    def event(self, event: QEvent | None) -> bool:
        # The Step tab uses these keys as shortcuts wherever the focus is; accepting the override keeps them here.
        # With a modifier they belong to the tab or to the lesson, and after the answer this widget needs none.
        if (
            isinstance(event, QKeyEvent)
            and event.type() == QEvent.Type.ShortcutOverride
            and event.key() in _HANDLED_KEYS
            and not event.modifiers() & ~Qt.KeyboardModifier.KeypadModifier
            and not self.locked
        ):
            event.accept()
            return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent | None) -> None:
        if event is None:
            return
        offsets = {
            Qt.Key.Key_Left: -1,
            Qt.Key.Key_Right: 1,
            Qt.Key.Key_Up: -self._columns,
            Qt.Key.Key_Down: self._columns,
        }
        if event.key() in offsets and not event.modifiers() & ~Qt.KeyboardModifier.KeypadModifier:
            target = self._cursor + offsets[Qt.Key(event.key())]
            if 0 <= target < self.cell_count:
                self._cursor = target
                self.update()
        elif event.key() == Qt.Key.Key_Space:
            self.toggle_cell(self._cursor)
        else:
            super().keyPressEvent(event)

    # --- painting

    def paintEvent(self, event: QPaintEvent | None) -> None:
        theme = look().theme
        painter = create_smooth_painter(self)
        painter.setFont(code_font(max(9, look().small_px - 1)))
        for element in range(self.cell_count):
            area = self.compute_cell_rect(element).adjusted(1, 1, -1, -1)
            chosen = element in self.selected
            ground, ink = (theme.accent, theme.on_accent) if chosen else (theme.raised, theme.muted)
            if self.locked and chosen:
                ground, ink = (theme.bad if element in self.extra else theme.good), theme.surface
            painter.setBrush(QColor(ground))
            is_missing = element in self.missing
            painter.setPen(QPen(QColor(theme.good if is_missing else theme.border), 2 if is_missing else 1))
            painter.drawRoundedRect(area, 3, 3)
            if self.hasFocus() and element == self._cursor and not self.locked:
                painter.setBrush(Qt.BrushStyle.NoBrush)
                painter.setPen(QPen(QColor(theme.text), 2))
                painter.drawRoundedRect(area.adjusted(1, 1, -1, -1), 3, 3)
            painter.setPen(QColor(theme.good if is_missing else ink))
            painter.drawText(area, Qt.AlignmentFlag.AlignCenter, str(element))
        painter.end()
