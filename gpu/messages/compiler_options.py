"""What a compiler is given beside a file, as users type it: -I FOLDER and -D NAME=VALUE."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from gpu.errors import InputError


@dataclass(frozen=True)
class CompilerOptions:
    """Folders of includes, and macros.

    Parameters
    ----------
    include_dirs : tuple of str
        Whole paths.
    defines : mapping
    """

    include_dirs: tuple[str, ...] = ()
    defines: Mapping[str, str] = field(default_factory=dict)


def compiler_options(text: str, folder: Path) -> CompilerOptions:
    """Read options as on a command line; of macros -D may be left out.

    Parameters
    ----------
    text : str
        "-I include -D N=16 FAST"
    folder : Path
        What folders are relative to.

    Raises
    ------
    InputError
        There is another option, one without what belongs to it, or a folder that is not there.
    """
    try:
        words = shlex.split(text)
    except ValueError:
        raise InputError(
            "The compiler's options have a quotation mark that nothing closes.", advice="Close it, or put \\ before it."
        ) from None
    folders: list[str] = []
    defines: dict[str, str] = {}
    place = 0
    while place < len(words):
        option, value = ("-D", words[place]) if words[place][:1] != "-" else (words[place][:2], words[place][2:])
        place += 1
        if option not in ("-I", "-D"):
            raise InputError(f"{words[place - 1]} is none of the compiler's options here: -I FOLDER and -D NAME=VALUE.")
        if not value and place < len(words):
            value = words[place]
            place += 1
        if not value:
            raise InputError(f"{option} has nothing behind it: -I FOLDER and -D NAME=VALUE.")
        if option == "-I":
            found = (folder / Path(value).expanduser()).absolute()
            if not found.is_dir():
                raise InputError(f"There is no folder {found}.", advice="It is looked for beside the file.")
            folders.append(str(found))
        else:
            name, equals, value = value.partition("=")
            if not name.isidentifier():
                raise InputError(f"{name!r} is no name of a macro.")
            defines[name] = value if equals else "1"
    return CompilerOptions(tuple(folders), defines)
