"""How long a launch may compute before it is taken for one that does not end."""

from __future__ import annotations

import math
import time

from gpu.bounds import WAITING, first_waiting, waiting
from gpu.errors import LaunchError

WHOLE_LAUNCH = 12
"""How many times as long as the blocks of one batch all of a launch may take."""


_PART = 0.2
"""Of the time of computing, what is enough to be taken for endless once somebody has waited for long."""


class Patience:
    """What a launch has of time: of this process's computing, so that a busy machine makes no kernel endless.

    Somebody waits for it all the same. By the clock it has longer, and then computing a part of its time is enough.

    Parameters
    ----------
    seconds : float or None
        What blocks that are simulated together may take; None for any.
    """

    def __init__(self, seconds: float | None) -> None:
        self.seconds = math.inf if seconds is None else seconds
        self._started = time.process_time()
        self._began = time.monotonic()
        self._next_waiting = first_waiting(self.seconds)
        self._give(self.seconds, self._next_waiting)

    @property
    def is_over(self) -> bool:
        """Whether the blocks that run have had their time."""
        computed = time.process_time() - self._computed_before
        return computed > self._most or (
            computed > self._most * _PART and time.monotonic() - self._since > self._waiting
        )

    @property
    def spent(self) -> str:
        """What the blocks that run have had, in words."""
        computed, passed = time.process_time() - self._computed_before, time.monotonic() - self._since
        if computed > self._most:
            return f"{self._most:g} seconds"
        return f"{passed:.0f} seconds by the clock ({computed:.1f} of computing, as this machine is busy)"

    def begin(self) -> None:
        """Give the next blocks their time."""
        self._give(self.seconds, self._next_waiting)
        self._next_waiting = waiting(self.seconds)

    def begin_children(self) -> None:
        """Give all that the blocks have launched their time together."""
        self._give(self.seconds * WHOLE_LAUNCH, waiting(self.seconds * WHOLE_LAUNCH))

    def check_pace(self, name: str, done: int, blocks: int) -> None:
        """Raise LaunchError where the blocks that are done show that all of a launch would take too long."""
        most, taken = self.seconds * WHOLE_LAUNCH, time.process_time() - self._started
        needed = taken / done * blocks
        late = time.monotonic() - self._began > WAITING
        if taken > self.seconds * (_PART if late else 1) and needed > most:
            raise LaunchError(
                f"{name}: its {blocks} blocks would take {_duration(needed)}; {done} have taken {taken:.0f} s.",
                advice="Launch fewer blocks, or allow it more seconds.",
            )

    def _give(self, seconds: float, clock: float) -> None:
        self._computed_before, self._most = time.process_time(), seconds
        self._since, self._waiting = time.monotonic(), clock


UNHURRIED = Patience(None)


def _duration(seconds: float) -> str:
    for name, size in (("days", 86_400), ("hours", 3_600), ("minutes", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {name}"
    return f"{seconds:.0f} seconds"
