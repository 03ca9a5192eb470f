"""Time limits of launches: a launch that exceeds its limit ends."""

from __future__ import annotations

import math
import time

from gpu.base.errors import LaunchError
from gpu.base.resource_limits import MIN_WALL_SECONDS, compute_first_wall_limit, compute_wall_limit

LAUNCH_LIMIT_FACTOR = 12
"""The time limit of a launch, as a multiple of that of a batch."""


_LATE_FRACTION = 0.2
"""The part of the processor-time limit that ends a launch once the wall-clock limit is exceeded too."""


_READING_INTERVAL_S = 0.001
"""The processor time of a process with several threads takes microseconds to read, more than some statements."""


class TimeLimit:
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
        self._next_reading = 0.0
        self._next_clock_limit = compute_first_wall_limit(self.seconds)
        self._restart(self.seconds, self._next_clock_limit)
        self._cpu_start, self._clock_start = self._cpu_begin, self._clock_begin

    @property
    def is_exceeded(self) -> bool:
        """Return whether the running blocks have exceeded their time limit."""
        now = time.monotonic()
        if now < self._next_reading:
            return False
        self._next_reading = now + _READING_INTERVAL_S
        computed = time.process_time() - self._cpu_begin
        return computed > self._cpu_limit or (
            computed > self._cpu_limit * _LATE_FRACTION and now - self._clock_begin > self._clock_limit
        )

    @property
    def elapsed_text(self) -> str:
        """The time that the running blocks have taken, as text."""
        computed, passed = time.process_time() - self._cpu_begin, time.monotonic() - self._clock_begin
        if computed > self._cpu_limit:
            return f"{self._cpu_limit:g} seconds"
        return f"{passed:.0f} seconds of wall-clock time ({computed:.1f} of processor time, as this machine is busy)"

    def begin_batch(self) -> None:
        """Restart the time limit for the next batch."""
        self._restart(self.seconds, self._next_clock_limit)
        self._next_clock_limit = compute_wall_limit(self.seconds)

    def begin_children(self) -> None:
        """Restart the time limit for all child launches of a batch together."""
        self._restart(self.seconds * LAUNCH_LIMIT_FACTOR, compute_wall_limit(self.seconds * LAUNCH_LIMIT_FACTOR))

    def check_progress(self, name: str, finished_blocks: int, blocks: int) -> None:
        """Raise LaunchError if the launch would take too long, extrapolated from the finished blocks.

        Parameters
        ----------
        name : str
            The kernel's name.
        """
        if finished_blocks == blocks or self.seconds == math.inf:
            return
        limit, elapsed = self.seconds * LAUNCH_LIMIT_FACTOR, time.process_time() - self._cpu_start
        needed = elapsed / finished_blocks * blocks
        late = time.monotonic() - self._clock_start > MIN_WALL_SECONDS
        if elapsed > self.seconds * (_LATE_FRACTION if late else 1) and needed > limit:
            raise LaunchError(
                f"{name}: its {blocks} blocks would take {_format_duration(needed)}; {finished_blocks} have "
                f"taken {elapsed:.0f} s.",
                advice="Launch fewer blocks, or raise the time limit.",
            )

    def _restart(self, seconds: float, clock: float) -> None:
        self._clock_begin, self._clock_limit = time.monotonic(), clock
        is_limited = seconds < math.inf
        self._cpu_begin, self._cpu_limit = time.process_time() if is_limited else 0.0, seconds
        self._next_reading = self._clock_begin if is_limited else math.inf


NO_TIME_LIMIT = TimeLimit(None)


def _format_duration(seconds: float) -> str:
    for name, size in (("days", 86_400), ("hours", 3_600), ("minutes", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {name}"
    return f"{seconds:.0f} seconds"
