"""The open sequence of a lecture: go from moment to moment, and change the sequence's file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from PyQt6.QtCore import QObject, pyqtSignal
from PyQt6.QtWidgets import QWidget

from gpu.base.errors import InputError
from gpu.files.file_access import format_path, read_bytes
from gui.model.sequences import (
    BUILTIN_FOLDER,
    MAX_FILE_BYTES,
    SUFFIX,
    Moment,
    MomentSequence,
    clean_note,
    clean_title,
    read_sequence,
    write_sequence,
)
from gui.model.workbench import Workbench
from gui.qt.timers import create_single_shot_timer
from gui.step_view.time.prefetcher import Prefetcher
from gui.widgets.file_dialogs import ALL_FILES, choose_existing_file, choose_new_file
from gui.window.messages import Messages
from gui.window.pages.pattern_page import PatternPage
from gui.window.sequences.moments import MomentDisplay, capture_moment

SAVE_DELAY_MS = 400
"""How long a note must be unchanged before it is saved."""
_TOPIC = "sequence"
_FILTER = f"Sequences (*{SUFFIX});;{ALL_FILES}"


class SequencePlayer(QObject):
    """The open sequence, and its current moment; each change is written to the file at once.

    Parameters
    ----------
    window : QWidget
        Parent of the file dialogs.
    find_page : callable
        Returns the visible pattern's page, or None if another page is visible.
    """

    changed = pyqtSignal()
    """The sequence, or the number of the current moment."""
    message_changed = pyqtSignal(str)
    """A message for the lecturer, or "" if the last one no longer applies."""

    def __init__(
        self,
        window: QWidget,
        bench: Workbench,
        display: MomentDisplay,
        find_page: Callable[[], PatternPage | None],
        messages: Messages,
    ) -> None:
        super().__init__(window)
        self._window, self._bench, self._display = window, bench, display
        self._find_page, self._messages = find_page, messages
        self.path: Path | None = None
        self.sequence = MomentSequence("")
        self.index = -1
        """Index of the current moment; -1 before the first."""
        self._saved_bytes = b""
        self._save_timer = create_single_shot_timer(SAVE_DELAY_MS, self._write, self)
        self._prefetcher = Prefetcher(self)
        display.shown.connect(self._report_shown)

    # --- opening

    @property
    def moment(self) -> Moment | None:
        """The current moment, or None."""
        return self.sequence.moments[self.index] if 0 <= self.index < len(self.sequence.moments) else None

    @property
    def next_moment(self) -> Moment | None:
        """The moment after the current one, or None."""
        index = self.index + 1
        return self.sequence.moments[index] if index < len(self.sequence.moments) else None

    @property
    def is_opening(self) -> bool:
        """Whether the current moment is not on screen yet."""
        return self._display.busy

    @property
    def is_editable(self) -> bool:
        """Whether changes can be written: the file is the user's, and has no errors that would be lost."""
        return self.path is not None and self.path.parent != BUILTIN_FOLDER and not self.sequence.errors

    def choose_and_open(self) -> None:
        """Ask for a file, and open it."""
        path = choose_existing_file(self._window, "Open sequence", _FILTER, "sequences")
        if path is not None:
            self.open(path)

    def open(self, path: Path) -> None:
        """Open a sequence and show its first moment; if the file cannot be read, nothing changes."""
        self.finish_editing()
        try:
            sequence, data = read_sequence(path)
        except InputError as error:
            self._warn(error.message, "Correct the file, then open it again.")
            return
        self.path, self.sequence, self._saved_bytes, self.index = path.absolute(), sequence, data, -1
        self._messages.banner.hide_topic(_TOPIC)
        self.message_changed.emit("")
        self.changed.emit()
        if sequence.moments:
            self.go_to(0)
        if sequence.errors:
            count = len(sequence.errors)
            also = f" {count - 1} more {'errors are' if count > 2 else 'error is'} in the details." if count > 1 else ""
            self._warn(sequence.errors[0] + also, "The other moments can be shown.", "\n".join(sequence.errors[1:]))

    # --- moving

    def go_to_next(self) -> None:
        """Show the next moment."""
        self._step(1)

    def go_to_previous(self) -> None:
        """Show the previous moment."""
        self._step(-1)

    def _step(self, offset: int) -> None:
        moments = self.sequence.moments
        if self.path is None:
            self._inform("No sequence is open. Open one from Menu, Lecture.")
        elif not 0 <= self.index + offset < len(moments):
            end = "last" if offset > 0 else "first"
            self._inform(
                f"This is the {end} moment of {self.sequence.title}." if moments else "The sequence has no moments yet."
            )
        else:
            self.go_to(self.index + offset)

    def go_to(self, index: int) -> None:
        """Show a moment by its index; if it no longer exists, report why, and stay at the current picture."""
        assert self.path is not None
        moment, self.index = self.sequence.moments[index], index
        self._messages.banner.hide_topic(_TOPIC)
        self.message_changed.emit("")
        try:
            self._display.show(moment, f"{self._position}  {moment.title}", self.path.parent)
        except InputError as error:
            self._warn(f"Moment {index + 1}, {moment.title}: {error.message}", "Press N for the next moment.")
        self.changed.emit()

    @property
    def _position(self) -> str:
        return f"{self.index + 1} of {len(self.sequence.moments)}"

    def _report_shown(self, moment: Moment, problem: str) -> None:
        if problem:
            self._warn(f"{moment.title}: {problem}", "")
        else:
            self._messages.status.show_message(f"{self._position}: {moment.title}")
        self._prefetcher.start(self._prepare_next_moment())

    def _prepare_next_moment(self) -> Iterator[object]:
        """Color the next moment's source in advance, a few lines at a time."""
        pattern = self._bench.patterns.get(self.next_moment.pattern) if self.next_moment is not None else None
        if pattern is not None:
            document = self._bench.sources.document(pattern.kernel_file)
            while not document.color_more():
                yield None

    # --- changing

    def add_moment(self) -> None:
        """Add the window's state after the current moment; without a sequence, ask for a new file first."""
        page = self._find_page()
        if page is None:
            self._warn("Only the page of a pattern can become a moment.", "Open a pattern first.")
            return
        if self.path is None or not self.is_editable:
            if self.sequence.errors:
                self._warn("The sequence has errors, so it cannot be changed here.", "Correct its file first.")
                return
            if not self.save_copy():
                return
        assert self.path is not None
        try:
            moment, problem = capture_moment(page, self._bench, self.path.parent)
        except InputError as error:
            self._warn(error.message, "")
            return
        moments = list(self.sequence.moments)
        moments.insert(self.index + 1, moment)
        self._change(tuple(moments), self.index + 1)
        if problem:
            self._warn(problem, "")
        else:
            self._inform(f"Added moment {self._position}: {moment.title}")

    def save_copy(self) -> bool:
        """Ask for a file and write the sequence to it, which is then the open one; return whether that succeeded."""
        self.finish_editing()
        name = self.path.name if self.path is not None else f"lecture{SUFFIX}"
        path = choose_new_file(self._window, "Save sequence", name, _FILTER, "sequences")
        if path is None:
            return False
        sequence = replace(self.sequence, title=self.sequence.title or path.stem)
        try:
            data = write_sequence(path, sequence)
        except InputError as error:
            self._warn(error.message, "Choose a writable folder.")
            return False
        self.path, self.sequence, self._saved_bytes = path.absolute(), sequence, data
        self.changed.emit()
        return True

    def set_note(self, note: str) -> None:
        """Set the current moment's note; it is written after a short delay."""
        moment, note = self.moment, clean_note(note)
        if moment is not None and self.is_editable and note != moment.note:
            self._replace_moment(replace(moment, note=note))

    def set_title(self, title: str) -> None:
        """Set the current moment's title, unless it is empty; it is written after a short delay."""
        moment, title = self.moment, clean_title(title)
        if moment is not None and self.is_editable and title not in ("", moment.title):
            self._replace_moment(replace(moment, title=title))

    def _replace_moment(self, moment: Moment) -> None:
        moments = list(self.sequence.moments)
        moments[self.index] = moment
        self.sequence = replace(self.sequence, moments=tuple(moments))
        self._save_timer.start()

    def delete_moment(self) -> None:
        """Delete the current moment from the sequence; the window keeps its state."""
        if self.moment is not None and self.is_editable:
            moments = list(self.sequence.moments)
            del moments[self.index]
            self._change(tuple(moments), min(self.index, len(moments) - 1))

    def move_moment(self, offset: int) -> None:
        """Move the current moment towards the start (`offset` = -1) or the end (1) of the sequence."""
        target = self.index + offset
        if self.moment is not None and self.is_editable and 0 <= target < len(self.sequence.moments):
            moments = list(self.sequence.moments)
            moments.insert(target, moments.pop(self.index))
            self._change(tuple(moments), target)

    def _change(self, moments: tuple[Moment, ...], index: int) -> None:
        self.sequence, self.index = replace(self.sequence, moments=moments), index
        self._write()
        self.changed.emit()

    def finish_editing(self) -> None:
        """Write a note that has just been edited: the sequence is closed."""
        if self._save_timer.isActive():
            self._write()

    def _write(self) -> None:
        """Write the file, unless another program has changed it."""
        self._save_timer.stop()
        assert self.path is not None
        try:
            if read_bytes(self.path, MAX_FILE_BYTES) != self._saved_bytes:
                raise InputError(f"{format_path(self.path.name)} was changed by another program.")
            self._saved_bytes = write_sequence(self.path, self.sequence)
        except InputError as error:
            self._warn(
                f"The sequence is not saved. {error.message}", "Save a copy, or open the file again.", topic="unsaved"
            )

    def _inform(self, message: str) -> None:
        self._messages.status.show_message(message)
        self._display.show_message(message)
        self.message_changed.emit(message)

    def _warn(self, message: str, advice: str, details: str = "", topic: str = _TOPIC) -> None:
        self._display.show_message(message)
        self.message_changed.emit(f"{message} {advice}".strip())
        self._messages.banner.show_message(message, advice, details, tone="warn", topics=(topic,))
