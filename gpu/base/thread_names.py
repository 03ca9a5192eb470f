"""Names of threads in the window: by `blockIdx` and `threadIdx`, with as many components as the launch has."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod


def format_index(index: Sequence[int], extents: Sequence[int]) -> str:
    """Format an index with as many components as the extents need: 3, or (3, 4).

    Parameters
    ----------
    index, extents : sequence of int
        In x, y and z.
    """
    count = max((axis + 1 for axis, extent in enumerate(extents) if extent > 1), default=1)
    parts = [str(part) for part in index[:count]]
    return parts[0] if count == 1 else f"({', '.join(parts)})"


def name_thread(block: int, thread: int, grid: Sequence[int], block_shape: Sequence[int], *, names_block: bool) -> str:
    """Return a thread's name: "thread 3", or "block (5, 10), thread (30, 14)".

    Parameters
    ----------
    block, thread : int
        Their numbers in the grid and in the block, x fastest.
    grid, block_shape : sequence of int
        The launch's blocks, and the threads of a block, in x, y and z.
    names_block : bool
        Whether to name the block.
    """
    name = f"thread {_format_number(thread, block_shape)}"
    return f"block {_format_number(block, grid)}, {name}" if names_block else name


def _format_number(number: int, extents: Sequence[int]) -> str:
    """Format a linear number as an index; beyond the extents, as for blocks of child launches, as the number itself."""
    if number >= prod(extents):
        return str(number)
    index = []
    for extent in extents:
        number, part = divmod(number, extent)
        index.append(part)
    return format_index(index, extents)
