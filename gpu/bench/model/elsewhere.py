"""Foreign kernels, from tutorials and samples: the timing model is tested on them and never tuned to them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gpu.engines.base import Argument, Array, Buffer, Engine

FOLDER = Path(__file__).with_name("elsewhere")

_BLOCK = 256
_CHANGED = ("sort_block", "search_level")
"""Kernels whose results change the work of the next launch."""

_NEIGHBORS = 16
"""Average entries of a sparse row."""


@dataclass(frozen=True)
class ElsewhereCase:
    """A launch of such a kernel.

    Parameters
    ----------
    file : str
        File name in `FOLDER`.
    kernel : str
    size : str
        Size of its input, for tables.
    grid, block : tuple of int
        Blocks and threads in x, y and z.
    make : callable
        Returns the arguments, arrays and NumPy scalars, given a random generator.
    anew : bool
        Whether its results change the work of the next launch, so that inputs are uploaded again.
    """

    file: str
    kernel: str
    size: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    make: Callable[[np.random.Generator], tuple[Array | np.generic, ...]]
    anew: bool = False

    def launch(self, engine: Engine, arguments: tuple[Array | np.generic, ...]) -> list[Buffer]:
        """Build, upload and launch on an engine that has `sources`; return the buffers, which the caller frees."""
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


def sources() -> dict[str, str]:
    """Return the files' texts by name, for an engine that builds from them."""
    return {path.name: path.read_text("utf-8") for path in sorted(FOLDER.glob("*.cu"))}


def all_cases() -> Iterator[ElsewhereCase]:
    """Yield every kernel at three sizes: smaller than the last cache, about as large, and larger."""
    for power in (18, 22, 26):
        yield from _memory(1 << power)
        yield from _sums(1 << power)
    for power in (16, 20, 24):
        yield from _arithmetic(1 << power)
        yield from _sparse(1 << power - 4)
    for side in (512, 2048, 8192):
        yield from _grids(side)
        yield from _transposes(side)
    for side in (256, 1024, 2048):
        yield from _products(side)


def _threads(n: int, block: int = _BLOCK) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
    return (-(-n // block), 1, 1), (block, 1, 1)


def _floats(*shape: int) -> Callable[[np.random.Generator], Array]:
    return lambda rng: rng.random(shape, np.float32)


def _zeros(n: int, dtype: Any = np.float32) -> Callable[[np.random.Generator], Array]:
    return lambda rng: np.zeros(n, dtype)


def _places(n: int) -> Callable[[np.random.Generator], Array]:
    return lambda rng: rng.permutation(n).astype(np.int32)


def _below(limit: int, n: int, dtype: Any) -> Callable[[np.random.Generator], Array]:
    return lambda rng: rng.integers(0, limit, n, dtype)


_Maker = Callable[[np.random.Generator], Array] | np.generic


def _case(file: str, kernel: str, size: str, extents: Any, *arguments: _Maker) -> ElsewhereCase:
    def make(rng: np.random.Generator) -> tuple[Array | np.generic, ...]:
        return tuple(each if isinstance(each, np.generic) else each(rng) for each in arguments)

    return ElsewhereCase(file, kernel, size, extents[0], extents[1], make, kernel in _CHANGED)


def _memory(n: int) -> Iterator[ElsewhereCase]:
    def case(kernel: str, extents: Any, *arguments: _Maker) -> ElsewhereCase:
        return _case("memory.cu", kernel, f"{n}", extents, *arguments)

    extents_of_n, count = _threads(n), np.int32(n)
    yield case("vector_add", extents_of_n, _floats(n), _floats(n), _zeros(n), count)
    yield case("saxpy", ((1024, 1, 1), (_BLOCK, 1, 1)), np.float32(2), _floats(n), _zeros(n), count)
    yield case("copy_vectors", _threads(n // 4), _floats(n), _zeros(n), np.int32(n // 4))
    yield case("copy_strided", _threads(n // 8), _floats(n), _zeros(n // 8), np.int32(n // 8), np.int32(8))
    yield case("gather", extents_of_n, _places(n), _floats(n), _zeros(n), count)
    yield case("scatter", extents_of_n, _places(n), _floats(n), _zeros(n), count)
    yield case("follow", _threads(8192, 64), _places(n), _zeros(8192, np.int32), np.int32(64), count)
    yield case("move_particles", _threads(n // 8), _floats(n // 8 * 7), np.float32(0.01), np.int32(n // 8))
    half, doubles = n // 2, _zeros(n // 2, np.float64)
    yield case("daxpy", _threads(half), np.float64(2), doubles, doubles, np.int32(half))
    yield case("gray", extents_of_n, _below(256, 3 * n, np.uint8), _zeros(n, np.uint8), count)


def _sums(n: int) -> Iterator[ElsewhereCase]:
    def case(kernel: str, extents: Any, *arguments: _Maker) -> ElsewhereCase:
        return _case("sums.cu", kernel, f"{n}", extents, *arguments)

    fixed, count = ((1024, 1, 1), (_BLOCK, 1, 1)), np.int32(n)
    yield case("dot_product", fixed, _floats(n), _floats(n), _zeros(1), count)
    yield case("sum_atomically", _threads(n), _below(9, n, np.int32), _zeros(1, np.int32), count)
    yield case("count_letters", fixed, _below(64, n, np.uint8), _zeros(64, np.uint32), count)
    for bins in (16, 65536):
        counts = _zeros(bins, np.uint32)
        globally = _case(
            "sums.cu", "count_globally", f"{n}, {bins} bins", _threads(n), _below(1 << 31, n, np.uint32), counts,
            np.int32(bins), count,
        )  # fmt: skip
        yield globally
    yield case("scan_block", _threads(n), _floats(n), _zeros(n))
    yield case("sort_block", _threads(n), _below(1 << 31, n, np.uint32))
    yield case("walsh_hadamard", _threads(n // 2), _floats(n))


def _arithmetic(n: int) -> Iterator[ElsewhereCase]:
    def case(kernel: str, extents: Any, *arguments: _Maker) -> ElsewhereCase:
        return _case("arithmetic.cu", kernel, f"{n}", extents, *arguments)

    extents_of_n, count = _threads(n), np.int32(n)
    side = round(n**0.5)
    tiles = ((-(-side // 16), -(-side // 16), 1), (16, 16, 1))
    yield case(
        "black_scholes", extents_of_n, _floats(n), _floats(n), _floats(n), _zeros(n), _zeros(n), np.float32(0.02),
        np.float32(0.3), count,
    )  # fmt: skip
    yield case("mandelbrot", tiles, _zeros(n, np.int32), np.int32(side), np.int32(side), np.int32(256))
    yield case("monte_carlo", extents_of_n, _zeros(1, np.uint32), np.int32(64), np.uint32(7))
    yield case("horner", extents_of_n, _floats(n), _zeros(n), np.int32(64), count)
    yield case("multiply_add_four", extents_of_n, _floats(n), np.int32(128))
    yield case("waves", extents_of_n, _floats(n), _zeros(n), count)
    yield case("collatz", extents_of_n, _zeros(n, np.int32), count)


def _sparse(rows: int) -> Iterator[ElsewhereCase]:
    def starts(rng: np.random.Generator) -> Array:
        lengths = rng.integers(1, 2 * _NEIGHBORS, rows)
        return np.minimum(np.concatenate(([0], np.cumsum(lengths))), entries).astype(np.int32)

    def levels(rng: np.random.Generator) -> Array:
        return np.where(rng.random(rows) < 0.25, 3, 9).astype(np.int32)

    entries = rows * _NEIGHBORS
    columns, count = _below(rows, entries, np.int32), np.int32(rows)
    graph = (starts, columns)
    product = (*graph, _floats(entries), _floats(rows), _zeros(rows), count)
    yield _case("sums.cu", "sparse_rows", f"{rows} rows", _threads(rows), *product)
    yield _case("sums.cu", "sparse_rows_warp", f"{rows} rows", _threads(32 * rows), *product)
    again = _zeros(1, np.int32)
    yield _case("sums.cu", "search_level", f"{rows} nodes", _threads(rows), *graph, levels, np.int32(3), again, count)


def _grids(side: int) -> Iterator[ElsewhereCase]:
    def case(kernel: str, extents: Any, *arguments: _Maker) -> ElsewhereCase:
        return _case("grids.cu", kernel, f"{side} x {side}", extents, *arguments)

    n, width = side * side, np.int32(side)
    tiles = ((-(-side // 32), -(-side // 8), 1), (32, 8, 1))
    yield case("stencil_shared", _threads(n), _below(100, n + 6, np.int32), _zeros(n, np.int32), np.int32(n))
    yield case("jacobi", tiles, _floats(n), _zeros(n), width, width)
    depth = 64
    shape = (max(side // 8, 64),) * 2
    extents = ((-(-shape[0] // 32), -(-shape[1] // 8), 1), (32, 8, 1))
    volume = shape[0] * shape[1] * depth
    sides = (np.int32(shape[0]), np.int32(shape[1]), np.int32(depth))
    yield case("heat_3d", extents, _floats(volume), _zeros(volume), *sides)
    yield case("sobel", tiles, _below(256, n, np.uint8), _zeros(n, np.uint8), width, width)
    yield case("life", _threads(n), _below(2, n, np.uint8), _zeros(n, np.uint8), width, width)


def _transposes(side: int) -> Iterator[ElsewhereCase]:
    extents = ((side // 32, side // 32, 1), (32, 8, 1))
    for kernel in ("transpose_naive", "transpose_tiled", "transpose_padded"):
        n = side * side
        yield _case("matrices.cu", kernel, f"{side} x {side}", extents, _floats(n), _zeros(n), np.int32(side))


def _products(side: int) -> Iterator[ElsewhereCase]:
    def case(kernel: str, extents: Any, *arguments: _Maker) -> ElsewhereCase:
        return _case("matrices.cu", kernel, f"{side}", extents, *arguments)

    n, width = side * side, np.int32(side)
    matrix = _floats(n)
    yield case("multiply_tiled", ((side // 16, side // 16, 1), (16, 16, 1)), matrix, matrix, _zeros(n), width)
    rows = 8 * side
    tall = (_floats(rows * side), _floats(side), _zeros(rows), np.int32(rows), width)
    yield case("times_vector_thread", _threads(rows), *tall)
    yield case("times_vector_warp", _threads(32 * rows), *tall)
    yield case("layer_norm", ((rows, 1, 1), (_BLOCK, 1, 1)), _floats(rows * side), _zeros(rows * side), width)
    extents = ((side // 16, side // 16, 1), (16, 16, 1))
    yield case("shortest_paths_round", extents, _below(100, n, np.int32), width, np.int32(side // 2))
