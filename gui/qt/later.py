"""What is done later: once after a while, again and again, or when the event loop comes to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from PyQt6.QtCore import QObject, Qt, QTimer, pyqtBoundSignal


def after(milliseconds: int, do: Callable[[], object], parent: QObject | None = None) -> QTimer:
    """Return a timer that calls `do` once, so long after it was last started."""
    timer = every(milliseconds, do, parent)
    timer.setSingleShot(True)
    return timer


def every(milliseconds: int, do: Callable[[], object], parent: QObject | None = None) -> QTimer:
    """Return a timer that calls `do` again and again once it is started; without a parent, while it is held."""
    timer = QTimer(parent)
    timer.setInterval(milliseconds)
    timer.timeout.connect(do)
    return timer


def queue(signal: pyqtBoundSignal, slot: Callable[..., Any]) -> None:
    """Let a slot hear a signal in its own thread, when the event loop comes to it, never at once."""
    signal.connect(slot, Qt.ConnectionType.QueuedConnection)  # type: ignore[call-arg]  # PyQt6's stubs lack it
