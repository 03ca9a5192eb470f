"""An observer that keeps notifications until it is known whether a batch starts again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gpu.simulator.executor.state.observer import Observer

_MAX_EVENTS = 50_000
"""The most notifications that are kept; a batch with more cannot start again."""


class EventBuffer(Observer):
    """Keeps the notifications for an observer; `release` forwards them, and all later ones are forwarded at once.

    Parameters
    ----------
    on_overflow : callable
        Called when too many notifications are kept, before they are forwarded.
    """

    def __init__(self, observer: Observer, on_overflow: Callable[[], None]) -> None:
        self._observer = observer
        self._on_overflow = on_overflow
        self._events: list[tuple[str, tuple[Any, ...], dict[str, Any]]] | None = []

    def release(self) -> None:
        """Forward all notifications."""
        events, self._events = self._events, None
        for name, arguments, options in events or ():
            getattr(self._observer, name)(*arguments, **options)

    def _notify(self, name: str, arguments: tuple[Any, ...], options: dict[str, Any]) -> None:
        if self._events is None:
            getattr(self._observer, name)(*arguments, **options)
            return
        self._events.append((name, arguments, options))
        if len(self._events) > _MAX_EVENTS:
            self._on_overflow()
            self.release()


def _forward(name: str) -> Callable[..., None]:
    def notify(self: EventBuffer, *arguments: Any, **options: Any) -> None:
        self._notify(name, arguments, options)

    return notify


for _name in [name for name in vars(Observer) if not name.startswith("_")]:
    setattr(EventBuffer, _name, _forward(_name))
