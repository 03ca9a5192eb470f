"""Files of a class's submissions: find them in the named folders, without following links, and name them."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from gpu.base.errors import InputError
from gpu.files.file_access import format_path

MAX_FILES = 10_000
"""Most files in the named folders, so that a wrong folder, such as the root, is an error and not a long search."""


@dataclass(frozen=True)
class SubmissionFiles:
    """The files that a command line names.

    Parameters
    ----------
    paths : tuple of Path
        The .cu files.
    ignored : tuple of str
        Other files in the named folders, shortened for a message.
    """

    paths: tuple[Path, ...]
    ignored: tuple[str, ...]


def find_submissions(names: Sequence[str]) -> SubmissionFiles:
    """Return the named .cu files and those in the named folders; links to folders are not followed.

    Raises
    ------
    InputError
        If a name is empty, if there is no submission, or if there are more than `MAX_FILES` files.
    """
    paths: list[Path] = []
    ignored: list[str] = []
    for name in names:
        if not name.strip():
            raise InputError("The name of a submission is empty: name a .cu file, or a folder with .cu files.")
        folder = Path(name)
        if not folder.is_dir():
            paths.append(folder)
            continue
        for path in sorted(_walk(folder)):
            if path.suffix == ".cu":
                paths.append(path)
            elif not path.name.startswith("."):
                ignored.append(format_path(path.relative_to(folder).as_posix()))
    if not paths:
        raise InputError("There is no submission: name a .cu file, or a folder with .cu files.")
    return SubmissionFiles(tuple(paths), tuple(ignored))


def _walk(folder: Path) -> Iterator[Path]:
    count = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            count += 1
            if count > MAX_FILES:
                raise InputError(f"{format_path(folder)} has more than {MAX_FILES:,} files: name a smaller folder.")
            yield Path(parent, name)


def choose_names(paths: Sequence[Path]) -> list[str]:
    """Return unique names of submissions: the file names, with folders if a file name occurs twice."""
    names = [path.name for path in paths]
    if len(set(names)) < len(names):
        names = [path.as_posix() for path in paths]
        with contextlib.suppress(ValueError):  # on several drives
            above = Path(os.path.commonpath([path.absolute().parent for path in paths]))
            names = [path.absolute().relative_to(above).as_posix() for path in paths]
    return [format_path(name) for name in names]
