"""Read files of text."""

from __future__ import annotations

from pathlib import Path

from gpu.errors import InputError

MOST_BYTES = 2**20


def read_text(path: str | Path) -> str:
    """Read a file of text: UTF-8, or else Latin-1, in which every byte is a character.

    Raises
    ------
    InputError
        Where the file cannot be read, or is too long.
    """
    path = Path(path)
    try:
        if path.stat().st_size > MOST_BYTES:
            raise InputError(f"{path.name} is longer than {MOST_BYTES // 2**20} MB: it is too long to be counted here.")
        data = path.read_bytes()
    except FileNotFoundError:
        raise InputError(f"There is no file {path}.") from None
    except IsADirectoryError:
        raise InputError(f"{path} is a folder.") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}.") from None
    if b"\0" in data:
        raise InputError(f"{path.name} is not a text: it has a zero byte.")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("latin-1")
