"""Prefetcher: does work in advance, in small parts, while the event loop is idle."""

from __future__ import annotations

import time
from collections.abc import Iterator

from PyQt6.QtCore import QObject

from gui.painting.pixmaps import MAX_PAINTING_S
from gui.qt.timers import create_single_shot_timer


class Prefetcher(QObject):
    """Runs one iterator of work, a few parts per iteration of the event loop."""

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._work: Iterator[object] = iter(())
        self._idle_timer = create_single_shot_timer(0, self._continue_work, self)

    def start(self, work: Iterator[object]) -> None:
        """Start an iterator that does one part of its work per step; this replaces the previous one."""
        self._work = work
        self._idle_timer.start()

    def stop(self) -> None:
        """Drop the work that is left."""
        self.start(iter(()))

    @property
    def busy(self) -> bool:
        """Return whether there is work left."""
        return self._idle_timer.isActive()

    def _continue_work(self) -> None:
        ends = time.perf_counter() + MAX_PAINTING_S
        for _ in self._work:
            if time.perf_counter() > ends:
                self._idle_timer.start()
                return
