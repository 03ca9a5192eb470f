"""A program's source files, and their device code linked in one module, as by nvcc with -rdc=true."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gpu.base.errors import CompileError
from gpu.base.resource_limits import limit_resources
from gpu.files.source_lexer import blank_comments_and_literals
from gpu.files.sources import read_source
from gpu.hosts.driver.launches import LoadedModule
from gpu.simulator.simulated_module import SimulatedModule

_CUDA_SUFFIXES = (".cu", ".cuh")


@dataclass(frozen=True)
class ProgramUnit:
    """A source file of a program."""

    path: Path
    defines: dict[str, str]
    include_dirs: tuple[Path, ...]

    def load(self) -> LoadedModule:
        """Compile the file for the simulator.

        Raises
        ------
        CompileError
            If clang rejects it.
        """
        text = read_source(self.path)
        with limit_resources():
            module = SimulatedModule(text, self.path, self.defines, self.include_dirs, tolerant=True)
        return LoadedModule(module, text)


class LoadedUnits:
    """The modules of a program by number: its files, compiled at first use, and modules that it loads at run time.

    Parameters
    ----------
    units : sequence of ProgramUnit
        The program's files.
    """

    def __init__(self, units: Sequence[ProgramUnit]) -> None:
        self._units = units
        self.modules: dict[int, LoadedModule] = {}
        self._linked: dict[int, LoadedModule | None] = {}

    def add(self, unit: int, module: LoadedModule) -> None:
        """Use a module that was compiled before."""
        self.modules[unit] = module

    def load(self, unit: int) -> LoadedModule:
        """Return a module; one of a file is compiled at first use."""
        if unit not in self.modules:
            self.modules[unit] = self._units[unit].load()
        return self.modules[unit]

    def link(self, unit: int) -> LoadedModule | None:
        """Return a file's module with the device code of the program's other CUDA files; None if none compiles.

        It has the variables of the files' own modules.
        """
        if unit >= len(self._units):  # a module of the driver API
            return None
        if unit not in self._linked:
            self._linked[unit] = self._build_linked(unit)
        return self._linked[unit]

    def _build_linked(self, unit: int) -> LoadedModule | None:
        others = []
        for number, each in enumerate(self._units):
            if number != unit and each.path.suffix in _CUDA_SUFFIXES:
                try:
                    others.append((each.path, self.load(number)))
                except CompileError:
                    continue
        if not others:
            return None
        own = self._units[unit]
        text = read_source(own.path)
        functions = [_list_static_functions(each) for each in (text, *(read_source(path) for path, _ in others))]
        counts = Counter(name for names in functions for name in names)
        includes = [
            _include(path, number, sorted(name for name in names if counts[name] > 1))
            for number, ((path, _), names) in enumerate(zip(others, functions[1:], strict=True))
        ]
        with limit_resources():
            module = SimulatedModule(
                "".join((text, "\n", *includes)), own.path, own.defines, own.include_dirs, tolerant=True
            )
            for alone in (self.load(unit), *(loaded for _, loaded in others)):
                module.share_variables(alone.module)
        return LoadedModule(module, text)

    def clear(self) -> None:
        """Compile the files again at their next use, with new variables."""
        self.modules.clear()
        self._linked.clear()


_STATIC_FUNCTION = re.compile(r"\bstatic\b[\w\s:*&<>,]*?\b(?!__)(\w+)\s*\(")


def _list_static_functions(text: str) -> set[str]:
    """Return the names of functions that a file has for itself."""
    return set(_STATIC_FUNCTION.findall(blank_comments_and_literals(text)))


def _include(path: Path, number: int, renamed: Sequence[str]) -> str:
    """Return the directives that include a file, with other names for functions that several files have."""
    define = "".join(f"#define {name} {name}_lockstep{number}\n" for name in renamed)
    undefine = "".join(f"#undef {name}\n" for name in renamed)
    return f'{define}#include "{_escape(path)}"\n{undefine}'


def _escape(path: Path) -> str:
    return str(path.resolve()).replace("\\", "\\\\").replace('"', '\\"')
