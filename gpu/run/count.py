"""Count a variant's work: run it in lockstep on a small part of its input, with counters as observers."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from typing import Any

from gpu.declaration.pattern import Array, Inputs, Pattern, Variant
from gpu.kernel.figures import (
    ATOMIC_CONFLICTS,
    CONFLICTS,
    REQUESTS,
    SECTORS,
    SHARED_ATOMICS,
    SHARED_REQUESTS,
    WAVEFRONTS,
    total_of,
)
from gpu.messages.counted import RunCounts
from gpu.messages.requests import CountPattern
from gpu.patterns import find_pattern
from gpu.run.check import Small, small_inputs, small_params
from gpu.run.drive import Tell, accept, drive, refuse_library
from gpu.run.sized import opened

_PART = Small(elements=1024, bodies=1024, rows=64, columns=64, image=(64, 64), points=16)
"""Several blocks, quick to count for any variant, and whole blocks, so that the share per element is clear."""

_ALONE = Small(elements=128, bodies=128, rows=16, columns=16, image=(32, 32), points=8)
"""Sizes that are as quick for a single thread."""


def count_pattern(
    pattern: Pattern,
    variant: Variant,
    inputs: Inputs,
    given: Mapping[str, Any],
    tell: Tell,
    *,
    sources: Mapping[str, str] | None = None,
    seed: int = 0,
    whole: bool = False,
) -> RunCounts:
    """Run one variant on the simulator and count the work of its launches.

    Parameters
    ----------
    pattern, variant, inputs, given, tell, sources, seed
        As in `gpu.run.execute.run_pattern`.
    whole : bool
        Count the whole input instead of a small part.

    Raises
    ------
    InputError
        The inputs or parameters are not valid for the pattern; nothing was run.
    KernelError
        A kernel does not compile or fails.
    """
    from gpu.engines.counting import ObservedEngine  # not needed in a GPU's process
    from gpu.simulator.counting.counters import Counters

    refuse_library(variant)
    params = pattern.check(given)
    if whole:
        inputs = pattern.inputs(inputs, params, seed)
    else:
        part = _ALONE if variant.alone else _PART
        params = small_params(pattern, params, part)
        if pattern.presentation.kind == "bodies":
            part = replace(part, columns=part.bodies)
        inputs = small_inputs(pattern, inputs, params, seed, part)
    accept(pattern, variant, inputs, params)
    counters = Counters()
    engine = ObservedEngine(counters)
    engine.sources = dict(sources or {})
    with closing(engine):
        drive(engine, variant, inputs, params, tell)
    cost = pattern.cost(inputs, params)
    size, elements, unit = _input_size(pattern, inputs, params)
    return RunCounts(size, elements, unit, cost.bytes_read + cost.bytes_written, **summed(counters.total()))


def count_request(request: CountPattern, tell: Tell) -> RunCounts:
    """Execute a CountPattern request; raises the errors of `count_pattern`."""
    pattern = find_pattern(request.pattern)
    inputs = opened(request.inputs, request.side)
    variant = pattern.variant(request.variant)
    return count_pattern(
        pattern,
        variant,
        inputs,
        request.params,
        tell,
        sources=request.sources,
        seed=request.seed,
        whole=request.whole,
    )


def _input_size(pattern: Pattern, inputs: Inputs, params: Mapping[str, Any]) -> tuple[str, int, str]:
    """Return the size of an input as text, its number of elements, and their name."""
    match pattern.takes(params):
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


def summed(total: Mapping[str, int | float]) -> dict[str, int]:
    """Return the counted fields of `RunCounts` from a run's counters."""
    atomics = [name for name in REQUESTS if name.endswith(("_red.sum", "_atom.sum"))]
    return {
        "requests": total_of(total, REQUESTS),
        "sectors": total_of(total, SECTORS),
        "shared_requests": total_of(total, (*SHARED_REQUESTS, SHARED_ATOMICS)),
        "wavefronts": total_of(total, WAVEFRONTS),
        "conflicts": total_of(total, (*CONFLICTS, ATOMIC_CONFLICTS)),
        "warp_statements": int(total["warp_statements"]),
        "lane_statements": int(total["lane_statements"]),
        "branches": int(total["branches"]),
        "divergent_branches": int(total["divergent_branches"]),
        "operations": int(total["operations"]),
        "barriers": int(total["block_barriers"]),
        "atomics": total_of(total, [*atomics, SHARED_ATOMICS]),
        "hottest_atomics": int(max(total["hottest_atomics_global"], total["hottest_atomics_shared"])),
    }
