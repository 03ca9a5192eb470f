"""Names of threads: by `blockIdx` and `threadIdx`, in the window with as many components as the launch has.

Messages of the engines have compute-sanitizer's names, which always have three components.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from math import prod

_INDEX = r"\((\d+),(\d+),(\d+)\)"
_SANITIZER_NAME = re.compile(rf"(?:thread {_INDEX} in )?block {_INDEX}")

Extents = tuple[Sequence[int], Sequence[int]]
"""The blocks of a launch, and the threads of a block, in x, y and z."""


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


def format_sanitizer_name(thread: Iterable[int], block: Iterable[int]) -> str:
    """Return a thread's name in compute-sanitizer's notation, "thread (3,0,0) in block (0,0,0)", from its indices."""
    return f"thread ({','.join(map(str, thread))}) in block ({','.join(map(str, block))})"


def parse_sanitizer_name(name: str) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """Return the indices of a thread and its block from its name in compute-sanitizer's notation; None if invalid."""
    match = _SANITIZER_NAME.fullmatch(name)
    if match is None or match[1] is None:
        return None
    indices = tuple(map(int, match.groups()))
    return indices[:3], indices[3:]


def rename_threads(text: str, extents: Extents | None = None, *, names_single_block: bool = True) -> str:
    """Replace compute-sanitizer's names in a text by the window's: "block (5, 10), thread (30, 14)".

    Parameters
    ----------
    text : str
        A message.
    extents : (sequence of int, sequence of int) or None
        Those of the launch; None if unknown: indices have as many components as those in the text need.
    names_single_block : bool
        Whether to name the block if it is the only one.
    """
    matches = list(_SANITIZER_NAME.finditer(text))
    known_grid, known_block = extents or ((1, 1, 1), (1, 1, 1))
    grid, block_shape = _extend(known_grid, matches, 4), _extend(known_block, matches, 1)

    def rename(match: re.Match[str]) -> str:
        block = f"block {format_index(tuple(map(int, match.groups()[3:])), grid)}"
        if match[1] is None:
            return block
        thread = f"thread {format_index(tuple(map(int, match.groups()[:3])), block_shape)}"
        return f"{block}, {thread}" if names_single_block or prod(grid) > 1 else thread

    return _SANITIZER_NAME.sub(rename, text)


def _extend(extents: Sequence[int], matches: Sequence[re.Match[str]], group: int) -> list[int]:
    """Return extents that also contain the indices that begin at a group of each match."""
    return [
        max(extent, *(int(match[group + axis] or 0) + 1 for match in matches)) if matches else extent
        for axis, extent in enumerate(extents)
    ]
