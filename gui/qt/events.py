"""Events of Qt: checks of their types, and style changes. PyQt's stubs allow None for an event; Qt never passes it."""

from __future__ import annotations

from PyQt6.QtCore import QEvent


def is_event_type(event: QEvent | None, *types: QEvent.Type) -> bool:
    """Return whether an event has one of these types."""
    return event is not None and event.type() in types


class StyleListener:
    """Mixin of a widget that adapts when the style sheet changes, and so the theme or the text size."""

    def changeEvent(self, event: QEvent | None) -> None:
        super().changeEvent(event)  # type: ignore[misc]
        if is_event_type(event, QEvent.Type.StyleChange):
            self._restyle()

    def _restyle(self) -> None:
        """Adapt to the new style sheet."""
        raise NotImplementedError
