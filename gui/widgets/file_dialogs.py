"""File dialogs that start in the last folder used for a kind of file."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Protocol

from PyQt6.QtWidgets import QFileDialog, QWidget


class FolderMemory(Protocol):
    """Storage of the last used folder for each kind of file."""

    def folder(self, kind: str) -> Path | None:
        """Return the folder of the last file of a kind, or None."""

    def store_folder(self, kind: str, folder: Path) -> None:
        """Store the folder of a file of a kind."""


ALL_FILES = "All files (*)"
"""The filter of a file dialog that selects nothing."""
_PATTERN = re.compile(r"\*(\.\w+|)")
"""The first pattern of a filter, with its suffix; "" for a folder."""
_memory: FolderMemory | None = None


def set_folder_memory(memory: FolderMemory) -> None:
    """Set where folders are stored from now on."""
    global _memory
    _memory = memory


def choose_existing_file(
    parent: QWidget, title: str, filters: str, kind: str, default_folder: Path | None = None
) -> Path | None:
    """Show a dialog for an existing file and return its path, or None if canceled.

    Parameters
    ----------
    title : str
        Title of the dialog.
    filters : str
        File name filters in Qt's format.
    kind : str
        Kind of file; the dialog starts in the last folder for it.
    default_folder : Path, optional
        Folder for the first time; the home folder by default.
    """
    name, _ = QFileDialog.getOpenFileName(parent, title, str(_find_start_folder(kind, default_folder)), filters)
    return _store_folder(kind, name)


def choose_new_file(
    parent: QWidget, title: str, name: str, filters: str, kind: str, default_folder: Path | None = None
) -> Path | None:
    """Show a dialog for a new file; return its path, or None if canceled.

    A name without a suffix gets that of the selected filter; with `ALL_FILES`, that of the suggested name.

    Parameters
    ----------
    parent : QWidget
        The widget over which the dialog is shown.
    title : str
        The title of the dialog.
    name : str
        The suggested file name.
    filters, kind, default_folder
        As of `choose_existing_file`.
    """
    chosen_name, selected_filter = QFileDialog.getSaveFileName(
        parent, title, str(_find_start_folder(kind, default_folder) / name), filters
    )
    path = _store_folder(kind, chosen_name)
    if path is None or path.suffix:
        return path
    pattern = _PATTERN.search("" if selected_filter == ALL_FILES else selected_filter)
    return path.with_name(path.name + (Path(name).suffix if pattern is None else pattern[1]))


def _find_start_folder(kind: str, default_folder: Path | None) -> Path:
    stored = _memory.folder(kind) if _memory is not None else None
    return stored or default_folder or Path.home()


def _store_folder(kind: str, name: str) -> Path | None:
    if not name:
        return None
    path = Path(name)
    if _memory is not None:
        _memory.store_folder(kind, path.absolute().parent)
    return path
