"""Prefetcher: does work in advance, in small parts, while the event loop is idle."""

from __future__ import annotations

import time
from collections.abc import Iterator

from PyQt6.QtCore import QObject

from gui.painting.pixmaps import WORK_S
from gui.qt.later import after


class Prefetcher(QObject):
    """Runs one iterator of work, a few parts per iteration of the event loop."""

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._work: Iterator[object] = iter(())
        self._idle = after(0, self._go_on, self)

    def start(self, work: Iterator[object]) -> None:
        """Start an iterator that does one part of its work per step; this replaces the previous one."""
        self._work = work
        self._idle.start()

    @property
    def busy(self) -> bool:
        """Return whether there is work left."""
        return self._idle.isActive()

    def _go_on(self) -> None:
        ends = time.perf_counter() + WORK_S
        for _ in self._work:
            if time.perf_counter() > ends:
                self._idle.start()
                return
