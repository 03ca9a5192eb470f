"""Sources of a lesson: recorded kernels to read, and submissions to edit."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from PyQt6.QtCore import QObject

from gui.editor.document import KernelDocument
from gui.editor.sources import KernelSources, SourceChecker


class LessonTexts(KernelSources):
    """Kernel sources of a lesson, which are not backed by files; each step replaces those of the previous one.

    Parameters
    ----------
    check : callable or None
        As in `KernelSources`: checks an edited source; None for read-only sources.
    """

    def __init__(self, check: SourceChecker | None = None, parent: QObject | None = None) -> None:
        super().__init__(check, parent)
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
