"""What is suspicious about a launch, though it may be meant: what the compiler warns of, and results without values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gpu.kernel.arguments import Bound
from gpu.simulator.checkers.checker import Checker
from gpu.simulator.checkers.findings import Finding
from gpu.simulator.checkers.unset_constants import UnsetConstantChecker
from gpu.simulator.checkers.unwritten import ResultArray, UnwrittenChecker
from gpu.simulator.frontend.clang import UNUSED_PARAMETER, Diagnosis
from gpu.simulator.module import SimulatedModule
from gpu.simulator.types import Pointer


def watchers(module: SimulatedModule, kernel: str, bound: Bound) -> tuple[Checker, ...]:
    """Return who watches a launch for what is suspicious."""
    outputs = module.outputs(kernel)
    arrays = {}
    for (name, type), values in zip(module.kernel(kernel).parameters, bound.values, strict=True):
        if name in bound.uninitialized and name in outputs and values is not None:
            assert isinstance(type, Pointer)
            size = max(type.element.size, 1)
            arrays[values.ctypes.data] = ResultArray(name, outputs[name], size, values.size // size)  # type: ignore[union-attr]
    return UnwrittenChecker(arrays), UnsetConstantChecker(module.unset_constants(kernel))


def warnings_of(module: SimulatedModule, kernel: str, watched_by: Iterable[Checker]) -> list[Finding]:
    """Return what is suspicious, in the order of the text."""
    found = [*_compiler_warnings(module.warnings(kernel)), *(each for one in watched_by for each in one.findings)]
    return sorted(dict.fromkeys(found), key=lambda each: each.positions[0].line)


def _compiler_warnings(said: Iterable[Diagnosis]) -> Iterator[Finding]:
    for each in said:
        yield Finding(_kind(each), each.message[:1].upper() + each.message[1:], (each.position,))


def _kind(warning: Diagnosis) -> str:
    if warning.option == UNUSED_PARAMETER:
        return "unused-parameter"
    for kind in ("always-true", "always-false"):
        if warning.message.endswith(f"is {kind.replace('-', ' ')}"):
            return kind
    return "compiler"
