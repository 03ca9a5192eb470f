"""Smallest problem sizes from which variants can be compared on a GPU, by its number of multiprocessors.

For smaller sizes, launch overhead and idle multiprocessors determine the times and rank the variants differently. The
amounts per multiprocessor come from measurements on an H200 (132 multiprocessors, 4.8 TB/s): enough that launch
overhead is less than a tenth of the fastest variants' times. Beyond that they are small, since the host computes the
reference result and compares it: a run takes 0.3 to 0.6 s until the window shows it.
"""

from __future__ import annotations

import math
from collections.abc import Callable

SizeRule = Callable[[int], int]
"""Number of multiprocessors of a GPU -> size, a power of two."""


def elements_rule(per_multiprocessor: int) -> SizeRule:
    """Return the rule for about `per_multiprocessor` elements, bodies or rows per multiprocessor."""
    return lambda multiprocessors: _nearest_power_of_two(multiprocessors * per_multiprocessor)


def square_side_rule(per_multiprocessor: int) -> SizeRule:
    """Return the rule for the side of a square with about `per_multiprocessor` elements per multiprocessor."""
    return lambda multiprocessors: _nearest_power_of_two(math.sqrt(multiprocessors * per_multiprocessor))


def cube_edge_rule(per_multiprocessor: int) -> SizeRule:
    """Return the rule for the edge of a cube with about `per_multiprocessor` points per multiprocessor."""
    return lambda multiprocessors: _nearest_power_of_two(math.cbrt(multiprocessors * per_multiprocessor))


def _nearest_power_of_two(amount: float) -> int:
    """Return the nearest power of two, by ratio."""
    return 1 << max(0, round(math.log2(amount)))
