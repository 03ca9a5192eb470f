"""Background tasks on Qt's global thread pool, which keep the window responsive."""

from __future__ import annotations

from collections.abc import Callable

from PyQt6.QtCore import QRunnable, QThreadPool


def _pool() -> QThreadPool:
    pool = QThreadPool.globalInstance()
    assert pool is not None
    return pool


def in_background(do: Callable[[], object]) -> None:
    """Run a task on another thread."""

    def run() -> None:
        do()

    _pool().start(QRunnable.create(run))


def wait_for_background(patience_ms: int) -> None:
    """Wait until all background tasks are done, or `patience_ms` milliseconds have passed."""
    _pool().waitForDone(patience_ms)


def finish_background() -> None:
    """Wait for running tasks and drop queued ones: the interpreter must not exit while a task runs."""
    _pool().clear()
    _pool().waitForDone()
