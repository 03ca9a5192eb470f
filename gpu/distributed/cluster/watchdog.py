"""Watchdog for workers that hang: their heartbeat has stopped and their processes use no CPU time. It kills them.

A long task does not count as a hang: a worker sends a heartbeat twice a second, even while its engine computes. If a
busy worker sends no heartbeat, it uses CPU time; a stopped or deadlocked worker uses none.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

SILENCE_TIMEOUT_S = 6.0
"""Seconds without heartbeat and CPU time after which a worker is killed."""

_CHECKS_PER_TIMEOUT = 6
_MAX_CHECK_GAP_S = 0.75 * SILENCE_TIMEOUT_S
"""If this many seconds have passed between two checks, this process may have missed heartbeats itself: the scheduler
may run in it."""
_IDLE_CPU_S = 0.01
"""CPU seconds below which a process counts as idle; the resolution of Linux's counters."""


class WorkerWatchdog:
    """Watch a cluster's workers in a thread until closed.

    Parameters
    ----------
    client : distributed.Client
    """

    def __init__(self, client: Any) -> None:
        self._client = client
        self._heartbeats: dict[str, tuple[float, float]] = {}
        self._cpu_times: dict[str, float] = {}
        self._last_check = -math.inf
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._check_repeatedly, name="watch of workers", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop watching."""
        self._closed.set()

    def _check_repeatedly(self) -> None:
        while not self._closed.wait(SILENCE_TIMEOUT_S / _CHECKS_PER_TIMEOUT):
            # A lost scheduler or nanny is reported elsewhere.
            with suppress(Exception):
                self.check_workers(time.monotonic())

    def check_workers(self, now: float) -> None:
        """Compare heartbeats with the last check's; where one is overdue, kill the worker's process if it is idle.

        Parameters
        ----------
        now : float
            Seconds of a monotonic clock.
        """
        if now - self._last_check > _MAX_CHECK_GAP_S:
            self._heartbeats.clear()
            self._cpu_times.clear()
        self._last_check = now
        for address, worker in self._client.scheduler_info(n_workers=-1)["workers"].items():
            heartbeat, since = self._heartbeats.get(address, (None, now))
            if heartbeat != worker["last_seen"]:
                self._heartbeats[address] = worker["last_seen"], now
                self._cpu_times.pop(address, None)
            elif not worker["nanny"]:
                continue  # nothing would restart it
            elif address not in self._cpu_times and now - since >= SILENCE_TIMEOUT_S / 2:
                self._cpu_times[address] = self._run_on_nanny(address, read_cpu_seconds)
            elif address in self._cpu_times and now - since >= SILENCE_TIMEOUT_S:
                self._cpu_times[address] = self._run_on_nanny(address, kill_if_idle, self._cpu_times[address])

    def _run_on_nanny(self, address: str, function: Callable[..., float], *values: float) -> float:
        with suppress(Exception):
            result: float = self._client.run(function, *values, workers=[address], nanny=True)[address]
            return result
        return -math.inf


def read_cpu_seconds(dask_worker: Any) -> float:
    """Return the CPU seconds that a nanny's worker has used; minus infinity if it has no process at the moment."""
    if dask_worker.pid is None:
        return -math.inf
    times = _find_worker_process(dask_worker).cpu_times()
    return float(times.user + times.system)


def kill_if_idle(previous_cpu_seconds: float, dask_worker: Any) -> float:
    """Kill a nanny's worker if it has used no CPU time since `previous_cpu_seconds`; the nanny then restarts it."""
    now = read_cpu_seconds(dask_worker)
    if math.isfinite(now) and now - previous_cpu_seconds < _IDLE_CPU_S:
        _find_worker_process(dask_worker).kill()
    return now


def _find_worker_process(nanny: Any) -> Any:
    import psutil

    return psutil.Process(nanny.pid)
