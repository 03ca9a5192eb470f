"""Timers, single-shot and repeating, and queued signal connections."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from PyQt6.QtCore import QObject, Qt, QTimer, pyqtBoundSignal


def create_single_shot_timer(
    milliseconds: int, callback: Callable[[], object], parent: QObject | None = None
) -> QTimer:
    """Return a single-shot timer that calls `callback` when the interval has passed since it was last started."""
    timer = create_repeating_timer(milliseconds, callback, parent)
    timer.setSingleShot(True)
    return timer


def create_repeating_timer(milliseconds: int, callback: Callable[[], object], parent: QObject | None = None) -> QTimer:
    """Return a timer that calls `callback` repeatedly once started; without a parent, the caller keeps a reference."""
    timer = QTimer(parent)
    timer.setInterval(milliseconds)
    timer.timeout.connect(callback)
    return timer


def connect_queued(signal: pyqtBoundSignal, slot: Callable[..., Any]) -> None:
    """Connect a signal to a slot through the event loop of the slot's thread, never as a direct call."""
    signal.connect(slot, Qt.ConnectionType.QueuedConnection)  # type: ignore[call-arg]  # PyQt6's stubs lack it
