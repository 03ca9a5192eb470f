"""Texts below a lecture's picture: the lines of code around the current one, and one sentence."""

from __future__ import annotations

from collections.abc import Sequence

from PyQt6.QtCore import QPointF, QRectF, QSize, Qt
from PyQt6.QtGui import QColor, QFont, QFontMetricsF, QPainter, QPaintEvent
from PyQt6.QtWidgets import QSizePolicy, QWidget

from gui.editor.colors import find_lines_within_comments, split_into_spans
from gui.painting.colors import mix_colors
from gui.painting.theme import code_font, look, text_families

_LINES = 3
_MIN_SCALE = 0.6
"""Minimum scale of a sentence, or of the current line, before its end is cut."""
_NUMBER_COLUMNS = 5
"""Characters of a line's number and the gap to the line."""


class CodeLines(QWidget):
    """The current line of code and its neighbors."""

    def __init__(self) -> None:
        super().__init__()
        self.setAccessibleName("Current lines")
        self.setMouseTracking(True)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.lines: tuple[str, ...] = ()
        self._text: str | None = None
        self._comment_lines: frozenset[int] = frozenset()
        self.current_line = 0

    def show_line(self, text: str, line: int) -> None:
        """Show the lines of a text around `line`, counted from 1; 0 shows none."""
        if text != self._text:
            self._text, self.lines, self._comment_lines = (
                text,
                tuple(text.split("\n")),
                find_lines_within_comments(text),
            )
        self.current_line = line
        self.setAccessibleDescription(self.lines[line - 1].strip() if 0 < line <= len(self.lines) else "")
        self.update()

    @property
    def visible_lines(self) -> range:
        """Return the numbers of the visible lines, counted from 1."""
        if not self.lines or not self.current_line:
            return range(0)
        first = min(max(self.current_line - _LINES // 2, 1), max(len(self.lines) - _LINES + 1, 1))
        return range(first, min(first + _LINES, len(self.lines) + 1))

    def sizeHint(self) -> QSize:
        return QSize(300, round(_LINES * self._line_height) + look().px(6))

    @property
    def _line_height(self) -> float:
        return look().text_px * 1.5

    def _box(self, index: int) -> QRectF:
        return QRectF(0, look().px(3) + index * self._line_height, self.width(), self._line_height)

    def box_at(self, point: QPointF) -> QRectF | None:
        """Return the box of the line under a point, or None."""
        line = int((point.y() - look().px(3)) // self._line_height)
        return self._box(line).adjusted(3, 1, -3, -1) if 0 <= line < len(self.visible_lines) else None

    def paintEvent(self, event: QPaintEvent | None) -> None:
        painter, theme = QPainter(self), look().theme
        painter.fillRect(self.rect(), QColor(theme.surface))
        visible_texts = [self.lines[number - 1] for number in self.visible_lines]
        indent = min((_indent(text) for text in visible_texts if text.strip()), default=0)
        font = self.choose_font(indent)
        painter.setFont(font)
        advance = QFontMetricsF(font).horizontalAdvance("0")
        left = look().px(14) + _NUMBER_COLUMNS * advance
        for index, number in enumerate(self.visible_lines):
            box = self._box(index)
            if number == self.current_line:
                painter.fillRect(box, mix_colors(theme.accent, theme.surface, 0.18))
                painter.fillRect(QRectF(0, box.top(), 4, box.height()), QColor(theme.accent))
            painter.setPen(QColor(theme.text if number == self.current_line else theme.faint))
            number_box = QRectF(0, box.top(), left - advance, box.height())
            painter.drawText(number_box, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, str(number))
            painter.setOpacity(1.0 if number == self.current_line else 0.75)
            line = self.lines[number - 1].replace("\t", "    ")
            for start, end, color in self._colored_parts(line, number):
                if end > indent:
                    start = max(start, indent)
                    painter.setPen(QColor(color))
                    at = QRectF(left + (start - indent) * advance, box.top(), self.width(), box.height())
                    painter.drawText(at, Qt.AlignmentFlag.AlignVCenter, line[start:end])
            painter.setOpacity(1.0)
        painter.end()

    def choose_font(self, indent: int) -> QFont:
        """Return the largest font in which the current line fits without its first `indent` columns."""
        line = self.lines[self.current_line - 1].rstrip() if self.visible_lines else ""
        columns = _NUMBER_COLUMNS + len(line.replace("\t", "    ")) - indent
        px = look().text_px
        while px > round(_MIN_SCALE * look().text_px) and (
            2 * look().px(14) + columns * QFontMetricsF(code_font(px)).horizontalAdvance("0") > self.width()
        ):
            px -= 1
        return code_font(px)

    def _colored_parts(self, line: str, number: int) -> Sequence[tuple[int, int, str]]:
        """Return consecutive parts of a line as (start, end, color)."""
        theme, pieces, end_before = look().theme, [], 0
        for start, end, kind in split_into_spans(line, within_comment=number - 1 in self._comment_lines):
            pieces += [(end_before, start, theme.text), (start, end, theme.syntax.get(kind, theme.text))]
            end_before = end
        return [each for each in (*pieces, (end_before, len(line), theme.text)) if each[0] < each[1]]


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


class Sentence(QWidget):
    """One line about the last step: the phase, and the action of a thread."""

    def __init__(self) -> None:
        super().__init__()
        self.setAccessibleName("Current step")
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.phase = self.text = self.hint = ""

    def show_sentence(self, phase: str, text: str, hint: str = "") -> None:
        """Show a phase, "" for none, and a sentence; a hint is shown at the right if it fits."""
        if (phase, text, hint) != (self.phase, self.text, self.hint):
            self.phase, self.text, self.hint = phase, text, hint
            self.setAccessibleDescription(f"{phase}: {text}" if phase else text)
            self.update()

    def sizeHint(self) -> QSize:
        return QSize(300, round(2 * self._font_size))

    @property
    def _font_size(self) -> float:
        return look().text_px * 1.25

    def paintEvent(self, event: QPaintEvent | None) -> None:
        painter, theme, side = QPainter(self), look().theme, look().px(14)
        painter.fillRect(self.rect(), QColor(theme.raised))
        font = QFont()
        font.setFamilies(list(text_families()))
        bold = QFont(font)
        bold.setBold(True)
        px = self._font_size
        while True:
            for each in (font, bold):
                each.setPixelSize(round(px))
            gap = px if self.phase else 0.0
            phase = QFontMetricsF(bold).horizontalAdvance(self.phase)
            words = QFontMetricsF(font).horizontalAdvance(self.text)
            if px <= _MIN_SCALE * self._font_size or 2 * side + phase + gap + words <= self.width():
                break
            px -= 1
        box = QRectF(side, 0, self.width() - 2 * side, self.height())
        left = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
        painter.setFont(bold)
        painter.setPen(QColor(theme.accent))
        painter.drawText(box, left, self.phase)
        painter.setFont(font)
        painter.setPen(QColor(theme.text))
        box.setLeft(box.left() + phase + gap)
        painter.drawText(box, left, QFontMetricsF(font).elidedText(self.text, Qt.TextElideMode.ElideRight, box.width()))
        if self.hint:
            font.setPixelSize(look().small_px)
            painter.setFont(font)
            if words + 2 * gap + QFontMetricsF(font).horizontalAdvance(self.hint) < box.width():
                painter.setPen(QColor(theme.muted))
                painter.drawText(box, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, self.hint)
        painter.end()
