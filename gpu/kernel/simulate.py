"""Any kernel on the simulator, in one call: what it computes, what it does wrong, and what it costs, line by line."""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gpu.bounds import MEMORY, SECONDS, bounded
from gpu.errors import InputError, LaunchError
from gpu.files.sources import read_source
from gpu.kernel.arguments import bind, dtype_of
from gpu.kernel.host_launches import host_launch
from gpu.kernel.suspicions import warnings_of, watchers
from gpu.kernel.textures import read_texture
from gpu.kernel.variables import set_variables
from gpu.kernel.written import FirstWrites, WrittenArray
from gpu.schedules import ROUND_ROBIN
from gpu.simulator.checkers.every import every_checker
from gpu.simulator.checkers.findings import Finding, finding_of, in_order
from gpu.simulator.counting.counters import Counters
from gpu.simulator.executor.launch import SimulatedKernel
from gpu.simulator.executor.observe import Observer
from gpu.simulator.module import SimulatedModule
from gpu.simulator.trace.trace import Trace
from gpu.simulator.types import ArrayOf, Pointer, Type

Array = npt.NDArray[Any]
Extent = int | Sequence[int]
Counts = dict[str, int | float]

MAXIMUM_STEPS = 200_000
"""Rounds of loops that take some ten seconds under the checkers' eyes: long for a kernel, short for who waits."""


@dataclass(frozen=True)
class CounterReport:
    """What was counted; `gpu.simulator.counting.counters.METRICS` says what each name means.

    Parameters
    ----------
    total : dict
        The counts of the whole launch, by name.
    per_line : dict
        Those of each source line, by the file's name and the line's number; what is 0 is left out.
    """

    total: Counts
    per_line: dict[tuple[str, int], Counts]


@dataclass(frozen=True)
class Printed:
    """What one call of `printf` wrote, and the thread that called it."""

    thread: str
    text: str


@dataclass(frozen=True)
class Simulation:
    """What came of a simulated launch.

    Parameters
    ----------
    findings : list of Finding
        What the kernel does wrong; the first one that ended the launch, if one did, comes first.
    counters : CounterReport
    printed : list of Printed
        The text of each `printf` and thread, in the order of execution within a batch of blocks.
    arrays : dict of int to array
        What the array arguments hold after the launch, by the argument's number from 0.
    trace : Trace or None
        Every step of the launch, where it was asked for.
    written : tuple of WrittenArray
        The arrays and `__device__` variables that the kernel wrote to, with their first elements.
    warnings : list of Finding
        What is only suspicious: "unused-parameter", "always-true", "always-false", "never-written" (an array without
        values that is not filled), "constant-never-set", or what else the compiler warns of, "compiler".
    ended : bool
        Whether a mistake ended the launch.
    simulated_ms : float
        How long this CPU took to simulate it, before the eyes of counters and checkers: no GPU's time.
    """

    findings: list[Finding]
    counters: CounterReport
    printed: list[Printed]
    arrays: dict[int, Array]
    trace: Trace | None = None
    written: tuple[WrittenArray, ...] = ()
    warnings: list[Finding] = field(default_factory=list)
    ended: bool = False
    simulated_ms: float = 0.0


def simulate(
    file: str | Path,
    kernel: str,
    grid: Extent | None,
    block: Extent | None,
    arguments: Sequence[Any] = (),
    *,
    source: str | None = None,
    shared_bytes: int | None = None,
    defines: Mapping[str, int | str] | None = None,
    include_dirs: Sequence[str | Path] = (),
    max_steps: int = MAXIMUM_STEPS,
    max_seconds: float = SECONDS,
    max_memory: int = MEMORY,
    schedule: str = ROUND_ROBIN,
    traced: bool = False,
    constants: Mapping[str, Any] | None = None,
    textures: Mapping[str, str | Path] | None = None,
) -> Simulation:
    """Run a kernel on the simulator, watched by counters and checkers.

    Parameters
    ----------
    file : str or Path
        A CUDA C++ file. It may hold host code too, which is left alone.
    kernel : str
        A `__global__` function's name, of a template an instantiation: "reduce<float, 256>"; of several with one name
        the line too: "reduce@12".
    grid, block : int, sequence of int or None
        Blocks and threads in x, y and z; None for what the file's own `<<<...>>>` says in constants.
    arguments : sequence
        One for each parameter. For a pointer a NumPy array of the parameter's element type, which is copied (one that
        is given twice is one memory), None for a null pointer, or one of the words of the command line: "zeros:256",
        "full:256:1.5", "arange:256", "random:256:7", "1,2,3", "text:abc", "file:data.npy", "empty:256". For anything
        else a number, or of a struct its bytes (`np.void`) or a sequence of numbers.
    source : str or None
        Text to run instead of what the file holds; `file` is then only its name, and need not exist.
    shared_bytes : int or None
        The size of the extern `__shared__` array; None as for `grid`, and 0 where both of these are given and the file
        says nothing.
    defines : mapping or None
        Macros.
    include_dirs : sequence of str or Path
        Where includes are looked for, other than beside the file.
    max_steps : int
        How often the loops of blocks that are simulated together may go round before they are taken for endless.
    max_seconds : float
        How long the blocks that are simulated together may compute before they are taken for endless; all of a launch
        may take twelve times as long. Where `gpu.bounds` may end this process, reading the text is held to it too.
    max_memory : int
        Bytes that all of it may take, where `gpu.bounds` holds this process to them.
    schedule : str
        In which order warps and lanes run, one of `gpu.schedules.NAMES`: a race gives other answers in another one.
    traced : bool
        Whether to record every step, which `Simulation.trace` then holds.
    constants : mapping or None
        What `__constant__` and `__device__` variables hold before the launch, by name, each given as an argument is.
    textures : mapping or None
        The file that each texture reference reads, a .npy or an image; a texture object is the argument "texture:FILE".

    Raises
    ------
    InputError
        A file that cannot be read, arguments that do not fit the kernel's parameters, or no such schedule.
    CompileError
        The kernel does not compile, or uses something that the simulator does not support.
    KernelError
        There is no kernel of that name.
    LaunchError
        A launch that no GPU takes, such as one with too many threads in a block.
    """
    if max_steps < 1:
        raise InputError(f"At least 1 step must be allowed, not {max_steps}.")
    if not max_seconds > 0:
        raise InputError(f"A kernel needs some time: {max_seconds:g} seconds are none.")
    text = read_source(Path(file)) if source is None else source
    launch = host_launch(text, kernel, defines)
    if shared_bytes is None and launch.shared_bytes is None and launch.lines and (grid is None or block is None):
        raise launch.missing(kernel, Path(file).name, "--shared")
    given: list[Extent] = []
    for option, wanted, known in (("--grid", grid, launch.grid), ("--block", block, launch.block)):
        if wanted is None and known is None:
            raise launch.missing(kernel, Path(file).name, option)
        given.append(known if wanted is None else wanted)  # type: ignore[arg-type]
    extents = (_extent("grid", given[0]), _extent("block", given[1]))
    printed: list[Printed] = []
    options: dict[str, Any] = {
        "shared_bytes": (launch.shared_bytes or 0) if shared_bytes is None else shared_bytes,
        "on_print": lambda thread, text: printed.append(Printed(thread, text)),
        "max_rounds": max_steps,
        "max_seconds": max_seconds,
        "schedule": schedule,
    }
    try:
        with bounded(None, max_memory):
            with bounded(max_seconds, max_memory):
                module = _module(Path(file), text, dict(defines or {}), [Path(folder) for folder in include_dirs])
                set_variables(module, constants or {})
                for name, path in (textures or {}).items():
                    module.set_texture(name, read_texture(path))
                module.kernel(kernel)
            return _run(module, kernel, extents, arguments, options, printed, traced=traced)
    except MemoryError:
        raise InputError(
            f"This takes more than {max_memory / 2**20:.0f} MB of memory.",
            advice="Take smaller arrays or fewer threads, or allow more: --max-memory, or max_memory in Python.",
        ) from None


def _run(
    module: SimulatedModule,
    kernel: str,
    extents: tuple[tuple[int, int, int], tuple[int, int, int]],
    arguments: Sequence[Any],
    options: Mapping[str, Any],
    printed: list[Printed],
    *,
    traced: bool,
) -> Simulation:
    found = module.kernel(kernel)
    bound = bind(kernel, arguments, found.parameters)
    counters, writes = Counters(), FirstWrites()
    watching = watchers(module, kernel, bound)
    observers = (counters, writes, *watching)
    launch = (*extents, bound.values)
    trace: Trace | None = None
    begun = time.perf_counter()
    if traced:
        trace = module.trace(
            kernel, *launch, **options, uninitialized=bound.uninitialized, observers=observers, checked=True
        )
        failure, others = _findings_of(trace)
    else:
        failure, others = _launch(found, launch, options, bound.uninitialized, observers)
    simulated_ms = 1e3 * (time.perf_counter() - begun)
    findings = [_with_advice(finding) for finding in (*failure, *others)]
    report = CounterReport(counters.total(), counters.per_line())
    held: dict[str, Type] = {name: type.element for name, type in found.parameters if isinstance(type, Pointer)}
    for name, type in module.variables.items():
        held.setdefault(name, type.innermost if isinstance(type, ArrayOf) else type)
    dtypes = {name: dtype_of(element) for name, element in held.items()}
    written = writes.arrays(dtypes, frozenset(bound.uninitialized))
    warnings = warnings_of(module, kernel, watching)
    return Simulation(
        findings,
        report,
        printed,
        bound.arrays,
        trace,
        written,
        warnings,
        ended=bool(failure),
        simulated_ms=simulated_ms,
    )


def _launch(
    kernel: SimulatedKernel,
    launch: tuple[Any, ...],
    options: Mapping[str, Any],
    uninitialized: Collection[str],
    observers: Sequence[Observer],
) -> tuple[list[Finding], list[Finding]]:
    """Run a kernel before the eyes of checkers and others; return what ended it, and what the checkers find."""
    checkers = every_checker(uninitialized)
    failure: list[Finding] = []
    try:
        kernel.launch(*launch, **options, observers=(*observers, *checkers))
    except LaunchError as error:
        if not error.kind:
            raise
        failure.append(finding_of(error))
    return failure, in_order(found for checker in checkers for found in checker.findings)


def _findings_of(trace: Trace) -> tuple[list[Finding], list[Finding]]:
    """Return what ended a trace, and what else was found, in the order in which it is reported without one."""
    findings = [found.finding for found in trace.findings]
    failure = [findings.pop()] if trace.failure else []
    return failure, in_order(findings)


def _module(path: Path, text: str, defines: dict[str, int | str], include_dirs: list[Path]) -> SimulatedModule:
    for macro in defines:
        if not re.fullmatch(r"[A-Za-z_]\w*", macro):
            raise InputError(f"{macro!r} is no name for a macro.")
    for folder in include_dirs:
        if not folder.is_dir():
            raise InputError(f"There is no folder {folder} to look for includes in.")
    return SimulatedModule(text, path, defines, include_dirs, tolerant=True)


def _extent(name: str, given: Extent) -> tuple[int, int, int]:
    extents = list(given) if isinstance(given, Sequence | np.ndarray) else [given]
    if not 1 <= len(extents) <= 3 or not all(isinstance(extent, int | np.integer) for extent in extents):
        raise InputError(f"The {name} is one to three whole numbers, not {given!r}.")
    x, y, z = (*map(int, extents), *[1] * (3 - len(extents)))
    return x, y, z


def _with_advice(finding: Finding) -> Finding:
    """Add to what ended a launch what the caller of `simulate` can do about it."""
    limit = re.search(r" after [\d.e+]+ (iterations|seconds)", finding.message) if finding.kind == "endless" else None
    if limit is None:
        return finding
    name = {"iterations": "steps", "seconds": "seconds"}[limit[1]]
    advice = f" If it does end, allow it more {name}: --max-{name}, or max_{name} in Python."
    return replace(finding, message=finding.message + advice)
