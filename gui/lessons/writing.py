"""The editor of a task: a kernel's source, or lines of it to put into order."""

from __future__ import annotations

import random

from PyQt6.QtCore import pyqtSignal
from PyQt6.QtWidgets import QVBoxLayout, QWidget

from gpu.messages.judgments import Judgment
from gpu.messages.lessons import TaskOutline
from gui.editor.source_pane import SourcePane
from gui.editor.sources import Check
from gui.lessons.line_order import LineOrder
from gui.lessons.texts import LessonTexts
from gui.widgets.basic import Card, button


class WritingView(QWidget):
    """The submission for the current task.

    Parameters
    ----------
    check : callable
        Checks a source, as in `KernelSources`.
    """

    changed = pyqtSignal()
    """The submission has changed."""

    def __init__(self, check: Check) -> None:
        super().__init__()
        self.setAccessibleName("Write")
        self.texts, self._assembled = LessonTexts(check), LessonTexts()
        for each in (self.texts, self._assembled):
            each.setParent(self)
        self.source = SourcePane(self.texts)
        self.assembled = SourcePane(self._assembled)
        self.assembled.save.hide()
        self.lines = LineOrder()
        self.mix = button("Shuffle", "flat", tip="Put the lines into a random order")
        self.order = Card("Put these lines into order")
        self.order.head.addStretch(1)
        self.order.head.addWidget(self.mix)
        self.order.body.addWidget(self.lines)
        self.task: TaskOutline | None = None
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(8)
        layout.addWidget(self.order)
        layout.addWidget(self.source, 1)
        layout.addWidget(self.assembled, 1)
        self.lines.changed.connect(self._assemble)
        self.mix.clicked.connect(self.shuffle)
        self.source.left.connect(self.setFocus)

    def open(self, task: TaskOutline, written: str) -> None:
        """Show a task with its saved submission, or with its original text."""
        self.task = task
        ordered = task.frame is not None
        self.order.setVisible(ordered)
        self.assembled.setVisible(ordered)
        self.source.setVisible(not ordered)
        if ordered:
            lines = tuple(written.split("\n")) if written else ()
            is_valid = sorted(lines) == sorted(task.pieces)
            self.lines.open(lines if is_valid else task.pieces)
            self._show_assembled()
            return
        self.texts.take({task.file: task.start})
        self.source.show_kernel(task.file, "")
        if written:
            self.source.document.replace(written)
        self.source.document.contentsChanged.connect(self.changed)
        self._to_gap()

    def _to_gap(self) -> None:
        """Move the cursor to the gap to fill."""
        gap = next((n for n, line in enumerate(self._text.split("\n"), 1) if "// Write here" in line), 0)
        if gap:
            self.source.code.go_to_line(gap)

    @property
    def shown(self) -> SourcePane:
        """The visible source pane: the editable source, or the source assembled from the lines."""
        return self.assembled if self.task is not None and self.task.frame is not None else self.source

    @property
    def _text(self) -> str:
        return self.source.document.text

    @property
    def text(self) -> str:
        """The whole kernel file."""
        if self.task is not None and self.task.frame is not None:
            return self.task.frame.filled(self.lines.lines)
        return self._text

    @property
    def written(self) -> str:
        """The part to save: the source, or the lines in their order ("" if unchanged)."""
        if self.task is not None and self.task.frame is not None:
            return "\n".join(self.lines.lines) if self.lines.lines != self.task.pieces else ""
        return self._text

    def begin_anew(self) -> None:
        """Restore the task's original text; for a source, this can be undone."""
        if self.task is None:
            return
        if self.task.frame is not None:
            self.lines.open(self.task.pieces)
            self._assemble()
        else:
            self.source.document.replace(self.task.start)

    def shuffle(self) -> None:
        """Put the lines into a random order."""
        lines = list(self.lines.lines)
        random.shuffle(lines)
        self.lines.open(tuple(lines))
        self._assemble()

    def show_judgment(self, judgment: Judgment, text: str) -> None:
        """Show the findings at their lines, if the submission has not changed since."""
        if self.task is None or text != self.text:
            return
        self.shown.sources.show_run(self.task.file, {self.task.file: text}, judgment.check.diagnostics)
        if judgment.check.diagnostics:
            self.shown.next_problem()

    def focus_first(self) -> None:
        """Give the editor the keyboard focus."""
        (self.lines if self.task is not None and self.task.frame is not None else self.source.code).setFocus()

    def _assemble(self) -> None:
        self._show_assembled()
        self.changed.emit()

    def _show_assembled(self) -> None:
        """Show the kernel assembled from the lines."""
        assert self.task is not None
        self._assembled.take({self.task.file: self.text})
        self.assembled.show_kernel(self.task.file, "")
