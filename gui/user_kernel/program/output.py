"""The output of a program, shown while it runs."""

from __future__ import annotations

import re

from PyQt6.QtGui import QTextCursor
from PyQt6.QtWidgets import QPlainTextEdit

from gui.widgets.basic import set_role

MAX_LINES = 10_000
"""Number of lines kept: the newest."""
_MAX_LINE_LENGTH = 4000
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
"""Escape sequences, such as those for colors in a terminal."""


class OutputPane(QPlainTextEdit):
    """A text pane that follows the end of the output, unless the user has scrolled up."""

    def __init__(self) -> None:
        super().__init__()
        set_role(self, "code")
        self.setReadOnly(True)
        self.setUndoRedoEnabled(False)
        self.setAccessibleName("Output of the program")
        self.setTabChangesFocus(True)
        self.setMaximumBlockCount(MAX_LINES)
        self.setPlaceholderText("Run the program (F5): its output is shown here.")

    def append_output(self, text: str) -> None:
        """Append text; a carriage return restarts its line, as in a terminal."""
        bar = self.verticalScrollBar()
        assert bar is not None
        at_end = bar.value() >= bar.maximum() - 1
        lines = _ESCAPES.sub("", text).replace("\r\n", "\n").split("\n")
        cursor = QTextCursor(self.document())
        cursor.movePosition(QTextCursor.MoveOperation.End)
        if "\r" in lines[0]:
            cursor.movePosition(QTextCursor.MoveOperation.StartOfBlock, QTextCursor.MoveMode.KeepAnchor)
        # Qt needs as long for one very long line as for many lines.
        cursor.insertText("\n".join(line.rstrip("\r").rpartition("\r")[2][-_MAX_LINE_LENGTH:] for line in lines))
        if at_end:
            bar.setValue(bar.maximum())
