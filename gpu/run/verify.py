"""Compare a result with its reference, a piece at a time so that large images need no further memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from gpu.messages.requests import Deviation

Array = npt.NDArray[Any]

CHUNK = 2**18
"""Elements that are compared at a time."""


def compare(result: Array, reference: Array, tolerance: float) -> tuple[Deviation, bool]:
    """Compare a result with its reference.

    Parameters
    ----------
    result, reference : array
        Real numbers of the same shape.
    tolerance : float
        The largest absolute error of a correct result.

    Returns
    -------
    deviation : Deviation
        `max_abs`, and `max_rel`: the same divided by the reference's largest magnitude. Both are infinite where the
        shapes differ or where either array holds a value that is not finite.
    verified : bool
        Whether `max_abs` is within the tolerance.
    """
    worst = Deviation(np.inf, np.inf)
    if result.shape != reference.shape:
        return worst, False
    max_abs = scale = 0.0
    for ours, right in _chunks(result, reference):
        exact = np.asarray(right, np.float64)
        with np.errstate(invalid="ignore", over="ignore"):
            # An infinite or missing number on either side makes the sum so too, hence no separate passes for it.
            difference = float(np.abs(np.subtract(ours, exact, dtype=np.float64)).max())
        if not np.isfinite(difference):
            return worst, False
        max_abs = max(max_abs, difference)
        scale = max(scale, float(np.abs(exact).max()))
    max_rel = max_abs / scale if scale else (np.inf if max_abs else 0.0)
    return Deviation(max_abs, max_rel), max_abs <= tolerance


def _chunks(result: Array, reference: Array) -> Iterator[tuple[Array, Array]]:
    """Yield matching pieces of two arrays of the same shape, none of them empty."""
    if result.ndim == 0 or (result.flags.c_contiguous and reference.flags.c_contiguous):
        result, reference = result.reshape(-1), reference.reshape(-1)
    if not result.size:
        return
    step = max(1, CHUNK * len(result) // result.size)
    for start in range(0, len(result), step):
        yield result[start : start + step], reference[start : start + step]
