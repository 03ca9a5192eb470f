"""Launches of kernels that no pattern declares, on the simulator."""

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
"""Rounds of loops after which a kernel counts as endless."""
_ORDERED_THREADS = 4096
"""A launch of more threads runs in one order alone: the others take as long again."""


def run_kernel(launch: KernelLaunch) -> tuple[dict[str, Array], Simulated]:
    """Run a kernel, and return its arrays by the arguments' numbers, and what else came of it.

    Raises
    ------
    InputError
        Where arguments do not fit the kernel's parameters.
    KernelError
        Where the text does not compile, has no such kernel, or the launch is one that no GPU takes.
    """
    simulation = _simulate(launch)
    return _arrays(simulation), _simulated(simulation, launch)


def count_kernel(launch: KernelLaunch) -> tuple[dict[str, Array], CountedLaunch]:
    """Run a kernel, and return its arrays by the arguments' numbers, and what all of the launch does.

    Raises
    ------
    InputError, KernelError
        As of `run_kernel`, and where a mistake ended the launch: what it had done by then says nothing.
    """
    simulation = _simulate(launch)
    if simulation.ended:
        found = simulation.findings[0]
        raise LaunchError(found.message, position=found.positions[0] if found.positions else None, kind=found.kind)
    threads = math.prod(launch.grid) * math.prod(launch.block)
    counted = CountedLaunch(
        RunCounts(f"{threads} threads", 1, "launch", 0, **summed(simulation.counters.total)),
        mistakes_of(simulation.findings, launch.file),
        simulation.simulated_ms,
    )
    return _arrays(simulation), counted


def record_kernel(launch: KernelLaunch, schedule: str) -> Recording:
    """Run a kernel and record every step of it; errors as of `run_kernel`."""
    trace = _simulate(launch, schedule=schedule, traced=True).trace
    assert trace is not None, "it was asked for"
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
    """Return what was found; of a small launch also what other orders gave, and what mends a race."""
    findings = simulation.findings
    mistakes = mistakes_of(findings, launch.file)
    small = math.prod(launch.grid) * math.prod(launch.block) <= _ORDERED_THREADS
    orders = ORDERS if small and not simulation.ended else ()

    def gives_another(schedule: str) -> bool:
        other = _simulate(launch, schedule=schedule)
        return not all(alike(one, other.arrays[number]) for number, one in simulation.arrays.items())

    def mends(text: str) -> bool:
        try:
            return not _simulate(replace(launch, text=text)).findings
        except KernelError:
            return False

    return Check(
        mistakes=mistakes,
        diagnostics=diagnostics_of(findings, launch.text, Path(launch.file), simulation.warnings),
        ended=simulation.ended,
        orders=orders,
        differing=tuple(schedule for schedule in orders if gives_another(schedule)),
        remedy=remedy_of(findings, mistakes, launch.text, mends) if small else None,
    )


def _arrays(simulation: Simulation) -> dict[str, Array]:
    return {str(number): _plain(array) for number, array in simulation.arrays.items()}


def _plain(array: Array) -> Array:
    """Return an array as one that can be shared: of structs their bytes."""
    return array.reshape(-1).view(np.uint8) if array.dtype.names is not None else array
