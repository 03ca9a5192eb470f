"""The commands that built the measured programs, from CMake's `compile_commands.json` beside the measurements."""

from __future__ import annotations

import json
import os
import re
import shlex
from collections import defaultdict
from pathlib import Path, PurePosixPath

from gpu.base.errors import InputError
from tools.public_programs.recipes import Recipe

_TARGET = re.compile(r"CMakeFiles/([^/]+)\.dir/")
_CODE_SUFFIXES = (".cu", ".cpp", ".cc", ".c", ".cxx")


def read_build_commands(path: Path) -> dict[str, Recipe]:
    """Read how each program was built: its files and options, with paths relative to the program's folder.

    Raises
    ------
    InputError
        The file cannot be read, or has another format.
    """
    files: dict[str, list[str]] = defaultdict(list)
    options: dict[str, dict[str, None]] = defaultdict(dict)
    try:
        for entry in json.loads(path.read_text("utf-8")):
            target = _TARGET.match(entry["output"])
            source = PurePosixPath(entry["file"])
            if target is None or source.suffix not in _CODE_SUFFIXES or target[1] not in source.parts:
                continue
            folder = PurePosixPath(*source.parts[: source.parts.index(target[1]) + 1])
            files[target[1]].append(str(source.relative_to(folder)))
            options[target[1]].update(dict.fromkeys(_find_options(entry["command"], folder)))
    except OSError as error:
        raise InputError(f"Cannot read {path}: {error.strerror}.") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{path} does not contain build commands: {error}.") from None
    return {name: Recipe(tuple(files[name]), (), _split_options(options[name])) for name in files}


def _find_options(command: str, folder: PurePosixPath) -> list[str]:
    """Return the options -I and -D of a command, each with its value, and without the program's own folder."""
    found = []
    words = shlex.split(command)
    for word, following in zip(words, [*words[1:], ""], strict=True):
        kind, value = ("-I", following) if word == "-isystem" else (word[:2], word[2:] or following)
        if kind == "-D":
            found.append(f"-D{value}")
        elif kind == "-I" and folder.parent in PurePosixPath(value).parents and value != str(folder):
            found.append(f"-I{os.path.relpath(value, folder)}")
    return found


def _split_options(options: dict[str, None]) -> tuple[str, ...]:
    return tuple(part for option in options if option != "-DNDEBUG" for part in (option[:2], option[2:]))
