"""Modules of the driver API, and sources that NVRTC compiles, in a program."""

from __future__ import annotations

import ctypes
import itertools
import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gpu.base.errors import CompileError, KernelError, LockstepError
from gpu.base.resource_limits import limit_resources
from gpu.files.sources import read_source
from gpu.hosts.driver.compiler_options import parse_define, parse_options
from gpu.hosts.driver.launches import LoadedModule
from gpu.hosts.driver.memory import address_of
from gpu.hosts.program import errors
from gpu.hosts.program.errors import RefusedRoutineError
from gpu.hosts.program.mapped_memory import access_host, write_address, write_int
from gpu.hosts.program.program_units import LoadedUnits
from gpu.simulator.simulated_module import SimulatedModule

_INVALID_PROGRAM, _COMPILATION, _INVALID_NAME, _INVALID_INPUT = 4, 6, 10, 3
"""Error numbers of NVRTC."""
_FIRST_UNIT = 1 << 20
"""Number of the first module, above those of the program's files."""
_CODE = "// Source compiled by Lockstep: "
"""What stands in place of machine code; the module's number follows."""
_MAX_IMAGE = 1 << 26
_ENTRY = re.compile(rb"\.entry\s+([\w$]+)|\.nv\.constant0\.([\w$]+)\0")
"""A kernel in PTX, and the section of a kernel's parameters in machine code."""
_FATBIN, _ELF = b"\x50\xed\x55\xba", b"\x7fELF"
"""First bytes of images of machine code."""
_SOURCES = (".cu", ".cuh", ".cpp")
_SUFFIX = re.compile(r"(?:[._-]?(?:sm|compute)_?\d+\w?|_?(?:32|64))$")
"""What build systems append to the name of a source's machine code."""


@dataclass
class _Program:
    """A program of NVRTC."""

    source: str
    name: str
    expressions: list[str] = field(default_factory=list)
    log: str = ""
    unit: int = 0
    lowered: dict[str, ctypes.Array[ctypes.c_char]] = field(default_factory=dict)


class ProgramModules:
    """Modules that a program loads or compiles at run time.

    Parameters
    ----------
    folders : sequence of Path
        Folders of the program's files, in which sources are looked for.
    """

    def __init__(self, loaded: LoadedUnits, folders: Sequence[Path]) -> None:
        self._loaded, self._folders = loaded, folders
        self._units = itertools.count(_FIRST_UNIT)
        self._programs: dict[int, _Program] = {}
        self._handles = itertools.count(0x100, 0x10)

    def _load(self, text: str, path: Path, defines: dict[str, str], folders: Sequence[Path]) -> int:
        """Compile a source; return its module's number."""
        with limit_resources():
            module = SimulatedModule(text, path, defines, folders, tolerant=True)
        unit = next(self._units)
        self._loaded.add(unit, LoadedModule(module, text))
        return unit

    def _load_file(self, path: Path) -> int:
        return self._load(read_source(path), path, {}, [path.parent])

    def do_module_load(self, target: int, path: int) -> None:
        """Load the source beside a file of PTX or machine code, as `cuModuleLoad`.

        Parameters
        ----------
        target : int
            The address of the module's number, 32 bits.
        path : int
            The address of the file's path.

        Raises
        ------
        RefusedRoutineError
            If there is no such file.
        KernelError
            If its source is not beside it.
        """
        file = Path(ctypes.string_at(path).decode(errors="replace"))
        if not file.is_file():
            raise RefusedRoutineError(errors.FILE_NOT_FOUND)
        names = {file.stem, _SUFFIX.sub("", file.stem)}
        found = [each for name in names for suffix in _SOURCES if (each := file.parent / f"{name}{suffix}").is_file()]
        if not found:
            with file.open("rb") as opened:
                found = self._find_sources(opened.read(_MAX_IMAGE), file.parent)
        write_int(target, self._load_file(self._get_only(found, file.name)))

    def do_module_load_data(self, target: int, image: int) -> None:
        """Load what NVRTC compiled, or the source of PTX, as `cuModuleLoadData`.

        Parameters
        ----------
        target : int
            As of `do_module_load`.
        image : int
            The address of PTX, of machine code, or of code from NVRTC.

        Raises
        ------
        KernelError
            If no file of the program has the kernels of the PTX or of the machine code.
        """
        text = _read_image(image)
        if text.startswith(_CODE.encode()):
            unit = int(text[len(_CODE) :])
        else:
            unit = self._load_file(self._get_only(self._find_sources(text, Path.cwd()), "this module"))
        write_int(target, unit)

    def _find_sources(self, image: bytes, folder: Path) -> list[Path]:
        """Return the files that define all kernels of PTX or machine code."""
        entries = {(in_ptx or in_code).decode() for in_ptx, in_code in _ENTRY.findall(image)}
        candidates = {
            path.resolve() for each in (folder, *self._folders) for path in sorted(each.glob("*.cu")) if entries
        }
        return [path for path in sorted(candidates) if all(_defines(read_source(path), name) for name in entries)]

    def _get_only(self, found: Sequence[Path], name: str) -> Path:
        if len(found) == 1:
            return found[0]
        what = "several files could be" if found else "no .cu file beside it is"
        raise KernelError(
            f"The simulator runs CUDA C++, no PTX or machine code, and {what} the source of {name}.",
            advice="Put the kernels in a .cu file of the module's name in the same folder, or compile them with NVRTC.",
        )

    def do_module_function(self, unit: int, name: int, target: int, room: int) -> None:
        """Write the simulator's name of a module's kernel.

        Parameters
        ----------
        unit : int
            The module's number.
        name : int
            The address of the kernel's linker symbol, or of a name from `nvrtcGetLoweredName`.
        target, room : int
            The address and the size of the result.

        Raises
        ------
        RefusedRoutineError
            If there is no such kernel.
        """
        module, text = self._loaded.load(unit).module, ctypes.string_at(name).decode(errors="replace")
        symbol = module.symbols.get(text, text)
        try:
            with limit_resources():
                module.kernel(symbol)
        except KernelError:
            raise RefusedRoutineError(errors.SYMBOL_NOT_FOUND) from None
        data = symbol.encode() + b"\0"
        if len(data) > room:
            raise RefusedRoutineError(errors.INVALID_VALUE)
        ctypes.memmove(target, data, len(data))

    def do_module_variable(self, unit: int, name: int, target: int, size: int) -> None:
        """Write the address and the size of a module's variable; raise RefusedRoutineError if there is none."""
        try:
            memory = self._loaded.load(unit).module.variable(ctypes.string_at(name).decode(errors="replace"))
        except KernelError:
            raise RefusedRoutineError(errors.SYMBOL_NOT_FOUND) from None
        for address, value in ((target, address_of(memory)), (size, memory.data.size)):
            if address:
                write_address(address, value)

    # NVRTC, whose routines return error numbers of their own

    def do_nvrtc_create(self, target: int, source: int, name: int, count: int, headers: int, names: int) -> int:
        """Create a program from a source; headers in memory replace their #include lines."""
        if not target or not source or count < 0:
            return _INVALID_INPUT
        text = ctypes.string_at(source).decode(errors="replace")
        title = ctypes.string_at(name).decode(errors="replace") if name else "default_program"
        included = _read_strings(names, count)
        for header, content in zip(included, _read_strings(headers, count), strict=True):
            include = re.compile(rf'^[ \t]*#[ \t]*include[ \t]*[<"]{re.escape(header)}[>"]', re.MULTILINE)
            text = include.sub(lambda _, content=content: content, text)  # type: ignore[misc]
        handle = next(self._handles)
        self._programs[handle] = _Program(text, title)
        write_address(target, handle)
        return 0

    def do_nvrtc_destroy(self, target: int) -> int:
        """Delete a program."""
        handle = access_host(ctypes.c_longlong, target)
        found = self._programs.pop(handle.value, None)
        handle.value = 0
        return 0 if found is not None else _INVALID_PROGRAM

    def do_nvrtc_add_name(self, handle: int, name: int) -> int:
        """Add a kernel with template arguments."""
        program = self._programs.get(handle)
        if program is None:
            return _INVALID_PROGRAM
        program.expressions.append(ctypes.string_at(name).decode(errors="replace"))
        return 0

    def do_nvrtc_compile(self, handle: int, count: int, options: int) -> int:
        """Compile a program; -D and -I are used, other options have no influence on the simulator."""
        program = self._programs.get(handle)
        if program is None:
            return _INVALID_PROGRAM
        _, values = parse_options(_read_strings(options, count))
        defines = dict(parse_define(value) for option, value in values if option == "-D")
        folders = [Path(value).resolve() for option, value in values if option in ("-I", "-isystem")]
        try:
            program.unit = self._load(program.source, Path.cwd() / Path(program.name).name, defines, folders)
            module = self._loaded.load(program.unit).module
            with limit_resources():
                for name in program.expressions or module.kernels:
                    module.kernel(name.strip().removeprefix("&"))
        except CompileError as error:
            program.log, program.unit = error.detail or error.message, 0
        except LockstepError as error:
            program.log, program.unit = f"{error.message} {error.advice}".strip(), 0
        return 0 if program.unit else _COMPILATION

    def do_nvrtc_text(self, handle: int, kind: int, size: int, target: int) -> int:
        """Write the size or the text of the log (kind 0) or of the code (1), with its terminating zero."""
        program = self._programs.get(handle)
        if program is None or (kind and not program.unit):
            return _INVALID_PROGRAM
        data = (f"{_CODE}{program.unit}" if kind else program.log).encode() + b"\0"
        if size:
            write_address(size, len(data))
        if target:
            ctypes.memmove(target, data, len(data))
        return 0

    def do_nvrtc_lowered(self, handle: int, name: int, target: int) -> int:
        """Write the address of the name by which a module's kernel is found."""
        program = self._programs.get(handle)
        if program is None or not program.unit:
            return _INVALID_PROGRAM
        text = ctypes.string_at(name).decode(errors="replace")
        if text not in program.expressions:
            return _INVALID_NAME
        if text not in program.lowered:
            program.lowered[text] = ctypes.create_string_buffer(text.strip().removeprefix("&").encode())
        write_address(target, ctypes.addressof(program.lowered[text]))
        return 0


def _read_image(address: int) -> bytes:
    """Return an image's bytes, whose size is in its header; PTX ends with a zero."""
    start = ctypes.string_at(address)[:4]
    if start == _FATBIN:
        _, _, header, size = struct.unpack("<IHHQ", ctypes.string_at(address, 16))
        return ctypes.string_at(address, min(header + size, _MAX_IMAGE))
    if start == _ELF:  # its section headers are at its end
        (sections,) = struct.unpack("<Q", ctypes.string_at(address + 40, 8))
        size, count = struct.unpack("<HH", ctypes.string_at(address + 58, 4))
        return ctypes.string_at(address, min(sections + size * count, _MAX_IMAGE))
    return ctypes.string_at(address)


def _read_strings(address: int, count: int) -> list[str]:
    if count <= 0 or not address:
        return []
    return [(each or b"").decode(errors="replace") for each in (ctypes.c_char_p * count).from_address(address)]


def _defines(text: str, symbol: str) -> bool:
    """Return whether a source defines the kernel of a linker symbol, such as "_Z5scalePfi"."""
    match = re.match(r"_Z(\d+)", symbol)
    name = symbol[match.end() : match.end() + int(match[1])] if match is not None else symbol
    return re.search(rf"__global__[^;{{]*\b{re.escape(name)}\s*\(", text) is not None
