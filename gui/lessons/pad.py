"""Elements of an array, or threads of a block, as cells that are chosen with the mouse or with keys."""

from __future__ import annotations

import re
from collections.abc import Collection

from PyQt6.QtCore import QEvent, QRectF, QSize, Qt, pyqtSignal
from PyQt6.QtGui import QColor, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen, QResizeEvent
from PyQt6.QtWidgets import QSizePolicy, QWidget

from gui.painting.theme import code_font, look

_WIDTHS = (32, 16, 8, 4)
"""Cells in a line, as many as there is room for: then a column has the same place in each of them."""
_LEAST = 25
"""Pixels of a cell at the normal size of text, so that three digits can be read."""
_OWN_KEYS = (Qt.Key.Key_Left, Qt.Key.Key_Right, Qt.Key.Key_Up, Qt.Key.Key_Down, Qt.Key.Key_Space)
_NUMBERS = re.compile(r"(\d+)\s*(?:-|–|to|\.{2,3}|…)\s*(\d+)|(\d+)")
_STEPS = re.compile(r"(\d+)\s*,\s*(\d+)\s*,?\s*(?:\.{3}|…)\s*,?\s*(\d+)")


def numbers_in(text: str, size: int) -> frozenset[int]:
    """Return what "0, 2 and 4 to 7" or "0, 8 … 56" names, of the numbers below a size."""
    found: set[int] = set()
    for first, second, last in _STEPS.findall(text):
        if int(first) < int(second):
            found.update(range(int(first), min(int(last), size) + 1, int(second) - int(first)))
    text = _STEPS.sub(r"\1, \2, \3", text)
    for first, last, alone in _NUMBERS.findall(text):
        if alone:
            found.add(int(alone))
        else:
            found.update(range(int(first), min(int(last), size) + 1))
    return frozenset(each for each in found if each < size)


def in_words(numbers: Collection[int]) -> str:
    """Return numbers as `numbers_in` reads them: "0, 2, 4-7"."""
    parts: list[list[int]] = []
    for each in sorted(numbers):
        if parts and each == parts[-1][-1] + 1:
            parts[-1].append(each)
        else:
            parts.append([each])
    return ", ".join(
        f"{part[0]}-{part[-1]}" if len(part) > 2 else ", ".join(map(str, part)) for part in parts
    )  # fmt: skip


class ElementPad(QWidget):
    """Cells from 0 to a size; what is chosen is filled, and after an answer right and wrong are told apart.

    Parameters
    ----------
    name : str
        What assistive technology calls it.
    """

    changed = pyqtSignal()

    def __init__(self, name: str) -> None:
        super().__init__()
        self.setAccessibleName(name)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.size_ = 0
        self.chosen: frozenset[int] = frozenset()
        self.missing: frozenset[int] = frozenset()
        self.extra: frozenset[int] = frozenset()
        self.locked = False
        self._cursor = 0
        self._painting: bool | None = None

    def open(self, size: int) -> None:
        """Offer so many cells, none of them chosen."""
        self.size_, self.locked, self._cursor = size, False, 0
        self.chosen = self.missing = self.extra = frozenset()
        self._fit()
        self.update()

    def choose(self, chosen: frozenset[int]) -> None:
        """Choose these and no others."""
        if not self.locked and chosen != self.chosen:
            self.chosen = chosen
            self.setAccessibleDescription(in_words(chosen))
            self.update()
            self.changed.emit()

    def toggle(self, element: int) -> None:
        """Choose an element, or choose it no more."""
        if 0 <= element < self.size_:
            self._cursor = element
            self.choose(self.chosen ^ {element})

    def show_mark(self, missing: frozenset[int], extra: frozenset[int]) -> None:
        """Tell apart what was left out and what does not belong; nothing is chosen from now on."""
        self.missing, self.extra, self.locked = missing, extra, True
        self.update()

    # --- where cells are

    @property
    def _across(self) -> int:
        room = max(1, int(self.width() // look().px(_LEAST)))
        return next((each for each in _WIDTHS if each <= room), room)

    @property
    def _cell(self) -> float:
        return min(self.width() / self._across, look().px(34))

    def _fit(self) -> None:
        lines = -(-self.size_ // self._across)
        self.setFixedHeight(max(1, round(lines * self._line_height)))

    @property
    def _line_height(self) -> float:
        return look().px(22)

    def place(self, element: int) -> QRectF:
        """Return where an element's cell is."""
        row, column = divmod(element, self._across)
        return QRectF(column * self._cell, row * self._line_height, self._cell, self._line_height)

    def _at(self, event: QMouseEvent) -> int | None:
        column, row = int(event.position().x() // self._cell), int(event.position().y() // self._line_height)
        element = row * self._across + column
        return element if 0 <= column < self._across and 0 <= element < self.size_ else None

    def sizeHint(self) -> QSize:
        return QSize(look().px(_LEAST) * 8, self.height())

    def resizeEvent(self, event: QResizeEvent | None) -> None:
        super().resizeEvent(event)
        self._fit()

    # --- hand and keys

    def mousePressEvent(self, event: QMouseEvent | None) -> None:
        if event is None or event.button() != Qt.MouseButton.LeftButton or self.locked:
            return
        element = self._at(event)
        if element is not None:
            self._painting = element not in self.chosen
            self.toggle(element)

    def mouseMoveEvent(self, event: QMouseEvent | None) -> None:
        if event is None or self._painting is None:
            return
        element = self._at(event)
        if element is not None and (element in self.chosen) != self._painting:
            self.toggle(element)

    def mouseReleaseEvent(self, event: QMouseEvent | None) -> None:
        self._painting = None

    def event(self, event: QEvent | None) -> bool:
        # Of these the view beside has shortcuts, which count wherever the focus is.
        if isinstance(event, QKeyEvent) and event.type() == QEvent.Type.ShortcutOverride and event.key() in _OWN_KEYS:
            event.accept()
            return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent | None) -> None:
        if event is None:
            return
        ways = {
            Qt.Key.Key_Left: -1,
            Qt.Key.Key_Right: 1,
            Qt.Key.Key_Up: -self._across,
            Qt.Key.Key_Down: self._across,
        }
        if event.key() in ways and not event.modifiers() & ~Qt.KeyboardModifier.KeypadModifier:
            to = self._cursor + ways[Qt.Key(event.key())]
            if 0 <= to < self.size_:
                self._cursor = to
                self.update()
        elif event.key() == Qt.Key.Key_Space:
            self.toggle(self._cursor)
        else:
            super().keyPressEvent(event)

    # --- painting

    def paintEvent(self, event: QPaintEvent | None) -> None:
        theme = look().theme
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setFont(code_font(max(9, look().small_px - 1)))
        for element in range(self.size_):
            area = self.place(element).adjusted(1, 1, -1, -1)
            chosen = element in self.chosen
            ground, ink = (theme.accent, theme.on_accent) if chosen else (theme.raised, theme.muted)
            if self.locked and chosen:
                ground, ink = (theme.bad if element in self.extra else theme.good), theme.surface
            painter.setBrush(QColor(ground))
            left_out = element in self.missing
            painter.setPen(QPen(QColor(theme.good if left_out else theme.border), 2 if left_out else 1))
            painter.drawRoundedRect(area, 3, 3)
            if self.hasFocus() and element == self._cursor and not self.locked:
                painter.setBrush(Qt.BrushStyle.NoBrush)
                painter.setPen(QPen(QColor(theme.text), 2))
                painter.drawRoundedRect(area.adjusted(1, 1, -1, -1), 3, 3)
            painter.setPen(QColor(theme.good if left_out else ink))
            painter.drawText(area, Qt.AlignmentFlag.AlignCenter, str(element))
        painter.end()
