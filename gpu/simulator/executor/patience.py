"""Time limits of launches: a launch that exceeds its limit counts as endless."""

from __future__ import annotations

import math
import time

from gpu.bounds import WAITING, first_waiting, waiting
from gpu.errors import LaunchError

WHOLE_LAUNCH = 12
"""The time limit of a launch, as a multiple of that of a batch."""


_LATE_SHARE = 0.2
"""The part of the processor-time limit that ends a launch once the wall-clock limit is exceeded too."""


class Patience:
    """The time limit of a launch, in processor time of this process, so that a busy machine ends no kernel early.

    There is a longer limit in wall-clock time as well: once that is exceeded, a part of the processor-time limit is
    enough to end the launch.

    Parameters
    ----------
    seconds : float or None
        The limit of a batch in seconds; None for no limit.
    """

    def __init__(self, seconds: float | None) -> None:
        self.seconds = math.inf if seconds is None else seconds
        self._cpu_start = time.process_time()
        self._clock_start = time.monotonic()
        self._next_clock_limit = first_waiting(self.seconds)
        self._restart(self.seconds, self._next_clock_limit)

    @property
    def is_over(self) -> bool:
        """Return whether the running blocks have exceeded their time limit."""
        computed = time.process_time() - self._computed_before
        return computed > self._cpu_limit or (
            computed > self._cpu_limit * _LATE_SHARE and time.monotonic() - self._clock_before > self._clock_limit
        )

    @property
    def spent(self) -> str:
        """The time that the running blocks have taken, as text."""
        computed, passed = time.process_time() - self._computed_before, time.monotonic() - self._clock_before
        if computed > self._cpu_limit:
            return f"{self._cpu_limit:g} seconds"
        return f"{passed:.0f} seconds of wall-clock time ({computed:.1f} of processor time, as this machine is busy)"

    def begin(self) -> None:
        """Restart the time limit for the next batch."""
        self._restart(self.seconds, self._next_clock_limit)
        self._next_clock_limit = waiting(self.seconds)

    def begin_children(self) -> None:
        """Restart the time limit for all child launches of a batch together."""
        self._restart(self.seconds * WHOLE_LAUNCH, waiting(self.seconds * WHOLE_LAUNCH))

    def check_pace(self, name: str, done: int, blocks: int) -> None:
        """Raise LaunchError if the launch would take too long, extrapolated from the finished blocks.

        Parameters
        ----------
        name : str
            The kernel's name.
        done, blocks : int
            The number of finished blocks, and of all blocks.
        """
        limit, elapsed = self.seconds * WHOLE_LAUNCH, time.process_time() - self._cpu_start
        needed = elapsed / done * blocks
        late = time.monotonic() - self._clock_start > WAITING
        if elapsed > self.seconds * (_LATE_SHARE if late else 1) and needed > limit:
            raise LaunchError(
                f"{name}: its {blocks} blocks would take {_duration(needed)}; {done} have taken {elapsed:.0f} s.",
                advice="Launch fewer blocks, or raise the time limit.",
            )

    def _restart(self, seconds: float, clock: float) -> None:
        self._computed_before, self._cpu_limit = time.process_time(), seconds
        self._clock_before, self._clock_limit = time.monotonic(), clock


UNHURRIED = Patience(None)


def _duration(seconds: float) -> str:
    for name, size in (("days", 86_400), ("hours", 3_600), ("minutes", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {name}"
    return f"{seconds:.0f} seconds"
