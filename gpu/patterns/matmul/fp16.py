"""Float16 product by warpgroups: tile shapes, padding, and launches."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from gpu.declaration.pattern import Params
from gpu.engines.base import Buffer, Device, Engine, Extent, Module, TensorMap

FILE = "matmul_wgmma.cu"

_HALF_BYTES = 2
_COPY_ELEMENTS = 8
"""Rows begin at multiples of this many elements, as tensor maps require."""
_DEPTH = _LINE = 64
"""Depth of a step along k, and elements of a line in shared memory."""
_BARRIER_BYTES = 16
"""Bytes of a stage's two barriers."""
_PADDING_BLOCK = 256
_MAX_SHORT_DEPTH = 256
"""The largest k for which writing C takes most of the time."""
_MIN_LINE_ELEMENTS = 512
"""The shortest row that is padded to whole lines, if at all: fewer sectors are read, and little more is written."""
_MIN_SPLIT_DEPTH = 2048
"""The smallest k that the blocks of a cluster share."""
_SHARING = 2
"""Blocks that share B. Of a GPU with 132 multiprocessors, clusters of four use only 120."""
_MIN_SHARING_STEPS = 12
"""The fewest steps of a block that repay a cluster's start, about 1 us, if blocks share B."""
_MIN_BALANCED = 0.95
"""The smallest part of the resident blocks that is enough if all have equally many tiles."""


@dataclass(frozen=True)
class _Shape:
    """A block's tile, 64 rows per warpgroup, and the number of pipeline stages in shared memory.

    `blocks` is the number of resident blocks per multiprocessor, `splits` that of a cluster's blocks that share k,
    `sharing` that of a cluster's blocks that share their tiles of B. A block computes at least `min_tiles` tiles if
    there are enough, so that small inputs too reuse stages. With `one_tile`, a block computes one tile, at its place in
    a grid of two dimensions. `rate` is the relative rate of a multiprocessor with these blocks on an H100, 1 for the
    fastest tile.
    """

    rows: int
    columns: int
    stages: int
    blocks: int = 1
    splits: int = 1
    sharing: int = 1
    min_tiles: int = 1
    one_tile: bool = False
    rate: float = 1.0

    @property
    def defines(self) -> dict[str, int | str]:
        return {
            "ROWS": self.rows,
            "COLUMNS": self.columns,
            "STAGES": self.stages,
            "BLOCKS": self.blocks,
            "SPLITS": self.splits,
            "SHARING": self.sharing,
            "ONE_TILE": int(self.one_tile),
        }

    @property
    def threads(self) -> int:
        """The threads of the multiplying warps, and a warp that copies."""
        return 2 * self.rows + 32

    @property
    def shared_bytes(self) -> int:
        """Bytes of the tiles and barriers of all stages; a row of B's tile is padded to whole lines."""
        across = -(-self.columns // _LINE) * _LINE
        return self.stages * ((self.rows + across) * _DEPTH * _HALF_BYTES + _BARRIER_BYTES)

    def tiles(self, m: int, n: int) -> int:
        """Return the number of tiles; the tiles of blocks that share B count as one."""
        return -(-m // (self.rows * self.sharing)) * -(-n // self.columns)

    def tiles_per_block(self, device: Device, m: int, n: int) -> int:
        """Return the tiles of the busiest block."""
        resident = device.multiprocessors * self.blocks // self.sharing
        return max(-(-self.tiles(m, n) // resident), self.min_tiles)

    def grid(self, device: Device, m: int, n: int) -> Extent:
        """Return the blocks in x, y and z: for each tile, or at most as many as are resident.

        If some blocks would have a tile less, slightly fewer blocks with equally many tiles are faster.
        """
        if self.one_tile:
            return -(-m // (self.rows * self.sharing)) * self.splits * self.sharing, -(-n // self.columns), 1
        resident = min(self.tiles(m, n), device.multiprocessors * self.blocks // self.sharing)
        balanced = -(-self.tiles(m, n) // self.tiles_per_block(device, m, n))
        is_balanced = self.min_tiles > 1 or balanced >= _MIN_BALANCED * resident
        return (balanced if is_balanced else resident) * self.sharing, 1, 1

    def estimate_cost(self, device: Device, m: int, n: int) -> float:
        """Estimate the time of the busiest multiprocessor, in multiply-adds of a step at the peak rate."""
        tiles_per_block = self.tiles_per_block(device, m, n)
        return tiles_per_block * self.blocks * self.rows * self.columns / self.rate


_STEPPING_SHAPE, _SMALLEST_SHAPE = _Shape(64, 8, 2, min_tiles=2), _Shape(64, 32, 2, min_tiles=2)
_SHAPES_BY_TILE = {4: _STEPPING_SHAPE, 8: _STEPPING_SHAPE, 16: _SMALLEST_SHAPE}
"""Shapes by the parameter `tile`, except the largest."""
_SHORT_SHAPE = _Shape(256, 128, 4)
"""The shape for a small k: twice as many warps write C."""
_LARGE_SHAPES = (
    _Shape(128, 256, 4),
    _Shape(192, 192, 4, rate=0.97),
    _Shape(128, 192, 5, rate=0.96),
    _Shape(128, 128, 6, rate=0.85),
    _Shape(64, 128, 8, rate=0.75),
    _Shape(64, 64, 6, blocks=2, rate=0.5),
    _Shape(64, 64, 12, rate=0.4),
)
"""Shapes for the largest `tile`."""
_WIDEST_SPLIT_SHAPE = _Shape(64, 64, 12, splits=16, one_tile=True)
_MIN_WIDEST_SPLIT_DEPTH = 8192
_MIN_WIDEST_SPLIT_MULTIPROCESSORS = 121
"""In eight groups (GPCs), of which at least one then has 16: the blocks of a cluster run in one group."""
_SPLIT_SHAPES = {
    _Shape(64, 32, 9, splits=8, one_tile=True): 0.5,
    _Shape(64, 128, 8, splits=8, one_tile=True): 0.5,
    _Shape(64, 32, 2, splits=8, one_tile=True): 0.5,
    _Shape(64, 64, 12, splits=2, one_tile=True): 1.0,
}
"""Shapes for a large k and few tiles, by preference, and the part of the multiprocessors that their blocks may use."""


def _choose_shape(device: Device, tile: int, m: int, n: int, k: int) -> _Shape:
    """Return the tile shape: for the largest `tile`, the one with the lowest estimated cost."""
    if tile in _SHAPES_BY_TILE:
        return _SHAPES_BY_TILE[tile]
    if device.has_clusters and k >= _MIN_SPLIT_DEPTH:
        shapes = dict(_SPLIT_SHAPES)
        if k >= _MIN_WIDEST_SPLIT_DEPTH and device.multiprocessors >= _MIN_WIDEST_SPLIT_MULTIPROCESSORS:
            shapes = {_WIDEST_SPLIT_SHAPE: 0.5, **shapes}
        for shape, part in shapes.items():
            blocks = shape.tiles(m, n) * shape.splits
            if blocks <= part * device.multiprocessors and shape.shared_bytes <= device.max_shared_bytes:
                return shape
    large_shapes = (_SHORT_SHAPE, *_LARGE_SHAPES) if k <= _MAX_SHORT_DEPTH else _LARGE_SHAPES
    fitting = [shape for shape in large_shapes if shape.shared_bytes <= device.max_shared_bytes]
    shape = min(fitting, key=lambda shape: shape.estimate_cost(device, m, n), default=_SMALLEST_SHAPE)
    steps = shape.tiles_per_block(device, m, n) * -(-k // _DEPTH)
    # Without clusters, each block would copy rows of B that do not begin at lines, and so have a line more per box.
    is_shared = n > _LINE and _pitch(n) % _LINE > 0 and m > shape.rows and steps >= _MIN_SHARING_STEPS
    can_share = device.has_clusters and device.multiprocessors >= _SHARING
    shape = replace(shape, sharing=_SHARING if is_shared and can_share else 1)
    return replace(shape, one_tile=shape.tiles_per_block(device, m, n) == 1)


def multiply(engine: Engine, params: Params, a: Buffer, b: Buffer, c: Buffer) -> None:
    """Compute C = alpha A B + beta C in float16, with sums in float32.

    Parameters
    ----------
    params : mapping
        The pattern's parameters; `tile`, `alpha` and `beta` are used.
    a, b : Buffer
        A, of shape (m, k), and B, of shape (k, n); both float16.
    c : Buffer
        C, float16 of shape (m, n), which the result replaces.
    """
    (m, k), n = a.shape, b.shape[1]
    shape = _choose_shape(engine.device, int(params["tile"]), m, n, k)
    module = engine.build(FILE, shape.defines)
    padded_a, padded_b = (_pad_rows(engine, module, matrix) for matrix in (a, b))
    engine.launch(
        module.kernel("matmul_fp16"),
        shape.grid(engine.device, m, n),
        (shape.threads, 1, 1),
        TensorMap(padded_a, shape.rows),
        TensorMap(padded_b, _DEPTH // shape.sharing),
        c,
        *(np.int32(each) for each in (m, n, k)),
        np.float32(params["alpha"]),
        np.float32(params["beta"]),
        shared_bytes=shape.shared_bytes,
    )
    for padded, original in ((padded_a, a), (padded_b, b)):
        if padded is not original:
            engine.free(padded)


def _pitch(columns: int) -> int:
    """Return the elements from one row to the next: a multiple of a copy's, or of a line's if rows are padded."""
    if columns % _COPY_ELEMENTS == 0:
        return columns
    unit = _LINE if columns >= _MIN_LINE_ELEMENTS else _COPY_ELEMENTS
    return -(-columns // unit) * unit


def _pad_rows(engine: Engine, module: Module, matrix: Buffer) -> Buffer:
    """Return a matrix with a row length that is a multiple of a copy's: itself, or a copy padded with zeros."""
    rows, columns = matrix.shape
    pitch = _pitch(columns)
    if pitch == columns:
        return matrix
    padded = engine.allocate((rows, pitch), np.float16)
    parts = pitch // _COPY_ELEMENTS
    grid = (-(-rows * parts // _PADDING_BLOCK), 1, 1)
    sizes = np.int32(rows), np.int32(columns), np.int32(parts)
    engine.launch(module.kernel("matmul_whole_rows"), grid, (_PADDING_BLOCK, 1, 1), matrix, padded, *sizes)
    return padded
