"""Compare a result with the reference result, piece by piece, so that large images need little extra memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from gpu.base.threads import map_parts
from gpu.declaration.pattern import Inputs, Outputs, Pattern, Variant
from gpu.declaration.rounding import RoundingBound
from gpu.messages.runs.pattern_runs import Deviation

Array = npt.NDArray[Any]

CHUNK_ELEMENTS = 2**18
"""Elements that each thread compares at a time."""


def prepare_comparison(
    pattern: Pattern,
    variant: Variant,
    inputs: Inputs,
    params: Mapping[str, Any],
    outputs: Outputs,
    *,
    reference: Array | None = None,
) -> tuple[Array, Array]:
    """Return a variant's result and the reference result, both in comparable form.

    Parameters
    ----------
    variant : Variant
        The variant that ran; its `comparable` converts both results.
    inputs, params : mapping
        The inputs and parameters of the run.
    outputs : mapping
        The outputs of the variant's host program.
    reference : array or None
        The pattern's reference result, if it has been computed.
    """
    if reference is None:
        reference = pattern.reference(inputs, params)
    result = variant.comparable(params, outputs[pattern.result])
    return result, variant.comparable(params, reference)


def compare_results(
    result: Array, reference: Array, tolerance: float | Array | RoundingBound
) -> tuple[Deviation, bool]:
    """Compare a result with the reference result.

    Parameters
    ----------
    result, reference : array
        Real numbers; a result of another shape than the reference is wrong.
    tolerance : float, array of the reference's shape, or RoundingBound
        The largest absolute error of a correct result, or of each of its elements.

    Returns
    -------
    deviation : Deviation
        `max_abs`, and `max_rel`: `max_abs` divided by the reference's largest magnitude. Both are infinite if the
        shapes differ or either array has a value that is not finite.
    verified : bool
        Whether every element is within its tolerance.
    """
    worst = Deviation(np.inf, np.inf)
    if result.shape != reference.shape:
        return worst, False
    tolerances = (tolerance,) if isinstance(tolerance, np.ndarray) else ()

    def compare_part(parts: tuple[Array, ...]) -> tuple[float, float, bool]:
        part, reference_part, *tolerance_part = parts
        exact = np.asarray(reference_part, np.float64)
        with np.errstate(invalid="ignore", over="ignore"):
            # An infinity or NaN on either side makes the difference infinite or NaN, so one pass is enough.
            error = np.abs(np.subtract(part, exact, dtype=np.float64))
            largest = float(np.abs(exact).max())
            limit: float | Array
            if isinstance(tolerance, RoundingBound):
                limit = tolerance.allowed_errors(exact)
            else:
                limit = tolerance_part[0] if tolerance_part else tolerance
            return float(error.max()), largest, bool((error <= limit).all())

    compared = map_parts(compare_part, _split_arrays(result, reference, *tolerances))
    if not all(np.isfinite(difference) for difference, _, _ in compared):
        return worst, False
    if not compared:
        return Deviation(0.0, 0.0), True
    max_abs = max(difference for difference, _, _ in compared)
    scale = max(largest for _, largest, _ in compared)
    verified = all(within for _, _, within in compared)
    max_rel = max_abs / scale if scale else (np.inf if max_abs else 0.0)
    return Deviation(max_abs, max_rel), verified


def _split_arrays(*arrays: Array) -> Iterator[tuple[Array, ...]]:
    """Divide arrays with equal shapes along the first axis; yield the non-empty pieces of all arrays in order."""
    if all(array.flags.c_contiguous for array in arrays):
        arrays = tuple(array.ravel() for array in arrays)
    rows, size = len(arrays[0]), arrays[0].size
    if not size:
        return
    step = max(1, CHUNK_ELEMENTS * rows // size)
    for start in range(0, rows, step):
        yield tuple(array[start : start + step] for array in arrays)
