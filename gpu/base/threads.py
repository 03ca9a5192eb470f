"""Parts of large arrays in several threads: NumPy and SciPy release the interpreter's lock while they compute."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

PART_ELEMENTS = 2**20
"""About as many elements make a part of an array: enough to be worth a call, and several for each thread."""

Part = TypeVar("Part")
Result = TypeVar("Result")


def map_parts(function: Callable[[Part], Result], parts: Iterable[Part]) -> list[Result]:
    """Call `function` with each part, on all processor cores, and return the results in the parts' order.

    An exception is that of the first part that raised one.
    """
    waiting = list(parts)
    if len(waiting) < 2:
        return [function(part) for part in waiting]
    with ThreadPoolExecutor(min(len(waiting), os.cpu_count() or 1)) as pool:
        return list(pool.map(function, waiting))
