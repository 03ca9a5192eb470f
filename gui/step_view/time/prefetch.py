"""Does work before it is asked for, in parts, as long as nothing else is to be done."""

from __future__ import annotations

import time
from collections.abc import Iterator

from PyQt6.QtCore import QObject

from gui.painting.pixmaps import WORK_S
from gui.qt.later import after


class Prefetcher(QObject):
    """Goes on with one piece of work, a turn of the event loop after the other."""

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._work: Iterator[object] = iter(())
        self._idle = after(0, self._go_on, self)

    def start(self, work: Iterator[object]) -> None:
        """Begin some work, which yields after each part of it; what is left of that before is forgotten."""
        self._work = work
        self._idle.start()

    @property
    def busy(self) -> bool:
        """Whether there is more to be done."""
        return self._idle.isActive()

    def _go_on(self) -> None:
        ends = time.perf_counter() + WORK_S
        for _ in self._work:
            if time.perf_counter() > ends:
                self._idle.start()
                return
