"""The pane with a kernel file, to read and to edit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from PyQt6.QtCore import QEvent, Qt, pyqtSignal
from PyQt6.QtWidgets import QWidget

from gpu.base.errors import InputError
from gpu.messages.modeled_time import LineCode
from gui.editor.code_edit import CodeEdit
from gui.editor.document import KernelDocument, Problem
from gui.editor.files import choose_kernel_file, choose_save_target, read_kernel
from gui.editor.problem_strip import ProblemStrip
from gui.editor.sources import KernelSources
from gui.painting.theme import look
from gui.qt.events import StyleListener, is_event_type
from gui.widgets.basic import Badge, Card, button, column, label, row

TYPING_HINT = "Typing edits  ·  Esc leaves the code  ·  Tab indents a selection, or a new line"


class SourcePane(StyleListener, Card):
    """A card with a kernel file, which can be edited unless it belongs to a recording.

    Parameters
    ----------
    sources : KernelSources or None
        The edited sources; panes with the same sources show the same text. None for an independent pane.
    """

    line_clicked = pyqtSignal(int)
    """A line number (from 1) that was clicked, or a line with a clicked text."""
    hint_changed = pyqtSignal(str)
    """A description of the editing keys: an editable source has received the focus."""
    exited = pyqtSignal()
    """The user leaves the editor."""
    failed = pyqtSignal(str)
    """The reason why a file could not be read or written."""
    saved = pyqtSignal(str)
    """The path of a file that was saved."""

    def __init__(self, sources: KernelSources | None = None) -> None:
        super().__init__("Kernel", margins=(1, 10, 1, 1))
        self.sources = sources or KernelSources(parent=self)
        self.head.setContentsMargins(12, 0, 12, 0)
        self.edited_badge = Badge()
        self.kernel = Badge()
        self.head.addWidget(self.edited_badge)
        self.head.addStretch(1)
        self.head.addWidget(self.kernel)
        self.code = CodeEdit()
        self.costs_label = label("", "caption", name="Meaning of the numbers next to the lines")
        self.costs_label.setContentsMargins(12, 0, 12, 2)
        self.costs_label.hide()
        self.strip = ProblemStrip()
        self.revert = button("Revert", "flat", tip="Restore the file's text; Ctrl+Z undoes that")
        self.save = button("Save as…", "flat", tip="Save this text to another file (Ctrl+S in the editor)")
        self.open = button("Open…", "flat", tip="Replace this text by another file's; Ctrl+Z undoes that")
        for each in (self.revert, self.save, self.open):
            each.setProperty("small", True)
        self.body.setSpacing(0)
        self._text = QWidget()
        self._text.setLayout(column(self.costs_label, self.code, self.strip, spacing=0))
        self.note = label("", "muted", wrap=True, name="Why there is no source")
        self.note.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.note.setMargin(look().px(16))
        self.note.hide()
        self.body.addWidget(self._text, 1)
        self.body.addWidget(self.note, 1)
        self.head.addLayout(row(self.revert, self.save, self.open, spacing=2))
        self.setMinimumWidth(look().px(220))
        self.edited_badge.hide()
        self.code.setReadOnly(not self.sources.editable)
        self._document: KernelDocument | None = None
        self._name = ""
        self._recorded_messages: Mapping[int, str] | None = None
        self.code.line_clicked.connect(self.line_clicked)
        self.code.exited.connect(self.exited)
        self.code.entered.connect(lambda: self.hint_changed.emit(TYPING_HINT) if self.sources.editable else None)
        # Checked in advance, so that typing does not wait for the checking process to start.
        self.code.entered.connect(lambda: self.sources.check_document(self._document) if self._document else None)
        self.code.save_requested.connect(self.save_as)
        self.code.cursorPositionChanged.connect(self._show_problem)
        self.strip.next_requested.connect(self.go_to_next_problem)
        self.strip.remedy_requested.connect(self._apply_remedy)
        self.revert.clicked.connect(self._revert)
        self.save.clicked.connect(self.save_as)
        self.open.clicked.connect(self.replace_from_file)

    def show_source(self, file: str, kernel: str, library: str = "") -> None:
        """Show a kernel, or state that a library's routine has no source here."""
        self._text.setVisible(not library)
        self.note.setVisible(bool(library))
        if not library:
            self.show_kernel(file, kernel)
            return
        self._name = library
        self.title.setToolTip("")
        self.note.setText(f"{library} is a library: the source of its kernels is not available.")
        self.kernel.setText("")
        self.edited_badge.hide()
        self._update_head()

    def show_kernel(self, file: str, kernel: str, line: int | None = None) -> None:
        """Show a kernel file (a name under `kernels/` or a path), scrolled to a kernel or to the executing line."""
        document = self.sources.document(file)
        if document is not self._document:
            if self._document is not None:
                self._document.edited_changed.disconnect(self._show_edited)
                self._document.problems_changed.disconnect(self._show_problem)
                self._document.contentsChanged.disconnect(self._show_problem)
            self._document = document
            document.edited_changed.connect(self._show_edited)
            document.problems_changed.connect(self._show_problem)
            document.contentsChanged.connect(self._show_problem)
        self._name = document.path.name
        self.title.setToolTip(str(document.path))
        self.kernel.show_text(kernel, "neutral", f"The executing __global__ function: {kernel}")
        self.code.show_document(document, kernel, line)
        self._show_edited(document.edited)

    def _update_head(self) -> None:
        """Show the kernel's name and the buttons only where they fit next to the file's name.

        Revert takes precedence over the other buttons once the source is edited.
        """
        name = self._name
        other_width = sum(each.sizeHint().width() for each in (self.edited_badge, self.revert, self.save, self.open))
        name_width = self.title.fontMetrics().horizontalAdvance(name) + 2
        self.kernel.setVisible(
            bool(self.kernel.text()) and self.kernel.sizeHint().width() + name_width + other_width < self.width() - 60
        )
        available_width = self.width() - 24 - name_width - 8
        if not self.edited_badge.isHidden():
            available_width -= self.edited_badge.sizeHint().width() + 8
        has_source = self.note.isHidden()
        can_edit = has_source and self.sources.editable
        edited = self.revert.isEnabled()
        buttons = [(self.save, has_source), (self.open, can_edit)]
        buttons.insert(0 if edited else 1, (self.revert, can_edit))
        for each, is_available in buttons:
            width = each.sizeHint().width() + 8
            visible = is_available and (width <= available_width or (edited and each is self.revert))
            each.setVisible(visible)
            available_width -= width * visible
        title_width = name_width + min(available_width, 0) if self.isVisible() else name_width
        self.title.setText(self.title.fontMetrics().elidedText(name, Qt.TextElideMode.ElideRight, title_width))

    def event(self, event: QEvent | None) -> bool:
        # LayoutRequest: the contents have become wider, as with larger text.
        if is_event_type(event, QEvent.Type.Resize, QEvent.Type.LayoutRequest, QEvent.Type.Show):
            self._update_head()
        return super().event(event)

    def _restyle(self) -> None:
        self.setMinimumWidth(look().px(220))

    @property
    def document(self) -> KernelDocument:
        """The current document."""
        assert self._document is not None, "no kernel is shown yet"
        return self._document

    def mark_line(self, line: int | None) -> None:
        """Mark a line (from 1) as executing and scroll it into view; None removes the mark."""
        self.code.mark_line(line)

    def highlight_lines(self, highlighted: frozenset[int], faint: frozenset[int], first: int | None = None) -> None:
        """Highlight several lines, like `CodeEdit.highlight_lines`."""
        self.code.highlight_lines(highlighted, faint, first)

    def show_machine_code(self, lines: Mapping[int, LineCode]) -> None:
        """Show the number of machine instructions next to lines (from 1), with details in tooltips."""
        self.code.show_costs({line: (str(code.instructions), code.description) for line, code in lines.items()})
        self.costs_label.setText("machine instructions · line" if lines else "")
        self.costs_label.setVisible(bool(lines))

    def color_files(self, files: Sequence[str]) -> bool:
        """Color a few lines of the files in advance; return whether all lines are colored."""
        return all(self.sources.document(file).color_more() for file in files)

    def set_markers(self, markers: Mapping[int, str], messages: Mapping[int, str] | None = None) -> None:
        """Mark lines (from 1) with a dot next to their number, and a tooltip.

        Parameters
        ----------
        markers : mapping of int to str
            The tooltips.
        messages : mapping of int to str, optional
            A recording's findings by line. They are shown instead of a run's, whose values belong to another input.
        """
        self.code.set_markers(markers)
        self._recorded_messages = messages
        if self._document is not None:
            self._show_problem()

    def go_to_next_problem(self) -> None:
        """Go to the next problem after the cursor, or to the first."""
        problems = self.code.problems
        if problems:
            here = self.code.textCursor().position()
            later = (problem for problem in problems if problem.cursor.selectionStart() > here)
            self.code.go_to_problem(next(later, problems[0]))

    # --- files

    def save_as(self) -> None:
        """Ask for a file name, and save the source."""
        target = choose_save_target(self, self.document)
        if target is None:
            return
        if reason := self.document.save(target):
            self.failed.emit(reason)
        else:
            self.saved.emit(str(target))

    def replace_from_file(self) -> None:
        """Ask for a file, and replace the source by its text."""
        path = choose_kernel_file(self)
        if path is None:
            return
        try:
            text = read_kernel(path)
        except InputError as error:
            self.failed.emit(error.message)
            return
        self.document.replace(text, saved=True)
        self.code.setFocus(Qt.FocusReason.OtherFocusReason)

    def _revert(self) -> None:
        self.document.replace(self.document.original)
        self.code.setFocus(Qt.FocusReason.OtherFocusReason)

    # --- problems

    def _show_edited(self, edited: bool) -> None:
        self.edited_badge.show_text("edited", "warn", "This text differs from the file's; this text runs")
        self.edited_badge.setVisible(edited)
        self.revert.setEnabled(edited)
        self._update_head()
        self._show_problem()

    def _show_problem(self) -> None:
        document, problem = self.document, self._find_current_problem()
        message = ""
        if problem is not None and document.is_found_by_run(problem):
            message = problem.diagnostic.message
            if self._recorded_messages is not None:
                message = self._recorded_messages.get(problem.line, f"in Run, not in this recording: {message}")
            if document.remedy is not None:
                message = document.remedy.adapt_advice(message)
        self.strip.show_document(document, problem, message)

    def _apply_remedy(self) -> None:
        line = self.document.apply_remedy()
        if line is not None:
            self.code.go_to_line(line)
            self.code.setFocus(Qt.FocusReason.OtherFocusReason)

    def _find_current_problem(self) -> Problem | None:
        """Return the problem on the cursor's line, or else the first problem; errors precede warnings."""
        problems = self.document.problems
        line = self.code.textCursor().blockNumber() + 1
        here = [problem for problem in problems if problem.line == line]
        return min(here or problems, key=lambda problem: problem.diagnostic.severity != "error", default=None)
