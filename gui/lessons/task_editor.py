"""The editor of a task: a kernel's source, or lines of it to put in order."""

from __future__ import annotations

import random

from PyQt6.QtCore import pyqtSignal
from PyQt6.QtWidgets import QWidget

from gpu.messages.judgments import Judgment
from gpu.messages.lessons import TaskOutline
from gui.editor.source_pane import SourcePane
from gui.editor.sources import SourceChecker, TextSources
from gui.lessons.line_order import LineOrder
from gui.widgets.basic import Card, button, column


class TaskEditor(QWidget):
    """The submission for the current task.

    Parameters
    ----------
    check : callable
        Checks a source, as in `KernelSources`.
    """

    changed = pyqtSignal()
    """The submission has changed."""

    def __init__(self, check: SourceChecker) -> None:
        super().__init__()
        self.setAccessibleName("Write")
        self.editable_sources, self._assembled_sources = TextSources(check), TextSources()
        for each in (self.editable_sources, self._assembled_sources):
            each.setParent(self)
        self.source = SourcePane(self.editable_sources)
        self.assembled_pane = SourcePane(self._assembled_sources)
        self.assembled_pane.save.hide()
        self.line_order = LineOrder()
        self.shuffle_button = button("Shuffle", "flat", tip="Put the lines into a random order")
        self.order_card = Card("Put these lines in order")
        self.order_card.head.addStretch(1)
        self.order_card.head.addWidget(self.shuffle_button)
        self.order_card.body.addWidget(self.line_order)
        self.task: TaskOutline | None = None
        layout = column(self.order_card, self.source, self.assembled_pane, stretch=1)
        layout.setStretch(2, 1)
        self.setLayout(layout)
        self.line_order.changed.connect(self._on_lines_changed)
        self.shuffle_button.clicked.connect(self.shuffle_lines)
        self.source.exited.connect(self.setFocus)

    def show_task(self, task: TaskOutline, submission: str) -> None:
        """Show a task with its saved submission, or with its original text."""
        self.task = task
        ordered = task.frame is not None
        self.order_card.setVisible(ordered)
        self.assembled_pane.setVisible(ordered)
        self.source.setVisible(not ordered)
        if ordered:
            lines = tuple(submission.split("\n")) if submission else ()
            is_valid = sorted(lines) == sorted(task.pieces)
            self.line_order.set_lines(lines if is_valid else task.pieces)
            self._show_assembled()
            return
        self.editable_sources.replace_texts({task.file: task.start})
        self.source.show_kernel(task.file, "")
        if submission:
            self.source.document.replace(submission)
        self.source.document.contentsChanged.connect(self.changed)
        self._move_to_gap()

    def _move_to_gap(self) -> None:
        """Move the cursor to the gap to fill."""
        gap = next((n for n, line in enumerate(self._source_text.split("\n"), 1) if "// Write here" in line), 0)
        if gap:
            self.source.code.go_to_line(gap)

    @property
    def visible_pane(self) -> SourcePane:
        """The visible source pane: the editable source, or the source assembled from the lines."""
        return self.assembled_pane if self.task is not None and self.task.frame is not None else self.source

    @property
    def _source_text(self) -> str:
        return self.source.document.text

    @property
    def text(self) -> str:
        """The whole kernel file."""
        if self.task is not None and self.task.frame is not None:
            return self.task.frame.fill(self.line_order.lines)
        return self._source_text

    @property
    def submission(self) -> str:
        """The part to save: the source, or the lines in their order ("" if unchanged)."""
        if self.task is not None and self.task.frame is not None:
            return "\n".join(self.line_order.lines) if self.line_order.lines != self.task.pieces else ""
        return self._source_text

    def restore_original(self) -> None:
        """Restore the task's original text; for a source, this can be undone."""
        if self.task is None:
            return
        if self.task.frame is not None:
            self.line_order.set_lines(self.task.pieces)
            self._on_lines_changed()
        else:
            self.source.document.replace(self.task.start)

    def shuffle_lines(self) -> None:
        """Put the lines into a random order."""
        lines = list(self.line_order.lines)
        random.shuffle(lines)
        self.line_order.set_lines(tuple(lines))
        self._on_lines_changed()

    def show_judgment(self, judgment: Judgment, text: str) -> None:
        """Show the findings at their lines, if the submission has not changed since."""
        if self.task is None or text != self.text:
            return
        self.visible_pane.sources.show_run(self.task.file, {self.task.file: text}, judgment.check.diagnostics)

    def focus_first(self) -> None:
        """Give the editor the keyboard focus."""
        (self.line_order if self.task is not None and self.task.frame is not None else self.source.code).setFocus()

    def _on_lines_changed(self) -> None:
        self._show_assembled()
        self.changed.emit()

    def _show_assembled(self) -> None:
        """Show the kernel assembled from the lines."""
        assert self.task is not None
        self._assembled_sources.replace_texts({self.task.file: self.text})
        self.assembled_pane.show_kernel(self.task.file, "")
