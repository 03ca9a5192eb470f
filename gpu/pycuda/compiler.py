"""What stands in for nvcc: it takes the text that PyCUDA hands it, looks for errors, and passes it on as the image."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from gpu.errors import CompileError
from gpu.files.sources import read_source
from gpu.simulator.module import SimulatedModule

VERSION = "nvcc: Lockstep's simulator stands in for the CUDA compiler\nCuda compilation tools, release 13.0\n"
_AT = re.compile(r"^(\S+?):(\d+)(?::\d+)?: ", re.MULTILINE)
"""Where something is, as clang says it; nvcc says kernel.cu(12)."""
_LINE = re.compile(r'^[ \t]*#[ \t]*line[ \t]+(\d+)(?:[ \t]+"([^"]*)")?[^\n]*$', re.MULTILINE)
_MARK = b"LOCKSTEP IMAGE\n"
_WITH_VALUE = {
    *("-I", "-D", "-U", "-include", "-isystem", "-arch", "--gpu-architecture", "-code", "--gpu-code", "-gencode"),
    *("-o", "-x", "-L", "-l", "-m", "-t", "-std", "-ccbin", "-maxrregcount", "-Xcompiler", "--compiler-options"),
    *("-Xptxas", "--ptxas-options", "-Xlinker", "-Xcudafe", "--options-file"),
}


@dataclass(frozen=True)
class SourceImage:
    """What a module is loaded from, in place of a cubin.

    Parameters
    ----------
    text : str
        The source, as PyCUDA hands it to nvcc.
    name : str
        What positions call it.
    folder : str
        Where it was compiled.
    defines : dict of str to str
    include_dirs : list of str
    """

    text: str
    name: str
    folder: str
    defines: dict[str, str]
    include_dirs: list[str]

    def dump(self) -> bytes:
        """Return it as bytes."""
        return _MARK + json.dumps(asdict(self)).encode()

    @staticmethod
    def load(data: bytes) -> SourceImage | None:
        """Return what `dump` made of it; None of anything else."""
        return SourceImage(**json.loads(data.removeprefix(_MARK))) if data.startswith(_MARK) else None

    def module(self) -> SimulatedModule:
        """Return the module, with memory of its own.

        Raises
        ------
        CompileError
            What clang rejects.
        """
        path = Path(self.folder) / self.name
        return SimulatedModule(self.text, path, self.defines, [Path(each) for each in self.include_dirs])


_parsed: dict[bytes, SimulatedModule] = {}
"""The module that was made while the last image was compiled, for the first who loads it."""


def loaded(image: SourceImage) -> SimulatedModule:
    """Return the module of an image; what its compilation made is not made again."""
    return _parsed.pop(image.dump(), None) or image.module()


class Compiler:
    """Runs commands as `pytools.prefork` does, but for nvcc's, which it answers itself.

    Parameters
    ----------
    before : object
        What ran commands so far.
    """

    def __init__(self, before: Any) -> None:
        self._before = before

    def __getattr__(self, name: str) -> Any:
        return getattr(self._before, name)

    def call_capture_output(
        self, cmdline: Sequence[str], cwd: str | None = None, error_on_nonzero: bool = True
    ) -> tuple[int, bytes, bytes]:
        """Run a command; return its exit status, and what it wrote to standard output and standard error."""
        if Path(cmdline[0]).stem != "nvcc":
            result: tuple[int, bytes, bytes] = self._before.call_capture_output(cmdline, cwd, error_on_nonzero)
            return result
        return nvcc(cmdline[1:], Path(cwd or "."))


def nvcc(arguments: Sequence[str], folder: Path) -> tuple[int, bytes, bytes]:
    """Compile a file as nvcc would; return the exit status, and what is said on standard output and standard error."""
    if "--version" in arguments or "-V" in arguments:
        return 0, VERSION.encode(), b""
    files, options = _sorted(arguments)
    if not files:
        return 1, b"", b"nvcc fatal   : No input files specified\n"
    source = folder / files[0]
    text = read_source(source)
    if "--preprocess" in arguments or "-E" in arguments:
        return 0, text.encode(), b""
    defines = dict(_define(value) for name, value in options if name == "-D")
    includes = [str((folder / value).resolve()) for name, value in options if name in ("-I", "-isystem")]
    image = SourceImage(text, source.name, str(folder), defines, includes)
    try:
        module = image.module()
    except CompileError as error:
        log = _AT.sub(lambda at: _place(text, source.name, at), error.detail or error.message)
        return 1, b"", f"{log}\n".encode()
    _parsed.clear()
    _parsed[image.dump()] = module
    kind = next((each for each in ("cubin", "ptx", "fatbin") if f"--{each}" in arguments), "cubin")
    target = next((value for name, value in options if name == "-o"), f"{source.stem}.{kind}")
    (folder / target).write_bytes(image.dump())
    return 0, b"", b""


def _place(text: str, name: str, at: re.Match[str]) -> str:
    """Return where something is as nvcc says it, whom `#line` in the text tells what a line is called."""
    file, line = at[1], int(at[2])
    if Path(file).name == name:
        above = "\n".join(text.split("\n")[: line - 1])
        if told := [*_LINE.finditer(above)]:
            last = told[-1]
            file = last[2] or file
            line = int(last[1]) + above.count("\n", last.end())
    return f"{file}({line}): "


def _sorted(arguments: Sequence[str]) -> tuple[list[str], list[tuple[str, str]]]:
    """Return the files that a command names, and its options with their values."""
    files: list[str] = []
    options: list[tuple[str, str]] = []
    waiting: Iterator[str] = iter(arguments)
    for word in waiting:
        if not word.startswith("-"):
            files.append(word)
        elif word in _WITH_VALUE:
            options.append((word, next(waiting, "")))
        elif word[:2] in ("-I", "-D"):
            options.append((word[:2], word[2:].lstrip("=") if word[:2] == "-I" else word[2:]))
        elif word.startswith("--"):
            name, _, value = word.partition("=")
            short = {"--include-path": "-I", "--define-macro": "-D", "--output-file": "-o"}.get(name, name)
            options.append((short, value or (next(waiting, "") if short != name else "")))
    return files, options


def _define(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    return name, value if equals else "1"
