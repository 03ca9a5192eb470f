"""What an event is. PyQt's stubs let every event be None, which none ever is."""

from __future__ import annotations

from PyQt6.QtCore import QEvent


def is_of(event: QEvent | None, *types: QEvent.Type) -> bool:
    """Whether an event is of one of these types."""
    return event is not None and event.type() in types
