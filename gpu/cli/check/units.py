"""What `check` runs: kernels, programs and scripts, found by name, content and `lockstep:` comments."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from gpu.base.errors import InputError
from gpu.cli.user_code.script import COMMANDS
from gpu.files.file_access import format_path, read_bytes
from gpu.files.source_lexer import blank_comments_and_literals
from gpu.hosts.script import find_libraries

_MAX_FILE_BYTES = 16 << 20
_MAX_FILES = 10_000
_PROGRAM_SUFFIXES = (".cu", ".cpp", ".cc", ".c")
_SCRIPT_SUFFIX = ".py"
_DIRECTIVE = re.compile(r"[ \t]*(?://|#)[ \t]*lockstep:[ \t]*(\S.*)")
_MAIN = re.compile(r"\bmain\s*\(")
# A comment in a file must neither write files nor change how the results are collected.
_REFUSED_OPTIONS = ("--dump", "--trace", "--report", "--json", "--check", "--max-seconds", "--max-memory", "--fast")


@dataclass(frozen=True)
class CheckUnit:
    """One run: a launch of a kernel, a program or a script.

    Parameters
    ----------
    name : str
        "src/a.cu: saxpy" for a kernel; the file's path otherwise.
    command : tuple of str
        The words of the command line: "simulate", "program", "pycuda" or "cupy", and its arguments.
    """

    file: Path
    name: str
    command: tuple[str, ...]


@dataclass(frozen=True)
class SkippedFile:
    """A file that is not checked.

    Parameters
    ----------
    reason : str
        A sentence.
    is_named : bool
        Whether the user named the file itself, not a folder that contains it.
    """

    name: str
    reason: str
    is_named: bool


def find_units(paths: Sequence[str], compiler_options: Sequence[str]) -> tuple[list[CheckUnit], list[SkippedFile]]:
    """Find what to run in files and folders.

    Parameters
    ----------
    paths : sequence of str
        Files, or folders that are searched for .cu files and scripts of PyCUDA and CuPy.
    compiler_options : sequence of str
        -I and -D options for kernels and programs.

    Raises
    ------
    InputError
        A path does not exist, a folder has too many files, or a `lockstep:` comment is invalid.
    """
    units: list[CheckUnit] = []
    skipped: list[SkippedFile] = []
    for file, is_named in _list_files(paths).items():
        text = read_bytes(file, _MAX_FILE_BYTES).decode(errors="replace")
        found = list(_read_directives(file, text, compiler_options)) or _classify(file, text, compiler_options)
        units += found
        if not found and (is_named or file.suffix == ".cu"):
            skipped.append(SkippedFile(format_path(file), _explain_skipped(file), is_named))
    return units, skipped


def _list_files(paths: Sequence[str]) -> dict[Path, bool]:
    """Return the files to look at, with whether the user named them."""
    files: dict[Path, bool] = {}
    for text in paths:
        path = Path(text)
        if not text or not (path.is_file() or path.is_dir()):
            raise InputError(f"There is no file or folder {format_path(text)!r}.")
        if path.is_file():
            files[path] = True
            continue
        for file in _walk(path):
            files.setdefault(file, False)
            if len(files) > _MAX_FILES:
                raise InputError(f"{format_path(path)} has more than {_MAX_FILES:,} .cu and .py files.")
    return files


def _walk(folder: Path) -> Iterator[Path]:
    """Yield the .cu and .py files below a folder, without hidden folders and Python environments."""
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(
            name for name in folders if name[0] != "." and not Path(parent, name, "pyvenv.cfg").is_file()
        )
        for name in sorted(names):
            file = Path(parent, name)
            if file.suffix in (".cu", _SCRIPT_SUFFIX) and file.is_file() and not file.is_symlink():
                yield file


def _read_directives(file: Path, text: str, compiler_options: Sequence[str]) -> Iterator[CheckUnit]:
    for number, line in enumerate(text.splitlines(), 1):
        match = _DIRECTIVE.fullmatch(line)
        if match is None:
            continue
        place = f"{format_path(file)}:{number}"
        try:
            command, *words = shlex.split(match[1])
        except ValueError as error:
            raise InputError(f"{place}: the lockstep comment is not a command line: {error}.") from None
        for word in words[: words.index("--")] if command == "program" and "--" in words else words:
            if command not in COMMANDS and word.partition("=")[0] in _REFUSED_OPTIONS:
                raise InputError(f"{place}: {word.partition('=')[0]} has no place in a lockstep comment.")
        yield _build_unit(file, command, words, compiler_options, place)


def _build_unit(
    file: Path, command: str, words: Sequence[str], compiler_options: Sequence[str], place: str
) -> CheckUnit:
    name = format_path(file)
    is_script = file.suffix == _SCRIPT_SUFFIX
    if command == "simulate" and words and not is_script:
        return CheckUnit(file, f"{name}: {words[0]}", ("simulate", str(file), words[0], *compiler_options, *words[1:]))
    if command == "program" and not is_script:
        return CheckUnit(file, name, ("program", str(file), *compiler_options, *words))
    if command in COMMANDS and is_script:
        return CheckUnit(file, name, (command, str(file), *words))
    expected = (
        "pycuda [ARGS ...] or cupy [ARGS ...]"
        if is_script
        else "simulate KERNEL [options] or program [options] [-- ARGS ...]"
    )
    raise InputError(f"{place}: the lockstep comment is not {expected}.")


def _classify(file: Path, text: str, compiler_options: Sequence[str]) -> list[CheckUnit]:
    """Return the unit of a file without a comment for `check`; [] if nothing says how to run it."""
    if file.suffix in _PROGRAM_SUFFIXES and _MAIN.search(blank_comments_and_literals(text)):
        return [_build_unit(file, "program", (), compiler_options, "")]
    if file.suffix == _SCRIPT_SUFFIX and (libraries := find_libraries(text)):
        return [_build_unit(file, libraries[0], (), compiler_options, "")]
    return []


def _explain_skipped(file: Path) -> str:
    if file.suffix == _SCRIPT_SUFFIX:
        return "It does not import pycuda or cupy."
    if file.suffix not in _PROGRAM_SUFFIXES:
        return "It is neither CUDA C++ nor a Python script."
    return "It has no main function, and no line `// lockstep: simulate KERNEL [options]`."
