"""Reader of text files."""

from __future__ import annotations

from pathlib import Path

from gpu.base.errors import InputError
from gpu.files.file_access import read_bytes

MAX_BYTES = 2**20


def read_text(path: str | Path) -> str:
    """Read a text file: UTF-8, or else Latin-1, in which every byte is a character.

    Raises
    ------
    InputError
        If the file cannot be read or is too long.
    """
    path = Path(path)
    data = read_bytes(path, MAX_BYTES)
    if b"\0" in data:
        raise InputError(f"{path.name} is not a text file: it has a zero byte.")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("latin-1")
