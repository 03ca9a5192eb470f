"""Include folders of the project that contains a program, such as `Common` of NVIDIA's CUDA samples."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from gpu.base.devices.probe import find_thrust
from gpu.files.sources import INCLUDE, read_includes
from gpu.hosts.program.host_compiler import contains_thrust, has_stand_in

NAMES = ("Common", "include", "inc")
"""Names of folders that projects keep shared headers in."""
_PARENTS_WITHOUT_REPOSITORY = 3
"""Parents that are searched if no ancestor is a git repository, as in an unpacked archive of the samples."""


def add_project_folders(sources: Mapping[Path, str], include_dirs: Sequence[Path]) -> tuple[Path, ...]:
    """Return include folders with those of the program's project and Thrust's, and print lines to stderr about these.

    Parameters
    ----------
    sources : mapping of Path to str
        The program's source files and their texts, which may differ from the files' contents.
    include_dirs : sequence of Path
        The given folders; they come first.

    Returns
    -------
    tuple of Path
        A folder is added only if it has a header that the program includes and the given folders do not have; Thrust's
        only if the program includes a header of Thrust's that the simulator does not have.

    Raises
    ------
    CompileError
        As for `gpu.files.sources.read_includes`.
    """
    folders = list(include_dirs)
    for candidate in dict.fromkeys(candidate for file in sources for candidate in _list_candidates(file)):
        if candidate not in folders and any(
            _is_needed(candidate, file, text, folders) for file, text in sources.items()
        ):
            folders.append(candidate)
    added = folders[len(include_dirs) :]
    if added:
        names = ", ".join(os.path.relpath(folder) for folder in added)
        print(f"lockstep: Also searched for include files: {names}.", file=sys.stderr, flush=True)
    if _needs_thrust(sources, folders):
        thrust = next((folder for folder in folders if contains_thrust(folder)), find_thrust())
        if thrust is not None:
            folders += [thrust] if thrust not in folders else []
            print(f"lockstep: Thrust's algorithms run on this CPU, from {thrust}.", file=sys.stderr, flush=True)
    return tuple(folders)


def _needs_thrust(sources: Mapping[Path, str], folders: Sequence[Path]) -> bool:
    searched = [folder for folder in folders if not contains_thrust(folder)]
    texts = [text for file, text in sources.items() for text in (text, *read_includes(text, file, searched).values())]
    names = {name for text in texts for name in INCLUDE.findall(text)}
    return any(name.startswith("thrust/") and not has_stand_in(name) for name in names)


def _list_candidates(file: Path) -> list[Path]:
    """Return the existing folders with shared headers, the nearest first."""
    ancestors = [file.resolve().parent, *file.resolve().parent.parents]
    root = next((index for index, folder in enumerate(ancestors) if (folder / ".git").exists()), None)
    searched = ancestors[: (_PARENTS_WITHOUT_REPOSITORY if root is None else root) + 1]
    return [folder / name for folder in searched for name in NAMES if (folder / name).is_dir()]


def _is_needed(candidate: Path, file: Path, text: str, folders: Sequence[Path]) -> bool:
    """Return whether a program's file, or a header of it, includes a header that only the candidate has."""
    texts = {file: text, **read_includes(text, file, folders)}
    for path, inner in texts.items():
        known = (path.parent, file.parent, *folders)
        for name in INCLUDE.findall(inner):
            if (candidate / name).is_file() and not any((folder / name).is_file() for folder in known):
                return True
    return False
