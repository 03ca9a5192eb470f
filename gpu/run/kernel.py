"""Launches of kernels outside any pattern, on the simulator."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gpu.errors import KernelError, LaunchError
from gpu.kernel.figures import line_figures
from gpu.kernel.simulate import Simulation, simulate
from gpu.messages.counted import RunCounts
from gpu.messages.kernels import CountedLaunch, KernelLaunch, Simulated, alike
from gpu.messages.verdicts import Check, mistakes_of
from gpu.run.check import ORDERS, remedy_of
from gpu.run.count import summed
from gpu.simulator.checkers.report import diagnostics_of
from gpu.stepping.recording import Recording

Array = npt.NDArray[Any]

MAXIMUM_STEPS = 20_000
"""Loop-iteration limit, after which a kernel counts as endless."""
_ORDERED_THREADS = 4096
"""A launch of more threads runs in one schedule only: each further schedule takes as long again."""


def run_kernel(launch: KernelLaunch) -> tuple[dict[str, Array], Simulated]:
    """Run a kernel; return its arrays by argument number, and the check, output and counts.

    Raises
    ------
    InputError
        The arguments do not fit the kernel's parameters.
    KernelError
        The text does not compile or has no such kernel, or the launch is not valid on any GPU.
    """
    simulation = _simulate(launch)
    return _arrays(simulation), _simulated(simulation, launch)


def count_kernel(launch: KernelLaunch) -> tuple[dict[str, Array], CountedLaunch]:
    """Run a kernel; return its arrays by argument number, and the counts of the whole launch.

    Raises
    ------
    InputError, KernelError
        As in `run_kernel`, and if an error aborts the launch, whose counts would be incomplete.
    """
    simulation = _simulate(launch)
    if simulation.ended:
        finding = simulation.findings[0]
        position = finding.positions[0] if finding.positions else None
        raise LaunchError(finding.message, position=position, kind=finding.kind)
    threads = math.prod(launch.grid) * math.prod(launch.block)
    counted_launch = CountedLaunch(
        RunCounts(f"{threads} threads", 1, "launch", 0, **summed(simulation.counters.total)),
        mistakes_of(simulation.findings, launch.file),
        simulation.simulated_ms,
    )
    return _arrays(simulation), counted_launch


def record_kernel(launch: KernelLaunch, schedule: str) -> Recording:
    """Run a kernel and record every step; raises the errors of `run_kernel`."""
    trace = _simulate(launch, schedule=schedule, traced=True).trace
    assert trace is not None, "requested with traced=True"
    return Recording.of_launch(trace, {Path(launch.file).name: launch.text})


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
        max_steps=MAXIMUM_STEPS,
        **options,
    )


def _simulated(simulation: Simulation, launch: KernelLaunch) -> Simulated:
    path = Path(launch.file)
    return Simulated(
        check=_check(simulation, launch),
        printed=tuple((each.thread, each.text) for each in simulation.printed),
        lines={
            line: line_figures(counts)
            for (file, line), counts in sorted(simulation.counters.per_line.items())
            if file == path.name
        },
    )


def _check(simulation: Simulation, launch: KernelLaunch) -> Check:
    """Return the findings; for a small launch also the schedules with other results and a fix for a race."""
    findings = simulation.findings
    mistakes = mistakes_of(findings, launch.file)
    small = math.prod(launch.grid) * math.prod(launch.block) <= _ORDERED_THREADS
    orders = ORDERS if small and not simulation.ended else ()

    def result_differs_in(schedule: str) -> bool:
        other = _simulate(launch, schedule=schedule)
        return not all(alike(array, other.arrays[number]) for number, array in simulation.arrays.items())

    def is_fixed_by(text: str) -> bool:
        try:
            return not _simulate(replace(launch, text=text)).findings
        except KernelError:
            return False

    return Check(
        mistakes=mistakes,
        diagnostics=diagnostics_of(findings, launch.text, Path(launch.file), simulation.warnings),
        ended=simulation.ended,
        orders=orders,
        differing=tuple(schedule for schedule in orders if result_differs_in(schedule)),
        remedy=remedy_of(findings, mistakes, launch.text, is_fixed_by) if small else None,
    )


def _arrays(simulation: Simulation) -> dict[str, Array]:
    return {str(number): _plain(array) for number, array in simulation.arrays.items()}


def _plain(array: Array) -> Array:
    """Return an array that can be shared: structs as their bytes."""
    return array.reshape(-1).view(np.uint8) if array.dtype.names is not None else array
