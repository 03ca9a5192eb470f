"""Launches of kernels outside any pattern, on the simulator."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gpu.base.errors import KernelError, LaunchError
from gpu.kernel.figures import compute_line_figures
from gpu.kernel.simulate import Simulation, simulate
from gpu.messages.kernels import CountedLaunch, KernelLaunch, SimulationResult, are_results_equal
from gpu.messages.run_counts import RunCounts
from gpu.messages.verdicts import Check, collect_mistakes
from gpu.recording.recording import Recording
from gpu.run.kernel_check import SCHEDULES, find_remedy
from gpu.run.work_count import collect_run_counts
from gpu.simulator.checkers.report import build_diagnostics
from gpu.simulator.checkers.trials import select_schedule_findings

Array = npt.NDArray[Any]

MAX_STEPS = 20_000
"""Loop-iteration limit, after which a launch ends with a finding."""
_MAX_SCHEDULE_THREADS = 4096
"""A launch of more threads runs in one schedule only: each further schedule takes as long again."""


def run_kernel(launch: KernelLaunch) -> tuple[dict[str, Array], SimulationResult]:
    """Run a kernel; return its arrays by argument number, and the check, output and counts.

    Raises
    ------
    InputError
        The arguments do not fit the kernel's parameters.
    KernelError
        The text does not compile or has no such kernel, or the launch is not valid on any GPU.
    """
    simulation = _simulate(launch)
    return _collect_arrays(simulation), _build_result(simulation, launch)


def count_kernel(launch: KernelLaunch) -> tuple[dict[str, Array], CountedLaunch]:
    """Run a kernel; return its arrays by argument number, and the counts of the whole launch.

    Raises
    ------
    InputError, KernelError
        As in `run_kernel`; also if an error aborts the launch, because its counts would be incomplete.
    """
    simulation = _simulate(launch)
    if simulation.aborted:
        finding = simulation.findings[0]
        position = finding.positions[0] if finding.positions else None
        raise LaunchError(finding.message, position=position, kind=finding.kind)
    threads = math.prod(launch.grid) * math.prod(launch.block)
    counted_launch = CountedLaunch(
        RunCounts(f"{threads} threads", 1, "launch", 0, **collect_run_counts(simulation.counters.total)),
        collect_mistakes(simulation.findings, launch.file),
        simulation.simulated_ms,
    )
    return _collect_arrays(simulation), counted_launch


def record_kernel(launch: KernelLaunch, schedule: str) -> Recording:
    """Run a kernel and record every step; raises the errors of `run_kernel`."""
    trace = _simulate(launch, schedule=schedule, traced=True).trace
    assert trace is not None, "requested with traced=True"
    return Recording.from_trace(trace, {Path(launch.file).name: launch.text})


def _simulate(launch: KernelLaunch, **options: Any) -> Simulation:
    return simulate(
        launch.file,
        launch.kernel,
        launch.grid,
        launch.block,
        launch.arguments,
        source=launch.text,
        shared_bytes=launch.shared_bytes,
        defines=launch.defines,
        include_dirs=launch.include_dirs,
        constants=launch.constants,
        textures=launch.textures,
        max_steps=MAX_STEPS,
        **options,
    )


def _build_result(simulation: Simulation, launch: KernelLaunch) -> SimulationResult:
    path = Path(launch.file)
    return SimulationResult(
        check=_check(simulation, launch),
        printed=tuple((each.thread, each.text) for each in simulation.printed),
        lines={
            line: compute_line_figures(counts)
            for (file, line), counts in sorted(simulation.counters.per_line.items())
            if file == path.name
        },
    )


def _check(simulation: Simulation, launch: KernelLaunch) -> Check:
    """Return the findings; for a small launch also the schedules with other results and a fix for a race."""
    small = math.prod(launch.grid) * math.prod(launch.block) <= _MAX_SCHEDULE_THREADS
    orders = SCHEDULES if small and not simulation.aborted else ()

    others = {schedule: _simulate(launch, schedule=schedule) for schedule in orders}
    findings = list(simulation.findings)
    for schedule, other in others.items():
        findings += select_schedule_findings(other.findings, findings, schedule)
    # In another schedule a race may also show as an uninitialized read, which the same edit fixes. An edit is tried in
    # the launch's schedule, so it is only for findings in that.
    own = simulation.findings

    def result_differs_in(schedule: str) -> bool:
        arrays = others[schedule].arrays
        return not all(are_results_equal(array, arrays[number]) for number, array in simulation.arrays.items())

    def is_fixed_by(text: str) -> bool:
        try:
            return not _simulate(replace(launch, text=text)).findings
        except KernelError:
            return False

    return Check(
        mistakes=collect_mistakes(findings, launch.file),
        diagnostics=build_diagnostics(
            findings, launch.text, Path(launch.file), simulation.warnings, (launch.grid, launch.block)
        ),
        ended=simulation.aborted,
        orders=orders,
        differing=tuple(schedule for schedule in orders if result_differs_in(schedule)),
        remedy=find_remedy(own, collect_mistakes(own, launch.file), launch.text, is_fixed_by) if small else None,
    )


def _collect_arrays(simulation: Simulation) -> dict[str, Array]:
    return {str(number): _to_shareable(array) for number, array in simulation.arrays.items()}


def _to_shareable(array: Array) -> Array:
    """Return an array that can be shared: structs as their bytes."""
    return array.reshape(-1).view(np.uint8) if array.dtype.names is not None else array
