"""Large random arrays, drawn in parts on all processor cores."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gpu.base.threads import map_parts
from gpu.declaration.pattern import Array

PART_ELEMENTS = 2**20
"""Elements that one generator draws."""


def draw_values(rng: np.random.Generator, n: int, draw: Callable[[np.random.Generator, int], Array]) -> Array:
    """Draw n random values, each part of `PART_ELEMENTS` from a generator of its own.

    So the values depend on the seed only, not on the number of cores. The first part is drawn from `rng`, the others
    from generators that it spawns.

    Parameters
    ----------
    draw : callable
        Called with a generator and a number of values; returns that many, as an array of shape (number,).

    Returns
    -------
    array of shape (n,)
    """
    if n <= PART_ELEMENTS:
        return draw(rng, n)
    starts = range(0, n, PART_ELEMENTS)
    values = np.empty(n, draw(np.random.default_rng(0), 0).dtype)

    def fill(part: tuple[np.random.Generator, int]) -> None:
        generator, start = part
        target = values[start : start + PART_ELEMENTS]
        target[:] = draw(generator, target.size)

    map_parts(fill, zip([rng, *rng.spawn(len(starts) - 1)], starts, strict=True))
    return values
