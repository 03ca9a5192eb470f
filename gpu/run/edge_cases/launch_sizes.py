"""Find the sizes at which a variant's launches change, by running its host program without kernels."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

from gpu.base.errors import InputError, LaunchError
from gpu.base.warp import WARP
from gpu.declaration.edge_cases import HEIGHT, UNIFORM_ELEMENTS, WIDTH, EdgeCaseSizes, find_extents, typical_params
from gpu.declaration.pattern import Inputs, Params, Pattern, Variant
from gpu.engines.base import Argument, Extent, Kernel
from gpu.engines.null import NullEngine
from gpu.run.host_program import run_host_program

_MAX_TILE = 8192
_MAX_SIDE = 256
_LARGE_SIZES = 2**13, 2**14
_MAX_BOUNDED_THREADS = 2048
_SEQUENTIAL_ELEMENTS = 33
"""The most elements with unusual values for a single thread, which needs many steps."""
_MAX_SEQUENTIAL_OPERATIONS = 2**10
"""The most operations of a single thread for an edge case of many elements."""


class _ExtentEngine(NullEngine):
    """Runs nothing, and keeps the largest numbers of blocks and threads of a launch."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = self.threads = self.block = 0

    def launch(self, kernel: Kernel, grid: Extent, block: Extent, *arguments: Argument, shared_bytes: int = 0) -> None:
        blocks, threads = math.prod(grid), math.prod(block)
        self.blocks, self.block = max(self.blocks, blocks), max(self.block, threads)
        self.threads = max(self.threads, blocks * threads)


def find_launch_sizes(
    pattern: Pattern, variant: Variant, params: Params, inputs: Inputs, largest: int, typical: int
) -> EdgeCaseSizes:
    """Return the block size, and the sizes up to which one block is launched.

    Parameters
    ----------
    params, inputs : mapping
        Those of the run.
    largest, typical : int
        As in EdgeCaseSizes.
    """
    base = typical_params(pattern, params)
    kind = pattern.input_kind(params)

    def launch(extents: Mapping[str, int]) -> _ExtentEngine:
        engine = _ExtentEngine()
        try:
            if kind == "image":
                image = np.zeros((extents[HEIGHT], extents[WIDTH]), inputs["image"].dtype)
                run_host_program(engine, variant, {**inputs, "image": image}, params, lambda progress: None)
            else:
                sized = {**base, **extents}
                made = pattern.prepare_inputs({}, sized, 0)
                run_host_program(engine, variant, made, sized, lambda progress: None)
        except (InputError, LaunchError, ArithmeticError, LookupError, ValueError):
            pass  # a host program that depends on results of kernels, which are zeros here
        return engine

    if kind == "text":
        return EdgeCaseSizes(WARP, {}, largest, typical)
    names = [HEIGHT, WIDTH] if kind == "image" else [each.name for each in find_extents(pattern, base)]
    ones = dict.fromkeys(names, 1)
    limit = _MAX_TILE if len(names) == 1 else _MAX_SIDE
    tiles = {name: _find_tile(lambda value, name=name: launch({**ones, name: value}).blocks, limit) for name in names}  # type: ignore[misc]
    block = launch(ones).block or WARP
    if variant.is_single_thread:
        typical = min(typical, _SEQUENTIAL_ELEMENTS)
    bounded_threads = 0
    if (kind == "image" or len(names) == 1) and _is_linear(pattern, variant, params):
        less, more = (launch({**ones, names[-1]: size}).threads for size in _LARGE_SIZES)
        bounded_threads = more if less == more <= _MAX_BOUNDED_THREADS else 0
    return EdgeCaseSizes(
        int(params[pattern.block.name]) if pattern.block_sizes(params)[1] and pattern.block is not None else block,
        {name: tile for name, tile in tiles.items() if tile},
        largest,
        typical,
        bounded_threads,
    )


def _is_linear(pattern: Pattern, variant: Variant, params: Params) -> bool:
    """Return whether a thread can process hundreds of elements in a moment."""
    textbook = pattern.textbook_of(variant, params, UNIFORM_ELEMENTS) if variant.is_single_thread else None
    return textbook is None or textbook.operations <= _MAX_SEQUENTIAL_OPERATIONS


def _find_tile(count_blocks: Callable[[int], int], limit: int) -> int:
    """Return the largest value up to a limit with as many blocks as the value 1; 0 if the limit has no more."""
    fewest = count_blocks(1)
    low, high = 1, limit
    if count_blocks(limit) <= fewest:
        return 0
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if count_blocks(middle) <= fewest else (low, middle)
    return low
