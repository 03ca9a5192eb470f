"""What float32 arithmetic may be off by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

UNIT = 2.0**-24
"""How far a rounded float32 is off, at most, as a part of itself."""


def gamma(roundings: int) -> float:
    """Return how far a value may be off, as a part of itself, that was rounded so many times.

    It is d u / (1 - d u) of d roundings with u = 2^-24, which bounds products of d factors from 1 - u to 1 + u (Higham,
    Accuracy and Stability of Numerical Algorithms, 2nd ed., sec. 3.1). A sum in which no term goes through more than d
    roundings is off by at most gamma(d) times the sum of the terms' magnitudes (sec. 4.2).
    """
    return roundings * UNIT / (1 - roundings * UNIT)


@dataclass(frozen=True)
class RoundingBound:
    """What each element of a result may be off by: so much, and so much of its own magnitude.

    Parameters
    ----------
    absolute, relative : float
    """

    absolute: float
    relative: float

    def of(self, right: Array) -> Array:
        """Return how far each element may be off, float64, of what it should be."""
        allowed: Array = self.absolute + self.relative * np.abs(right, dtype=np.float64)
        return allowed


def rounded_to_half(off: float) -> RoundingBound:
    """Return the bound of what was off by so much at most before it was rounded to halves.

    These have 11 bits, and below 2^-14 end at 2^-24: a value is moved by 2^-11 of itself at most, or by 2^-25. Where
    nothing was off there are whole numbers only.
    """
    return RoundingBound(off * (1 + 2.0**-11) + (2.0**-25 if off else 0.0), 2.0**-11)
