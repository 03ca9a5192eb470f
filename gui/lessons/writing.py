"""Where a task is written: its kernel's text, or lines of it that are put into order."""

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
    """The text of the task that is open.

    Parameters
    ----------
    check : callable
        Finds what is wrong with a text, as of KernelSources.
    """

    changed = pyqtSignal()
    """What is written is another."""

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
        self.mix = button("Shuffle", "flat", tip="Begin anew, with the lines in another order")
        self.order = Card("Put these lines into order")
        self.order.head.addStretch(1)
        self.order.head.addWidget(self.mix)
        self.order.body.addWidget(self.lines)
        self.task: TaskOutline | None = None
        whole = QVBoxLayout(self)
        whole.setContentsMargins(0, 0, 0, 0)
        whole.setSpacing(8)
        whole.addWidget(self.order)
        whole.addWidget(self.source, 1)
        whole.addWidget(self.assembled, 1)
        self.lines.changed.connect(self._assemble)
        self.mix.clicked.connect(self.shuffle)
        self.source.left.connect(self.setFocus)

    def open(self, task: TaskOutline, written: str) -> None:
        """Show a task as it was left, or as it begins where nothing was written."""
        self.task = task
        ordered = task.frame is not None
        self.order.setVisible(ordered)
        self.assembled.setVisible(ordered)
        self.source.setVisible(not ordered)
        if ordered:
            kept = tuple(written.split("\n")) if written else ()
            sound = sorted(kept) == sorted(task.pieces)
            self.lines.open(kept if sound else task.pieces)
            self._show_assembled()
            return
        self.texts.take({task.file: task.start})
        self.source.show_kernel(task.file, "")
        if written:
            self.source.document.replace(written)
        self.source.document.contentsChanged.connect(self.changed)
        self._to_gap()

    def _to_gap(self) -> None:
        """Put the cursor where something is to be written."""
        found = next((n for n, line in enumerate(self._text.split("\n"), 1) if "// Write here" in line), 0)
        if found:
            self.source.code.go_to_line(found)

    @property
    def shown(self) -> SourcePane:
        """The pane of the text: that which is edited, or that which the lines make."""
        return self.assembled if self.task is not None and self.task.frame is not None else self.source

    @property
    def _text(self) -> str:
        return self.source.document.text

    @property
    def text(self) -> str:
        """Return the whole kernel file as it is written."""
        if self.task is not None and self.task.frame is not None:
            return self.task.frame.filled(self.lines.lines)
        return self._text

    @property
    def written(self) -> str:
        """Return what is to be kept of it: the text, or the lines in their order."""
        if self.task is not None and self.task.frame is not None:
            return "\n".join(self.lines.lines) if self.lines.lines != self.task.pieces else ""
        return self._text

    def begin_anew(self) -> None:
        """Go back to what the task begins with; of a text that can be undone."""
        if self.task is None:
            return
        if self.task.frame is not None:
            self.lines.open(self.task.pieces)
            self._assemble()
        else:
            self.source.document.replace(self.task.start)

    def shuffle(self) -> None:
        """Put the lines into another order, by chance."""
        lines = list(self.lines.lines)
        random.shuffle(lines)
        self.lines.open(tuple(lines))
        self._assemble()

    def show_judgment(self, judgment: Judgment, text: str) -> None:
        """Show at its lines what was found in a text, where that is the text still."""
        if self.task is None or text != self.text:
            return
        self.shown.sources.show_run(self.task.file, {self.task.file: text}, judgment.check.diagnostics)
        if judgment.check.diagnostics:
            self.shown.next_problem()

    def focus_first(self) -> None:
        """Let keys write."""
        (self.lines if self.task is not None and self.task.frame is not None else self.source.code).setFocus()

    def _assemble(self) -> None:
        self._show_assembled()
        self.changed.emit()

    def _show_assembled(self) -> None:
        """Show the kernel as the lines make it."""
        assert self.task is not None
        self._assembled.take({self.task.file: self.text})
        self.assembled.show_kernel(self.task.file, "")
