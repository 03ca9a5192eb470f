"""Count a variant's work: run it in lockstep on a small part of its input, with counters as observers."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from typing import Any

from gpu.declaration.pattern import Array, Inputs, Pattern
from gpu.kernel.figures import (
    ATOMIC_CONFLICTS,
    CONFLICTS,
    REQUESTS,
    SECTORS,
    SHARED_ATOMICS,
    SHARED_REQUESTS,
    WAVEFRONTS,
    sum_counters,
)
from gpu.messages.run_counts import RunCounts
from gpu.messages.runs.pattern_runs import CountPattern
from gpu.run.host_program import ProgressCallback, refuse_library, run_host_program, validate_inputs
from gpu.run.kernel_check import SizeLimits, limit_inputs, limit_params
from gpu.run.workload import Workload

_SIZE_LIMITS = SizeLimits(elements=1024, bodies=1024, rows=64, columns=64, image=(64, 64), points=16)
"""Several blocks, quick to count for any variant, and whole blocks, so that the share per element is clear."""

_SINGLE_THREAD_LIMITS = SizeLimits(elements=128, bodies=128, rows=16, columns=16, image=(32, 32), points=8)
"""Sizes that are as quick for a single thread."""


def count_pattern(workload: Workload, report_progress: ProgressCallback, *, full_input: bool = False) -> RunCounts:
    """Run one variant on the simulator and count the work of its launches.

    Parameters
    ----------
    report_progress : callable
        Called with the progress.
    full_input : bool
        Count the whole input instead of a small part.

    Raises
    ------
    InputError
        The inputs or parameters are not valid for the pattern; nothing was run.
    KernelError
        A kernel does not compile or fails.
    """
    from gpu.engines.counting_engine import ObservedEngine  # not needed in a GPU's process
    from gpu.simulator.counting.counters import Counters

    pattern, variant = workload.pattern, workload.variant
    refuse_library(variant)
    if full_input:
        workload = workload.prepare()
        inputs, params = workload.inputs, workload.params
    else:
        part = _SINGLE_THREAD_LIMITS if variant.is_single_thread else _SIZE_LIMITS
        params = limit_params(pattern, pattern.check(workload.params), part)
        if pattern.presentation.kind == "bodies":
            part = replace(part, columns=part.bodies)
        inputs = limit_inputs(workload, params, part)
        validate_inputs(pattern, variant, inputs, params)
    counters = Counters()
    engine = ObservedEngine(counters)
    engine.sources = dict(workload.sources)
    with closing(engine):
        run_host_program(engine, variant, inputs, params, report_progress)
    cost = pattern.cost(inputs, params)
    size, elements, unit = _describe_input_size(pattern, inputs, params)
    return RunCounts(size, elements, unit, cost.bytes_read + cost.bytes_written, **collect_run_counts(counters.total()))


def execute_count_request(request: CountPattern, report_progress: ProgressCallback) -> RunCounts:
    """Execute a CountPattern request; raises the errors of `count_pattern`."""
    return count_pattern(Workload.open(request, request.side), report_progress, full_input=request.full_input)


def _describe_input_size(pattern: Pattern, inputs: Inputs, params: Mapping[str, Any]) -> tuple[str, int, str]:
    """Return the size of an input as text, its number of elements, and their name."""
    match pattern.input_kind(params):
        case "image":
            height, width = inputs["image"].shape[:2]
            return f"{width} × {height} pixels", height * width, "pixel"
        case "text":
            return f"{inputs['text'].size} characters", inputs["text"].size, "character"
        case "bodies":
            return f"{len(inputs['bodies'])} bodies", len(inputs["bodies"]), "body"
    values: Array = inputs["values"]
    size = " × ".join(map(str, values.shape)) if values.ndim > 1 else f"n = {values.size}"
    return size, values.size, "element"


RETURNED_ATOMICS = tuple(name for name in REQUESTS if name.endswith("_atom.sum"))
"""Counters of the requests of atomic operations on global memory whose results are used."""


def collect_run_counts(total: Mapping[str, int | float]) -> dict[str, int]:
    """Return the counted fields of `RunCounts` from a run's counters."""
    atomics = [name for name in REQUESTS if name.endswith(("_red.sum", "_atom.sum"))]
    return {
        "requests": sum_counters(total, REQUESTS),
        "sectors": sum_counters(total, SECTORS),
        "shared_requests": sum_counters(total, (*SHARED_REQUESTS, SHARED_ATOMICS)),
        "wavefronts": sum_counters(total, WAVEFRONTS),
        "conflicts": sum_counters(total, (*CONFLICTS, ATOMIC_CONFLICTS)),
        "warp_statements": int(total["warp_statements"]),
        "lane_statements": int(total["lane_statements"]),
        "branches": int(total["branches"]),
        "divergent_branches": int(total["divergent_branches"]),
        "operations": int(total["operations"]),
        "barriers": int(total["block_barriers"]),
        "atomics": sum_counters(total, [*atomics, SHARED_ATOMICS]),
        "hottest_atomics": int(max(total["hottest_atomics_global"], total["hottest_atomics_shared"])),
    }
