"""Texts of a lesson: what was recorded, to read, and what is written for a task."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from PyQt6.QtCore import QObject

from gui.editor.document import KernelDocument
from gui.editor.sources import Check, KernelSources


class LessonTexts(KernelSources):
    """Kernel files as a lesson has them, none of which is a file's: those of one step take the place of another's.

    Parameters
    ----------
    check : callable or None
        As of KernelSources: what finds mistakes in a text that is written; None for texts that are only read.
    """

    def __init__(self, check: Check | None = None, parent: QObject | None = None) -> None:
        super().__init__(check, parent)
        self.editable = check is not None
        self._texts: dict[str, str] = {}
        self._before: list[KernelDocument] = []

    def take(self, texts: Mapping[str, str]) -> None:
        """Have other texts, by the files' names without folders, from the next document on that is asked for."""
        for document in self._before:
            document.deleteLater()  # nothing shows it any more: another has been shown since
        self._before = list(self._documents.values())
        self._documents.clear()
        self._texts = dict(texts)

    def _make(self, file: str) -> KernelDocument:
        return KernelDocument(file, self._texts.get(Path(file).name, ""))
