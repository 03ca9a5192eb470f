"""The occupancy that the command `model` prints, for launches of few and of many blocks."""

from __future__ import annotations

from gpu.messages.modeled_time import describe_missing_blocks
from gpu.timing.gpus import find_gpu


def test_a_launch_with_too_few_blocks_for_its_occupancy_says_what_it_reaches() -> None:
    h200 = find_gpu("h200")
    assert describe_missing_blocks(8, 8, 64, h200) == (
        "; this launch reaches 1 block and 8 warps: it has 8 blocks for 132 multiprocessors"
    )
    assert describe_missing_blocks(1, 32, 32, h200) == (
        "; this launch reaches 1 block and 1 warp: it has 1 block for 132 multiprocessors"
    )
    assert describe_missing_blocks(200, 8, 64, h200) == (
        "; this launch reaches 2 blocks and 16 warps: it has 200 blocks for 132 multiprocessors"
    )
    assert describe_missing_blocks(8 * 132, 8, 64, h200) == ""
