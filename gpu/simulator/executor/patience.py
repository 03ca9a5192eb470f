"""How long a launch may compute before it is taken for one that does not end."""

from __future__ import annotations

import math
import time

from gpu.errors import LaunchError

WHOLE_LAUNCH = 12
"""How many times as long as the blocks of one batch all of a launch may take."""


class Patience:
    """What a launch has of time: of this process's computing, so that a busy machine makes no kernel endless.

    Parameters
    ----------
    seconds : float or None
        What blocks that are simulated together may take; None for any.
    """

    def __init__(self, seconds: float | None) -> None:
        self.seconds = math.inf if seconds is None else seconds
        self._started = time.process_time()
        self._deadline = self._started + self.seconds

    @property
    def is_over(self) -> bool:
        """Whether the blocks that run have had their time."""
        return time.process_time() > self._deadline

    def begin(self) -> None:
        """Give the next blocks their time."""
        self._deadline = time.process_time() + self.seconds

    def begin_children(self) -> None:
        """Give all that the blocks have launched their time together."""
        self._deadline = time.process_time() + self.seconds * WHOLE_LAUNCH

    def check_pace(self, name: str, done: int, blocks: int) -> None:
        """Raise LaunchError where the blocks that are done show that all of a launch would take too long."""
        most, taken = self.seconds * WHOLE_LAUNCH, time.process_time() - self._started
        needed = taken / done * blocks
        if taken > self.seconds and needed > most:
            raise LaunchError(
                f"{name}: its {blocks} blocks would take {_duration(needed)}; {done} have taken {taken:.0f} s.",
                advice="Launch fewer blocks, or allow it more seconds.",
            )


UNHURRIED = Patience(None)


def _duration(seconds: float) -> str:
    for name, size in (("days", 86_400), ("hours", 3_600), ("minutes", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {name}"
    return f"{seconds:.0f} seconds"
