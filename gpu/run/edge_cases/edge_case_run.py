"""Run an edited kernel on edge cases, without checkers but those of accesses and barriers in the executor itself.

The lockstep executor runs them, although it is slower for large inputs: the compiled executor does not check accesses,
which an edit may have moved out of bounds, and takes longer to compile a kernel than the lockstep executor takes here.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace

import numpy as np

from gpu.base.errors import InputError, LaunchError
from gpu.base.findings import Finding
from gpu.declaration.edge_cases import EdgeCase, generate_edge_cases
from gpu.engines.base import kernel_text
from gpu.engines.checking_engine import CheckingEngine
from gpu.run.edge_cases.kernel_case import MULTIPROCESSOR_COUNTS, TIME_LIMIT_S, KernelCase
from gpu.run.edge_cases.launch_sizes import find_launch_sizes
from gpu.run.host_program import ProgressCallback, validate_inputs


@dataclass(frozen=True)
class EdgeCaseRun:
    """A run on an edge case.

    Parameters
    ----------
    case : KernelCase or None
        What ran; None if the pattern or the variant does not accept the input, or it was skipped.
    skipped : bool
        Whether the edge cases before took too long.
    findings : tuple of Finding
        The error that ended a launch, if one did.
    engine : CheckingEngine or None
        The engine, with the positions that threads reached in this run and those before.
    """

    name: str
    case: KernelCase | None = None
    skipped: bool = False
    correct: bool = True
    findings: tuple[Finding, ...] = ()
    engine: CheckingEngine | None = None


def run_edge_cases(
    case: KernelCase, report_progress: ProgressCallback, largest: int, typical: int, max_steps: int
) -> Iterator[EdgeCaseRun]:
    """Run a case's kernel on the edge cases of its pattern, and yield the runs in the order of the edge cases.

    An input is not accepted either if the pattern's own kernel fails on it: its result does not fit its type, for
    example.

    Parameters
    ----------
    case : KernelCase
        The edited kernel, with the parameters of the run.
    largest, typical : int
        As in EdgeCaseSizes.
    max_steps : int
        The number of statements that the executor issues before it skips the other edge cases.
    """
    sizes = find_launch_sizes(case.pattern, case.variant, case.params, case.inputs, largest, typical)
    engine = _create_engine()
    steps = 0
    try:
        for edge_case in generate_edge_cases(case.pattern, case.params, case.inputs, case.seed, sizes):
            if steps + engine.steps > max_steps:
                yield EdgeCaseRun(edge_case.name, skipped=True)
                continue
            run = _run_edge_case(case, edge_case, engine, report_progress)
            if not run.correct:
                assert run.case is not None
                original = run.case.with_text(kernel_text(case.file, {}))
                steps += engine.steps
                engine.close()
                engine = _create_engine()
                with closing(_create_engine()) as other_engine:
                    if not _try(original, other_engine, report_progress):
                        yield EdgeCaseRun(edge_case.name)
                        continue
            yield run
    finally:
        engine.close()


def _create_engine() -> CheckingEngine:
    engine = CheckingEngine(checks=False)
    engine.max_seconds = TIME_LIMIT_S
    return engine


def _run_edge_case(
    case: KernelCase, edge_case: EdgeCase, engine: CheckingEngine, report_progress: ProgressCallback
) -> EdgeCaseRun:
    try:
        inputs = edge_case.make_inputs()
        validate_inputs(case.pattern, case.variant, inputs, edge_case.params)
        case.pattern.accept_edge_case(inputs, edge_case.params)
    except InputError:
        return EdgeCaseRun(edge_case.name)
    run = replace(case, inputs=inputs, params=edge_case.params, multiprocessors=min(MULTIPROCESSOR_COUNTS))
    correct = _try(run, engine, report_progress)
    return EdgeCaseRun(edge_case.name, run, False, correct, tuple(engine.findings), engine)


def _try(case: KernelCase, engine: CheckingEngine, report_progress: ProgressCallback) -> bool:
    """Run a case; return whether its launches succeed and its result is correct."""
    try:
        with np.errstate(all="ignore"):  # a reference result may be infinite, which no result verifies
            return case.runs_correctly(engine, report_progress)
    except LaunchError:
        return False
