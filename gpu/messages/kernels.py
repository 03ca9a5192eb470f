"""Kernels of files that no pattern declares, as plain data: what they take, how they are launched, what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from gpu.messages.counted import RunCounts
from gpu.messages.verdicts import Check, Mistake


@dataclass(frozen=True)
class KernelParameter:
    """A kernel's parameter.

    Parameters
    ----------
    name, type : str
        As the source has them.
    kind : {"pointer", "integer", "real", "struct", "variable", "texture"}
        What it takes: an array, a number, or several numbers; of the file's own variables what they hold before the
        launch, and of its texture references a file.
    read_only : bool
        Whether it is a pointer to const.
    parts : int
        How many numbers it takes; 0 for a pointer.
    """

    name: str
    type: str
    kind: str
    read_only: bool = False
    parts: int = 1


@dataclass(frozen=True)
class Signature:
    """A kernel that can be launched, or of which an instantiation can.

    Parameters
    ----------
    name : str
        Of a template's instantiation with its arguments.
    parameters : tuple of KernelParameter
    template : bool
        Whether it is a template, which needs arguments: it has no parameters yet.
    refusal : str
        Why it cannot run; "" where it can.
    variables : tuple of KernelParameter
        The `__constant__` and `__device__` variables and the texture references of its file.
    grid, block : tuple of int or None
        What the file launches it with, where that is constant.
    shared_bytes : int or None
        The same of its shared memory.
    """

    name: str
    parameters: tuple[KernelParameter, ...] = ()
    template: bool = False
    refusal: str = ""
    variables: tuple[KernelParameter, ...] = ()
    grid: tuple[int, ...] | None = None
    block: tuple[int, ...] | None = None
    shared_bytes: int | None = None


@dataclass(frozen=True)
class KernelLaunch:
    """A launch of a kernel, as it is typed.

    Parameters
    ----------
    file, text : str
        The kernel file's path, and the text that is in its place.
    kernel : str
        A `__global__` function, or an instantiation of a template.
    grid, block : tuple of int
        Blocks and threads in x, y and z.
    arguments : tuple of str
        One for each parameter, as `gpu.kernel.simulate.simulate` takes them.
    shared_bytes : int
        The size of the extern `__shared__` array.
    defines : mapping
        Macros.
    constants, textures : mapping
        What variables and texture references of the file hold, as `gpu.kernel.simulate.simulate` takes them.
    include_dirs : tuple of str
        Where includes are looked for, other than beside the file.
    """

    file: str
    text: str
    kernel: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    arguments: tuple[str, ...]
    shared_bytes: int = 0
    defines: Mapping[str, str] = field(default_factory=dict)
    constants: Mapping[str, str] = field(default_factory=dict)
    textures: Mapping[str, str] = field(default_factory=dict)
    include_dirs: tuple[str, ...] = ()


@dataclass(frozen=True)
class LineFigures:
    """What a source line cost; None where it has nothing to do with that.

    Parameters
    ----------
    statements : int
        Statements of warps.
    lanes : float
        Active lanes of 32, on average.
    sectors : float or None
        32-byte sectors for a request to global memory.
    conflicts : int or None
        Bank conflicts in shared memory.
    """

    statements: int
    lanes: float
    sectors: float | None
    conflicts: int | None


@dataclass(frozen=True)
class Simulated:
    """What came of a kernel's launch on the simulator.

    Parameters
    ----------
    check : Check
        What it does wrong, and whether other orders of threads give the same; only a small launch runs in several.
    printed : tuple of (str, str)
        Thread and text of each printf.
    lines : mapping of int to LineFigures
        Of the kernel's own file.
    """

    check: Check
    printed: tuple[tuple[str, str], ...]
    lines: Mapping[int, LineFigures]


@dataclass(frozen=True)
class CountedLaunch:
    """What a kernel's launch does, counted.

    Parameters
    ----------
    counts : RunCounts
        Of the launch as a whole.
    mistakes : tuple of Mistake
        What it does wrong in one order of threads.
    simulated_ms : float
        How long this CPU took to simulate it, before the eyes of counters and checkers.
    """

    counts: RunCounts
    mistakes: tuple[Mistake, ...]
    simulated_ms: float


def alike(one: npt.NDArray[Any], other: npt.NDArray[Any]) -> bool:
    """Return whether two results are the same, but for the rounding of sums that are added in another order."""
    if one.dtype != other.dtype or one.shape != other.shape:
        return False
    if one.dtype.kind == "f":
        return bool(np.allclose(one, other, rtol=1e-4, atol=1e-6, equal_nan=True))
    return one.tobytes() == other.tobytes()
