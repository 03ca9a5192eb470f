"""Rounding error bounds of float32 arithmetic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

UNIT = 2.0**-24
"""Unit roundoff: the largest relative error of one rounding to float32."""


def gamma(roundings: int) -> float:
    """Return the relative error bound of a value after a number of roundings.

    It is d u / (1 - d u) for d roundings with u = 2^-24, which bounds products of d factors from 1 - u to 1 + u
    (Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., sec. 3.1). The error of a sum in which no term is
    rounded more than d times is at most gamma(d) times the sum of the terms' magnitudes (sec. 4.2).
    """
    return roundings * UNIT / (1 - roundings * UNIT)


@dataclass(frozen=True)
class RoundingBound:
    """Error bound of each element of a result: an absolute part plus a part relative to its magnitude."""

    absolute: float
    relative: float

    def allowed_errors(self, reference: Array) -> Array:
        """Return the largest error allowed for each element of the correct result, float64."""
        allowed: Array = self.absolute + self.relative * np.abs(reference, dtype=np.float64)
        return allowed


def float16_rounding_bound(error: float) -> RoundingBound:
    """Return the error bound of values with an error of at most `error` that were then rounded to float16.

    A float16 has 11 significant bits, and below 2^-14 a resolution of 2^-24: rounding moves a value by at most 2^-11 of
    itself, or by 2^-25. If `error` is 0, the values are whole numbers.
    """
    return RoundingBound(error * (1 + 2.0**-11) + (2.0**-25 if error else 0.0), 2.0**-11)
