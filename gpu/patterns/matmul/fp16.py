"""The product of halves by warpgroups: which tiles are made of it, and of which rows."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from gpu.declaration.pattern import Params
from gpu.engines.base import Buffer, Device, Engine, Module
from gpu.patterns.matmul.parts import PartsOfK

FILE = "matmul_wgmma.cu"

_HALF_BYTES = 2
_PART = 8
"""Halves in a copy: rows begin at multiples of so many."""
_DEPTH = _LINE = 64
"""How far along k a step goes, and how many halves a line in shared memory has."""
_FILLING_BLOCK = 256
_LEAST_DEPTH = 1024
"""So far along k a part goes at least, where tiles are few."""


@dataclass(frozen=True)
class _Shape:
    """What a block makes, of which four warps have 64 rows, and of how many steps it has tiles in shared memory."""

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
        """The tiles of all stages, of which a row of B's is whole lines."""
        across = -(-self.columns // _LINE) * _LINE
        return self.stages * (self.rows + across) * _DEPTH * _HALF_BYTES

    def tiles(self, m: int, n: int) -> int:
        return -(-m // self.rows) * -(-n // self.columns)


_SMALLEST = _Shape(64, 32, 3)
_BY_TILE = {4: _Shape(64, 8, 3), 8: _Shape(64, 8, 3), 16: _SMALLEST}
"""By the tile that is asked for, but the largest."""
_LARGE = (_Shape(256, 128, 4), _Shape(128, 64, 4, blocks=2), _Shape(64, 64, 6, blocks=2))
"""Of the largest, the fastest on an H200: larger ones where half of the multiprocessors at least have one to make."""
_ALONE = {(128, 64): 8, (64, 64): 12}
"""Of how many steps a block of the smaller ones has tiles where it has a multiprocessor to itself."""


def _shape(device: Device, tile: int, m: int, n: int, k: int) -> tuple[_Shape, int]:
    """Return what blocks make and in how many parts k is made.

    Of the largest tile that is what keeps multiprocessors busy, and fits their memory.
    """
    if tile in _BY_TILE:
        return _BY_TILE[tile], 1
    busy = (each for each in _LARGE if 2 * each.tiles(m, n) >= device.multiprocessors)
    shape = next(busy, _LARGE[-1])
    if shape.shared_bytes > device.most_shared_bytes:
        shape = _SMALLEST
    tiles = shape.tiles(m, n)
    parts = max(1, min(device.multiprocessors * shape.blocks // tiles, k // _LEAST_DEPTH))
    stages = _ALONE.get((shape.rows, shape.columns))
    if stages is not None and tiles * parts <= device.multiprocessors:
        shape = replace(shape, stages=stages, blocks=1)
    return shape, parts


def multiply(engine: Engine, params: Params, a: Buffer, b: Buffer, c: Buffer) -> None:
    """C becomes alpha A B + beta C, all of halves: A is m x k, B is k x n."""
    (m, k), n = a.shape, b.shape[1]
    shape, number = _shape(engine.device, int(params["tile"]), m, n, k)
    module = engine.build(FILE, shape.defines)
    whole_a, whole_b = (_whole_rows(engine, module, matrix) for matrix in (a, b))
    parts = PartsOfK(engine, c, number)
    engine.launch(
        module.kernel("matmul_fp16"),
        (min(shape.tiles(m, n), engine.device.multiprocessors * shape.blocks), parts.number, 1),
        (shape.threads, 1, 1),
        whole_a,
        whole_b,
        c,
        parts.sums,
        *(np.int32(each) for each in (m, n, k, whole_a.shape[1], whole_b.shape[1])),
        np.float32(params["alpha"]),
        np.float32(params["beta"]),
        shared_bytes=shape.shared_bytes,
    )
    parts.add(module, "matmul_fp16_add", params)
    for whole, given in ((whole_a, a), (whole_b, b)):
        if whole is not given:
            engine.free(whole)


def _whole_rows(engine: Engine, module: Module, matrix: Buffer) -> Buffer:
    """Return a matrix whose rows are whole parts long: itself, or a copy filled up with zeros."""
    rows, columns = matrix.shape
    pitch = -(-columns // _PART) * _PART
    if pitch == columns:
        return matrix
    whole = engine.allocate((rows, pitch), np.float16)
    parts = pitch // _PART
    grid = (-(-rows * parts // _FILLING_BLOCK), 1, 1)
    sizes = np.int32(rows), np.int32(columns), np.int32(parts)
    engine.launch(module.kernel("matmul_whole_rows"), grid, (_FILLING_BLOCK, 1, 1), matrix, whole, *sizes)
    return whole
