"""The kernel files that are open, and how their texts differ from the files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from PyQt6.QtCore import QObject, pyqtSignal

from gpu.errors import Diagnostic
from gpu.messages.requests import Failure
from gpu.messages.verdicts import Remedy
from gui.editor.document import KernelDocument

Check = Callable[[str, str, Callable[[tuple[Diagnostic, ...]], None]], None]
"""Asks what is wrong with (file, text); the answer comes through the function."""

_TO_THE_END = 10_000


class KernelSources(QObject):
    """One document for each kernel file, whatever shows it.

    Parameters
    ----------
    check : callable or None
        Finds what is wrong with a text; None leaves texts unchecked.
    """

    settled = pyqtSignal(str)
    """A file's text has changed, and rests."""
    touched = pyqtSignal(str)
    """A file's text may be another, from this moment on."""
    sound = pyqtSignal(str)
    """What is known of a file's text has changed, and it is no error."""
    editable = True

    def __init__(self, check: Check | None = None, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._check = check
        self._documents: dict[str, KernelDocument] = {}

    def document(self, file: str) -> KernelDocument:
        """Return the document of a kernel file, a name under `kernels/` or a path; it is read the first time."""
        if file not in self._documents:
            made = self._documents[file] = self._make(file)
            made.setParent(self)
            made.settled.connect(lambda: self._take(made))
            made.contentsChange.connect(lambda *_: self.touched.emit(file))
            made.problems_changed.connect(lambda: self.sound.emit(file) if made.sound else None)
        return self._documents[file]

    def _make(self, file: str) -> KernelDocument:
        return KernelDocument(file)

    def edits(self, *files: str) -> dict[str, str]:
        """Return what a request carries as its `sources`: the text of each of the files that is edited."""
        documents = {file: self._documents[file] for file in files if file in self._documents}
        return {file: document.text for file, document in documents.items() if document.edited}

    @property
    def unsaved(self) -> list[KernelDocument]:
        """Return the documents whose texts would be lost with the window."""
        return [document for document in self._documents.values() if document.unsaved]

    def show_run(
        self, file: str, ran: Mapping[str, str], found: Sequence[Diagnostic], remedy: Remedy | None = None
    ) -> None:
        """Show at its line what a run met with, and offer what mends it; `ran` are the run's edited texts."""
        document = self._documents.get(file)
        if document is not None:
            document.show_run(ran.get(file, document.original), found, remedy)

    def show_failure(self, file: str, ran: Mapping[str, str], failure: Failure) -> None:
        """Show at its line why a run failed, where that is in the file."""
        self.show_run(file, ran, _at_line(failure, file))

    def _take(self, document: KernelDocument) -> None:
        self.settled.emit(document.file)
        self.check(document)

    def check(self, document: KernelDocument) -> None:
        """Find out what is wrong with a document's text, unless that is known."""
        if self._check is not None and not document.checked:
            text = document.text
            self._check(document.file, text, lambda found: document.show_diagnostics(text, found))


class RecordedSources(KernelSources):
    """The texts that a recording was made of, to read."""

    editable = False

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent=parent)
        self.texts: Mapping[str, str] = {}
        """By the files' names, without folders."""

    def _make(self, file: str) -> KernelDocument:
        return KernelDocument(file, self.texts.get(Path(file).name, ""))


def _at_line(failure: Failure, file: str) -> tuple[Diagnostic, ...]:
    """Return a failure as what a text shows at its line, where it is one of that file."""
    place = failure.position
    if place is None or place.file != Path(file).name:
        return ()
    column = max(place.column, 1)
    message = failure.message.removeprefix(f"{place}: ")
    return (Diagnostic(place.line, column, column + 1 if place.column else _TO_THE_END, "error", message),)
