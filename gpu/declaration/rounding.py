"""What float32 arithmetic may be off by."""

from __future__ import annotations

UNIT = 2.0**-24
"""How far a rounded float32 is off, at most, as a part of itself."""


def gamma(roundings: int) -> float:
    """Return how far a value may be off, as a part of itself, that was rounded so many times.

    It is d u / (1 - d u) of d roundings with u = 2^-24, which bounds products of d factors from 1 - u to 1 + u (Higham,
    Accuracy and Stability of Numerical Algorithms, 2nd ed., sec. 3.1). A sum in which no term goes through more than d
    roundings is off by at most gamma(d) times the sum of the terms' magnitudes (sec. 4.2).
    """
    return roundings * UNIT / (1 - roundings * UNIT)
