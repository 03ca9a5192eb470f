"""Drafts: unsaved edits, written to the platform's data folder when the window must close, and read again later.

A draft is a text file that is readable without Lockstep: a header line that names the edited file, then the text.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from gpu.base import folders
from gpu.base.errors import InputError
from gpu.files.file_access import convert_os_errors, read_bytes, replace_file
from gpu.files.sources import MAX_BYTES
from gui.editor.document import KernelDocument

_HEADER_PREFIX = "// A draft of Lockstep's: "
_FIRST_LINE_BYTES = 2**16
_MAX_DRAFTS = 100
"""Only this many of the newest drafts are read."""


@dataclass(frozen=True)
class Draft:
    """The saved text of an edited file.

    Parameters
    ----------
    file : str
        The edited kernel file: a name under `kernels/`, or a path.
    origin : str
        The digest of the file's text when it was edited.
    path : Path
        The draft's file.
    """

    file: str
    origin: str
    text: str
    path: Path

    @property
    def name(self) -> str:
        """The edited file's name without its folder."""
        return Path(self.file).name

    def is_edit_of(self, text: str) -> bool:
        """Return whether the draft was an edit of this text."""
        return self.origin == _digest(text)


class Drafts:
    """The drafts in a folder.

    Parameters
    ----------
    folder : Path or None
        None means the platform's folder for user data.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or folders.data_folder() / "drafts"

    def read_drafts(self) -> list[Draft]:
        """Return the drafts, the oldest first; other files are ignored."""
        drafts = []
        with suppress(OSError):
            paths = sorted(self._folder.glob("*.cu"), key=lambda path: path.lstat().st_mtime_ns)
            for path in paths[-_MAX_DRAFTS:]:
                draft = _read_draft(path)
                if draft is not None:
                    drafts.append(draft)
        return drafts

    def write_drafts(self, documents: Sequence[KernelDocument]) -> set[Path]:
        """Write a draft for each document, and return the drafts' paths.

        Raises
        ------
        InputError
            If a draft cannot be written; the others are written anyway.
        """
        paths, first_error = set(), None
        for document in documents:
            try:
                paths.add(self._write(document))
            except InputError as error:
                first_error = first_error or InputError(
                    f"The edits of {document.path.name} were not kept. {error.message}"
                )
        if first_error is not None:
            raise first_error
        return paths

    def _write(self, document: KernelDocument) -> Path:
        # The digest in the name distinguishes drafts of several windows.
        name = f"{document.path.stem}-{_digest(document.file + document.text)[:16]}.cu"
        path = self._folder / name
        head = json.dumps({"file": document.file, "origin": _digest(document.original)})
        with convert_os_errors(str(self._folder), "create"):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with replace_file(path) as file:
            file.write(f"{_HEADER_PREFIX}{head}\n{document.text}".encode(errors="surrogatepass"))
        return path

    def discard(self, paths: Iterable[Path]) -> None:
        """Delete drafts."""
        for path in paths:
            with suppress(OSError):
                path.unlink()


def _read_draft(path: Path) -> Draft | None:
    try:
        head, _, text = read_bytes(path, MAX_BYTES + _FIRST_LINE_BYTES).decode(errors="replace").partition("\n")
        header = json.loads(head.removeprefix(_HEADER_PREFIX)) if head.startswith(_HEADER_PREFIX) else None
    except (InputError, ValueError, RecursionError):
        return None
    if not isinstance(header, dict) or not all(isinstance(header.get(key), str) for key in ("file", "origin")):
        return None
    return Draft(header["file"], header["origin"], text, path)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()
