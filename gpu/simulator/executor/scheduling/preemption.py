"""Preemption: parts are stopped before accesses that synchronize, so that others run in between."""

from __future__ import annotations

import random
from collections.abc import Sequence

from gpu.base.warp import WARP
from gpu.simulator.executor.scheduling.access_history import AccessHistory
from gpu.simulator.executor.scheduling.choosers import ShuffledChooser
from gpu.simulator.executor.state.running_batch import StrongAccess

# The number of different priorities of warps.
_MAX_PRIORITIES = 64

# The statements after which a part that neither waits nor ends is stopped, since a GPU runs warps fairly.
_MAX_TURN = 1000

Preemptions = tuple[tuple[float, float, float, int | None], ...]

PREEMPTIONS: Preemptions = (
    (1.0, 0.0, 0.1, None),
    (0.9, 0.05, 0.05, None),
    (0.6, 0.1, 0.05, 1),
    (1.0, 0.05, 0.02, None),
    (0.8, 0.2, 0.1, None),
    (0.2, 0.1, 0.05, 2),
)
"""The probabilities that a part is stopped before a write to a location with several writers, before a read of one, and
before another strong access; and how often at most, None for no bound."""

LATE_PREEMPTIONS: Preemptions = (
    (0.1, 0.1, 0.1, 1),
    (0.3, 0.3, 0.3, None),
    (0.05, 0.05, 0.05, 1),
    (0.1, 0.1, 0.1, 2),
)
"""The same if strong writes become visible late: any access may be the one before which they are not visible yet."""

FREQUENT_PREEMPTIONS: Preemptions = ((0.5, 0.5, 0.5, None), (0.3, 0.3, 0.3, None))
"""The same if other parts must write between two reads that follow each other, as in a sequence lock."""


class PreemptingChooser(ShuffledChooser):
    """Runs a part until it waits or ends, and at random stops it before a strong access until its turn comes again.

    Code that loads a value, decides by it and then writes, such as a loop with a compare-and-swap, fails only if other
    threads run in between. So parts are stopped mostly where several of them write: before accesses in the source to
    locations with several writers.

    Parameters
    ----------
    seed : int
        Also selects how often a part is stopped. If the number of stops has no bound, a random part continues, else a
        stopped part continues once all others wait or have been stopped too.
    history : AccessHistory or None
        What earlier runs of the kernel showed, which this run extends; None if this is the first.
    preemptions : tuple
        How often a part is stopped; the seed selects one of them.
    lanes_per_part : int
        Lanes per part. With a bound, single lanes run in the order of their warps, if each has one active lane.
    """

    needs_numbers = True

    def __init__(
        self,
        seed: int,
        history: AccessHistory | None = None,
        *,
        preemptions: Preemptions = PREEMPTIONS,
        lanes_per_part: int = WARP,
    ) -> None:
        super().__init__(seed)
        *self._probabilities, self._bound = preemptions[seed % len(preemptions)]
        self._stops = self._turn = self._warp = self._lowest = 0
        # By warp. Those that were stopped have negative priorities, the latest one the lowest.
        self._priorities = random.Random(seed).sample(range(_MAX_PRIORITIES), _MAX_PRIORITIES)
        self._parts_per_warp = WARP // lanes_per_part
        self.history: AccessHistory = AccessHistory() if history is None else history
        self.history.begin_run()

    def keeps_running(self) -> bool:
        self._turn += 1
        if self._turn < _MAX_TURN:
            return True
        self._lower_priority(self._warp)
        return False

    def choose_part(self, parts: Sequence[int]) -> int:
        self._turn = 0
        if self._bound is None:
            return self.choose(len(parts))
        warps = list(map(self._find_warp, parts))
        chosen = max(range(len(parts)), key=lambda index: self._priorities[warps[index]])
        self._warp = warps[chosen]
        return chosen

    def _find_warp(self, part: int) -> int:
        return part // self._parts_per_warp % _MAX_PRIORITIES

    def _lower_priority(self, warp: int) -> None:
        self._lowest -= 1
        self._priorities[warp] = self._lowest

    def preempts(self, access: StrongAccess) -> bool:
        super().preempts(access)
        write, read, other = self._probabilities
        # Until a location has several writers, any may be such a location.
        is_contended = not self.history.sites or access.site in self.history.sites
        probability = other if not is_contended else write if access.writes else read
        if self._stops == self._bound or self._generator.random() >= probability:
            return False
        self._stops += 1
        self._lower_priority(self._find_warp(access.part))
        return True
