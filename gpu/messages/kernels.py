"""Messages about any kernel file: signatures, launches and their results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from gpu.base.errors import Diagnostic
from gpu.base.schedules import ROUND_ROBIN
from gpu.messages.requests import ArrayResult, Request
from gpu.messages.run_counts import RunCounts
from gpu.messages.runs.recordings import RecordingFile
from gpu.messages.verdicts import Check, Mistake


@dataclass(frozen=True)
class KernelParameter:
    """Parameter or file-scope variable of a kernel.

    Parameters
    ----------
    name, type : str
        As in the source.
    kind : {"pointer", "integer", "real", "struct", "variable", "texture"}
        The user's input: an array, a number, or several numbers; for a variable of the file its initial content;
        for a texture reference a file.
    read_only : bool
        Whether it is a pointer to const.
    parts : int
        Number of scalars; 0 for a pointer.
    """

    name: str
    type: str
    kind: str
    read_only: bool = False
    parts: int = 1


@dataclass(frozen=True)
class Signature:
    """Signature of a kernel, a template or an instantiation of a template.

    Parameters
    ----------
    name : str
        For an instantiation, with its template arguments.
    template : bool
        Whether it is a template without arguments, so that its parameters are unknown.
    refusal : str
        Why it cannot run; "" if it can.
    variables : tuple of KernelParameter
        The file's `__constant__` and `__device__` variables and texture references.
    grid, block : tuple of int or None
        Constant launch configuration in the file; None if there is none.
    shared_bytes : int or None
        Constant dynamic shared memory in the file.
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
    """Launch of a kernel as the user entered it.

    Parameters
    ----------
    file, text : str
        Path of the kernel file, and the text that replaces its content.
    kernel : str
        Name of a `__global__` function or of a template's instantiation.
    grid, block : tuple of int
        Blocks and threads in x, y and z.
    arguments : tuple of str
        One per parameter, in the notation of `gpu.kernel.simulate.simulate`.
    shared_bytes : int
        Size of dynamic shared memory in bytes.
    defines : mapping
        Macros.
    constants, textures : mapping
        Contents of the file's variables and texture references, in the same notation.
    include_dirs : tuple of str
        Additional folders of includes.
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
    """Costs of a source line; None where a cost does not apply.

    Parameters
    ----------
    statements : int
        Statements executed by warps.
    lanes : float
        Average number of active lanes, out of 32.
    sectors : float or None
        32-byte sectors per request to global memory.
    conflicts : int or None
        Bank conflicts in shared memory.
    """

    statements: int
    lanes: float
    sectors: float | None
    conflicts: int | None


@dataclass(frozen=True)
class SimulationResult:
    """Result of a kernel's launch on the simulator.

    Parameters
    ----------
    check : Check
        Findings, and for a small launch the comparison of schedules.
    printed : tuple of (str, str)
        Thread and text of each printf.
    lines : mapping of int to LineFigures
        Figures of lines of the kernel's own file.
    """

    check: Check
    printed: tuple[tuple[str, str], ...]
    lines: Mapping[int, LineFigures]


@dataclass(frozen=True)
class CountedLaunch:
    """Counts of a kernel's launch.

    Parameters
    ----------
    counts : RunCounts
        Totals of the launch.
    mistakes : tuple of Mistake
        Findings in one schedule.
    simulated_ms : float
        Duration of the simulation on this CPU, with counters and checkers.
    """

    counts: RunCounts
    mistakes: tuple[Mistake, ...]
    simulated_ms: float


@dataclass(frozen=True)
class KernelResult(ArrayResult):
    """Result of running a kernel; the arrays have the numbers of the kernel's arguments as names."""

    simulation: SimulationResult


@dataclass(frozen=True)
class KernelCounts(ArrayResult):
    """Result of counting a kernel's launch; the arrays are as in KernelResult."""

    counted_launch: CountedLaunch


@dataclass(frozen=True)
class CheckSource(Request[tuple[Diagnostic, ...]]):
    """Check a kernel's text without running anything.

    `file` is a name under `kernels/` or an absolute path; `text` replaces its content. The result contains clang's
    errors and warnings and, without errors, features that the simulator does not support. It runs in the simulator's
    process for every engine.
    """

    file: str
    text: str
    defines: Mapping[str, int | str] = field(default_factory=dict)


@dataclass(frozen=True)
class DescribeKernels(Request[tuple[Signature, ...]]):
    """List a text's kernels with their parameters.

    `instances` are template instantiations to include.
    """

    file: str
    text: str
    defines: Mapping[str, str] = field(default_factory=dict)
    instances: tuple[str, ...] = ()
    include_dirs: tuple[str, ...] = ()


@dataclass(frozen=True)
class RunKernel(Request[KernelResult]):
    """Run any kernel in the simulator."""

    launch: KernelLaunch


@dataclass(frozen=True)
class CountKernel(Request[KernelCounts]):
    """Run any kernel in the simulator with counters."""

    launch: KernelLaunch


@dataclass(frozen=True)
class StepKernel(Request[RecordingFile]):
    """Run any kernel in the simulator and record every step."""

    launch: KernelLaunch
    schedule: str = ROUND_ROBIN


def are_results_equal(one: npt.NDArray[Any], other: npt.NDArray[Any]) -> bool:
    """Return whether two results are equal, except for rounding of sums in a different order."""
    if one.dtype != other.dtype or one.shape != other.shape:
        return False
    if one.dtype.kind == "f":
        return bool(np.allclose(one, other, rtol=1e-4, atol=1e-6, equal_nan=True))
    return one.tobytes() == other.tobytes()
