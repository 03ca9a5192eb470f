"""The text of a kernel with its line numbers: what runs stands out, what is wrong is underlined."""

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
from gui.editor.kernel_lines import kernel_lines
from gui.editor.typing import closing_brace, indented_line, indented_selection
from gui.painting.colors import mixed
from gui.painting.lettering import Lettering
from gui.painting.theme import code_font, look
from gui.qt.events import is_of
from gui.widgets.basic import role


class _Gutter(QWidget):
    """The column of line numbers, which the text's own widget paints."""

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
            self._code.left.emit()
            self._code.line_clicked.emit(line)

    def event(self, event: QEvent | None) -> bool:
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip:
            self._code.show_tip(event.globalPos(), self._code.line_at(event.pos()))
            return True
        return super().event(event)


class CodeEdit(QPlainTextEdit):
    """A kernel file that can be edited.

    Tab and Shift+Tab indent what is selected, and a line that Return has just begun; else they go to the next widget,
    or the one before, as Ctrl+Tab and Ctrl+Shift+Tab always do.
    """

    line_clicked = pyqtSignal(int)
    """A line, from 1, whose number or text was clicked."""
    save_wanted = pyqtSignal()
    entered = pyqtSignal()
    """The keyboard's focus has come here."""
    left = pyqtSignal()
    """The keyboard is wanted elsewhere: by Escape, or by a click on the number of a line."""

    def __init__(self) -> None:
        super().__init__()
        role(self, "code")
        self.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.setAccessibleName("Kernel source")
        self.setAccessibleDescription("Escape leaves the text, Ctrl+Tab goes on to the next widget")
        self.kernel = ""
        self._marked: int | None = None
        self._lit: frozenset[int] = frozenset()
        self._faint: frozenset[int] = frozenset()
        self._markers: Mapping[int, str] = {}
        self._costs: Mapping[int, tuple[str, str]] = {}
        self._range = (0, 0)
        self._grounds: list[tuple[QTextCursor, QTextCursor, str]] = []
        self._pressed: QPoint | None = None
        self._begun: QTextBlock | None = None
        """The line that Return has begun."""
        self._placed = False
        """Whether the kernel has been brought into view; what is not seen has no lines in view."""
        self._changing = False
        self._numbers: Lettering | None = None
        self._gutter = _Gutter(self)
        self.updateRequest.connect(self._scroll_gutter)
        self.blockCountChanged.connect(self._place_gutter)
        self.textChanged.connect(self._color)
        self.cursorPositionChanged.connect(self._gutter.update)
        bar = self.verticalScrollBar()
        assert bar is not None
        bar.valueChanged.connect(self._color)

    # --- what is shown

    def show_document(self, document: KernelDocument, kernel: str, line: int | None = None) -> None:
        """Show a file with one of its kernels at the top; `line` is that which runs, which is brought into view."""
        self._changing = True
        if document is not self.document():
            old = self.document()
            if isinstance(old, KernelDocument):
                old.settled.disconnect(self._find_kernel)
                old.problems_changed.disconnect(self._mark)
            self.setDocument(document)
            # Qt gives a document its editor's font only when that font changes; a new one lays all text out again.
            if document.defaultFont() != self.font():
                document.setDefaultFont(self.font())
            document.settled.connect(self._find_kernel)
            document.problems_changed.connect(self._mark)
            self._place_gutter()
        self.kernel, self._marked = kernel, line
        self._find_kernel()
        self._to_kernel()
        self._changing = False
        self._color()

    @property
    def kernel_document(self) -> KernelDocument:
        """Return the document that is shown."""
        document = self.document()
        assert isinstance(document, KernelDocument), "no kernel is shown yet"
        return document

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Return what is wrong with the text, line after line."""
        document = self.document()
        return document.problems if isinstance(document, KernelDocument) else ()

    def mark_line(self, line: int | None) -> None:
        """Mark a line, from 1, as the one that runs now, and bring it into view; None marks none."""
        if line != self._marked:
            before, self._marked = self._marked, line
            self._lay_grounds()
            for each in (before, line):
                self._update_line(each)
        if line is not None:
            self._bring_into_view(line)

    def light_lines(self, lit: frozenset[int], faint: frozenset[int], first: int | None = None) -> None:
        """Light several lines, from 1, and some faintly; `first`, or the first that is lit, is brought into view."""
        before, now = (self._lit, self._faint), (lit, faint)
        if before != now:
            self._lit, self._faint = now
            self._lay_grounds()
            for line in (before[0] ^ lit) | (before[1] ^ faint):
                self._update_line(line)
        if first is not None:
            self._bring_into_view(first)
        elif lit and not any(self._is_in_view(line) for line in lit):
            self._bring_into_view(min(lit))

    def set_markers(self, markers: Mapping[int, str]) -> None:
        """Mark lines, from 1, with a dot beside their number and a tool tip."""
        self._markers = dict(markers)
        self._gutter.update()

    def show_costs(self, costs: Mapping[int, tuple[str, str]]) -> None:
        """Show in a column of its own what lines, from 1, became: a few digits, and what a tool tip says of them."""
        if costs != self._costs:
            self._costs = dict(costs)
            self._place_gutter()
            self._gutter.update()

    def go_to(self, problem: Problem) -> None:
        """Put the cursor where a problem begins."""
        cursor = self.textCursor()
        cursor.setPosition(problem.cursor.selectionStart())
        self.setTextCursor(cursor)
        self.centerCursor()
        self.setFocus()

    def go_to_line(self, line: int) -> None:
        """Put the cursor where a line, from 1, begins, and bring it into view."""
        document = self.document()
        assert document is not None
        block = document.findBlockByNumber(line - 1)
        if block.isValid():
            self.setTextCursor(QTextCursor(block))
            self._bring_into_view(line)

    def _bring_into_view(self, line: int) -> None:
        first, bar = self.firstVisibleBlock().blockNumber(), self.verticalScrollBar()
        if bar is not None and (top := self._top_for(line, first)) != first:
            bar.setValue(top)

    def _is_in_view(self, line: int) -> bool:
        top = self.firstVisibleBlock().blockNumber()
        return self._top_for(line, top) == top

    def _top_for(self, line: int, top: int) -> int:
        """Return which line, from 0, to have at the top so that `line`, from 1, is seen: `top` if that will do."""
        seen = self._lines_in_view()
        return top if top < line <= top + max(seen - 1, 1) else max(0, line - 1 - seen // 3)

    def _lines_in_view(self) -> int:
        height = self.blockBoundingRect(self.firstVisibleBlock()).height()
        viewport = self.viewport()
        return int(viewport.height() / height) if viewport is not None and height > 0 else 1

    def _to_kernel(self) -> None:
        """Bring the kernel into view, and the line that runs; when it is seen first, if it is not seen yet."""
        self._placed = self.isVisible()
        top, bar = max(0, self._range[0] - 1), self.verticalScrollBar()
        if bar is not None:
            bar.setValue(top if self._marked is None else self._top_for(self._marked, top))

    def _find_kernel(self) -> None:
        self._range = kernel_lines(self.kernel_document.text, self.kernel)
        self._mark()

    def _mark(self) -> None:
        """Let the kernel that runs stand out on a ground of its own, then the line that runs, then what is wrong."""
        self._lay_grounds()
        selections = []
        for problem in reversed(self.problems):
            selection = QTextEdit.ExtraSelection()
            selection.cursor = problem.cursor
            selection.format.setUnderlineStyle(QTextCharFormat.UnderlineStyle.WaveUnderline)
            selection.format.setUnderlineColor(QColor(_color_of(problem)))
            selections.append(selection)
        if selections or self.extraSelections():
            self.setExtraSelections(selections)
        self._gutter.update()
        if (viewport := self.viewport()) is not None:
            viewport.update()

    def _lay_grounds(self) -> None:
        """Put grounds where lines stand out; the cursors move with the text when it is edited."""
        first, last = self._range
        lines = [(first, last, look().theme.raised)] if last > 0 else []
        theme = look().theme
        lines += [(line - 1, line - 1, mixed(theme.accent_soft, theme.raised, 0.45).name()) for line in self._faint]
        marked = self._lit if self._marked is None else self._lit | {self._marked}
        lines += [(line - 1, line - 1, theme.accent_soft) for line in marked]
        document = self.document()
        assert document is not None
        self._grounds = [
            (QTextCursor(document.findBlockByNumber(first)), QTextCursor(document.findBlockByNumber(last)), color)
            for first, last, color in lines
        ]

    def paintEvent(self, event: QPaintEvent | None) -> None:
        # Not as selections of the text, one a line: those are laid out and painted much more slowly.
        painter = QPainter(self.viewport())
        document = self.document()
        left = self.contentOffset().x() + (document.documentMargin() if document is not None else 0)
        lines = [(block.blockNumber(), place) for block, place in self._visible_lines()]
        for first, last, color in self._grounds:
            here = [place for number, place in lines if first.blockNumber() <= number <= last.blockNumber()]
            if here:
                top, bottom = here[0].top(), here[-1].top() + here[-1].height()
                painter.fillRect(QRectF(left, top, self.width(), bottom - top), QColor(color))
        painter.end()
        super().paintEvent(event)

    def _update_line(self, line: int | None) -> None:
        """Let one line and its number be painted anew."""
        document, viewport = self.document(), self.viewport()
        if line is not None and document is not None and viewport is not None:
            block = document.findBlockByNumber(line - 1)
            place = self.blockBoundingGeometry(block).translated(self.contentOffset())
            top, height = int(place.top()) - 1, int(place.height()) + 3
            self._gutter.update(0, top, self._gutter.width(), height)
            viewport.update(0, top, viewport.width(), height)

    def _color(self) -> None:
        """Color what is in view."""
        document = self.document()
        if isinstance(document, KernelDocument) and self.isVisible() and not self._changing:
            first = self.firstVisibleBlock()
            document.color(first, first.blockNumber() + self._lines_in_view() + 1)

    # --- line numbers

    def number_width(self) -> int:
        """Return how wide the column of line numbers is."""
        digits = len(str(max(99, self.blockCount())))
        return round(QFontMetricsF(self.font()).horizontalAdvance("9") * digits) + look().px(22) + self._cost_width()

    def _cost_width(self) -> int:
        """Return how wide the column of what lines became is; 0 where there is none."""
        digits = max((len(text) for text, _ in self._costs.values()), default=0)
        return round(QFontMetricsF(self.font()).horizontalAdvance("9") * digits) + look().px(12) if digits else 0

    def line_at(self, place: QPoint) -> int:
        """Return the line, from 1, at a height; 0 where there is none."""
        for block, area in self._visible_lines():
            if area.top() <= place.y() < area.bottom() + 1:
                return block.blockNumber() + 1
        return 0

    def show_tip(self, place: QPoint, line: int) -> None:
        """Show what is wrong with a line, and what its marker says."""
        said = [problem.diagnostic.message for problem in self.problems if problem.line == line]
        if line in self._markers:
            said.append(self._markers[line])
        if line in self._costs:
            said.append(self._costs[line][1])
        QToolTip.showText(place, "\n".join(said), self)

    def paint_numbers(self, column: QWidget, wanted: QRegion) -> None:
        """Paint the visible line numbers: those of the kernel brighter, with a bar; what is wrong in its color."""
        theme, area = look().theme, wanted.boundingRect()
        painter = QPainter(column)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.fillRect(area, QColor(theme.surface))
        if self._numbers is None or self._numbers.font != self.font():
            self._numbers = Lettering(self.font())
        painter.setFont(self._numbers.font)
        first, last = self._range
        # Of a line with both, the error's color is seen.
        worst_last = sorted(self.problems, key=lambda problem: problem.diagnostic.severity == "error")
        wrong = {problem.line: _color_of(problem) for problem in worst_last}
        here = self.textCursor().blockNumber() if self.hasFocus() else -1
        radius, costs = look().px(3), self._cost_width()
        for block, place in self._visible_lines():
            if place.top() > area.bottom():
                break
            if not wanted.intersects(QRect(0, place.top(), column.width(), place.height() + 2)):
                continue
            number = block.blockNumber()
            inside = last > 0 and first <= number <= last
            marked = number + 1 == self._marked or number + 1 in self._lit
            if marked:
                painter.fillRect(0, place.top(), column.width(), place.height(), QColor(theme.accent_soft))
            if inside or marked:
                painter.fillRect(0, place.top(), 3, place.height() + 1, QColor(theme.accent))
            dot = wrong.get(number + 1) or (theme.bad if number + 1 in self._markers else "")
            if dot:
                painter.setPen(Qt.PenStyle.NoPen)
                painter.setBrush(QColor(dot))
                painter.drawEllipse(QPoint(look().px(8), place.center().y()), radius, radius)
            bright = marked or number == here
            painter.setPen(QColor(dot or (theme.text if bright else theme.muted if inside else theme.faint)))
            line = QRectF(place.adjusted(0, 0, column.width() - look().px(8), 0))
            self._numbers.right(painter, line, str(number + 1))
            if number + 1 in self._costs:
                painter.setPen(QColor(theme.accent))
                beside = QRectF(place.adjusted(0, 0, look().px(6) + costs, 0))
                self._numbers.right(painter, beside, self._costs[number + 1][0])
        painter.end()

    def _visible_lines(self) -> Iterator[tuple[QTextBlock, QRect]]:
        block, bottom = self.firstVisibleBlock(), self.height()
        # The place of a line is asked for once: Qt finds one by adding up the heights of all lines above it in view.
        top = self.blockBoundingGeometry(block).top() + self.contentOffset().y()
        while block.isValid() and top <= bottom:
            height = self.blockBoundingRect(block).height()
            yield block, QRect(0, int(top), 0, int(height))
            top += height
            block = block.next()

    def _scroll_gutter(self, area: QRect, moved: int) -> None:
        if moved:
            self._gutter.scroll(0, moved)
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
        override = is_of(event, QEvent.Type.ShortcutOverride)
        if override and isinstance(event, QKeyEvent) and event.matches(QKeySequence.StandardKey.Save):
            # Here Ctrl+S saves the text, elsewhere the result.
            event.accept()
            return True
        return super().event(event)

    def viewportEvent(self, event: QEvent | None) -> bool:
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip:
            at = self.cursorForPosition(event.pos()).position()
            said = [
                problem.diagnostic.message
                for problem in self.problems
                if problem.cursor.selectionStart() <= at <= problem.cursor.selectionEnd()
            ]
            QToolTip.showText(event.globalPos(), "\n".join(said), self)
            return True
        return super().viewportEvent(event)

    def sizeHint(self) -> QSize:
        """Ask for no more height than it needs: it takes what is left, and nothing beside it is squeezed for it."""
        return QSize(super().sizeHint().width(), self.minimumSizeHint().height())

    def keyPressEvent(self, event: QKeyEvent | None) -> None:
        assert event is not None
        shift = bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
        control = bool(event.modifiers() & Qt.KeyboardModifier.ControlModifier)
        if event.matches(QKeySequence.StandardKey.Save):
            self.save_wanted.emit()
        elif event.key() in (Qt.Key.Key_Tab, Qt.Key.Key_Backtab):
            back = shift or event.key() == Qt.Key.Key_Backtab
            if control or not self._indents:
                # Qt's own text keeps the focus where Tab could be typed.
                QWidget.focusNextPrevChild(self, not back)
            else:
                self._edit(lambda cursor: indented_selection(cursor, back=back))
        elif event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and not control:
            self._edit(indented_line)
            self._begun = self.textCursor().block()
        elif event.text() == "}":
            self._edit(closing_brace)
        else:
            super().keyPressEvent(event)

    @property
    def _indents(self) -> bool:
        """Whether Tab indents here."""
        cursor = self.textCursor()
        before = cursor.block().text()[: cursor.positionInBlock()]
        return cursor.hasSelection() or (cursor.block() == self._begun and not before.strip())

    def leave(self) -> None:
        """Let the keyboard be for what stands beside the text."""
        self.left.emit()

    def _edit(self, change: Callable[[QTextCursor], None]) -> None:
        cursor = self.textCursor()
        change(cursor)
        self.setTextCursor(cursor)

    def focusInEvent(self, event: QFocusEvent | None) -> None:
        super().focusInEvent(event)
        self._begun = None
        self.entered.emit()

    def mousePressEvent(self, event: QMouseEvent | None) -> None:
        assert event is not None
        super().mousePressEvent(event)
        self._pressed = event.pos() if event.button() == Qt.MouseButton.LeftButton else None

    def mouseReleaseEvent(self, event: QMouseEvent | None) -> None:
        assert event is not None
        super().mouseReleaseEvent(event)
        if self._pressed is not None and (event.pos() - self._pressed).manhattanLength() < 4:
            block = self.cursorForPosition(event.pos()).block()
            self.line_clicked.emit(block.blockNumber() + 1)
        self._pressed = None

    # --- looks

    def resizeEvent(self, event: QResizeEvent | None) -> None:
        at = self.cursorRect()
        hides = event is not None and event.size().height() < at.bottom() <= event.oldSize().height()
        super().resizeEvent(event)
        if hides:  # what is told below a text must not hide the line that it is told of
            self._bring_into_view(self.textCursor().blockNumber() + 1)
        self._place_gutter()
        self._color()

    def showEvent(self, event: QShowEvent | None) -> None:
        super().showEvent(event)
        self._restyle()
        if not self._placed:
            self._to_kernel()

    def changeEvent(self, event: QEvent | None) -> None:
        super().changeEvent(event)
        if is_of(event, QEvent.Type.StyleChange) and self.isVisible():
            self._restyle()

    def _restyle(self) -> None:
        if (document := self.document()) is not None:
            document.setDefaultFont(self.font())
        self.setTabStopDistance(4 * QFontMetricsF(code_font(look().small_px)).horizontalAdvance(" "))
        self._place_gutter()
        self._color()
        self._mark()


def _color_of(problem: Problem) -> str:
    theme = look().theme
    return theme.bad if problem.diagnostic.severity == "error" else theme.warn
