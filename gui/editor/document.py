"""A kernel file's text as it is edited: what it was, its colors, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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

from gpu.engines.base import KERNELS
from gpu.errors import Diagnostic, InputError
from gpu.files.opening import replacing
from gpu.messages.programs import SCRIPT
from gpu.messages.verdicts import Remedy
from gui.editor.colors import Span, lines_within_comments, spans
from gui.editor.script_colors import Segments, script_spans, segments_of
from gui.painting.theme import Look, look
from gui.qt.later import after

SETTLE_MS = 80
"""How long a text rests before it is checked."""
_AT_ONCE = 4
"""Lines that are colored ahead of need before something else may come."""


@dataclass(frozen=True)
class Problem:
    """A diagnostic and where it is now: the cursor moves with the text."""

    diagnostic: Diagnostic
    cursor: QTextCursor

    @property
    def line(self) -> int:
        """Return its line, from 1."""
        return self.cursor.block().blockNumber() + 1


class KernelDocument(QTextDocument):
    """The text of a kernel file, which may differ from the file. Every view of the file shows the same document.

    Parameters
    ----------
    file : str
        A name under `kernels/`, or a path.
    text : str or None
        Its text; None reads the file.
    """

    settled = pyqtSignal()
    """The text has changed, and rests."""
    edited_changed = pyqtSignal(bool)
    problems_changed = pyqtSignal()

    def __init__(self, file: str, text: str | None = None) -> None:
        super().__init__()
        self.file = file
        self.path = KERNELS / file
        self.problems: tuple[Problem, ...] = ()
        self._found: tuple[Problem, ...] = ()
        self._of_run: tuple[Problem, ...] = ()
        self.remedy: Remedy | None = None
        """An edit that mends what a run of this text met with."""
        self._checked: str | None = None
        self._edited = False
        self._text: str | None = None
        self._commented: frozenset[int] | None = None
        self._strings: Mapping[int, Segments] = {}
        self._ahead = 0
        self._ahead_in: Look | None = None
        self._colored: Look | None = None
        """The look for which all lines have been colored."""
        self.setDocumentLayout(QPlainTextDocumentLayout(self))
        self.original = _read(self.path) if text is None else text
        self.saved = self.original
        self._load(self.original)
        self._rest = after(SETTLE_MS, self._settle, self)
        self.contentsChange.connect(self._take_change)

    @property
    def text(self) -> str:
        """Return the text."""
        if self._text is None:
            self._text = self.toPlainText()
        return self._text

    @property
    def edited(self) -> bool:
        """Whether the text differs from the file's."""
        return self.text != self.original

    @property
    def unsaved(self) -> bool:
        """Whether the text would be lost with the window."""
        return self.text not in (self.original, self.saved)

    @property
    def is_own(self) -> bool:
        """Whether it is a file of the user's, not one under `kernels/`."""
        return Path(self.file).is_absolute()

    @property
    def is_script(self) -> bool:
        """Whether it is a PyCUDA script."""
        return self.file.endswith(SCRIPT)

    @property
    def checked(self) -> bool:
        """Whether the problems are those of the text as it is."""
        return self._checked == self.text

    @property
    def sound(self) -> bool:
        """Whether no problem is an error."""
        return all(problem.diagnostic.severity != "error" for problem in self.problems)

    def save(self, target: Path) -> str:
        """Write the text to a file; return in a sentence why that failed, or ""."""
        try:
            with replacing(target.resolve()) as file:  # what a link leads to: the text is edited, not the link
                file.write(self.text.encode())
        except InputError as error:
            return error.message
        self.saved = self.text
        if target == self.path:
            self.original = self.text
            self._tell_edited()
        return ""

    def replace(self, text: str, *, saved: bool = False) -> None:
        """Put another text in the place of all; it can be undone. `saved` says that it is some file's.

        What both texts begin and end with stays as it is, and with it cursors that stand there.
        """
        if saved:
            self.saved = text
        before = self.text
        begins = _alike(before, text)
        ends = _alike(before[begins:][::-1], text[begins:][::-1])
        cursor = QTextCursor(self)
        cursor.setPosition(_units(before[:begins]))
        cursor.setPosition(_units(before[: len(before) - ends]), QTextCursor.MoveMode.KeepAnchor)
        cursor.insertText(text[begins : len(text) - ends])
        self._settle()

    def mend(self) -> int | None:
        """Make the edit that is offered, which can be undone; return its line, or None where none is offered."""
        remedy = self.remedy
        if remedy is None:
            return None
        QTextCursor(self.findBlockByNumber(remedy.line - 1)).insertText(f"{remedy.text}\n")
        self._settle()
        return remedy.line

    def show_diagnostics(self, text: str, found: Sequence[Diagnostic]) -> None:
        """Take what was found in `text`; where the text is another by now, what is found in that will come."""
        if text != self.text:
            return
        self._checked = text
        self._found = tuple(Problem(each, self._cursor(each)) for each in found)
        self._gather()

    def show_run(self, text: str, found: Sequence[Diagnostic], remedy: Remedy | None = None) -> None:
        """Take what a run of `text` met with, and what mends that: nothing, where it went well."""
        # What an edit has made void is seen until the text is checked: a run of that text knows before.
        void = any(problem not in self._found for problem in self.problems)
        if text == self.text and (found or self._of_run or void):
            self.remedy = remedy
            self._of_run = tuple(Problem(each, self._cursor(each)) for each in found)
            self._gather()

    def _gather(self) -> None:
        """Put what was found together; of a line that the compiler complains of, a run has nothing new to say.

        What the compiler only warns of is no reason to keep a mistake back.
        """
        lines = {problem.line for problem in self._found}
        wrong = {problem.line for problem in self._found if problem.diagnostic.severity == "error"}
        new = (
            problem
            for problem in self._of_run
            if problem.line not in (wrong if problem.diagnostic.severity == "error" else lines)
        )
        both = (*self._found, *new)
        self.problems = tuple(sorted(both, key=lambda problem: problem.cursor.selectionStart()))
        self.problems_changed.emit()

    def color(self, first: QTextBlock, last: int) -> None:
        """Color the lines from a block to the block of a number, those that are not yet colored as they should be."""
        if self._colored == look():
            return
        # Lines take another look from here on: all of them have that of before no more.
        self._colored = None
        if self._commented is None:
            self._commented = frozenset() if self.is_script else lines_within_comments(self.text)
            self._strings = segments_of(self.text) if self.is_script else {}
        block = first
        while block.isValid() and block.blockNumber() <= last:
            commented = block.blockNumber() in self._commented
            segments = self._strings.get(block.blockNumber(), ())
            state = hash((block.text(), commented, segments, look())) & 0x7FFFFFFF
            if block.userState() != state:
                block.setUserState(state)
                if self.is_script:
                    self._color(block, script_spans(block.text(), segments))
                else:
                    self._color(block, spans(block.text(), within_comment=commented))
            block = block.next()

    def color_more(self) -> bool:
        """Color the next few lines that no one has colored; return whether there are no more."""
        if self._ahead_in != look():
            self._ahead, self._ahead_in = 0, look()
        block = self.findBlockByNumber(self._ahead)
        for _ in range(_AT_ONCE):
            if not block.isValid():
                break
            self._ahead = block.blockNumber() + 1
            self.color(block, block.blockNumber())
            block = block.next()
        if not block.isValid():
            self._colored = self._ahead_in
        return not block.isValid()

    def _color(self, block: QTextBlock, found: Sequence[Span]) -> None:
        wide = not block.text().isascii()
        ranges = []
        for start, end, kind in found:
            made = QTextLayout.FormatRange()
            made.format = _format(look(), kind)
            # Qt counts UTF-16 units.
            made.start = _units(block.text()[:start]) if wide else start
            made.length = _units(block.text()[start:end]) if wide else end - start
            ranges.append(made)
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

    def _take_change(self, position: int, removed: int, added: int) -> None:
        if not removed and not added:
            return
        self._text = self._commented = self._colored = self._ahead_in = None
        self._of_run = ()
        self.remedy = None
        self._rest.start()
        if not self._edited:
            self._tell_edited()

    def _settle(self) -> None:
        self._rest.stop()
        self._tell_edited()
        self.settled.emit()

    def _tell_edited(self) -> None:
        if self._edited != self.edited:
            self._edited = self.edited
            self.edited_changed.emit(self._edited)

    def _cursor(self, found: Diagnostic) -> QTextCursor:
        block = self.findBlockByNumber(min(found.line, self.blockCount()) - 1)
        text = block.text()
        cursor = QTextCursor(block)
        cursor.setPosition(block.position() + _units(text[: found.column - 1]))
        cursor.setPosition(block.position() + _units(text[: found.end - 1]), QTextCursor.MoveMode.KeepAnchor)
        return cursor


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        return f"// {path.name} cannot be read: {error.strerror}\n"


def _alike(one: str, other: str) -> int:
    """Return how many characters two texts begin with that are the same."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (here, there) in pairs if here != there), min(len(one), len(other)))


def _units(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


_formats: dict[tuple[Look, str], QTextCharFormat] = {}


def _format(now: Look, kind: str) -> QTextCharFormat:
    if (now, kind) not in _formats:
        made = QTextCharFormat()
        made.setForeground(QColor(now.theme.syntax[kind]))
        _formats[now, kind] = made
    return _formats[now, kind]
