"""The editor of a kernel file: line numbers, highlighted lines, underlined problems."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from PyQt6.QtCore import QEvent, QPoint, QRect, QRectF, QSize, Qt, pyqtSignal
from PyQt6.QtGui import (
    QColor,
    QFocusEvent,
    QFontMetricsF,
    QHelpEvent,
    QKeyEvent,
    QKeySequence,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QRegion,
    QResizeEvent,
    QShowEvent,
    QTextBlock,
    QTextCharFormat,
    QTextCursor,
)
from PyQt6.QtWidgets import QPlainTextEdit, QTextEdit, QToolTip, QWidget

from gui.editor.document import KernelDocument, Problem
from gui.editor.indentation import indent_selection, insert_closing_brace, insert_line_break
from gui.editor.kernel_lines import find_kernel_lines
from gui.painting.colors import mix_colors
from gui.painting.lettering import Lettering
from gui.painting.theme import code_font, look
from gui.qt.events import is_event_type
from gui.widgets.basic import set_role, wrap_tip


class _Gutter(QWidget):
    """The column of line numbers, painted by the editor."""

    def __init__(self, code: CodeEdit) -> None:
        super().__init__(code)
        self._code = code
        self.setAccessibleName("Line numbers")

    def sizeHint(self) -> QSize:
        return QSize(self._code.number_width(), 0)

    def paintEvent(self, event: QPaintEvent | None) -> None:
        assert event is not None
        self._code.paint_numbers(self, event.region())

    def mousePressEvent(self, event: QMouseEvent | None) -> None:
        assert event is not None
        if event.button() == Qt.MouseButton.LeftButton and (line := self._code.line_at(event.pos())):
            self._code.exited.emit()
            self._code.line_clicked.emit(line)

    def event(self, event: QEvent | None) -> bool:
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip:
            self._code.show_tip(event.globalPos(), self._code.line_at(event.pos()))
            return True
        return super().event(event)


class CodeEdit(QPlainTextEdit):
    """An editor for a kernel file.

    Tab and Shift+Tab indent a selection or a line that Return has just started. Otherwise they move the focus, as
    Ctrl+Tab and Ctrl+Shift+Tab always do.
    """

    line_clicked = pyqtSignal(int)
    """A line number (from 1) that was clicked, or a line with a clicked text."""
    save_requested = pyqtSignal()
    entered = pyqtSignal()
    """The editor has received the keyboard focus."""
    exited = pyqtSignal()
    """The user leaves the editor with Escape or a click on a line number."""

    def __init__(self) -> None:
        super().__init__()
        set_role(self, "code")
        self.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.setAccessibleName("Kernel source")
        self.setAccessibleDescription("Escape leaves the code, Ctrl+Tab moves to the next widget")
        self.kernel = ""
        self._executing_line: int | None = None
        self._highlighted_lines: frozenset[int] = frozenset()
        self._faint_lines: frozenset[int] = frozenset()
        self._markers: Mapping[int, str] = {}
        self._costs: Mapping[int, tuple[str, str]] = {}
        self._kernel_range = (0, 0)
        self._backgrounds: list[tuple[QTextCursor, QTextCursor, str]] = []
        self._press_position: QPoint | None = None
        self._new_line: QTextBlock | None = None
        """The line that Return has started."""
        self._kernel_in_view = False
        """Whether the kernel has been scrolled into view; a hidden editor has no visible lines."""
        self._changing = False
        self._number_lettering: Lettering | None = None
        self._gutter = _Gutter(self)
        self.updateRequest.connect(self._scroll_gutter)
        self.blockCountChanged.connect(self._place_gutter)
        self.textChanged.connect(self._color_visible_lines)
        self.cursorPositionChanged.connect(self._gutter.update)
        bar = self.verticalScrollBar()
        assert bar is not None
        bar.valueChanged.connect(self._color_visible_lines)

    # --- contents

    def show_document(self, document: KernelDocument, kernel: str, line: int | None = None) -> None:
        """Show a file with one of its kernels at the top; `line`, the executing line, is scrolled into view."""
        self._changing = True
        if document is not self.document():
            old = self.document()
            if isinstance(old, KernelDocument):
                old.settled.disconnect(self._find_kernel)
                old.problems_changed.disconnect(self._show_problems)
            self.setDocument(document)
            # Qt sets a document's font only when the editor's font changes; setting it again lays out all text again.
            if document.defaultFont() != self.font():
                document.setDefaultFont(self.font())
            document.settled.connect(self._find_kernel)
            document.problems_changed.connect(self._show_problems)
            self._place_gutter()
        self.kernel, self._executing_line = kernel, line
        self._find_kernel()
        self._scroll_to_kernel()
        self._changing = False
        self._color_visible_lines()

    @property
    def kernel_document(self) -> KernelDocument:
        """The current document."""
        document = self.document()
        assert isinstance(document, KernelDocument), "no kernel is shown yet"
        return document

    @property
    def problems(self) -> tuple[Problem, ...]:
        """The problems of the source, in the order of lines."""
        document = self.document()
        return document.problems if isinstance(document, KernelDocument) else ()

    def mark_line(self, line: int | None) -> None:
        """Mark a line (from 1) as executing and scroll it into view; None removes the mark."""
        if line != self._executing_line:
            before, self._executing_line = self._executing_line, line
            self._set_backgrounds()
            for each in (before, line):
                self._update_line(each)
        if line is not None:
            self._scroll_line_into_view(line)

    def highlight_lines(self, highlighted: frozenset[int], faint: frozenset[int], first: int | None = None) -> None:
        """Highlight lines (from 1), some faintly; scroll `first`, or the first highlighted line, into view."""
        before, after = (self._highlighted_lines, self._faint_lines), (highlighted, faint)
        if before != after:
            self._highlighted_lines, self._faint_lines = after
            self._set_backgrounds()
            for line in (before[0] ^ highlighted) | (before[1] ^ faint):
                self._update_line(line)
        if first is not None:
            self._scroll_line_into_view(first)
        elif highlighted and not any(self._is_in_view(line) for line in highlighted):
            self._scroll_line_into_view(min(highlighted))

    def set_markers(self, markers: Mapping[int, str]) -> None:
        """Mark lines (from 1) with a dot next to their number, and a tooltip."""
        self._markers = dict(markers)
        self._gutter.update()

    def show_costs(self, costs: Mapping[int, tuple[str, str]]) -> None:
        """Show short texts with tooltips in a separate column next to lines (from 1)."""
        if costs != self._costs:
            self._costs = dict(costs)
            self._place_gutter()
            self._gutter.update()

    def go_to_problem(self, problem: Problem) -> None:
        """Move the cursor to the start of a problem."""
        cursor = self.textCursor()
        cursor.setPosition(problem.cursor.selectionStart())
        self.setTextCursor(cursor)
        self.centerCursor()
        self.setFocus()

    def go_to_line(self, line: int) -> None:
        """Move the cursor to the start of a line (from 1), and scroll it into view."""
        document = self.document()
        assert document is not None
        block = document.findBlockByNumber(line - 1)
        if block.isValid():
            self.setTextCursor(QTextCursor(block))
            self._scroll_line_into_view(line)

    def _scroll_line_into_view(self, line: int) -> None:
        first, bar = self.firstVisibleBlock().blockNumber(), self.verticalScrollBar()
        if bar is not None and (top := self._find_top_line(line, first)) != first:
            bar.setValue(top)

    def _is_in_view(self, line: int) -> bool:
        top = self.firstVisibleBlock().blockNumber()
        return self._find_top_line(line, top) == top

    def _find_top_line(self, line: int, top: int) -> int:
        """Return the top line (from 0) for which `line` (from 1) is visible, `top` if possible."""
        visible = self._count_visible_lines()
        return top if top < line <= top + max(visible - 1, 1) else max(0, line - 1 - visible // 3)

    def _count_visible_lines(self) -> int:
        height = self.blockBoundingRect(self.firstVisibleBlock()).height()
        viewport = self.viewport()
        return int(viewport.height() / height) if viewport is not None and height > 0 else 1

    def _scroll_to_kernel(self) -> None:
        """Scroll to the kernel and the executing line; a hidden editor does so when it is shown."""
        self._kernel_in_view = self.isVisible()
        top, bar = max(0, self._kernel_range[0] - 1), self.verticalScrollBar()
        if bar is not None:
            bar.setValue(top if self._executing_line is None else self._find_top_line(self._executing_line, top))

    def _find_kernel(self) -> None:
        self._kernel_range = find_kernel_lines(self.kernel_document.text, self.kernel)
        self._show_problems()

    def _show_problems(self) -> None:
        """Update the backgrounds and the underlined problems."""
        self._set_backgrounds()
        selections = []
        for problem in reversed(self.problems):
            selection = QTextEdit.ExtraSelection()
            selection.cursor = problem.cursor
            selection.format.setUnderlineStyle(QTextCharFormat.UnderlineStyle.WaveUnderline)
            selection.format.setUnderlineColor(QColor(_problem_color(problem)))
            selections.append(selection)
        if selections or self.extraSelections():
            self.setExtraSelections(selections)
        self._gutter.update()
        if (viewport := self.viewport()) is not None:
            viewport.update()

    def _set_backgrounds(self) -> None:
        """Set the backgrounds of the kernel and of highlighted lines; cursors keep their positions while editing."""
        first, last = self._kernel_range
        lines = [(first, last, look().theme.raised)] if last > 0 else []
        theme = look().theme
        lines += [
            (line - 1, line - 1, mix_colors(theme.accent_soft, theme.raised, 0.45).name()) for line in self._faint_lines
        ]
        marked = (
            self._highlighted_lines
            if self._executing_line is None
            else self._highlighted_lines | {self._executing_line}
        )
        lines += [(line - 1, line - 1, theme.accent_soft) for line in marked]
        document = self.document()
        assert document is not None
        self._backgrounds = [
            (QTextCursor(document.findBlockByNumber(first)), QTextCursor(document.findBlockByNumber(last)), color)
            for first, last, color in lines
        ]

    def paintEvent(self, event: QPaintEvent | None) -> None:
        # Not as extra selections per line, which Qt lays out and paints much more slowly.
        painter = QPainter(self.viewport())
        document = self.document()
        left = self.contentOffset().x() + (document.documentMargin() if document is not None else 0)
        lines = [(block.blockNumber(), rect) for block, rect in self._visible_lines()]
        for first, last, color in self._backgrounds:
            rectangles = [rect for number, rect in lines if first.blockNumber() <= number <= last.blockNumber()]
            if rectangles:
                top, bottom = rectangles[0].top(), rectangles[-1].top() + rectangles[-1].height()
                painter.fillRect(QRectF(left, top, self.width(), bottom - top), QColor(color))
        painter.end()
        super().paintEvent(event)

    def _update_line(self, line: int | None) -> None:
        """Repaint a line and its number."""
        document, viewport = self.document(), self.viewport()
        if line is not None and document is not None and viewport is not None:
            block = document.findBlockByNumber(line - 1)
            block_rect = self.blockBoundingGeometry(block).translated(self.contentOffset())
            top, height = int(block_rect.top()) - 1, int(block_rect.height()) + 3
            self._gutter.update(0, top, self._gutter.width(), height)
            viewport.update(0, top, viewport.width(), height)

    def _color_visible_lines(self) -> None:
        document = self.document()
        if isinstance(document, KernelDocument) and self.isVisible() and not self._changing:
            first = self.firstVisibleBlock()
            document.color(first, first.blockNumber() + self._count_visible_lines() + 1)

    # --- line numbers

    def number_width(self) -> int:
        """Return the width of the line-number column."""
        digits = len(str(max(99, self.blockCount())))
        return round(QFontMetricsF(self.font()).horizontalAdvance("9") * digits) + look().px(22) + self._cost_width()

    def _cost_width(self) -> int:
        """Return the width of the column of short texts; 0 if there are none."""
        digits = max((len(text) for text, _ in self._costs.values()), default=0)
        return round(QFontMetricsF(self.font()).horizontalAdvance("9") * digits) + look().px(12) if digits else 0

    def line_at(self, place: QPoint) -> int:
        """Return the line (from 1) at a vertical position, or 0."""
        for block, area in self._visible_lines():
            if area.top() <= place.y() < area.bottom() + 1:
                return block.blockNumber() + 1
        return 0

    def show_tip(self, place: QPoint, line: int) -> None:
        """Show the problems of a line and the tooltip of its marker."""
        texts = [problem.diagnostic.message for problem in self.problems if problem.line == line]
        if line in self._markers:
            texts.append(self._markers[line])
        if line in self._costs:
            texts.append(self._costs[line][1])
        QToolTip.showText(place, wrap_tip("\n".join(texts)), self)

    def paint_numbers(self, column: QWidget, region: QRegion) -> None:
        """Paint the line numbers of a region: the kernel's are brighter and have a bar, problems are colored."""
        theme, area = look().theme, region.boundingRect()
        painter = QPainter(column)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.fillRect(area, QColor(theme.surface))
        if self._number_lettering is None or self._number_lettering.font != self.font():
            self._number_lettering = Lettering(self.font())
        painter.setFont(self._number_lettering.font)
        first, last = self._kernel_range
        # On a line with a warning and an error, the error's color wins.
        by_severity = sorted(self.problems, key=lambda problem: problem.diagnostic.severity == "error")
        problem_colors = {problem.line: _problem_color(problem) for problem in by_severity}
        cursor_line = self.textCursor().blockNumber() if self.hasFocus() else -1
        radius, costs = look().px(3), self._cost_width()
        for block, rect in self._visible_lines():
            if rect.top() > area.bottom():
                break
            if not region.intersects(QRect(0, rect.top(), column.width(), rect.height() + 2)):
                continue
            number = block.blockNumber()
            inside = last > 0 and first <= number <= last
            marked = number + 1 == self._executing_line or number + 1 in self._highlighted_lines
            if marked:
                painter.fillRect(0, rect.top(), column.width(), rect.height(), QColor(theme.accent_soft))
            if inside or marked:
                painter.fillRect(0, rect.top(), 3, rect.height() + 1, QColor(theme.accent))
            dot = problem_colors.get(number + 1) or (theme.bad if number + 1 in self._markers else "")
            if dot:
                painter.setPen(Qt.PenStyle.NoPen)
                painter.setBrush(QColor(dot))
                painter.drawEllipse(QPoint(look().px(8), rect.center().y()), radius, radius)
            bright = marked or number == cursor_line
            painter.setPen(QColor(dot or (theme.text if bright else theme.muted if inside else theme.faint)))
            line = QRectF(rect.adjusted(0, 0, column.width() - look().px(8), 0))
            self._number_lettering.paint_right(painter, line, str(number + 1))
            if number + 1 in self._costs:
                painter.setPen(QColor(theme.accent))
                cost_area = QRectF(rect.adjusted(0, 0, look().px(6) + costs, 0))
                self._number_lettering.paint_right(painter, cost_area, self._costs[number + 1][0])
        painter.end()

    def _visible_lines(self) -> Iterator[tuple[QTextBlock, QRect]]:
        block, bottom = self.firstVisibleBlock(), self.height()
        # Positions are accumulated here: Qt computes each one by adding up the heights of all lines above it.
        top = self.blockBoundingGeometry(block).top() + self.contentOffset().y()
        while block.isValid() and top <= bottom:
            height = self.blockBoundingRect(block).height()
            yield block, QRect(0, int(top), 0, int(height))
            top += height
            block = block.next()

    def _scroll_gutter(self, area: QRect, dy: int) -> None:
        if dy:
            self._gutter.scroll(0, dy)
        else:
            self._gutter.update(0, area.y(), self._gutter.width(), area.height())

    def _place_gutter(self) -> None:
        wide = self.number_width()
        if self.viewportMargins().left() != wide:
            self.setViewportMargins(wide, 0, 0, 0)
        if self._gutter.size() != QSize(wide, self.height()):
            self._gutter.setGeometry(0, 0, wide, self.height())

    # --- typing

    def event(self, event: QEvent | None) -> bool:
        override = is_event_type(event, QEvent.Type.ShortcutOverride)
        if override and isinstance(event, QKeyEvent) and event.matches(QKeySequence.StandardKey.Save):
            # In the editor Ctrl+S saves the source, elsewhere the result.
            event.accept()
            return True
        return super().event(event)

    def viewportEvent(self, event: QEvent | None) -> bool:
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip:
            at = self.cursorForPosition(event.pos()).position()
            messages = [
                problem.diagnostic.message
                for problem in self.problems
                if problem.cursor.selectionStart() <= at <= problem.cursor.selectionEnd()
            ]
            QToolTip.showText(event.globalPos(), wrap_tip("\n".join(messages)), self)
            return True
        return super().viewportEvent(event)

    def sizeHint(self) -> QSize:
        """Return a minimal height: the editor takes the remaining space and does not squeeze its neighbors."""
        return QSize(super().sizeHint().width(), self.minimumSizeHint().height())

    def keyPressEvent(self, event: QKeyEvent | None) -> None:
        assert event is not None
        shift = bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
        control = bool(event.modifiers() & Qt.KeyboardModifier.ControlModifier)
        if event.matches(QKeySequence.StandardKey.Save):
            self.save_requested.emit()
        elif event.key() in (Qt.Key.Key_Tab, Qt.Key.Key_Backtab):
            back = shift or event.key() == Qt.Key.Key_Backtab
            if control or not self._tab_indents:
                # QPlainTextEdit keeps the focus when Tab could be typed.
                QWidget.focusNextPrevChild(self, not back)
            else:
                self._edit_at_cursor(lambda cursor: indent_selection(cursor, back=back))
        elif event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and not control:
            self._edit_at_cursor(insert_line_break)
            self._new_line = self.textCursor().block()
        elif event.text() == "}":
            self._edit_at_cursor(insert_closing_brace)
        else:
            super().keyPressEvent(event)

    @property
    def _tab_indents(self) -> bool:
        """Whether Tab indents at the cursor."""
        cursor = self.textCursor()
        before = cursor.block().text()[: cursor.positionInBlock()]
        return cursor.hasSelection() or (cursor.block() == self._new_line and not before.strip())

    def exit_editor(self) -> None:
        """Leave the editor."""
        self.exited.emit()

    def _edit_at_cursor(self, change: Callable[[QTextCursor], None]) -> None:
        cursor = self.textCursor()
        change(cursor)
        self.setTextCursor(cursor)

    def focusInEvent(self, event: QFocusEvent | None) -> None:
        super().focusInEvent(event)
        self._new_line = None
        self.entered.emit()

    def mousePressEvent(self, event: QMouseEvent | None) -> None:
        assert event is not None
        super().mousePressEvent(event)
        self._press_position = event.pos() if event.button() == Qt.MouseButton.LeftButton else None

    def mouseReleaseEvent(self, event: QMouseEvent | None) -> None:
        assert event is not None
        super().mouseReleaseEvent(event)
        if self._press_position is not None and (event.pos() - self._press_position).manhattanLength() < 4:
            block = self.cursorForPosition(event.pos()).block()
            self.line_clicked.emit(block.blockNumber() + 1)
        self._press_position = None

    # --- appearance

    def resizeEvent(self, event: QResizeEvent | None) -> None:
        at = self.cursorRect()
        hides = event is not None and event.size().height() < at.bottom() <= event.oldSize().height()
        super().resizeEvent(event)
        if hides:  # a message below the editor must not hide its line
            self._scroll_line_into_view(self.textCursor().blockNumber() + 1)
        self._place_gutter()
        self._color_visible_lines()

    def showEvent(self, event: QShowEvent | None) -> None:
        super().showEvent(event)
        self._restyle()
        if not self._kernel_in_view:
            self._scroll_to_kernel()

    def changeEvent(self, event: QEvent | None) -> None:
        super().changeEvent(event)
        if is_event_type(event, QEvent.Type.StyleChange) and self.isVisible():
            self._restyle()

    def _restyle(self) -> None:
        if (document := self.document()) is not None:
            document.setDefaultFont(self.font())
        self.setTabStopDistance(4 * QFontMetricsF(code_font(look().small_px)).horizontalAdvance(" "))
        self._place_gutter()
        self._color_visible_lines()
        self._show_problems()


def _problem_color(problem: Problem) -> str:
    theme = look().theme
    return theme.bad if problem.diagnostic.severity == "error" else theme.warn
