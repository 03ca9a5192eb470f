"""What workers and scheduler tell of runs, handed to each run that listens; the scheduler keeps one topic for all."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

TOPIC = "lockstep"
"""What workers tell is told under it, with the run that it is of: a scheduler keeps every topic that it has heard of,
with its last messages, for as long as it lives."""

_OF_CLUSTER = "all"
"""The scheduler's own topic."""

Hears = Callable[[Mapping[str, Any]], None]
"""Is called in Dask's thread."""


class Told:
    """Listens to the scheduler for all runs of a client: a topic has one listener there.

    Parameters
    ----------
    client : distributed.Client
    """

    def __init__(self, client: Any) -> None:
        self._client = client
        self._runs: dict[str, tuple[Hears, Hears]] = {}
        client.subscribe_topic(TOPIC, self._of_run)
        client.subscribe_topic(_OF_CLUSTER, self._of_cluster)

    def listen(self, run: str, of_run: Hears, of_cluster: Hears) -> None:
        """Hand on what is told of a run, and of the cluster, until `leave`."""
        self._runs[run] = of_run, of_cluster

    def leave(self, run: str) -> None:
        """Hand on no more; what is told late of the run nobody hears."""
        self._runs.pop(run, None)

    def close(self) -> None:
        """Hear no more: the scheduler tells all who listen that a client leaves, and finds that one gone."""
        with suppress(Exception):  # a client that is closed already fails in a dozen ways
            for topic in (TOPIC, _OF_CLUSTER):
                self._client.unsubscribe_topic(topic)

    def _of_run(self, event: tuple[float, Any]) -> None:
        told = event[1]
        if found := self._runs.get(told["run"]):  # others' runs are told of too
            found[0](told["told"])

    def _of_cluster(self, event: tuple[float, Any]) -> None:
        told = event[1]
        if isinstance(told, Mapping):
            for _, of_cluster in tuple(self._runs.values()):
                of_cluster(told)


def tell(worker: Any, run: str, told: Mapping[str, Any]) -> None:
    """Tell, from a worker, who has a run."""
    worker.log_event(TOPIC, {"run": run, "told": told})
