"""Where races happen, in kernels whose races are known."""

from __future__ import annotations

import numpy as np
import pytest

from gpu.stepping.races import Race, find_races
from tests.gpu.stepping.recordings import record_launch

HALVES = """\
__global__ void k(int *a) {
    __shared__ int s[64];
    int t = threadIdx.x;
    s[t] = a[t];
    BARRIER
    if (t < 32)
        a[t] = s[t + 32];
}
"""

NEXT = """\
__global__ void k(int *a) {
    int t = threadIdx.y * blockDim.x + threadIdx.x;
    a[t + 1] = a[t];
}
"""

EVERYBODY = """\
__global__ void k(int *a) {
    a[0] = blockIdx.x;
}
"""


def _describe_race(race: Race) -> tuple[str, int, str]:
    first, second = ("written" if each.is_write else "read" for each in (race.first, race.second))
    return race.name, race.element, f"{first} by {race.first.thread}, {second} by {race.second.thread}"


def test_a_missing_barrier_leaves_the_upper_half_unordered() -> None:
    races = find_races(record_launch(HALVES.replace("BARRIER", ""), [np.arange(64, dtype=np.int32)], block=64))
    assert {_describe_race(race) for race in races} == {
        ("s", t + 32, f"written by {t + 32}, read by {t}") for t in range(32)
    }
    assert all(race.first.moment < race.second.moment for race in races)
    assert not find_races(
        record_launch(HALVES.replace("BARRIER", "__syncthreads();"), [np.arange(64, dtype=np.int32)], block=64)
    )


def test_within_one_statement_the_lanes_of_a_warp_race_too() -> None:
    races = find_races(record_launch(NEXT, [np.arange(33, dtype=np.int32)], block=(8, 4)))
    assert {_describe_race(race) for race in races} == {
        ("a", t, f"read by {t}, written by {t - 1}") for t in range(1, 32)
    }


@pytest.mark.parametrize("grid", [2, (1, 2)])
def test_blocks_are_told_apart(grid: int | tuple[int, int]) -> None:
    source = EVERYBODY if isinstance(grid, int) else EVERYBODY.replace("blockIdx.x", "blockIdx.y")
    (race,) = find_races(record_launch(source, [np.zeros(1, np.int32)], grid=grid, block=1))
    assert ({race.first.block, race.second.block}, race.first.is_write, race.second.is_write) == ({0, 1}, True, True)
