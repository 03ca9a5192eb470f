"""The fastest variant by multiply-adds: tile shapes, split-k by clusters and parts, and launches."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gpu.declaration.pattern import Params
from gpu.engines.base import Buffer, Device, Engine, Module
from gpu.patterns.matmul.block_tiles import BlockTile

FILE = "matmul.cu"

_QUAD = 4
_ELEMENTS_BLOCK = 256
"""Threads of a block that pads or adds elements."""
_MIN_PADDED_OPERATIONS, _MIN_PADDED_ROWS = 2**27, 512
"""Multiply-adds and rows of A from which padding B's rows to whole quads (four floats) pays off."""


@dataclass(frozen=True)
class _Tile(BlockTile):
    """A block's tile with its number of pipeline stages in shared memory, and its speed on an H200.

    `rate` is the relative rate of a multiprocessor with enough resident blocks, 1 for the fastest tile;
    `single_block_slowdown` and `two_block_slowdown` are the slowdowns with only one and two resident blocks.
    """

    stages: int = 3
    rate: float = 1.0
    single_block_slowdown: float = 1.0
    two_block_slowdown: float = 1.0


_LARGE = _Tile(128, 256, 8, 8, 16)
_MIDDLE = _Tile(64, 128, 16, 8, 8, rate=0.92, single_block_slowdown=1.15, two_block_slowdown=1.05)
_TALL = _Tile(128, 64, 16, 8, 8, rate=0.89, single_block_slowdown=1.15, two_block_slowdown=1.05)
_SMALL = _Tile(64, 64, 16, 8, 4, stages=4, rate=0.71, single_block_slowdown=1.2, two_block_slowdown=1.05)


@dataclass(frozen=True)
class _Plan:
    """A tile, the number of blocks of a cluster that share k, and the number of further parts of k."""

    tile: _Tile
    splits: int = 1
    parts: int = 1

    def defines(self, *, wide: bool, n: int) -> dict[str, int | str]:
        """Return the macros for the kernel file; `wide` is whether B's rows are whole quads."""
        return {
            **self.tile.defines,
            "STAGES": self.tile.stages,
            "SPLITS": self.splits,
            "WIDTH": _QUAD if wide else 1,
            "WHOLE_QUADS": int(n % _QUAD == 0),
        }

    def estimate_cost(self, multiprocessors: int, m: int, n: int, k: int) -> float:
        """Estimate the time of the busiest multiprocessor, in multiply-adds at the peak rate."""
        shares = self.splits * self.parts
        blocks_per_multiprocessor = math.ceil(
            self.tile.blocks(m, n) * shares / (multiprocessors * _CLUSTER_EFFICIENCY[self.splits])
        )
        slowdown = {1: self.tile.single_block_slowdown, 2: self.tile.two_block_slowdown}.get(
            blocks_per_multiprocessor, 1.0
        )
        steps = -(-k // (shares * self.tile.depth)) + self.tile.stages  # filling the pipeline waits for memory
        product_cost = (
            blocks_per_multiprocessor
            * slowdown
            * self.tile.rows
            * self.tile.columns
            * self.tile.depth
            * steps
            / self.tile.rate
        )
        return (
            product_cost
            + (_CLUSTER_COST if self.splits > 1 else 0)
            + (_LAUNCH_COST + _ADDITION_COST * self.parts * m * n) * (self.parts > 1)
        )


_CLUSTER_EFFICIENCY = {1: 1.0, 2: 0.97, 4: 0.95}
"""The share of multiprocessors that clusters can use, by cluster size."""
_CLUSTER_COST, _LAUNCH_COST, _ADDITION_COST = 4e5, 5e5, 0.36
"""Costs of a cluster's exchange, a second launch, and an element of a part, in a multiprocessor's multiply-adds."""
_MIN_SHARE_DEPTH, _MAX_SHARES = 64, 64
"""The smallest depth of a share of k, and the most shares."""

# By the parameter `tile`: small ones that can be followed step by step; the fastest plan for the largest.
_PLANS_BY_TILE = {
    4: _Plan(_Tile(32, 32, 4, 4, 8)),
    8: _Plan(_Tile(32, 64, 4, 4, 8, stages=6), splits=2),
    16: _Plan(_Tile(64, 64, 16, 4, 4)),
}


def choose_plan(device: Device, tile: int, m: int, n: int, k: int) -> _Plan:
    """Return the plan for a product: for the largest `tile`, the one with the lowest estimated cost.

    Parameters
    ----------
    tile : int
        The parameter `tile`.
    m, n, k : int
        A is m x k, and B is k x n.
    """
    if tile in _PLANS_BY_TILE:
        plan = _PLANS_BY_TILE[tile]
        return plan if device.has_clusters else _Plan(plan.tile)
    return min(_candidate_plans(device, n, k), key=lambda plan: plan.estimate_cost(device.multiprocessors, m, n, k))


def _candidate_plans(device: Device, n: int, k: int) -> Iterator[_Plan]:
    # A thread of the largest tile writes too many elements to write them one by one.
    for tile in (_LARGE, _MIDDLE, _TALL, _SMALL)[n % _QUAD > 0 :]:
        for splits in _CLUSTER_EFFICIENCY if device.has_clusters and tile is not _LARGE else (1,):
            limit = min(_MAX_SHARES, k // _MIN_SHARE_DEPTH) // splits
            yield from (_Plan(tile, splits, parts) for parts in range(1, max(limit, splits == 1) + 1))


def multiply(engine: Engine, params: Params, a: Buffer, b: Buffer, c: Buffer) -> None:
    """Compute C = alpha A B + beta C by the plan with the lowest estimated cost.

    Parameters
    ----------
    params : mapping
        The pattern's parameters; alpha, beta and the tile are used.
    a, b : Buffer
        float32, shapes (m, k) and (k, n).
    c : Buffer
        float32, shape (m, n); overwritten with the result.
    """
    (m, k), n = a.shape, b.shape[1]
    wide = n % _QUAD == 0 or (m >= _MIN_PADDED_ROWS and m * n * k >= _MIN_PADDED_OPERATIONS)
    plan = choose_plan(engine.device, int(params["tile"]), m, n, k)
    module = engine.build(FILE, plan.defines(wide=wide, n=n))
    padded_b = _pad_to_quads(engine, module, b) if wide else b
    has_parts = plan.parts > 1
    products = engine.allocate((plan.parts, *c.shape), np.float32) if has_parts else c
    scales = np.float32(params["alpha"]), np.float32(params["beta"])
    engine.launch(
        module.kernel("matmul_peak"),
        (-(-n // plan.tile.columns), -(-m // plan.tile.rows), plan.splits * plan.parts),
        (plan.tile.threads, 1, 1),
        a,
        padded_b,
        products,
        *(np.int32(size) for size in (m, n, k, padded_b.shape[1])),
        *((np.float32(1), np.float32(0)) if has_parts else scales),
    )
    if has_parts:
        grid, sizes = (-(-m * n // _ELEMENTS_BLOCK), 1, 1), (np.int32(m * n), np.int32(plan.parts))
        engine.launch(module.kernel("matmul_add_parts"), grid, (_ELEMENTS_BLOCK, 1, 1), products, c, *sizes, *scales)
        engine.free(products)
    if padded_b is not b:
        engine.free(padded_b)


def _pad_to_quads(engine: Engine, module: Module, matrix: Buffer) -> Buffer:
    """Return a matrix with rows of whole quads: itself, or a copy padded with zeros."""
    rows, columns = matrix.shape
    quads = -(-columns // _QUAD)
    if quads * _QUAD == columns:
        return matrix
    padded = engine.allocate((rows, quads * _QUAD), np.float32)
    sizes = np.int32(rows), np.int32(columns), np.int32(quads)
    grid = (-(-rows * quads // _ELEMENTS_BLOCK), 1, 1)
    engine.launch(module.kernel("matmul_whole_quads"), grid, (_ELEMENTS_BLOCK, 1, 1), matrix, padded, *sizes)
    return padded
