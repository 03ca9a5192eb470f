"""A list of kernel lines to put in order by dragging or with keys."""

from __future__ import annotations

from PyQt6.QtCore import QEvent, QRectF, QSize, Qt, pyqtSignal
from PyQt6.QtGui import QColor, QFontMetricsF, QKeyEvent, QMouseEvent, QPaintEvent, QPen
from PyQt6.QtWidgets import QSizePolicy, QWidget

from gui.editor.colors import split_into_spans
from gui.painting.painters import create_smooth_painter
from gui.painting.theme import code_font, look
from gui.qt.events import StyleListener

_KEYS = (Qt.Key.Key_Up, Qt.Key.Key_Down, Qt.Key.Key_Home, Qt.Key.Key_End)
_HANDLE = 26
"""Width of the drag handle in front of a line in pixels."""


class LineOrder(StyleListener, QWidget):
    """Lines below each other; the arrow keys select the current line, and with Alt move it."""

    changed = pyqtSignal()

    def __init__(self) -> None:
        super().__init__()
        self.setAccessibleName("Lines to put in order")
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setToolTip("Drag a line, or move it with Alt+↑ and Alt+↓")
        self.lines: tuple[str, ...] = ()
        self.current = 0
        self._dragging = False

    def set_lines(self, lines: tuple[str, ...]) -> None:
        """Show these lines."""
        self.lines, self.current = lines, 0
        self._update_height()
        self.update()

    def move_line(self, index: int, new_index: int) -> None:
        """Move a line, which becomes the current one."""
        if index == new_index or not (0 <= index < len(self.lines) and 0 <= new_index < len(self.lines)):
            return
        lines = list(self.lines)
        lines.insert(new_index, lines.pop(index))
        self.lines, self.current = tuple(lines), new_index
        self.setAccessibleDescription(f"Line {new_index + 1} of {len(lines)}: {lines[new_index].strip()}")
        self.update()
        self.changed.emit()

    # --- positions

    def _height(self) -> int:
        return look().px(25)

    def _update_height(self) -> None:
        self.setFixedHeight(self._height() * max(1, len(self.lines)))

    def compute_line_rect(self, line: int) -> QRectF:
        """Return a line's rectangle."""
        return QRectF(0, line * self._height(), self.width(), self._height())

    def _find_line(self, event: QMouseEvent) -> int:
        return min(max(int(event.position().y() // self._height()), 0), len(self.lines) - 1)

    def sizeHint(self) -> QSize:
        return QSize(look().px(300), self.height())

    def _restyle(self) -> None:
        self._update_height()

    # --- mouse and keys

    def mousePressEvent(self, event: QMouseEvent | None) -> None:
        if event is not None and event.button() == Qt.MouseButton.LeftButton and self.lines:
            self.current, self._dragging = self._find_line(event), True
            self.setCursor(Qt.CursorShape.ClosedHandCursor)
            self.update()

    def mouseMoveEvent(self, event: QMouseEvent | None) -> None:
        if event is not None and self._dragging:
            self.move_line(self.current, self._find_line(event))

    def mouseReleaseEvent(self, event: QMouseEvent | None) -> None:
        self._dragging = False
        self.setCursor(Qt.CursorShape.ArrowCursor)

    def event(self, event: QEvent | None) -> bool:
        # The Step tab uses these keys as shortcuts wherever the focus is; accepting the override keeps them here.
        if isinstance(event, QKeyEvent) and event.type() == QEvent.Type.ShortcutOverride and event.key() in _KEYS:
            event.accept()
            return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent | None) -> None:
        if event is None or event.key() not in _KEYS:
            super().keyPressEvent(event)
            return
        last = len(self.lines) - 1
        to = {
            Qt.Key.Key_Up: max(self.current - 1, 0),
            Qt.Key.Key_Down: min(self.current + 1, last),
            Qt.Key.Key_Home: 0,
            Qt.Key.Key_End: last,
        }[Qt.Key(event.key())]
        if event.modifiers() & Qt.KeyboardModifier.AltModifier:
            self.move_line(self.current, to)
        else:
            self.current = to
            self.update()

    # --- painting

    def paintEvent(self, event: QPaintEvent | None) -> None:
        theme = look().theme
        painter = create_smooth_painter(self)
        font = code_font(look().small_px)
        painter.setFont(font)
        wide = QFontMetricsF(font).horizontalAdvance("0")
        handle = look().px(_HANDLE)
        for number, line in enumerate(self.lines):
            area = self.compute_line_rect(number).adjusted(1, 1, -1, -1)
            current = number == self.current and self.hasFocus()
            painter.setBrush(QColor(theme.accent_soft if current else theme.raised))
            painter.setPen(QPen(QColor(theme.accent if current else theme.border), 1))
            painter.drawRoundedRect(area, 4, 4)
            painter.setPen(QColor(theme.faint))
            grip = QRectF(area.left(), area.top(), handle, area.height())
            painter.drawText(grip, Qt.AlignmentFlag.AlignCenter, "⠿")
            painter.setClipRect(area)
            left = area.left() + handle
            painter.setPen(QColor(theme.text))
            runs = [(0, len(line), ""), *split_into_spans(line, within_comment=False)]
            for start, end, kind in runs:
                painter.setPen(QColor(theme.syntax.get(kind, theme.text)))
                at = QRectF(left + start * wide, area.top(), (end - start) * wide + 2, area.height())
                if kind:
                    painter.fillRect(at.adjusted(0, 3, -2, -3), painter.brush())
                painter.drawText(at, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, line[start:end])
            painter.setClipping(False)
        painter.end()
