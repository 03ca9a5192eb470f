"""Hooks that are called when a memory pool allocates or frees: `with LineProfileHook() as hook:`."""

from __future__ import annotations

import sys
import traceback
from collections import Counter
from typing import Any, TextIO

from gpu.hosts.cupy.names import named

_hooks: dict[str, Any] = {}
_LIBRARY = "gpu/hosts/cupy"


@named("cupy.cuda.memory_hook.MemoryHook")
class MemoryHook:
    """Base class of hooks, which override the methods that they need; all get keyword arguments."""

    name = "MemoryHook"

    def __enter__(self) -> Any:
        if self.name in _hooks:
            raise KeyError(f"memory hook {self.name} already exists")
        _hooks[self.name] = self
        return self

    def __exit__(self, *error: object) -> None:
        del _hooks[self.name]

    def alloc_preprocess(self, **kwargs: Any) -> None:
        """Called before memory is allocated on the device."""

    alloc_postprocess = malloc_preprocess = malloc_postprocess = free_preprocess = free_postprocess = alloc_preprocess


def call_hooks(point: str, **values: Any) -> None:
    """Call the method of a point, such as "malloc", of each active hook.

    Parameters
    ----------
    point : {"alloc", "malloc", "free"}
    **values
        The arguments of its postprocess method; the preprocess method gets no `mem_ptr` and no `pmem_id`,
        unless memory is freed.
    """
    known = values if point == "free" else {k: v for k, v in values.items() if k not in ("mem_ptr", "pmem_id")}
    for hook in list(_hooks.values()):
        getattr(hook, f"{point}_preprocess")(device_id=0, **known)
        getattr(hook, f"{point}_postprocess")(device_id=0, **values)


def has_hooks() -> bool:
    """Return whether a hook is active."""
    return bool(_hooks)


@named("cupy.cuda.memory_hooks.debug_print.DebugPrintHook")
class DebugPrintHook(MemoryHook):
    """Prints a line of JSON for each allocation and release."""

    name = "DebugPrintHook"

    def __init__(self, file: TextIO = sys.stdout, flush: bool = True) -> None:
        self.file, self.flush = file, flush

    def _print(self, point: str, **values: Any) -> None:
        names = ("device_id", "size", "mem_size", "mem_ptr")
        parts = [f'"hook":"{point}"', *(f'"{name}":{values[name]}' for name in names if name in values)]
        if "pmem_id" in values:
            parts.append(f'"pmem_id":"{values["pmem_id"]:#x}"')
        print("{" + ",".join(parts) + "}", file=self.file, flush=self.flush)

    def alloc_postprocess(self, **kwargs: Any) -> None:
        """Print an allocation on the device."""
        self._print("alloc", **kwargs)

    def malloc_postprocess(self, **kwargs: Any) -> None:
        """Print an allocation from the pool."""
        self._print("malloc", **kwargs)

    def free_postprocess(self, **kwargs: Any) -> None:
        """Print a release."""
        self._print("free", **kwargs)


@named("cupy.cuda.memory_hooks.line_profile.LineProfileHook")
class LineProfileHook(MemoryHook):
    """Adds up the bytes that each line of the script allocates.

    Parameters
    ----------
    max_depth : int
        The most callers of a line; 0 for all.
    """

    name = "LineProfileHook"

    def __init__(self, max_depth: int = 0) -> None:
        self._max_depth = max_depth
        self._used: Counter[tuple[str, ...]] = Counter()
        self._acquired: Counter[tuple[str, ...]] = Counter()

    def _list_callers(self) -> tuple[str, ...]:
        frames = [each for each in traceback.extract_stack()[:-1] if _LIBRARY not in each.filename.replace("\\", "/")]
        start = max((index + 1 for index, each in enumerate(frames) if "runpy" in each.filename), default=0)
        lines = [f"{each.filename}:{each.lineno}:{each.name}" for each in frames[start:]]
        return tuple(lines[-self._max_depth :])

    def malloc_preprocess(self, **kwargs: Any) -> None:
        """Count an allocation from the pool."""
        callers = self._list_callers()
        for depth in range(1, len(callers) + 1):
            self._used[callers[:depth]] += kwargs["mem_size"]

    def alloc_preprocess(self, **kwargs: Any) -> None:
        """Count an allocation on the device."""
        callers = self._list_callers()
        for depth in range(1, len(callers) + 1):
            self._acquired[callers[:depth]] += kwargs["mem_size"]

    def print_report(self, file: TextIO | None = None) -> None:
        """Print the bytes of each line, and of the lines that it calls."""
        file = file or sys.stdout
        print(f"{LineProfileHook.__module__}.{LineProfileHook.__name__}", file=file)
        for callers in sorted(self._used):
            sizes = ", ".join(_format_size(count[callers]) for count in (self._used, self._acquired))
            print(f"{'  ' * (len(callers) - 1)}{callers[-1]} ({sizes})", file=file)


def _format_size(size: int) -> str:
    for unit in ("B", "KB", "MB"):
        if size < 1024:
            return f"{size:.2f}{unit}"
        size /= 1024  # type: ignore[assignment]
    return f"{size:.2f}GB"


NAMES = {"MemoryHook": MemoryHook}
HOOKS = {"DebugPrintHook": DebugPrintHook, "LineProfileHook": LineProfileHook}
"""The names of the modules memory_hook and memory_hooks."""
