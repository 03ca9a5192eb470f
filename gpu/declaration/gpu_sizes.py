"""From which size variants can be compared on a GPU: each of its multiprocessors has to get so much to do.

Below, the figures are those of launches, and of multiprocessors that have nothing to do: they put variants into another
order. The amounts are taken from what variants took on an H200, whose 132 multiprocessors read 4.8 TB/s: enough for
launches to be less than a tenth of what the fastest variants take.
"""

from __future__ import annotations

import math
from collections.abc import Callable

SizeRule = Callable[[int], int]
"""How many multiprocessors a GPU has -> a size, a power of two."""


def elements(each: int) -> SizeRule:
    """Return the rule that gives each multiprocessor so many elements, bodies or rows, about."""
    return lambda multiprocessors: _power(multiprocessors * each)


def side(each: int) -> SizeRule:
    """Return the rule for the side of a square, of which each multiprocessor gets so many elements, about."""
    return lambda multiprocessors: _power(math.sqrt(multiprocessors * each))


def cube(each: int) -> SizeRule:
    """Return the rule for the edge of a cube, of which each multiprocessor gets so many points, about."""
    return lambda multiprocessors: _power(math.cbrt(multiprocessors * each))


def _power(amount: float) -> int:
    """Return the power of two that is nearest in ratio."""
    return 1 << max(0, round(math.log2(amount)))
