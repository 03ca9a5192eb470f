"""The edited source of a kernel file: its differences from the file, its colors, and its problems."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from PyQt6.QtCore import pyqtSignal
from PyQt6.QtGui import (
    QColor,
    QTextBlock,
    QTextBlockFormat,
    QTextCharFormat,
    QTextCursor,
    QTextDocument,
    QTextLayout,
)
from PyQt6.QtWidgets import QPlainTextDocumentLayout

from gpu.base.errors import Diagnostic, InputError
from gpu.base.paths import KERNELS
from gpu.files.file_access import replace_file
from gpu.messages.programs import SCRIPT_SUFFIX
from gpu.messages.verdicts import Remedy
from gui.editor.colors import Span, find_lines_within_comments, split_into_spans
from gui.editor.script_colors import Segments, find_string_segments, split_script_into_spans
from gui.painting.theme import Look, look
from gui.qt.timers import create_single_shot_timer

SETTLE_MS = 80
"""How long a source must be unchanged before it is checked."""
_LINES_PER_STEP = 4
"""Lines colored in advance per idle step."""


@dataclass(frozen=True)
class Problem:
    """A diagnostic and its current position: the cursor moves with the text."""

    diagnostic: Diagnostic
    cursor: QTextCursor

    @property
    def line(self) -> int:
        """The line, from 1."""
        return self.cursor.block().blockNumber() + 1


class KernelDocument(QTextDocument):
    """The source of a kernel file, which may differ from the file. All views of the file share the document.

    Parameters
    ----------
    file : str
        A name under `kernels/`, or a path.
    text : str or None
        Its text; None reads the file.
    """

    settled = pyqtSignal()
    """The text has changed, and has been unchanged for a while."""
    edited_changed = pyqtSignal(bool)
    problems_changed = pyqtSignal()

    def __init__(self, file: str, text: str | None = None) -> None:
        super().__init__()
        self.file = file
        self.path = KERNELS / file
        self.problems: tuple[Problem, ...] = ()
        self._compiler_problems: tuple[Problem, ...] = ()
        self._run_problems: tuple[Problem, ...] = ()
        self.remedy: Remedy | None = None
        """An edit that fixes the problems of this text's run."""
        self._checked_text: str | None = None
        self._edited = False
        self._text: str | None = None
        self._comment_lines: frozenset[int] | None = None
        self._string_segments: Mapping[int, Segments] = {}
        self._next_line_to_color = 0
        self._next_line_look: Look | None = None
        self._colored_look: Look | None = None
        """The look in which all lines are colored, if any."""
        self.setDocumentLayout(QPlainTextDocumentLayout(self))
        self.original = _read_text(self.path) if text is None else text
        self.saved = self.original
        self._load(self.original)
        self._settle_timer = create_single_shot_timer(SETTLE_MS, self._settle, self)
        self.contentsChange.connect(self._on_change)

    @property
    def text(self) -> str:
        """The current text."""
        if self._text is None:
            self._text = self.toPlainText()
        return self._text

    @property
    def edited(self) -> bool:
        """Whether the text differs from the file."""
        return self.text != self.original

    @property
    def unsaved(self) -> bool:
        """Whether the text would be lost if the window closed."""
        return self.text not in (self.original, self.saved)

    @property
    def is_own(self) -> bool:
        """Whether the file is a user's, as opposed to one under `kernels/`."""
        return Path(self.file).is_absolute()

    @property
    def is_script(self) -> bool:
        """Whether the file is a PyCUDA script."""
        return self.file.endswith(SCRIPT_SUFFIX)

    @property
    def checked(self) -> bool:
        """Whether the problems belong to the current text."""
        return self._checked_text == self.text

    @property
    def has_no_errors(self) -> bool:
        """Whether there are no errors."""
        return all(problem.diagnostic.severity != "error" for problem in self.problems)

    def save(self, target: Path) -> str:
        """Write the text to a file; return the reason for a failure as a sentence, or ""."""
        try:
            with replace_file(target.resolve()) as file:  # write to a link's target, not over the link
                file.write(self.text.encode())
        except InputError as error:
            return error.message
        self.saved = self.text
        if target == self.path:
            self.original = self.text
            self._report_edited()
        return ""

    def replace(self, text: str, *, saved: bool = False) -> None:
        """Replace the whole text, which can be undone; `saved` means that the text is stored in some file.

        The common beginning and end are not touched, so that cursors there keep their positions.
        """
        if saved:
            self.saved = text
        before = self.text
        begins = _common_prefix(before, text)
        ends = _common_prefix(before[begins:][::-1], text[begins:][::-1])
        cursor = QTextCursor(self)
        cursor.setPosition(_count_utf16_units(before[:begins]))
        cursor.setPosition(_count_utf16_units(before[: len(before) - ends]), QTextCursor.MoveMode.KeepAnchor)
        cursor.insertText(text[begins : len(text) - ends])
        self._settle()

    def apply_remedy(self) -> int | None:
        """Apply the remedy, which can be undone; return its line, or None if there is no remedy."""
        remedy = self.remedy
        if remedy is None:
            return None
        QTextCursor(self.findBlockByNumber(remedy.line - 1)).insertText(f"{remedy.text}\n")
        self._settle()
        return remedy.line

    def show_diagnostics(self, text: str, diagnostics: Sequence[Diagnostic]) -> None:
        """Show the compiler's diagnostics of `text`, unless the text has changed since."""
        if text != self.text:
            return
        self._checked_text = text
        self._compiler_problems = tuple(Problem(diagnostic, self._cursor(diagnostic)) for diagnostic in diagnostics)
        self._merge_problems()

    def show_run(self, text: str, diagnostics: Sequence[Diagnostic], remedy: Remedy | None = None) -> None:
        """Show the diagnostics of a run of `text`, and the remedy; none if the run succeeded."""
        # Diagnostics that an edit made obsolete stay until the text is checked; a run of that text replaces them early.
        obsolete = any(problem not in self._compiler_problems for problem in self.problems)
        if text == self.text and (diagnostics or self._run_problems or obsolete):
            self.remedy = remedy
            if remedy is not None:
                diagnostics = [replace(each, message=remedy.adapt_advice(each.message)) for each in diagnostics]
            self._run_problems = tuple(Problem(diagnostic, self._cursor(diagnostic)) for diagnostic in diagnostics)
            self._merge_problems()

    def is_found_by_run(self, problem: Problem) -> bool:
        """Return whether a problem was found by a run, not by the compiler."""
        return problem in self._run_problems

    def _merge_problems(self) -> None:
        """Merge the problems of the compiler and the run; on a line with a compiler error, the run's are dropped.

        A compiler warning hides only the run's warnings on its line, not its errors.
        """
        lines = {problem.line for problem in self._compiler_problems}
        error_lines = {problem.line for problem in self._compiler_problems if problem.diagnostic.severity == "error"}
        run_problems = (
            problem
            for problem in self._run_problems
            if problem.line not in (error_lines if problem.diagnostic.severity == "error" else lines)
        )
        problems = (*self._compiler_problems, *run_problems)
        self.problems = tuple(sorted(problems, key=lambda problem: problem.cursor.selectionStart()))
        self.problems_changed.emit()

    def color(self, first: QTextBlock, last: int) -> None:
        """Color the lines from a block to the block with number `last`, unless they are up to date."""
        if self._colored_look == look():
            return
        # From here on lines get another look, so the previous one no longer applies to all of them.
        self._colored_look = None
        if self._comment_lines is None:
            self._comment_lines = frozenset() if self.is_script else find_lines_within_comments(self.text)
            self._string_segments = find_string_segments(self.text) if self.is_script else {}
        block = first
        while block.isValid() and block.blockNumber() <= last:
            commented = block.blockNumber() in self._comment_lines
            segments = self._string_segments.get(block.blockNumber(), ())
            state = hash((block.text(), commented, segments, look())) & 0x7FFFFFFF
            if block.userState() != state:
                block.setUserState(state)
                if self.is_script:
                    self._color(block, split_script_into_spans(block.text(), segments))
                else:
                    self._color(block, split_into_spans(block.text(), within_comment=commented))
            block = block.next()

    def color_more(self) -> bool:
        """Color the next few lines in advance; return whether all lines are colored."""
        if self._next_line_look != look():
            self._next_line_to_color, self._next_line_look = 0, look()
        block = self.findBlockByNumber(self._next_line_to_color)
        for _ in range(_LINES_PER_STEP):
            if not block.isValid():
                break
            self._next_line_to_color = block.blockNumber() + 1
            self.color(block, block.blockNumber())
            block = block.next()
        if not block.isValid():
            self._colored_look = self._next_line_look
        return not block.isValid()

    def _color(self, block: QTextBlock, parts: Sequence[Span]) -> None:
        has_wide = not block.text().isascii()
        ranges = []
        for start, end, kind in parts:
            part = QTextLayout.FormatRange()
            part.format = _get_text_format(look(), kind)
            # Qt counts UTF-16 units.
            part.start = _count_utf16_units(block.text()[:start]) if has_wide else start
            part.length = _count_utf16_units(block.text()[start:end]) if has_wide else end - start
            ranges.append(part)
        layout = block.layout()
        assert layout is not None
        layout.setFormats(ranges)
        self.markContentsDirty(block.position(), block.length())

    def _load(self, text: str) -> None:
        self.setUndoRedoEnabled(False)
        self.setPlainText(text)
        spacing = QTextBlockFormat()
        spacing.setLineHeight(125, QTextBlockFormat.LineHeightTypes.ProportionalHeight.value)  # type: ignore[arg-type]
        cursor = QTextCursor(self)
        cursor.select(QTextCursor.SelectionType.Document)
        cursor.setBlockFormat(spacing)
        self.setUndoRedoEnabled(True)
        self.setModified(False)

    def _on_change(self, position: int, removed: int, added: int) -> None:
        if not removed and not added:
            return
        self._text = self._comment_lines = self._colored_look = self._next_line_look = None
        self._run_problems = ()
        self.remedy = None
        self._settle_timer.start()
        if not self._edited:
            self._report_edited()

    def _settle(self) -> None:
        self._settle_timer.stop()
        self._report_edited()
        self.settled.emit()

    def _report_edited(self) -> None:
        if self._edited != self.edited:
            self._edited = self.edited
            self.edited_changed.emit(self._edited)

    def _cursor(self, diagnostic: Diagnostic) -> QTextCursor:
        block = self.findBlockByNumber(min(diagnostic.line, self.blockCount()) - 1)
        text = block.text()
        cursor = QTextCursor(block)
        cursor.setPosition(block.position() + _count_utf16_units(text[: diagnostic.column - 1]))
        cursor.setPosition(
            block.position() + _count_utf16_units(text[: diagnostic.end - 1]), QTextCursor.MoveMode.KeepAnchor
        )
        return cursor


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        return f"// Cannot read {path.name}: {error.strerror}\n"


def _common_prefix(first: str, second: str) -> int:
    """Return the length of the common prefix of two texts."""
    pairs = enumerate(zip(first, second, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(first), len(second)))


def _count_utf16_units(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


_formats: dict[tuple[Look, str], QTextCharFormat] = {}


def _get_text_format(current: Look, kind: str) -> QTextCharFormat:
    if (current, kind) not in _formats:
        text_format = QTextCharFormat()
        text_format.setForeground(QColor(current.theme.syntax[kind]))
        _formats[current, kind] = text_format
    return _formats[current, kind]
