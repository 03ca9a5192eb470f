"""Asking for the name of a file, in the folder where the last one of its kind was."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from PyQt6.QtWidgets import QFileDialog, QWidget


class FolderMemory(Protocol):
    """Who remembers folders from one time to the next."""

    def folder(self, kind: str) -> Path | None:
        """Return the folder of the last file of a kind; None where none is known."""

    def store_folder(self, kind: str, folder: Path) -> None:
        """Remember where a file of a kind was."""


_memory: FolderMemory | None = None


def remember_in(memory: FolderMemory) -> None:
    """Let folders be remembered there from now on."""
    global _memory
    _memory = memory


def ask_open(parent: QWidget, title: str, filters: str, kind: str, otherwise: Path | None = None) -> Path | None:
    """Ask for a file that is there; `otherwise` is where to begin the first time. None for none."""
    name, _ = QFileDialog.getOpenFileName(parent, title, str(_folder(kind, otherwise)), filters)
    return _taken(kind, name)


def ask_save(
    parent: QWidget, title: str, name: str, filters: str, kind: str, otherwise: Path | None = None
) -> tuple[Path, str] | None:
    """Ask for the name of a new file, `name` unless another is given; return it, and the filter that was chosen."""
    given, chosen = QFileDialog.getSaveFileName(parent, title, str(_folder(kind, otherwise) / name), filters)
    path = _taken(kind, given)
    return None if path is None else (path, chosen)


def _folder(kind: str, otherwise: Path | None) -> Path:
    known = _memory.folder(kind) if _memory is not None else None
    return known or otherwise or Path.home()


def _taken(kind: str, name: str) -> Path | None:
    if not name:
        return None
    path = Path(name)
    if _memory is not None:
        _memory.store_folder(kind, path.absolute().parent)
    return path
