"""Smallest problem sizes from which variants can be compared on a GPU, by its number of multiprocessors.

For smaller sizes, launch overhead and idle multiprocessors determine the times and rank the variants differently. The
amounts per multiprocessor come from measurements on an H200 (132 multiprocessors, 4.8 TB/s): enough that launch
overhead is less than a tenth of the fastest variants' times.
"""

from __future__ import annotations

import math
from collections.abc import Callable

SizeRule = Callable[[int], int]
"""Number of multiprocessors of a GPU -> size, a power of two."""


def elements(each: int) -> SizeRule:
    """Return the rule for about `each` elements, bodies or rows per multiprocessor."""
    return lambda multiprocessors: _power(multiprocessors * each)


def side(each: int) -> SizeRule:
    """Return the rule for the side of a square with about `each` elements per multiprocessor."""
    return lambda multiprocessors: _power(math.sqrt(multiprocessors * each))


def cube(each: int) -> SizeRule:
    """Return the rule for the edge of a cube with about `each` points per multiprocessor."""
    return lambda multiprocessors: _power(math.cbrt(multiprocessors * each))


def _power(amount: float) -> int:
    """Return the nearest power of two, by ratio."""
    return 1 << max(0, round(math.log2(amount)))
