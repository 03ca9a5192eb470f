"""What is done on other threads, so that the window goes on meanwhile."""

from __future__ import annotations

from collections.abc import Callable

from PyQt6.QtCore import QRunnable, QThreadPool


def _pool() -> QThreadPool:
    pool = QThreadPool.globalInstance()
    assert pool is not None
    return pool


def in_background(do: Callable[[], object]) -> None:
    """Do something on another thread."""

    def run() -> None:
        do()

    _pool().start(QRunnable.create(run))


def wait_for_background(patience_ms: int) -> None:
    """Wait until all that was asked for is done."""
    _pool().waitForDone(patience_ms)


def finish_background() -> None:
    """Wait for what is being done, and drop what has not begun: the interpreter must not end beside it."""
    _pool().clear()
    _pool().waitForDone()
