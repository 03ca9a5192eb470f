"""Run any kernel on the simulator in one call: its results, findings, and costs per source line."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gpu.base.errors import InputError, LaunchError
from gpu.base.findings import Finding, build_error_finding, sort_findings
from gpu.base.resource_limits import CPU_SECONDS, MEMORY_BYTES, limit_resources
from gpu.base.schedules import ROUND_ROBIN
from gpu.files.sources import read_source
from gpu.kernel.arguments import bind_arguments, dtype_of
from gpu.kernel.host_launches import Extent, Extent3, find_host_launch
from gpu.kernel.suspicions import collect_warnings, create_kernel_checkers
from gpu.kernel.textures import read_texture
from gpu.kernel.variables import set_variables
from gpu.kernel.written_arrays import FirstWriteObserver, WrittenArray
from gpu.recording.trace import Trace
from gpu.simulator.checkers.checker_set import create_checkers
from gpu.simulator.checkers.races.races import RaceChecker
from gpu.simulator.checkers.trials import collect_findings
from gpu.simulator.counting.counters import Counters
from gpu.simulator.executor.launch import LaunchOptions
from gpu.simulator.simulated_module import SimulatedModule, TraceSettings
from gpu.simulator.types import Pointer, Type, decay

Array = npt.NDArray[Any]
Counts = dict[str, int | float]

MAXIMUM_STEPS = 200_000
"""Loop-iteration limit: about ten seconds of execution with checkers, long for a kernel but short for a user."""


@dataclass(frozen=True)
class CounterReport:
    """The counters of a launch; `gpu.simulator.counting.counters.METRICS` explains each name.

    Parameters
    ----------
    total : dict
        The counts of the whole launch, by name.
    per_line : dict
        Those of each source line, by file name and line number; zeros are omitted.
    """

    total: Counts
    per_line: dict[tuple[str, int], Counts]


@dataclass(frozen=True)
class PrintedText:
    """The text that one thread printed with one call of `printf`."""

    thread: str
    text: str


@dataclass(frozen=True)
class Simulation:
    """The results of a simulated launch.

    Parameters
    ----------
    findings : list of Finding
        The kernel's errors; if one aborted the launch, it comes first.
    printed : list of PrintedText
        The text of each `printf` call, in the order of execution within a batch of blocks.
    arrays : dict of int to array
        The contents of the array arguments after the launch, by the argument's index from 0.
    trace : Trace or None
        Every step of the launch, if it was recorded.
    written_arrays : tuple of WrittenArray
        The arrays and `__device__` variables that the kernel wrote to, with their first elements.
    warnings : list of Finding
        Suspicious code: "unused-parameter", "always-true", "always-false", "never-written" (an uninitialized array
        that is not filled), "constant-never-set", or any other compiler warning, "compiler".
    aborted : bool
        Whether an error aborted the launch.
    simulated_ms : float
        The CPU time that the simulation took, with counters and checkers: not a GPU time.
    """

    findings: list[Finding]
    counters: CounterReport
    printed: list[PrintedText]
    arrays: dict[int, Array]
    trace: Trace | None = None
    written_arrays: tuple[WrittenArray, ...] = ()
    warnings: list[Finding] = field(default_factory=list)
    aborted: bool = False
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
    max_seconds: float = CPU_SECONDS,
    max_memory: int = MEMORY_BYTES,
    schedule: str = ROUND_ROBIN,
    traced: bool = False,
    constants: Mapping[str, Any] | None = None,
    textures: Mapping[str, str | Path] | None = None,
) -> Simulation:
    """Run a kernel on the simulator with counters and checkers.

    Parameters
    ----------
    file : str or Path
        A CUDA C++ file. Host code in it is ignored.
    kernel : str
        The name of a `__global__` function; for a template an instantiation, "reduce<float, 256>"; for one of several
        overloads also the line, "reduce@12".
    grid, block : int, sequence of int or None
        Blocks and threads in x, y and z; None for the constants in the file's own `<<<...>>>`.
    arguments : sequence
        One for each parameter. For a pointer a NumPy array of the parameter's element type, which is copied (the same
        array passed twice shares one copy), None for a null pointer, or a specification as on the command line:
        "zeros:256", "full:256:1.5", "arange:256", "random:256:7", "1,2,3", "text:abc", "file:data.npy", "empty:256".
        For anything else a number; for a struct its bytes (`np.void`) or a sequence of numbers.
    source : str or None
        Text to run instead of the file's content; `file` is then only a name and need not exist.
    shared_bytes : int or None
        The size of the extern `__shared__` array; None as for `grid`, or 0 if `grid` and `block` are specified and the
        file does not launch the kernel.
    defines : mapping or None
        Macros.
    include_dirs : sequence of str or Path
        Folders to search for includes, besides the file's own.
    max_steps : int
        Loop-iteration limit for blocks that are simulated together; beyond it, the launch ends with a finding.
    max_seconds : float
        Limit on the computing time of blocks that are simulated together, in seconds; a whole launch may take twelve
        times as long. On a busy machine they also stop after 8 s of clock time, or 1.6 times the limit if that is
        longer, once they have computed for a fifth of the limit.
        Where `gpu.base.resource_limits` may terminate this process, the limit also applies to parsing.
    max_memory : int
        Memory limit in bytes, enforced where `gpu.base.resource_limits` can limit this process.
    schedule : str
        The order in which warps and lanes run, one of `gpu.base.schedules.NAMES`; with a race, results depend on it.
    traced : bool
        Whether to record every step in `Simulation.trace`. A recorded launch ends at its first invalid access.
    constants : mapping or None
        The initial values of `__constant__` and `__device__` variables by name, in the forms of an argument.
    textures : mapping or None
        The file for each texture reference, a .npy or an image; a texture object is the argument "texture:FILE".

    Raises
    ------
    InputError
        A file cannot be read, the arguments do not fit the kernel's parameters, or the schedule does not exist.
    CompileError
        The kernel does not compile, or uses something that the simulator does not support.
    KernelError
        The file has no kernel of that name.
    LaunchError
        The launch is invalid on any GPU, for example because of too many threads per block.
    """
    if max_steps < 1:
        raise InputError(f"The limit of steps must be at least 1, not {max_steps}.")
    if not max_seconds > 0:
        raise InputError(f"The time limit must be more than 0 seconds, not {max_seconds:g}.")
    path = Path(file)
    text = read_source(path) if source is None else source
    options: LaunchOptions = {"max_rounds": max_steps, "max_seconds": max_seconds, "schedule": schedule}
    try:
        with limit_resources(None, max_memory):
            with limit_resources(max_seconds, max_memory):
                module = _build_module(path, text, dict(defines or {}), [Path(folder) for folder in include_dirs])
                set_variables(module, constants or {})
                for name, picture in (textures or {}).items():
                    module.set_texture(name, read_texture(picture))
                module.kernel(kernel)  # lowers it within the time limit
            launched_grid, launched_block, options["shared_bytes"] = find_host_launch(text, kernel, defines).complete(
                grid, block, shared_bytes, kernel=kernel, path=path.name
            )
            return _Launch(module, kernel, (launched_grid, launched_block), arguments, options).run(traced=traced)
    except MemoryError:
        raise InputError(
            f"The simulation needs more than {max_memory / 2**20:.0f} MB of memory.",
            advice="Use smaller arrays or fewer threads, or raise the limit: --max-memory, or max_memory in Python.",
        ) from None


def _build_module(
    path: Path, text: str, defines: dict[str, int | str], include_dirs: Sequence[Path]
) -> SimulatedModule:
    for macro in defines:
        if not re.fullmatch(r"[A-Za-z_]\w*", macro):
            raise InputError(f"{macro!r} is not a valid macro name.")
    for folder in include_dirs:
        if not folder.is_dir():
            raise InputError(f"There is no include folder {folder}.")
    return SimulatedModule(text, path, defines, include_dirs, tolerant=True)


class _Launch:
    """A launch with counters and checkers, and what they observe.

    Parameters
    ----------
    extents : tuple
        Blocks of the grid and threads of a block, each along x, y and z.
    arguments : sequence
        As of `simulate`.
    options : LaunchOptions
        Without `on_print`.
    """

    def __init__(
        self,
        module: SimulatedModule,
        kernel: str,
        extents: tuple[Extent3, Extent3],
        arguments: Sequence[Any],
        options: LaunchOptions,
    ) -> None:
        self._module, self._kernel, self._extents = module, kernel, extents
        self._simulated = module.kernel(kernel)
        self._bound = bind_arguments(kernel, arguments, self._simulated.parameters)
        self._printed: list[PrintedText] = []
        self._options = options
        options["on_print"] = lambda thread, text: self._printed.append(PrintedText(thread, text))
        self._counters, self._writes = Counters(), FirstWriteObserver()
        self._warning_checkers = create_kernel_checkers(module, kernel, self._bound)
        self._observers = (self._counters, self._writes, *self._warning_checkers)

    def run(self, *, traced: bool) -> Simulation:
        """Run the kernel, if `traced` with a recording, and collect the results."""
        start = time.perf_counter()
        trace = self._record() if traced else None
        failure, others = self._run_with_checkers() if trace is None else _collect_trace_findings(trace)
        simulated_ms = 1e3 * (time.perf_counter() - start)
        return Simulation(
            [_add_limit_advice(finding) for finding in (*failure, *others)],
            CounterReport(self._counters.total(), self._counters.per_line()),
            self._printed,
            self._bound.arrays,
            trace,
            self._writes.written_arrays(self._find_dtypes(), frozenset(self._bound.uninitialized)),
            collect_warnings(self._module, self._kernel, self._warning_checkers),
            aborted=bool(failure),
            simulated_ms=simulated_ms,
        )

    def _record(self) -> Trace:
        settings = TraceSettings(uninitialized=self._bound.uninitialized, observers=self._observers)
        return self._module.trace(self._kernel, *self._extents, self._bound.values, settings, **self._options)

    def _run_with_checkers(self) -> tuple[list[Finding], list[Finding]]:
        """Return the error that aborted the launch, and the checkers' findings."""
        checkers, trial = create_checkers(self._bound.uninitialized), RaceChecker()
        failure: list[Finding] = []
        try:
            self._simulated.launch(
                *self._extents,
                self._bound.values,
                **self._options,
                observers=(*self._observers, *checkers),
                trial_observer=trial,
            )
        except LaunchError as error:
            if not error.kind:
                raise
            failure.append(build_error_finding(error))
        return failure, sort_findings(collect_findings(checkers, trial))

    def _find_dtypes(self) -> dict[str, np.dtype[Any]]:
        """Return the element types of the arrays and variables that the kernel may write to, by name."""
        parameters = self._simulated.parameters
        types: dict[str, Type] = {name: type.element for name, type in parameters if isinstance(type, Pointer)}
        for name, type in self._module.variables.items():
            types.setdefault(name, decay(type))
        return {name: dtype_of(element) for name, element in types.items()}


def _collect_trace_findings(trace: Trace) -> tuple[list[Finding], list[Finding]]:
    """Return the error that aborted a trace, and its other findings in the order of a launch without a trace."""
    findings = [found.finding for found in trace.findings]
    failure = [findings.pop()] if trace.failure else []
    return failure, sort_findings(findings)


def _add_limit_advice(finding: Finding) -> Finding:
    """Append the option that raises a limit to a finding that reports the limit."""
    limit = (
        re.search(r" after [\d.e+]+ (iterations|seconds)", finding.message) if finding.kind == "unfinished" else None
    )
    if limit is None:
        return finding
    name = {"iterations": "steps", "seconds": "seconds"}[limit[1]]
    advice = f" If the loop does end, allow more {name}: --max-{name}, or max_{name} in Python."
    return replace(finding, message=finding.message + advice)
