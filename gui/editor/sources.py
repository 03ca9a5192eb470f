"""The open kernel files, and the edits of their texts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from PyQt6.QtCore import QObject, pyqtSignal

from gpu.base.errors import Diagnostic
from gpu.messages.events import Failure
from gpu.messages.verdicts import Remedy
from gui.editor.document import KernelDocument

SourceChecker = Callable[[str, str, Callable[[tuple[Diagnostic, ...]], None]], None]
"""Checks (file, text), and passes the diagnostics to the function."""

_LAST_COLUMN = 10_000


class KernelSources(QObject):
    """One document per kernel file, shared by all views.

    Parameters
    ----------
    check : callable or None
        Checks a text; None leaves texts unchecked.
    """

    settled = pyqtSignal(str)
    """A file's text has changed, and has been unchanged for a while."""
    text_changed = pyqtSignal(str)
    """A file's text may have changed."""
    errors_cleared = pyqtSignal(str)
    """The problems of a file's text have changed, and none is an error."""
    editable = True

    def __init__(self, check: SourceChecker | None = None, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._check = check
        self._documents: dict[str, KernelDocument] = {}

    def document(self, file: str) -> KernelDocument:
        """Return the document of a kernel file (a name under `kernels/` or a path), which is read on first use."""
        if file not in self._documents:
            document = self._documents[file] = self._create_document(file)
            document.setParent(self)
            document.settled.connect(lambda: self._on_settled(document))
            document.contentsChange.connect(lambda *_: self.text_changed.emit(file))
            document.problems_changed.connect(
                lambda: self.errors_cleared.emit(file) if document.has_no_errors else None
            )
        return self._documents[file]

    def _create_document(self, file: str) -> KernelDocument:
        return KernelDocument(file)

    def find_edits(self, *files: str) -> dict[str, str]:
        """Return the texts of the edited files among `files`, for the `sources` of a request."""
        documents = {file: self._documents[file] for file in files if file in self._documents}
        return {file: document.text for file, document in documents.items() if document.edited}

    @property
    def unsaved(self) -> list[KernelDocument]:
        """The documents with edits that are not saved, so that closing the window would lose them."""
        return [document for document in self._documents.values() if document.unsaved]

    def show_run(
        self, file: str, run_texts: Mapping[str, str], diagnostics: Sequence[Diagnostic], remedy: Remedy | None = None
    ) -> None:
        """Show the diagnostics of a run in the document of a file.

        Parameters
        ----------
        run_texts : mapping
            The edited texts that ran, by file.
        remedy : Remedy or None
            An edit that removes all findings.
        """
        document = self._documents.get(file)
        if document is not None:
            document.show_run(run_texts.get(file, document.original), diagnostics, remedy)

    def show_failure(self, file: str, run_texts: Mapping[str, str], failure: Failure) -> None:
        """Show a run's failure at its line, if it is in the file."""
        self.show_run(file, run_texts, _create_diagnostics(failure, file))

    def _on_settled(self, document: KernelDocument) -> None:
        self.settled.emit(document.file)
        self.check_document(document)

    def check_document(self, document: KernelDocument) -> None:
        """Check a document, unless the check is up to date."""
        if self._check is not None and not document.checked:
            text = document.text
            self._check(document.file, text, lambda diagnostics: document.show_diagnostics(text, diagnostics))


class TextSources(KernelSources):
    """Kernel sources that are not backed by files: those of a recording or a lesson.

    Parameters
    ----------
    check : callable or None
        As in `KernelSources`: checks an edited source; None for read-only sources.
    """

    def __init__(self, check: SourceChecker | None = None) -> None:
        super().__init__(check)
        self.editable = check is not None
        self._texts: dict[str, str] = {}
        self._replaced_documents: list[KernelDocument] = []

    def replace_texts(self, texts: Mapping[str, str]) -> None:
        """Replace the sources, by file names without folders; applies to documents requested from now on."""
        for document in self._replaced_documents:
            document.deleteLater()  # no view shows it any more
        self._replaced_documents = list(self._documents.values())
        self._documents.clear()
        self._texts = dict(texts)

    def _create_document(self, file: str) -> KernelDocument:
        return KernelDocument(file, self._texts.get(Path(file).name, ""))


def _create_diagnostics(failure: Failure, file: str) -> tuple[Diagnostic, ...]:
    """Return a failure as a diagnostic, if its position is in the file."""
    position = failure.position
    if position is None or position.file != Path(file).name:
        return ()
    column = max(position.column, 1)
    message = failure.message.removeprefix(f"{position}: ")
    return (Diagnostic(position.line, column, column + 1 if position.column else _LAST_COLUMN, "error", message),)
