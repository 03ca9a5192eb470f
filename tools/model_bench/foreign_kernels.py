"""Foreign kernels, from tutorials and samples: the timing model is tested on them and never tuned to them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gpu.engines.base import Argument, Array, Buffer, Engine

FOLDER = Path(__file__).with_name("kernels")

_BLOCK = 256
_STATEFUL_KERNELS = ("sort_block", "search_level")
"""Kernels that change the work of their next launch by their results."""

_NEIGHBORS = 16
"""Average entries of a sparse row."""


@dataclass(frozen=True)
class ForeignKernelCase:
    """A launch of a foreign kernel.

    Parameters
    ----------
    file : str
        File name in `FOLDER`.
    size : str
        Size of its input, for tables.
    grid, block : tuple of int
        Blocks and threads in x, y and z.
    make_arguments : callable
        Returns the arguments, arrays and NumPy scalars, given a random generator.
    restores_inputs : bool
        Whether its results change the work of the next launch, so that inputs are uploaded again.
    """

    file: str
    kernel: str
    size: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    make_arguments: Callable[[np.random.Generator], tuple[Array | np.generic, ...]]
    restores_inputs: bool = False

    def launch(self, engine: Engine, arguments: tuple[Array | np.generic, ...]) -> list[Buffer]:
        """Build, upload and launch on an engine that has `read_sources`; return the buffers, which the caller frees."""
        kernel = engine.build(self.file).kernel(self.kernel)
        buffers: list[Buffer] = []
        kernel_arguments: list[Argument] = []
        for argument in arguments:
            if isinstance(argument, np.ndarray):
                buffers.append(engine.upload(argument))
                kernel_arguments.append(buffers[-1])
            else:
                kernel_arguments.append(argument)
        engine.launch(kernel, self.grid, self.block, *kernel_arguments)
        return buffers


def read_sources() -> dict[str, str]:
    """Return the files' texts by name, for an engine that builds from them."""
    return {path.name: path.read_text("utf-8") for path in sorted(FOLDER.glob("*.cu"))}


def all_cases() -> Iterator[ForeignKernelCase]:
    """Yield every kernel at three sizes: smaller than the last cache, about as large, and larger."""
    for power in (18, 22, 26):
        yield from _memory_cases(1 << power)
        yield from _sum_cases(1 << power)
    for power in (16, 20, 24):
        yield from _arithmetic_cases(1 << power)
        yield from _sparse_cases(1 << power - 4)
    for side in (512, 2048, 8192):
        yield from _grid_cases(side)
        yield from _transpose_cases(side)
    for side in (256, 1024, 2048):
        yield from _product_cases(side)


def _linear_extents(n: int, block: int = _BLOCK) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
    return (-(-n // block), 1, 1), (block, 1, 1)


def _random_floats(*shape: int) -> Callable[[np.random.Generator], Array]:
    return lambda rng: rng.random(shape, np.float32)


def _zeros(n: int, dtype: Any = np.float32) -> Callable[[np.random.Generator], Array]:
    return lambda rng: np.zeros(n, dtype)


def _random_permutation(n: int) -> Callable[[np.random.Generator], Array]:
    return lambda rng: rng.permutation(n).astype(np.int32)


def _random_integers(limit: int, n: int, dtype: Any) -> Callable[[np.random.Generator], Array]:
    return lambda rng: rng.integers(0, limit, n, dtype)


_ArgumentMaker = Callable[[np.random.Generator], Array] | np.generic


def _make_case(file: str, kernel: str, size: str, extents: Any, *arguments: _ArgumentMaker) -> ForeignKernelCase:
    def make(rng: np.random.Generator) -> tuple[Array | np.generic, ...]:
        return tuple(argument if isinstance(argument, np.generic) else argument(rng) for argument in arguments)

    return ForeignKernelCase(file, kernel, size, extents[0], extents[1], make, kernel in _STATEFUL_KERNELS)


def _memory_cases(n: int) -> Iterator[ForeignKernelCase]:
    def case(kernel: str, extents: Any, *arguments: _ArgumentMaker) -> ForeignKernelCase:
        return _make_case("memory.cu", kernel, f"{n}", extents, *arguments)

    extents_of_n, count = _linear_extents(n), np.int32(n)
    yield case("vector_add", extents_of_n, _random_floats(n), _random_floats(n), _zeros(n), count)
    yield case("saxpy", ((1024, 1, 1), (_BLOCK, 1, 1)), np.float32(2), _random_floats(n), _zeros(n), count)
    yield case("copy_vectors", _linear_extents(n // 4), _random_floats(n), _zeros(n), np.int32(n // 4))
    yield case(
        "copy_strided", _linear_extents(n // 8), _random_floats(n), _zeros(n // 8), np.int32(n // 8), np.int32(8)
    )
    yield case("gather", extents_of_n, _random_permutation(n), _random_floats(n), _zeros(n), count)
    yield case("scatter", extents_of_n, _random_permutation(n), _random_floats(n), _zeros(n), count)
    yield case("follow", _linear_extents(8192, 64), _random_permutation(n), _zeros(8192, np.int32), np.int32(64), count)
    yield case(
        "move_particles", _linear_extents(n // 8), _random_floats(n // 8 * 7), np.float32(0.01), np.int32(n // 8)
    )
    half, doubles = n // 2, _zeros(n // 2, np.float64)
    yield case("daxpy", _linear_extents(half), np.float64(2), doubles, doubles, np.int32(half))
    yield case("gray", extents_of_n, _random_integers(256, 3 * n, np.uint8), _zeros(n, np.uint8), count)


def _sum_cases(n: int) -> Iterator[ForeignKernelCase]:
    def case(kernel: str, extents: Any, *arguments: _ArgumentMaker) -> ForeignKernelCase:
        return _make_case("sums.cu", kernel, f"{n}", extents, *arguments)

    fixed, count = ((1024, 1, 1), (_BLOCK, 1, 1)), np.int32(n)
    yield case("dot_product", fixed, _random_floats(n), _random_floats(n), _zeros(1), count)
    yield case("sum_atomically", _linear_extents(n), _random_integers(9, n, np.int32), _zeros(1, np.int32), count)
    yield case("count_letters", fixed, _random_integers(64, n, np.uint8), _zeros(64, np.uint32), count)
    for bins in (16, 65536):
        counts = _zeros(bins, np.uint32)
        globally = _make_case(
            "sums.cu", "count_globally", f"{n}, {bins} bins", _linear_extents(n),
            _random_integers(1 << 31, n, np.uint32), counts, np.int32(bins), count,
        )  # fmt: skip
        yield globally
    yield case("scan_block", _linear_extents(n), _random_floats(n), _zeros(n))
    yield case("sort_block", _linear_extents(n), _random_integers(1 << 31, n, np.uint32))
    yield case("walsh_hadamard", _linear_extents(n // 2), _random_floats(n))


def _arithmetic_cases(n: int) -> Iterator[ForeignKernelCase]:
    def case(kernel: str, extents: Any, *arguments: _ArgumentMaker) -> ForeignKernelCase:
        return _make_case("arithmetic.cu", kernel, f"{n}", extents, *arguments)

    extents_of_n, count = _linear_extents(n), np.int32(n)
    side = round(n**0.5)
    tiles = ((-(-side // 16), -(-side // 16), 1), (16, 16, 1))
    yield case(
        "black_scholes", extents_of_n, _random_floats(n), _random_floats(n), _random_floats(n), _zeros(n), _zeros(n),
        np.float32(0.02), np.float32(0.3), count,
    )  # fmt: skip
    yield case("mandelbrot", tiles, _zeros(n, np.int32), np.int32(side), np.int32(side), np.int32(256))
    yield case("monte_carlo", extents_of_n, _zeros(1, np.uint32), np.int32(64), np.uint32(7))
    yield case("horner", extents_of_n, _random_floats(n), _zeros(n), np.int32(64), count)
    yield case("multiply_add_four", extents_of_n, _random_floats(n), np.int32(128))
    yield case("waves", extents_of_n, _random_floats(n), _zeros(n), count)
    yield case("collatz", extents_of_n, _zeros(n, np.int32), count)


def _sparse_cases(rows: int) -> Iterator[ForeignKernelCase]:
    def starts(rng: np.random.Generator) -> Array:
        lengths = rng.integers(1, 2 * _NEIGHBORS, rows)
        return np.minimum(np.concatenate(([0], np.cumsum(lengths))), entries).astype(np.int32)

    def levels(rng: np.random.Generator) -> Array:
        return np.where(rng.random(rows) < 0.25, 3, 9).astype(np.int32)

    entries = rows * _NEIGHBORS
    columns, count = _random_integers(rows, entries, np.int32), np.int32(rows)
    graph = (starts, columns)
    product = (*graph, _random_floats(entries), _random_floats(rows), _zeros(rows), count)
    yield _make_case("sums.cu", "sparse_rows", f"{rows} rows", _linear_extents(rows), *product)
    yield _make_case("sums.cu", "sparse_rows_warp", f"{rows} rows", _linear_extents(32 * rows), *product)
    again = _zeros(1, np.int32)
    yield _make_case(
        "sums.cu", "search_level", f"{rows} nodes", _linear_extents(rows), *graph, levels, np.int32(3), again, count
    )


def _grid_cases(side: int) -> Iterator[ForeignKernelCase]:
    def case(kernel: str, extents: Any, *arguments: _ArgumentMaker) -> ForeignKernelCase:
        return _make_case("grids.cu", kernel, f"{side} x {side}", extents, *arguments)

    n, width = side * side, np.int32(side)
    tiles = ((-(-side // 32), -(-side // 8), 1), (32, 8, 1))
    yield case(
        "stencil_shared", _linear_extents(n), _random_integers(100, n + 6, np.int32), _zeros(n, np.int32), np.int32(n)
    )
    yield case("jacobi", tiles, _random_floats(n), _zeros(n), width, width)
    depth = 64
    shape = (max(side // 8, 64),) * 2
    extents = ((-(-shape[0] // 32), -(-shape[1] // 8), 1), (32, 8, 1))
    volume = shape[0] * shape[1] * depth
    sides = (np.int32(shape[0]), np.int32(shape[1]), np.int32(depth))
    yield case("heat_3d", extents, _random_floats(volume), _zeros(volume), *sides)
    yield case("sobel", tiles, _random_integers(256, n, np.uint8), _zeros(n, np.uint8), width, width)
    yield case("life", _linear_extents(n), _random_integers(2, n, np.uint8), _zeros(n, np.uint8), width, width)


def _transpose_cases(side: int) -> Iterator[ForeignKernelCase]:
    extents = ((side // 32, side // 32, 1), (32, 8, 1))
    for kernel in ("transpose_naive", "transpose_tiled", "transpose_padded"):
        n = side * side
        yield _make_case(
            "matrices.cu", kernel, f"{side} x {side}", extents, _random_floats(n), _zeros(n), np.int32(side)
        )


def _product_cases(side: int) -> Iterator[ForeignKernelCase]:
    def case(kernel: str, extents: Any, *arguments: _ArgumentMaker) -> ForeignKernelCase:
        return _make_case("matrices.cu", kernel, f"{side}", extents, *arguments)

    n, width = side * side, np.int32(side)
    matrix = _random_floats(n)
    yield case("multiply_tiled", ((side // 16, side // 16, 1), (16, 16, 1)), matrix, matrix, _zeros(n), width)
    rows = 8 * side
    tall = (_random_floats(rows * side), _random_floats(side), _zeros(rows), np.int32(rows), width)
    yield case("times_vector_thread", _linear_extents(rows), *tall)
    yield case("times_vector_warp", _linear_extents(32 * rows), *tall)
    yield case("layer_norm", ((rows, 1, 1), (_BLOCK, 1, 1)), _random_floats(rows * side), _zeros(rows * side), width)
    extents = ((side // 16, side // 16, 1), (16, 16, 1))
    yield case("shortest_paths_round", extents, _random_integers(100, n, np.int32), width, np.int32(side // 2))
