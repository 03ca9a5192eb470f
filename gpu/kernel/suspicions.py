"""Warnings about suspicious but legal code: compiler warnings and results that are never written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gpu.base.findings import Finding
from gpu.kernel.arguments import BoundArguments
from gpu.simulator.checkers.checker import Checker
from gpu.simulator.checkers.memory.unset_constants import UnsetConstantChecker
from gpu.simulator.checkers.memory.unwritten_arrays import ResultArray, UnwrittenChecker
from gpu.simulator.frontend.clang.parsing import UNUSED_PARAMETER, Diagnosis
from gpu.simulator.simulated_module import SimulatedModule
from gpu.simulator.types import Pointer


def create_kernel_checkers(module: SimulatedModule, kernel: str, bound: BoundArguments) -> tuple[Checker, ...]:
    """Return the checkers that detect suspicious code in a launch."""
    outputs = module.find_outputs(kernel)
    arrays = {}
    for (name, type), values in zip(module.kernel(kernel).parameters, bound.values, strict=True):
        if name in bound.uninitialized and name in outputs and values is not None:
            assert isinstance(type, Pointer)
            size = max(type.element.size, 1)
            arrays[values.ctypes.data] = ResultArray(name, outputs[name], size, values.size // size)  # type: ignore[union-attr]
    return UnwrittenChecker(arrays), UnsetConstantChecker(module.find_unset_constants(kernel))


def collect_warnings(module: SimulatedModule, kernel: str, checkers: Iterable[Checker]) -> list[Finding]:
    """Return all warnings about a launch, in source order."""
    found = [
        *_compiler_warnings(module.iterate_warnings(kernel)),
        *(warning for checker in checkers for warning in checker.findings),
    ]
    return sorted(dict.fromkeys(found), key=lambda warning: warning.positions[0].line)


def _compiler_warnings(diagnoses: Iterable[Diagnosis]) -> Iterator[Finding]:
    for diagnosis in diagnoses:
        yield Finding(
            _warning_kind(diagnosis), diagnosis.message[:1].upper() + diagnosis.message[1:], (diagnosis.position,)
        )


def _warning_kind(warning: Diagnosis) -> str:
    if warning.option == UNUSED_PARAMETER:
        return "unused-parameter"
    for kind in ("always-true", "always-false"):
        if warning.message.endswith(f"is {kind.replace('-', ' ')}"):
            return kind
    return "compiler"
