"""The kernel file on the right: highlighted, and scrolled to the kernel that runs."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path
from typing import Any

from PyQt6.QtCore import QRect, QSize, Qt
from PyQt6.QtGui import QColor, QFontMetricsF, QPainter, QTextBlockFormat, QTextCharFormat, QTextCursor
from PyQt6.QtWidgets import QPlainTextEdit, QTextEdit, QWidget

from gpu.engines.base import KERNELS
from gui.theme import DARK, Look, look
from gui.widgets import Badge, Card, role


def kernel_lines(text: str, kernel: str) -> tuple[int, int]:
    """Return the first and last line of a kernel with the comment above it, counted from 0; (0, 0) when not there."""
    found = re.search(rf"^[^\n/]*__global__[^;{{]*?\b{re.escape(kernel)}\s*\([^;{{]*\{{", text, re.MULTILINE)
    if not found:
        return 0, 0
    lines = text.split("\n")
    start = text.count("\n", 0, found.start())
    first = start
    while first > 0 and lines[first - 1].lstrip().startswith(("//", "template", "extern")):
        first -= 1
    depth, last = 0, start
    for last in range(start, len(lines)):
        code = lines[last].split("//")[0]
        depth += code.count("{") - code.count("}")
        if depth <= 0 and "}" in code:
            break
    return first, last


class _LineNumbers(QWidget):
    """The column of line numbers, which the text's own widget paints."""

    def __init__(self, code: CodeView) -> None:
        super().__init__(code)
        self._code = code

    def sizeHint(self) -> QSize:
        return QSize(self._code.number_width(), 0)

    def paintEvent(self, event: Any) -> None:
        self._code.paint_numbers(self, event.rect())


class CodeView(QPlainTextEdit):
    """Text of a kernel file, read-only."""

    def __init__(self) -> None:
        super().__init__()
        role(self, "code")
        self.setReadOnly(True)
        self.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        self.setAccessibleName("Kernel source")
        self.setTabChangesFocus(True)
        self.kernel = ""
        self._text = ""
        self._range = (0, 0)
        self._styled: tuple[Look, str] | None = None
        self._numbers = _LineNumbers(self)
        self.updateRequest.connect(self._scroll_numbers)

    def show_source(self, text: str, kernel: str) -> None:
        """Show a file with one of its kernels at the top."""
        if text != self._text:
            self._text = text
            self.setPlainText(text)
            tokens(text)  # found now, so that showing the page for the first time takes less time
        self.kernel = kernel
        self._range = kernel_lines(text, kernel)
        if self.isVisible():
            self._restyle()
        self._mark()
        self._to_kernel()

    def _to_kernel(self) -> None:
        bar = self.verticalScrollBar()
        if bar is not None:
            bar.setValue(max(0, self._range[0] - 1))

    def number_width(self) -> int:
        """Return how wide the column of line numbers is."""
        digits = len(str(max(99, self.blockCount())))
        return round(QFontMetricsF(self.font()).horizontalAdvance("9") * digits) + look().px(22)

    def paint_numbers(self, column: QWidget, area: QRect) -> None:
        """Paint the visible line numbers, those of the kernel brighter and with a bar in the accent colour."""
        theme = look().theme
        painter = QPainter(column)
        painter.fillRect(area, QColor(theme.surface))
        painter.setFont(self.font())
        block = self.firstVisibleBlock()
        first, last = self._range
        while block.isValid():
            place = self.blockBoundingGeometry(block).translated(self.contentOffset())
            if place.top() > area.bottom():
                break
            inside = last > 0 and first <= block.blockNumber() <= last
            if inside:
                painter.fillRect(0, int(place.top()), 3, int(place.height()) + 1, QColor(theme.accent))
            painter.setPen(QColor(theme.muted if inside else theme.faint))
            line = QRect(0, int(place.top()), column.width() - look().px(10), int(place.height()))
            painter.drawText(line, Qt.AlignmentFlag.AlignRight, str(block.blockNumber() + 1))
            block = block.next()
        painter.end()

    def _scroll_numbers(self, area: QRect, moved: int) -> None:
        if moved:
            self._numbers.scroll(0, moved)
        else:
            self._numbers.update(0, area.y(), self._numbers.width(), area.height())

    def resizeEvent(self, event: Any) -> None:
        super().resizeEvent(event)
        self._numbers.setGeometry(0, 0, self.number_width(), self.height())

    def showEvent(self, event: Any) -> None:
        super().showEvent(event)
        self._restyle()
        self._to_kernel()

    def changeEvent(self, event: Any) -> None:
        super().changeEvent(event)
        if event.type() == event.Type.StyleChange and self.isVisible():
            self._restyle()

    def _restyle(self) -> None:
        """Colour the text, unless that is done: a style sheet announces itself several times, to hidden pages too."""
        if self._styled == (look(), self._text):
            return
        self._styled = (look(), self._text)
        self.setViewportMargins(self.number_width(), 0, 0, 0)
        self._numbers.setGeometry(0, 0, self.number_width(), self.height())
        self._highlight()
        self._mark()

    def _mark(self) -> None:
        """Dim what does not run: the kernel that does stands out on a ground of its own."""
        first, last = self._range
        selections = []
        if last > 0:
            ground = QColor(look().theme.raised)
            for number in range(first, last + 1):
                selection = QTextEdit.ExtraSelection()
                selection.format.setBackground(ground)
                selection.format.setProperty(QTextCharFormat.Property.FullWidthSelection, True)
                document = self.document()
                assert document is not None
                selection.cursor = QTextCursor(document.findBlockByNumber(number))
                selections.append(selection)
        self.setExtraSelections(selections)
        self._numbers.update()

    def _highlight(self) -> None:
        """Colour the whole text at once: kernel files are small, and they do not change under the eye."""
        text = self._text
        theme = look().theme
        cursor = QTextCursor(self.document())
        cursor.beginEditBlock()
        cursor.select(QTextCursor.SelectionType.Document)
        plain = QTextCharFormat()
        plain.setForeground(QColor(theme.text))
        cursor.setCharFormat(plain)
        spacing = QTextBlockFormat()
        spacing.setLineHeight(125, QTextBlockFormat.LineHeightTypes.ProportionalHeight.value)
        cursor.setBlockFormat(spacing)
        styles: dict[str, QTextCharFormat] = {}
        for start, end, kind in tokens(text):
            if kind not in styles:
                styles[kind] = QTextCharFormat()
                styles[kind].setForeground(QColor(theme.syntax[kind]))
            cursor.setPosition(start)
            cursor.setPosition(end, QTextCursor.MoveMode.KeepAnchor)
            cursor.setCharFormat(styles[kind])
        cursor.endEditBlock()


_BUILT_IN = frozenset(("threadIdx", "blockIdx", "blockDim", "gridDim", "warpSize"))


@lru_cache(maxsize=16)
def tokens(text: str) -> tuple[tuple[int, int, str], ...]:
    """Return what is coloured in a text: start, end, and the entry of `Theme.syntax` that has the colour."""
    from pygments.lexers.c_like import CudaLexer

    found = []
    for start, token, value in CudaLexer().get_tokens_unprocessed(text):
        end = start + len(value)
        kind = _kind(str(token).removeprefix("Token."), value, called=text[end : end + 1] == "(")
        if kind:
            found.append((start, end, kind))
    return tuple(found)


def _kind(token: str, value: str, *, called: bool) -> str:
    if value in _BUILT_IN or value.startswith(("atomic", "__sync", "__shfl", "__ballot")):
        return "Name.Builtin"
    if called and token == "Name":
        return "Name.Function"
    while token and token not in DARK.syntax:
        token = token.rpartition(".")[0]
    return token


class SourcePane(Card):
    """A card with a kernel file, its name, and the kernel that runs."""

    def __init__(self) -> None:
        super().__init__("Kernel", margins=(1, 10, 1, 8))
        self.head.setContentsMargins(12, 0, 12, 0)
        self.kernel = Badge()
        self.head.addStretch(1)
        self.head.addWidget(self.kernel)
        self.code = CodeView()
        self.body.addWidget(self.code)
        self.setMinimumWidth(look().px(220))

    def show_kernel(self, file: str, kernel: str) -> None:
        """Show `kernels/<file>` at one of its kernels."""
        path = Path(KERNELS, file)
        try:
            text = path.read_text(encoding="utf-8")
        except OSError as error:
            text = f"// {path.name} cannot be read: {error.strerror}\n"
        self.title.setText(file)
        self.kernel.say(kernel, "neutral", f"The __global__ function that runs: {kernel}")
        self.code.show_source(text, kernel)
