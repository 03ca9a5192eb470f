"""The distinct sectors of a grid, estimated from a block and its neighbors."""

from __future__ import annotations

import numpy as np
import pytest

from gpu.timing.caches import GridSharing, count_distinct_sectors
from gpu.timing.ptx.path import MemoryRequest, Visit


@pytest.mark.parametrize(
    ("own", "neighbor", "pairs"),
    [
        ([0, 1, 2, 3], [4, 5, 6, 7], 1.0),
        ([1, 2, 3, 4], [5, 6, 7, 8], 1.0),
        ([1, 2, 3, 4], [101, 102, 103, 104], 1.5),
        ([0, 2, 4, 6], [8, 10, 12, 14], 2.0),
    ],
)
def test_neighboring_blocks_complete_the_pairs_at_a_blocks_ends(own, neighbor, pairs) -> None:
    sectors = np.array(own + neighbor) + (16 << 35)
    ones = np.ones(2, np.int64)
    request = MemoryRequest("global", "ld", np.arange(2), 32 * ones, ones, np.array([0, 4, 8]), sectors, 0 * ones)
    visit = Visit(0, np.full(2, 32, np.uint8), (request,), (0,))
    sharing = GridSharing((100, 1), 10, 0, (1,), -1)
    (distinct,) = count_distinct_sectors([visit], 1, sharing, stores=False).values()
    assert distinct.pair_factor == pytest.approx(pairs)


@pytest.mark.parametrize("width", [8, 1000])
def test_blocks_share_rows_with_distant_ones_only_if_these_load_what_their_numbers_say(width) -> None:
    """Blocks load three rows, 8 blocks apart, of a tile; a row of blocks is as wide as the tiles, or far wider."""

    def find_sectors(block: int) -> list[int]:
        rows, column = (4 * (block // width), block % width) if width == 8 else (0, block)
        return [4 * (8 * (rows + row) + column) + sector for row in range(3) for sector in range(4)]

    sampled = [100, 101, 143]
    sectors = np.concatenate([find_sectors(block) for block in sampled]) + (16 << 35)
    ones = np.ones(3, np.int64)
    request = MemoryRequest("global", "ld", np.arange(3), 32 * ones, ones, np.arange(0, 37, 12), sectors, 0 * ones)
    visit = Visit(0, np.full(3, 32, np.uint8), (request,), (0,))
    sharing = GridSharing((400, 1), 400, 0, (1,), -1, ((2, 43),))
    (distinct,) = count_distinct_sectors([visit], 1, sharing, stores=False).values()
    every = np.unique(np.concatenate([find_sectors(block) for block in range(400)])).size
    assert distinct.grid == pytest.approx(every, rel=0.01)
