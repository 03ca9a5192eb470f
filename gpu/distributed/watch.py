"""Workers that hang: nobody has heard of them for seconds, and their processes do nothing. They are ended.

A task may take as long as it likes: a worker tells the scheduler twice a second that it is there, whatever its engine
does meanwhile. One that is silent because it has much to do uses its processor; one that is stopped, or waits for what
never comes, does not.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

SILENT_S = 6.0
"""Seconds after which a worker that tells nothing and does nothing is ended."""

_LOOKS = 6
_DEAF_S = 0.75 * SILENT_S
"""Who has not looked for so long may not have listened either: the scheduler may be in the same process."""
_IDLE = 0.01
"""Seconds of a processor, as finely as Linux counts them."""


class Watch:
    """Looks after a cluster's workers, in a thread of its own, until it is closed.

    Parameters
    ----------
    client : distributed.Client
    """

    def __init__(self, client: Any) -> None:
        self._client = client
        self._heard: dict[str, tuple[float, float]] = {}
        self._spent: dict[str, float] = {}
        self._looked = -math.inf
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._look_again_and_again, name="watch of workers", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Look no more."""
        self._closed.set()

    def _look_again_and_again(self) -> None:
        while not self._closed.wait(SILENT_S / _LOOKS):
            # A scheduler or a nanny that is gone is for others to tell of.
            with suppress(Exception):
                self.look(time.monotonic())

    def look(self, now: float) -> None:
        """Ask the scheduler who was heard of; have the nannies of others look at their processes, and end idle ones.

        Parameters
        ----------
        now : float
            Seconds of a clock of this machine.
        """
        if now - self._looked > _DEAF_S:
            self._heard.clear()
            self._spent.clear()
        self._looked = now
        for address, each in self._client.scheduler_info(n_workers=-1)["workers"].items():
            told, since = self._heard.get(address, (None, now))
            if told != each["last_seen"]:
                self._heard[address] = each["last_seen"], now
                self._spent.pop(address, None)
            elif not each["nanny"]:
                continue  # who would start another?
            elif address not in self._spent and now - since >= SILENT_S / 2:
                self._spent[address] = self._ask(address, spent)
            elif address in self._spent and now - since >= SILENT_S:
                self._spent[address] = self._ask(address, end_if_idle, self._spent[address])

    def _ask(self, address: str, question: Callable[..., float], *values: float) -> float:
        with suppress(Exception):
            answer: float = self._client.run(question, *values, workers=[address], nanny=True)[address]
            return answer
        return -math.inf


def spent(dask_worker: Any) -> float:
    """Return the seconds of a processor that a nanny's worker has used; minus infinity where it has none just now."""
    if dask_worker.pid is None:
        return -math.inf
    times = _process(dask_worker).cpu_times()
    return float(times.user + times.system)


def end_if_idle(before: float, dask_worker: Any) -> float:
    """End a nanny's worker if it has used no more of a processor than before; the nanny then starts another."""
    now = spent(dask_worker)
    if math.isfinite(now) and now - before < _IDLE:
        _process(dask_worker).kill()
    return now


def _process(nanny: Any) -> Any:
    import psutil

    return psutil.Process(nanny.pid)
