"""Who is silent and idle is ended; who is silent because it is busy is not, however long that takes."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace

import psutil
import pytest

from gpu.distributed.cluster import watchdog
from gpu.distributed.cluster.watchdog import SILENCE_TIMEOUT_S, WorkerWatchdog, kill_if_idle, read_cpu_seconds


class FakeScheduler:
    """A scheduler that heard of one worker at `last_seen`, and a nanny whose worker used `used_seconds` seconds."""

    def __init__(self, nanny="tcp://nanny"):
        self.last_seen, self.used_seconds, self.nanny, self.requests = 100.0, 3.0, nanny, []

    def scheduler_info(self, n_workers):
        return {"workers": {"tcp://worker": {"last_seen": self.last_seen, "nanny": self.nanny}}}

    def run(self, question, *values, workers, nanny):
        assert nanny
        self.requests.append((question, *values))
        return dict.fromkeys(workers, self.used_seconds)


@pytest.fixture
def looking(monkeypatch):
    monkeypatch.setattr(watchdog.threading.Thread, "start", lambda thread: None)

    def look(scheduler, *times):
        seen = WorkerWatchdog(scheduler)
        for now in times:
            if callable(now):
                now()
            else:
                seen.check_workers(now * SILENCE_TIMEOUT_S)
        return scheduler.requests

    return look


def test_who_is_silent_is_looked_at_and_ended_if_it_has_done_nothing_since(looking):
    assert looking(FakeScheduler(), 10, 10.4) == []
    assert looking(FakeScheduler(), 10, 10.5, 10.9) == [(read_cpu_seconds,)]
    assert looking(FakeScheduler(), 10, 10.5, 11) == [(read_cpu_seconds,), (kill_if_idle, 3.0)]


def test_who_is_heard_of_again_is_left_alone(looking):
    scheduler = FakeScheduler()
    assert looking(scheduler, 10, 10.6, lambda: setattr(scheduler, "last_seen", 101.0), 11, 11.4) == [
        (read_cpu_seconds,)
    ]


def test_who_did_not_listen_calls_nobody_silent(looking):
    """A process that is busy for long hears of no worker, and neither does the scheduler in it."""
    assert looking(FakeScheduler(), 10, 10.2, 11.4, 11.6) == []
    assert looking(FakeScheduler(), 10, 10.5, 11.4, 11.8) == [(read_cpu_seconds,)]


def test_a_worker_whom_nobody_would_start_again_is_left_to_the_scheduler(looking):
    assert looking(FakeScheduler(nanny=None), 10, 11, 12) == []


def test_a_process_is_ended_only_if_it_used_no_processor():
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        nanny = SimpleNamespace(pid=process.pid)
        kill_if_idle(-1.0, nanny)
        assert psutil.Process(process.pid).status() != psutil.STATUS_ZOMBIE
        kill_if_idle(float("-inf"), nanny)
        assert process.poll() is None, "nobody knew what it had used before"
        kill_if_idle(1e9, nanny)
        assert process.wait(10) != 0
        assert (
            read_cpu_seconds(SimpleNamespace(pid=None)) == kill_if_idle(0.0, SimpleNamespace(pid=None)) == float("-inf")
        )
    finally:
        process.kill()
        process.communicate()
