"""Background tasks on Qt's global thread pool, which keep the window responsive."""

from __future__ import annotations

from collections.abc import Callable

from PyQt6.QtCore import QRunnable, QThreadPool


def _get_pool() -> QThreadPool:
    pool = QThreadPool.globalInstance()
    assert pool is not None
    return pool


def run_in_background(task: Callable[[], object]) -> None:
    """Run a task on another thread."""

    def run() -> None:
        task()

    _get_pool().start(QRunnable.create(run))


def wait_for_background(timeout_ms: int) -> None:
    """Wait until all background tasks are done, or `timeout_ms` milliseconds have passed."""
    _get_pool().waitForDone(timeout_ms)


def finish_background() -> None:
    """Wait for running tasks and drop queued ones: the interpreter must not exit while a task runs."""
    _get_pool().clear()
    _get_pool().waitForDone()
