"""Division of a grid into batches of consecutive blocks, or of whole clusters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gpu.simulator.executor.state.batch import Geometry

# Enough lanes to make Python's overhead negligible, few enough that a kernel's variables stay in the cache.
BATCH_LANES = 1 << 15


def split_grid(grid: Sequence[int], block: Sequence[int], lanes: int, blocks: range) -> Iterator[tuple[int, int]]:
    """Split blocks of the grid into consecutive batches of about `lanes` lanes, but at least one block.

    Batches end at the ends of rows or planes where that does not make them smaller.

    Parameters
    ----------
    grid, block : sequence of int
        Extents in x, y and z.
    lanes : int
        The target number of lanes per batch.
    blocks : range
        The numbers of the blocks to split, x fastest.

    Yields
    ------
    first, count : int
        The first block of a batch, and the number of its blocks.
    """
    limit = max(1, lanes // Geometry(block, 1).lanes)
    row, plane = grid[0], grid[0] * grid[1]
    batch = plane if plane <= limit else max(1, limit // row) * row if row <= limit else limit
    border = plane if row <= limit else row
    first = blocks.start
    while first < blocks.stop:
        count = min(batch, border - first % border, blocks.stop - first)
        yield first, count
        first += count


def compute_cluster_unit(grid: Sequence[int], cluster: Sequence[int]) -> int:
    """Return the smallest number of consecutive blocks that form whole clusters."""
    if cluster[2] > 1:
        return grid[0] * grid[1] * cluster[2]
    return grid[0] * cluster[1] if cluster[1] > 1 else cluster[0]


def split_clusters(
    grid: Sequence[int], cluster: Sequence[int], block: Sequence[int], lanes: int, blocks: range
) -> Iterator[tuple[int, int]]:
    """Split blocks of the grid into batches of whole clusters.

    Parameters
    ----------
    grid, cluster, block : sequence of int
        Blocks of the grid, blocks of a cluster, and threads of a block, along x, y and z.
    lanes : int
        The target number of lanes per batch.
    blocks : range
        The numbers of the blocks to split, x fastest. Clusters that are only partly in it are included as a whole.

    Yields
    ------
    first, count : int
        The first block of a batch, and the number of its blocks.
    """
    unit = compute_cluster_unit(grid, cluster)
    together = max(1, lanes // (unit * Geometry(block, 1).lanes)) * unit
    first = blocks.start // unit * unit
    stop = -(-blocks.stop // unit) * unit
    while first < stop:
        count = min(together, stop - first)
        yield first, count
        first += count
