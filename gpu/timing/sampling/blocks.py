"""The blocks of a grid that are sampled."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from gpu.base.warp import WARP
from gpu.timing.caches import GridSharing
from gpu.timing.gpus import GpuDescription
from gpu.timing.ptx.sampled_blocks import GridShape

Array = npt.NDArray[Any]

_SECTOR = 32
MAXIMUM_LANES = 4096
"""The most lanes of the sampled blocks of one multiprocessor."""
_DISTANT_BLOCKS = 3
"""Of fewer blocks in a row, none may show whether data is shared as by neighbors; another one is sampled."""


def choose_sample_blocks(
    shape: GridShape, gpu: GpuDescription, slots: int, resident: int
) -> tuple[list[int], GridSharing]:
    """Return the blocks to sample: those of one multiprocessor in the middle of the grid, and one block's neighbors."""
    total, stride = shape.blocks, gpu.multiprocessors
    waves = total // (stride * slots)
    base = waves // 2 * stride * slots + min(stride, total) // 2
    offsets = [stride * number for number in range(slots)]
    base = max(0, min(base, total - 1 - max(offsets)))
    blocks = [min(base + offset, total - 1) for offset in offsets]
    return add_neighbors(blocks, shape, min(total, stride * resident))


def add_neighbors(blocks: list[int], shape: GridShape, at_once: int) -> tuple[list[int], GridSharing]:
    """Add the neighbors of the first block, which show how much data blocks share."""
    blocks, base, total = list(blocks), blocks[0], shape.blocks
    columns = shape.grid[0]
    rows = total // columns
    row_neighbor = -1
    run: list[int] = []
    distant: list[tuple[int, int]] = []
    if columns > 1:
        column = base % columns
        # Blocks narrower than a sector share it with several neighbors.
        length = min(max(1, _SECTOR // shape.block[0]), columns - 1, max(1, MAXIMUM_LANES // (2 * shape.warps * WARP)))
        first = base + 1 if column + length < columns else base - length
        run = (
            [first + number for number in range(length)]
            if column + length < columns or length <= column
            else [base + 1 if column + 1 < columns else base - 1]
        )
        row = [block for block in blocks[1:] if block // columns == base // columns and block not in run]
        if len(row) < _DISTANT_BLOCKS and columns > _DISTANT_BLOCKS:
            step = columns // _DISTANT_BLOCKS
            row.append(base + step if column + step < columns else base - step)
            blocks += [row[-1]] if row[-1] not in blocks else []
        distant = [(blocks.index(block), (block - base) * (run[0] - base)) for block in row]
        blocks += [neighbor for neighbor in run if neighbor not in blocks]
    if rows > 1:
        neighbor = base + columns if base + columns < total else base - columns
        if neighbor not in blocks:
            blocks.append(neighbor)
        row_neighbor = blocks.index(neighbor)
    return blocks, GridSharing((columns, rows), at_once, 0, tuple(map(blocks.index, run)), row_neighbor, tuple(distant))


def choose_spread_blocks(shape: GridShape, maximum_blocks: int, lanes: int) -> list[int]:
    """Return a random block from each of some parts of the grid."""
    count = min(maximum_blocks, max(2, lanes // (shape.warps * WARP)), shape.blocks)
    parts = np.linspace(0, shape.blocks, count + 1).astype(np.int64)
    blocks: list[int] = np.random.default_rng(0).integers(parts[:-1], parts[1:]).tolist()
    blocks[0] = 0  # if the grid is larger than its work, the first blocks have the work
    return blocks


def select_by_work(work: Array, count: int) -> list[int]:
    """Return `count` indices into some blocks' work, each of which represents an equal part of the total."""
    ends = np.cumsum(np.maximum(work, 1e-9))
    targets = (np.arange(count) + 0.5) / count * ends[-1]
    indices = list(dict.fromkeys(np.searchsorted(ends, targets).tolist()))
    if len(indices) < count:
        chosen = set(indices)
        indices += [index for index in np.argsort(-work, kind="stable").tolist() if index not in chosen]
    return indices[:count]
