"""Folder for temporary files of this process and its children; it is removed however the process ends."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator

from gpu.base.errors import InputError
from gpu.files.scratch import ScratchFolder
from gpu.process.guard import Guard

_VARIABLE_NAMES = ("TMPDIR", "TEMP", "TMP")


@contextlib.contextmanager
def own_temporary_folder() -> Iterator[None]:
    """Use a folder for temporary files during the block; if none can be created, continue without one."""
    try:
        folder = ScratchFolder()
    except InputError:
        yield
        return
    guard = Guard(folder.path)
    before = {name: os.environ.get(name) for name in _VARIABLE_NAMES}, tempfile.tempdir
    set_temporary_folder(folder.path)
    try:
        yield
    finally:
        for name, value in before[0].items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
        tempfile.tempdir = before[1]
        folder.close()
        guard.dismiss()


def set_temporary_folder(folder: str) -> None:
    """Make Python, clang and started compilers create temporary files in a folder."""
    os.environ.update(dict.fromkeys(_VARIABLE_NAMES, folder))
    tempfile.tempdir = folder
