"""Compiler options as users type them: -I FOLDER, -D NAME=VALUE and --expt-relaxed-constexpr."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from gpu.base.errors import InputError
from gpu.files.sources import RELAXED_CONSTEXPR


@dataclass(frozen=True)
class CompilerOptions:
    """Include folders and macros.

    Parameters
    ----------
    include_dirs : tuple of str
        Absolute paths.
    """

    include_dirs: tuple[str, ...] = ()
    defines: Mapping[str, str] = field(default_factory=dict)


def parse_compiler_options(text: str, folder: Path) -> CompilerOptions:
    """Parse options as on a command line; -D is optional before a macro.

    Parameters
    ----------
    text : str
        "-I include -D N=16 FAST"
    folder : Path
        Base of relative paths.

    Raises
    ------
    InputError
        If an option is unknown or incomplete, or a folder does not exist.
    """
    try:
        words = shlex.split(text)
    except ValueError:
        raise InputError(
            "The compiler options have an unclosed quotation mark.", advice="Close it, or put \\ before it."
        ) from None
    folders: list[str] = []
    defines: dict[str, str] = {}
    index = 0
    while index < len(words):
        option, value = ("-D", words[index]) if words[index][:1] != "-" else (words[index][:2], words[index][2:])
        index += 1
        if option == "--" and words[index - 1] == "--expt-relaxed-constexpr":
            defines[RELAXED_CONSTEXPR] = "1"
            continue
        if option not in ("-I", "-D"):
            raise InputError(
                f"Unsupported compiler option {words[index - 1]}; use -I FOLDER, -D NAME=VALUE and "
                "--expt-relaxed-constexpr."
            )
        if not value and index < len(words):
            value = words[index]
            index += 1
        if not value:
            raise InputError(f"{option} needs a value: -I FOLDER or -D NAME=VALUE.")
        if option == "-I":
            include_dir = (folder / Path(value).expanduser()).absolute()
            if not include_dir.is_dir():
                raise InputError(f"There is no folder {include_dir}.", advice="Paths are relative to the file.")
            folders.append(str(include_dir))
        else:
            name, equals, value = value.partition("=")
            if not name.isidentifier():
                raise InputError(f"{name!r} is not a valid macro name.")
            defines[name] = value if equals else "1"
    return CompilerOptions(tuple(folders), defines)
