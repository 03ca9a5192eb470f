"""Float16 product by warpgroups: tile shapes, padding, and launches."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from gpu.declaration.pattern import Params
from gpu.engines.base import Buffer, Device, Engine, Module
from gpu.patterns.matmul.split_k import SplitKBuffers

FILE = "matmul_wgmma.cu"

_HALF_BYTES = 2
_COPY_ELEMENTS = 8
"""Elements per copy: rows have to begin at multiples of this."""
_DEPTH = _LINE = 64
"""Depth of a step along k, and elements of a line in shared memory."""
_PADDING_BLOCK = 256
_MIN_PART_DEPTH = 1024
"""The smallest depth of a part of k, if there are few tiles."""


@dataclass(frozen=True)
class _Shape:
    """A block's tile, 64 rows per warpgroup, and the number of pipeline stages in shared memory.

    `blocks` is the number of resident blocks per multiprocessor.
    """

    rows: int
    columns: int
    stages: int
    blocks: int = 1

    @property
    def defines(self) -> dict[str, int | str]:
        return {"ROWS": self.rows, "COLUMNS": self.columns, "STAGES": self.stages, "BLOCKS": self.blocks}

    @property
    def threads(self) -> int:
        return 2 * self.rows

    @property
    def shared_bytes(self) -> int:
        """Bytes of the tiles of all stages; a row of B's tile is padded to whole lines."""
        across = -(-self.columns // _LINE) * _LINE
        return self.stages * (self.rows + across) * _DEPTH * _HALF_BYTES

    def tiles(self, m: int, n: int) -> int:
        return -(-m // self.rows) * -(-n // self.columns)


_SMALLEST_SHAPE = _Shape(64, 32, 3)
_SHAPES_BY_TILE = {4: _Shape(64, 8, 3), 8: _Shape(64, 8, 3), 16: _SMALLEST_SHAPE}
"""Shapes by the parameter `tile`, except the largest."""
_LARGE_SHAPES = (_Shape(256, 128, 4), _Shape(128, 64, 4, blocks=2), _Shape(64, 64, 6, blocks=2))
"""Shapes for the largest `tile`, the fastest on an H200: the first with tiles for half of the multiprocessors."""
_STAGES_OF_SINGLE_BLOCK = {(128, 64): 8, (64, 64): 12}
"""Pipeline stages of the smaller shapes when each block has its own multiprocessor."""


def _choose_shape(device: Device, tile: int, m: int, n: int, k: int) -> tuple[_Shape, int]:
    """Return the tile shape and the number of parts of k.

    For the largest `tile`, they are chosen so that all multiprocessors are busy and their shared memory suffices.
    """
    if tile in _SHAPES_BY_TILE:
        return _SHAPES_BY_TILE[tile], 1
    busy = (each for each in _LARGE_SHAPES if 2 * each.tiles(m, n) >= device.multiprocessors)
    shape = next(busy, _LARGE_SHAPES[-1])
    if shape.shared_bytes > device.max_shared_bytes:
        shape = _SMALLEST_SHAPE
    tiles = shape.tiles(m, n)
    parts = max(1, min(device.multiprocessors * shape.blocks // tiles, k // _MIN_PART_DEPTH))
    stages = _STAGES_OF_SINGLE_BLOCK.get((shape.rows, shape.columns))
    if stages is not None and tiles * parts <= device.multiprocessors:
        shape = replace(shape, stages=stages, blocks=1)
    return shape, parts


def multiply(engine: Engine, params: Params, a: Buffer, b: Buffer, c: Buffer) -> None:
    """Compute C = alpha A B + beta C in float16, with sums in float32.

    Parameters
    ----------
    engine : Engine
        The engine.
    params : mapping
        The pattern's parameters; `tile`, `alpha` and `beta` are used.
    a, b : Buffer
        A, of shape (m, k), and B, of shape (k, n); both float16.
    c : Buffer
        C, float16 of shape (m, n), which the result replaces.
    """
    (m, k), n = a.shape, b.shape[1]
    shape, number = _choose_shape(engine.device, int(params["tile"]), m, n, k)
    module = engine.build(FILE, shape.defines)
    padded_a, padded_b = (_pad_rows(engine, module, matrix) for matrix in (a, b))
    parts = SplitKBuffers(engine, c, number)
    engine.launch(
        module.kernel("matmul_fp16"),
        (min(shape.tiles(m, n), engine.device.multiprocessors * shape.blocks), parts.part_count, 1),
        (shape.threads, 1, 1),
        padded_a,
        padded_b,
        c,
        parts.partial_products,
        *(np.int32(each) for each in (m, n, k, padded_a.shape[1], padded_b.shape[1])),
        np.float32(params["alpha"]),
        np.float32(params["beta"]),
        shared_bytes=shape.shared_bytes,
    )
    parts.sum_parts(module, "matmul_fp16_add", params)
    for padded, original in ((padded_a, a), (padded_b, b)):
        if padded is not original:
            engine.free(padded)


def _pad_rows(engine: Engine, module: Module, matrix: Buffer) -> Buffer:
    """Return a matrix with a row length that is a multiple of a copy's: itself, or a copy padded with zeros."""
    rows, columns = matrix.shape
    pitch = -(-columns // _COPY_ELEMENTS) * _COPY_ELEMENTS
    if pitch == columns:
        return matrix
    padded = engine.allocate((rows, pitch), np.float16)
    parts = pitch // _COPY_ELEMENTS
    grid = (-(-rows * parts // _PADDING_BLOCK), 1, 1)
    sizes = np.int32(rows), np.int32(columns), np.int32(parts)
    engine.launch(module.kernel("matmul_whole_rows"), grid, (_PADDING_BLOCK, 1, 1), matrix, padded, *sizes)
    return padded
