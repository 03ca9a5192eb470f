"""Compare a result with its reference, a piece at a time so that large images need no further memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from gpu.declaration.pattern import Inputs, Outputs, Pattern, Variant
from gpu.declaration.rounding import RoundingBound
from gpu.messages.requests import Deviation

Array = npt.NDArray[Any]

CHUNK = 2**18
"""Elements that are compared at a time."""


def comparable(
    pattern: Pattern, variant: Variant, inputs: Inputs, params: Mapping[str, Any], outputs: Outputs
) -> tuple[Array, Array]:
    """Return a variant's result, and what it should be, both as they are compared."""
    ours = variant.comparable(params, outputs[pattern.result])
    return ours, variant.comparable(params, pattern.reference(inputs, params))


def compare(result: Array, reference: Array, tolerance: float | Array | RoundingBound) -> tuple[Deviation, bool]:
    """Compare a result with its reference.

    Parameters
    ----------
    result, reference : array
        Real numbers of the same shape.
    tolerance : float, array of the reference's shape, or RoundingBound
        The largest absolute error of a correct result, or of each of its elements.

    Returns
    -------
    deviation : Deviation
        `max_abs`, and `max_rel`: the same divided by the reference's largest magnitude. Both are infinite where the
        shapes differ or where either array holds a value that is not finite.
    verified : bool
        Whether every element is within the tolerance.
    """
    worst = Deviation(np.inf, np.inf)
    if result.shape != reference.shape:
        return worst, False
    max_abs = scale = 0.0
    verified = True
    of_each = (tolerance,) if isinstance(tolerance, np.ndarray) else ()
    for ours, right, *allowed in _chunks(result, reference, *of_each):
        exact = np.asarray(right, np.float64)
        with np.errstate(invalid="ignore", over="ignore"):
            # An infinite or missing number on either side makes the sum so too, hence no separate passes for it.
            off = np.abs(np.subtract(ours, exact, dtype=np.float64))
        difference = float(off.max())
        if not np.isfinite(difference):
            return worst, False
        most = tolerance.of(exact) if isinstance(tolerance, RoundingBound) else allowed[0] if allowed else tolerance
        verified = verified and bool((off <= most).all())
        max_abs = max(max_abs, difference)
        scale = max(scale, float(np.abs(exact).max()))
    max_rel = max_abs / scale if scale else (np.inf if max_abs else 0.0)
    return Deviation(max_abs, max_rel), verified


def _chunks(*arrays: Array) -> Iterator[tuple[Array, ...]]:
    """Yield matching pieces of arrays of the same shape, none of them empty."""
    if all(each.flags.c_contiguous for each in arrays):
        arrays = tuple(each.ravel() for each in arrays)
    rows, size = len(arrays[0]), arrays[0].size
    if not size:
        return
    step = max(1, CHUNK * rows // size)
    for start in range(0, rows, step):
        yield tuple(each[start : start + step] for each in arrays)
