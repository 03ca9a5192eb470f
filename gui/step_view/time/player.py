"""Player of a recording: the current moment, steps, barriers and playback, independent of widgets."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from PyQt6.QtCore import QObject, QTimer, pyqtSignal

SPEEDS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
STEPS_PER_SECOND = 4.0
"""Playback rate in steps per second at speed 1."""
_FRAME_MS = 16
_LOOP_PAUSE_S = 1.2
"""Seconds for which a loop stays at the end before it restarts."""


class Player(QObject):
    """Playback through the moments 0 to `end` of a recording.

    Parameters
    ----------
    rate : float
        Moments per second at speed 1.
    """

    moved = pyqtSignal(int)
    playing_changed = pyqtSignal(bool)

    def __init__(self, parent: QObject | None = None, rate: float = STEPS_PER_SECOND) -> None:
        super().__init__(parent)
        self._rate = rate
        self.moment = 0
        self.end = 0
        self.speed = 1.0
        self.loop = False
        self._borders: tuple[int, ...] = (0,)
        self._phases: tuple[int, ...] = (0,)
        self._seconds_at_end = 0.0
        self._timer = QTimer(self)
        self._timer.timeout.connect(self._tick)

    def open(self, end: int, borders: Sequence[int], moment: int = 0, phases: Sequence[int] = ()) -> None:
        """Set the recording.

        Parameters
        ----------
        end : int
            The last moment.
        borders : sequence of int
            Moments after barriers.
        moment : int
            The moment to go to.
        phases : sequence of int
            Moments at which phases begin.
        """
        self.pause()
        self.end = end
        self._borders = tuple(sorted({0, end, *borders}))
        self._phases = tuple(sorted({0, end, *phases})) if phases else self._borders
        self.moment = min(moment, end)
        self.moved.emit(self.moment)

    def go_to(self, moment: int) -> None:
        """Go to a moment, clamped to 0 and `end`."""
        moment = min(max(moment, 0), self.end)
        if moment != self.moment:
            self.moment = moment
            self.moved.emit(moment)

    def step(self, count: int) -> None:
        """Pause, and go forward by some moments, or back if negative."""
        self.pause()
        self.go_to(self.moment + count)

    def go_to_border(self, direction: int) -> None:
        """Pause, and go to the next barrier (1) or the previous one (-1)."""
        self.pause()
        self.go_to(self.next_border(direction))

    def go_to_phase(self, direction: int) -> None:
        """Pause, and go to the start of the next (1) or previous (-1) phase; without named phases, to a barrier."""
        self.pause()
        self.go_to(self._find_next(self._phases, direction))

    def next_border(self, direction: int) -> int:
        """Return the moment of the next barrier (1) or of the previous one (-1)."""
        return self._find_next(self._borders, direction)

    def _find_next(self, moments: tuple[int, ...], direction: int) -> int:
        if direction > 0:
            return moments[min(bisect_right(moments, self.moment), len(moments) - 1)]
        return moments[max(bisect_left(moments, self.moment) - 1, 0)]

    def go_to_end(self, last: bool) -> None:
        """Pause, and go to the end or to the start."""
        self.pause()
        self.go_to(self.end if last else 0)

    @property
    def playing(self) -> bool:
        """Return whether playback is running."""
        return self._timer.isActive()

    def play(self) -> None:
        """Start playback; at the end, restart from moment 0."""
        if self.playing or not self.end:
            return
        if self.moment >= self.end:
            self.go_to(0)
        self._seconds_at_end = 0.0
        self._timer.start(self._interval)
        self.playing_changed.emit(True)

    def pause(self) -> None:
        """Pause playback."""
        if self.playing:
            self._timer.stop()
            self.playing_changed.emit(False)

    def toggle(self) -> None:
        """Start or pause playback."""
        self.pause() if self.playing else self.play()

    def set_speed(self, speed: float) -> None:
        """Set the speed, also of running playback."""
        self.speed = speed
        if self.playing:
            self._timer.start(self._interval)

    def set_rate(self, rate: float) -> None:
        """Set the moments per second at speed 1."""
        self._rate = rate
        self.set_speed(self.speed)

    @property
    def _interval(self) -> int:
        return max(_FRAME_MS, round(1000 / (self._rate * self.speed)))

    def _tick(self) -> None:
        if self.moment >= self.end:
            self._seconds_at_end += self._interval / 1000
            if not self.loop:
                self.pause()
            elif self._seconds_at_end >= _LOOP_PAUSE_S:
                self._seconds_at_end = 0.0
                self.go_to(0)
            return
        self.go_to(self.moment + max(1, round(self._rate * self.speed * self._interval / 1000)))
