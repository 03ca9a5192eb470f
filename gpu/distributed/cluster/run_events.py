"""Events of distributed runs: published by workers and the scheduler, dispatched to each run's listener."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

TOPIC = "lockstep"
"""The topic of all workers' events; each event names its run. There is one topic for all runs, because the scheduler
keeps every topic and its last messages until it ends."""

_SCHEDULER_TOPIC = "all"
"""The topic under which Dask's scheduler publishes its own events."""

EventListener = Callable[[Mapping[str, Any]], None]
"""A listener; called in Dask's thread with each event."""


class RunEventListener:
    """Subscribe to the scheduler once per client, and dispatch events by run.

    Dask allows only one listener per topic and client.

    Parameters
    ----------
    client : distributed.Client
    """

    def __init__(self, client: Any) -> None:
        self._client = client
        self._listeners_by_run: dict[str, tuple[EventListener, EventListener]] = {}
        self._client.subscribe_topic(TOPIC, self._on_run_event)
        self._client.subscribe_topic(_SCHEDULER_TOPIC, self._on_scheduler_event)

    def add_listeners(self, run_id: str, on_run_event: EventListener, on_scheduler_event: EventListener) -> None:
        """Dispatch a run's events, and the scheduler's, to these listeners until `remove_listeners`."""
        self._listeners_by_run[run_id] = on_run_event, on_scheduler_event

    def remove_listeners(self, run_id: str) -> None:
        """Stop dispatching a run's events; later ones are dropped."""
        self._listeners_by_run.pop(run_id, None)

    def close(self) -> None:
        """Unsubscribe: when a client leaves, the scheduler would otherwise fail to notify its listener."""
        with suppress(Exception):  # a client that is already closed raises many types of exceptions
            for topic in (TOPIC, _SCHEDULER_TOPIC):
                self._client.unsubscribe_topic(topic)

    def _on_run_event(self, message: tuple[float, Any]) -> None:
        content = message[1]
        if listeners := self._listeners_by_run.get(content["run"]):  # other clients' runs use the same topic
            on_run_event, _ = listeners
            on_run_event(content["event"])

    def _on_scheduler_event(self, message: tuple[float, Any]) -> None:
        event = message[1]
        if isinstance(event, Mapping):
            for _, on_scheduler_event in tuple(self._listeners_by_run.values()):
                on_scheduler_event(event)


def publish_run_event(worker: Any, run_id: str, event: Mapping[str, Any]) -> None:
    """Publish an event of a run from a worker."""
    worker.log_event(TOPIC, {"run": run_id, "event": event})
