"""Type checks of Qt events; PyQt's stubs allow None for every event, although Qt never passes it."""

from __future__ import annotations

from PyQt6.QtCore import QEvent


def is_event_type(event: QEvent | None, *types: QEvent.Type) -> bool:
    """Return whether an event has one of these types."""
    return event is not None and event.type() in types
