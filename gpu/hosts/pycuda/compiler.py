"""Replacement of nvcc: checks the source that PyCUDA passes, and returns it as the image to load."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from gpu.base.errors import CompileError
from gpu.files.sources import read_source
from gpu.hosts.driver.compiler_options import parse_define, parse_options
from gpu.simulator.simulated_module import SimulatedModule

VERSION = "nvcc: Lockstep's simulator replaces the CUDA compiler\nCuda compilation tools, release 13.0\n"
_POSITION = re.compile(r"^(\S+?):(\d+)(?::\d+)?: ", re.MULTILINE)
"""Positions in clang's messages; nvcc's format is kernel.cu(12)."""
_LINE = re.compile(r'^[ \t]*#[ \t]*line[ \t]+(\d+)(?:[ \t]+"([^"]*)")?[^\n]*$', re.MULTILINE)
_MARK = b"LOCKSTEP IMAGE\n"


@dataclass(frozen=True)
class SourceImage:
    """Image of a module: its source instead of a cubin.

    Parameters
    ----------
    text : str
        Source as PyCUDA passes it to nvcc.
    name : str
        File name in positions.
    folder : str
        Folder in which it was compiled.
    """

    text: str
    name: str
    folder: str
    defines: dict[str, str]
    include_dirs: list[str]

    def dump(self) -> bytes:
        """Serialize the image."""
        return _MARK + json.dumps(asdict(self)).encode()

    @staticmethod
    def load(data: bytes) -> SourceImage | None:
        """Deserialize an image; return None for other data."""
        return SourceImage(**json.loads(data.removeprefix(_MARK))) if data.startswith(_MARK) else None

    def module(self) -> SimulatedModule:
        """Compile to a module with its own memory.

        Raises
        ------
        CompileError
            If clang rejects the source.
        """
        path = Path(self.folder) / self.name
        return SimulatedModule(self.text, path, self.defines, [Path(include_dir) for include_dir in self.include_dirs])


_compiled_modules: dict[bytes, SimulatedModule] = {}
"""Module of the last compiled image, for the first caller that loads it."""


def load_module(image: SourceImage) -> SimulatedModule:
    """Return an image's module, reusing the one from its compilation once."""
    return _compiled_modules.pop(image.dump(), None) or image.module()


class Compiler:
    """Replacement of `pytools.prefork.forker` that handles nvcc's commands itself.

    Parameters
    ----------
    original : object
        The original object, which runs all other commands.
    """

    def __init__(self, original: Any) -> None:
        self._original = original

    def __getattr__(self, name: str) -> Any:
        return getattr(self._original, name)

    def call_capture_output(
        self, cmdline: Sequence[str], cwd: str | None = None, error_on_nonzero: bool = True
    ) -> tuple[int, bytes, bytes]:
        """Run a command; return its exit status, standard output and standard error."""
        if Path(cmdline[0]).stem != "nvcc":
            result: tuple[int, bytes, bytes] = self._original.call_capture_output(cmdline, cwd, error_on_nonzero)
            return result
        return run_nvcc(cmdline[1:], Path(cwd or "."))


def run_nvcc(arguments: Sequence[str], folder: Path) -> tuple[int, bytes, bytes]:
    """Compile a file; return nvcc's exit status, standard output and standard error."""
    if "--version" in arguments or "-V" in arguments:
        return 0, VERSION.encode(), b""
    files, options = parse_options(arguments)
    if not files:
        return 1, b"", b"nvcc fatal   : No input files specified\n"
    source = folder / files[0]
    text = read_source(source)
    if "--preprocess" in arguments or "-E" in arguments:
        return 0, text.encode(), b""
    defines = dict(parse_define(value) for name, value in options if name == "-D")
    includes = [str((folder / value).resolve()) for name, value in options if name in ("-I", "-isystem")]
    image = SourceImage(text, source.name, str(folder), defines, includes)
    try:
        module = image.module()
    except CompileError as error:
        log = _POSITION.sub(lambda at: _nvcc_position(text, source.name, at), error.detail or error.message)
        return 1, b"", f"{log}\n".encode()
    _compiled_modules.clear()
    _compiled_modules[image.dump()] = module
    kind = next((each for each in ("cubin", "ptx", "fatbin") if f"--{each}" in arguments), "cubin")
    target = next((value for name, value in options if name == "-o"), f"{source.stem}.{kind}")
    (folder / target).write_bytes(image.dump())
    return 0, b"", b""


def _nvcc_position(text: str, name: str, match: re.Match[str]) -> str:
    """Convert a position to nvcc's format, with `#line` directives in the text applied."""
    file, line = match[1], int(match[2])
    if Path(file).name == name:
        above = "\n".join(text.split("\n")[: line - 1])
        if directives := [*_LINE.finditer(above)]:
            last = directives[-1]
            file = last[2] or file
            line = int(last[1]) + above.count("\n", last.end())
    return f"{file}({line}): "
