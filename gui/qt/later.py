"""Timers, single-shot and repeating, and queued signal connections."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from PyQt6.QtCore import QObject, Qt, QTimer, pyqtBoundSignal


def after(milliseconds: int, do: Callable[[], object], parent: QObject | None = None) -> QTimer:
    """Return a single-shot timer that calls `do` when the interval has passed since it was last started."""
    timer = every(milliseconds, do, parent)
    timer.setSingleShot(True)
    return timer


def every(milliseconds: int, do: Callable[[], object], parent: QObject | None = None) -> QTimer:
    """Return a timer that calls `do` repeatedly once started; without a parent, the caller has to keep a reference."""
    timer = QTimer(parent)
    timer.setInterval(milliseconds)
    timer.timeout.connect(do)
    return timer


def queue(signal: pyqtBoundSignal, slot: Callable[..., Any]) -> None:
    """Connect a signal to a slot through the event loop of the slot's thread, never as a direct call."""
    signal.connect(slot, Qt.ConnectionType.QueuedConnection)  # type: ignore[call-arg]  # PyQt6's stubs lack it
