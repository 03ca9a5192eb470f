"""The folder of what can be made again: machine code, and headers that are parsed already."""

from __future__ import annotations

import os
import sys
import tempfile
from contextlib import suppress
from pathlib import Path


def folder() -> Path:
    """Return the folder where the platform keeps what can be made again."""
    if "LOCKSTEP_CACHE" in os.environ:
        return Path(os.environ["LOCKSTEP_CACHE"])
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", tempfile.gettempdir())) / "Lockstep" / "cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "Lockstep"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "lockstep"


def write(path: Path, content: bytes) -> None:
    """Write a file, or leave it where that cannot be. Two processes may do so at once: the file appears whole."""
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            file.write(content)
        Path(file.name).replace(path)


def read(path: Path) -> bytes | None:
    """Return a file's content, None where it cannot be read."""
    try:
        return path.read_bytes()
    except OSError:
        return None
