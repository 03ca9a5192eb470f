"""Warps that take turns, with a kernel in Python: whose turn it is, what each keeps, and what is left of none."""

from __future__ import annotations

import pytest

from gpu.base.lane_mask import LaneMask
from gpu.base.warp import WARP
from gpu.simulator.executor.scheduling.choosers import Chooser, ShuffledChooser
from gpu.simulator.executor.scheduling.warp_scheduler import WarpScheduler
from gpu.simulator.executor.state.batch import Geometry
from gpu.simulator.executor.state.running_batch import RunningBatch

WARPS = 4


class ScriptedChooser(Chooser):
    """Chooses as it is told, then always the first."""

    def __init__(self, *turns: int) -> None:
        self._turns = list(turns)

    def choose(self, count: int) -> int:
        return self._turns.pop(0) if self._turns else 0


def make_batch(warps: int = WARPS, blocks: int = 1) -> RunningBatch:
    return RunningBatch(Geometry((warps * WARP, 1, 1), blocks), (blocks, 1, 1), 0, 0)


def warp_number(mask: LaneMask) -> int:
    return int(mask.lanes[0]) // WARP


def test_every_warp_goes_on_where_it_paused_and_comes_to_its_end() -> None:
    for seed in range(20):
        batch = make_batch()
        warps = WarpScheduler(batch, ShuffledChooser(seed))
        seen: list[tuple[int, int]] = []

        def kernel(mask: LaneMask, warps: WarpScheduler = warps, seen: list[tuple[int, int]] = seen) -> LaneMask:
            for step in range(5):
                warps.pause()
                seen.append((warp_number(mask), step))
            return mask

        warps.run(kernel)
        assert sorted(seen) == [(warp, step) for warp in range(WARPS) for step in range(5)]
        for warp in range(WARPS):
            assert [step for number, step in seen if number == warp] == list(range(5)), "each in its own order"


def test_the_chooser_says_whose_turn_it_is() -> None:
    warps = WarpScheduler(make_batch(3), ScriptedChooser(2, 1, 0, 2, 2))
    seen = []

    def kernel(mask: LaneMask) -> LaneMask:
        for _ in range(2):
            warps.pause()
            seen.append(warp_number(mask))
        return mask

    warps.run(kernel)
    assert seen == [2, 2, 0, 0, 1, 1]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_warp_that_fails_leaves_no_other_half_way(error: type[BaseException]) -> None:
    warps = WarpScheduler(make_batch(), ShuffledChooser(3))
    begun, ended = set(), set()

    def kernel(mask: LaneMask) -> LaneMask:
        begun.add(warp_number(mask))
        try:
            for step in range(9):
                warps.pause()
                if step == 5:
                    raise error("it is the first to come here")
            return mask
        finally:
            ended.add(warp_number(mask))

    with pytest.raises(error, match="the first"):
        warps.run(kernel)
    assert len(begun) > 1
    assert ended == begun, "what was open is closed before anybody is told"


def test_rounds_are_counted_for_each_warp_by_itself() -> None:
    for seed in range(5):
        batch = make_batch()
        batch.rounds = 10
        warps = WarpScheduler(batch, ShuffledChooser(seed))

        def kernel(mask: LaneMask, warps: WarpScheduler = warps, batch: RunningBatch = batch) -> LaneMask:
            for passed in range(warp_number(mask) * 3):
                warps.pause()
                assert batch.rounds == 10 + passed
                batch.rounds += 1
            return mask

        warps.run(kernel)
        assert batch.rounds == 10 + 3 * (WARPS - 1), "as many as the one that went round most"
