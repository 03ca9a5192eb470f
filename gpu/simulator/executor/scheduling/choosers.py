"""Choosers: they select the part, a warp or a lane, that runs next."""

from __future__ import annotations

import random
from collections.abc import Sequence

from gpu.simulator.executor.scheduling.access_history import AccessHistory
from gpu.simulator.executor.scheduling.long_waits import LongWaits
from gpu.simulator.executor.state.running_batch import StrongAccess

# The probabilities that a lane continues with its next statement without a switch: a seed selects one.
_STAY_PROBABILITIES = (0.0, 0.5, 0.9)


class Chooser:
    """Selects the part that runs next.

    Attributes
    ----------
    long_waits : LongWaits or None
        Prolongs the waits of parts in loops; None if a wait ends as soon as the memory changes that it waits for.
    history : AccessHistory or None
        Notes the strong accesses; None if nothing depends on them.
    needs_numbers : bool
        Whether the choice depends on the numbers of the parts, not only on how many are ready.
    stopped : int or None
        A part that continues only after the others; None if there is none.
    """

    long_waits: LongWaits | None = None
    history: AccessHistory | None = None
    needs_numbers = False
    stopped: int | None = None

    def keeps_running(self) -> bool:
        """Return whether the running part continues without a call of `choose`."""
        return False

    def choose(self, count: int) -> int:
        """Return the index of the next part out of `count`, which are ordered by the time they became ready."""
        raise NotImplementedError

    def choose_part(self, parts: Sequence[int]) -> int:
        """Return the index of the next part; `parts` are the numbers of those that are ready, in the same order.

        With `needs_numbers`, the scheduler calls this instead of `choose`.
        """
        return self.choose(len(parts))

    def recalls_waiters(self, parts: Sequence[int]) -> bool:
        """Return whether parts that wait in loops are to run again, as only `parts` are ready, among them `stopped`."""
        return False

    def preempts(self, access: StrongAccess) -> bool:
        """Note a strong access; return whether other parts run before the running one performs it."""
        if self.history is not None:
            self.history.note(access)
        return False


class RoundRobinChooser(Chooser):
    """Selects parts in rotation."""

    def __init__(self) -> None:
        self._last = 0

    def choose(self, count: int) -> int:
        self._last = (self._last + 1) % count
        return self._last


class ShuffledChooser(Chooser):
    """Selects parts at random, from a seed."""

    def __init__(self, seed: int) -> None:
        self._generator = random.Random(seed)

    def choose(self, count: int) -> int:
        return int(self._generator.random() * count)


class DriftingChooser(ShuffledChooser):
    """Selects parts at random, and lets lanes run ahead of each other by a distance that depends on the seed."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self._stay_probability = self._generator.choice(_STAY_PROBABILITIES)

    def keeps_running(self) -> bool:
        return self._generator.random() < self._stay_probability


class LateChooser(ShuffledChooser):
    """Selects parts at random, and lets each wait in a loop last longer than any number of iterations."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.long_waits: LongWaits = LongWaits()
        self._seed = seed

    def __str__(self) -> str:
        """The schedule of the same parts without long waits."""
        return f"shuffle:{self._seed}"

    def keeps_running(self) -> bool:
        return self.long_waits.keeps_running()
