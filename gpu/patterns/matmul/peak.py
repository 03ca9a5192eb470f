"""The last rung by multiply-adds: which tiles blocks make, how many of them share k, and how they add up."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gpu.declaration.pattern import Params
from gpu.engines.base import Buffer, Device, Engine, Module
from gpu.patterns.matmul.block_tiles import BlockTile
from gpu.patterns.matmul.parts import PartsOfK

FILE = "matmul.cu"

_QUAD = 4
_FILLING_BLOCK = 256
_WORTH_FILLING = 2**27
"""Multiply-adds from which B is filled up to whole quads first, where its rows are not."""


@dataclass(frozen=True)
class _Tile(BlockTile):
    """Of how many steps a block has tiles in shared memory, and how fast blocks are, on an H200.

    `rate` is of a multiprocessor that has enough of them, 1 the fastest; `alone` and `paired` are how many times as
    long one and two take that have a multiprocessor to themselves.
    """

    stages: int = 3
    rate: float = 1.0
    alone: float = 1.0
    paired: float = 1.0


_LARGE = _Tile(128, 256, 8, 8, 16)
_MIDDLE = _Tile(64, 128, 16, 8, 8, rate=0.92, alone=1.15, paired=1.05)
_SMALL = _Tile(64, 64, 16, 8, 4, stages=4, rate=0.71, alone=1.2, paired=1.05)


@dataclass(frozen=True)
class _Plan:
    """What blocks make, how many blocks of a cluster share k, and in how many parts it is made besides."""

    tile: _Tile
    splits: int = 1
    parts: int = 1

    def defines(self, *, wide: bool, n: int) -> dict[str, int | str]:
        """Return what the file is built with; `wide` is whether B's rows are whole quads."""
        return {
            **self.tile.defines,
            "STAGES": self.tile.stages,
            "SPLITS": self.splits,
            "WIDTH": _QUAD if wide else 1,
            "WHOLE_QUADS": int(n % _QUAD == 0),
        }

    def cost(self, multiprocessors: int, m: int, n: int, k: int) -> float:
        """Return about how many multiply-adds the busiest multiprocessor could do in that time."""
        shares = self.splits * self.parts
        each = math.ceil(self.tile.blocks(m, n) * shares / (multiprocessors * _EVEN[self.splits]))
        slower = {1: self.tile.alone, 2: self.tile.paired}.get(each, 1.0)
        steps = -(-k // (shares * self.tile.depth)) + self.tile.stages  # these wait for memory
        own = each * slower * self.tile.rows * self.tile.columns * self.tile.depth * steps / self.tile.rate
        return own + (_CLUSTER if self.splits > 1 else 0) + (_LAUNCH + _ADDED * self.parts * m * n) * (self.parts > 1)


_EVEN = {1: 1.0, 2: 0.97, 4: 0.95}
"""What share of multiprocessors' room clusters of so many blocks fill."""
_CLUSTER, _LAUNCH, _ADDED = 4e5, 5e5, 0.4
"""What the exchange in a cluster, another launch and an element of a part cost in multiply-adds of a multiprocessor."""
_LEAST_DEPTH, _MOST_SHARES = 64, 64
"""How far along k a block goes at least where k is shared, and in how many shares at most."""

# By the tile that is asked for: what can be watched, and of the largest what is fastest.
_BY_TILE = {
    4: _Plan(_Tile(32, 32, 4, 4, 8)),
    8: _Plan(_Tile(32, 64, 4, 4, 8, stages=6), splits=2),
    16: _Plan(_Tile(64, 64, 16, 4, 4)),
}


def plan_of(device: Device, tile: int, m: int, n: int, k: int) -> _Plan:
    """Return how a product is made: of the largest tile as what takes least."""
    if tile in _BY_TILE:
        plan = _BY_TILE[tile]
        return plan if device.has_clusters else _Plan(plan.tile)
    return min(_plans(device, n, k), key=lambda plan: plan.cost(device.multiprocessors, m, n, k))


def _plans(device: Device, n: int, k: int) -> Iterator[_Plan]:
    # A thread of the largest tile writes so many elements that one by one takes too long.
    for tile in (_LARGE, _MIDDLE, _SMALL)[n % _QUAD > 0 :]:
        for splits in _EVEN if device.has_clusters and tile is not _LARGE else (1,):
            most = min(_MOST_SHARES, k // _LEAST_DEPTH) // splits
            yield from (_Plan(tile, splits, parts) for parts in range(1, max(most, splits == 1) + 1))


def multiply(engine: Engine, params: Params, a: Buffer, b: Buffer, c: Buffer) -> None:
    """C becomes alpha A B + beta C: A is m x k, B is k x n."""
    (m, k), n = a.shape, b.shape[1]
    wide = n % _QUAD == 0 or m * n * k >= _WORTH_FILLING
    plan = plan_of(engine.device, int(params["tile"]), m, n, k)
    module = engine.build(FILE, plan.defines(wide=wide, n=n))
    whole = _whole_quads(engine, module, b) if wide else b
    parts = PartsOfK(engine, c, plan.parts)
    alpha, beta = (params["alpha"], params["beta"]) if plan.parts == 1 else (1, 0)
    engine.launch(
        module.kernel("matmul_peak"),
        (-(-n // plan.tile.columns), -(-m // plan.tile.rows), plan.splits * plan.parts),
        (plan.tile.threads, 1, 1),
        a,
        whole,
        parts.sums,
        *(np.int32(each) for each in (m, n, k, whole.shape[1])),
        np.float32(alpha),
        np.float32(beta),
    )
    parts.add(module, "matmul_add_parts", params)
    if whole is not b:
        engine.free(whole)


def _whole_quads(engine: Engine, module: Module, matrix: Buffer) -> Buffer:
    """Return a matrix whose rows are whole quads: itself, or a copy filled up with zeros."""
    rows, columns = matrix.shape
    quads = -(-columns // _QUAD)
    if quads * _QUAD == columns:
        return matrix
    whole = engine.allocate((rows, quads * _QUAD), np.float32)
    sizes = np.int32(rows), np.int32(columns), np.int32(quads)
    grid = (-(-rows * quads // _FILLING_BLOCK), 1, 1)
    engine.launch(module.kernel("matmul_whole_quads"), grid, (_FILLING_BLOCK, 1, 1), matrix, whole, *sizes)
    return whole
