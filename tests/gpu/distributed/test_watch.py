"""Who is silent and idle is ended; who is silent because it is busy is not, however long that takes."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace

import psutil
import pytest

from gpu.distributed import watch
from gpu.distributed.watch import SILENT_S, Watch, end_if_idle, spent


class Scheduler:
    """A scheduler that has heard of one worker at `seen`, and a nanny whose worker has used `used` seconds."""

    def __init__(self, nanny="tcp://nanny"):
        self.seen, self.used, self.nanny, self.asked = 100.0, 3.0, nanny, []

    def scheduler_info(self, n_workers):
        return {"workers": {"tcp://worker": {"last_seen": self.seen, "nanny": self.nanny}}}

    def run(self, question, *values, workers, nanny):
        assert nanny
        self.asked.append((question, *values))
        return dict.fromkeys(workers, self.used)


@pytest.fixture
def looking(monkeypatch):
    monkeypatch.setattr(watch.threading.Thread, "start", lambda thread: None)

    def look(scheduler, *times):
        seen = Watch(scheduler)
        for now in times:
            if callable(now):
                now()
            else:
                seen.look(now * SILENT_S)
        return scheduler.asked

    return look


def test_who_is_silent_is_looked_at_and_ended_if_it_has_done_nothing_since(looking):
    assert looking(Scheduler(), 10, 10.4) == []
    assert looking(Scheduler(), 10, 10.5, 10.9) == [(spent,)]
    assert looking(Scheduler(), 10, 10.5, 11) == [(spent,), (end_if_idle, 3.0)]


def test_who_is_heard_of_again_is_left_alone(looking):
    scheduler = Scheduler()
    assert looking(scheduler, 10, 10.6, lambda: setattr(scheduler, "seen", 101.0), 11, 11.4) == [(spent,)]


def test_who_did_not_listen_calls_nobody_silent(looking):
    """A process that is busy for long hears of no worker, and neither does the scheduler in it."""
    assert looking(Scheduler(), 10, 10.2, 11.4, 11.6) == []
    assert looking(Scheduler(), 10, 10.5, 11.4, 11.8) == [(spent,)]


def test_a_worker_whom_nobody_would_start_again_is_left_to_the_scheduler(looking):
    assert looking(Scheduler(nanny=None), 10, 11, 12) == []


def test_a_process_is_ended_only_if_it_used_no_processor():
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        nanny = SimpleNamespace(pid=process.pid)
        end_if_idle(-1.0, nanny)
        assert psutil.Process(process.pid).status() != psutil.STATUS_ZOMBIE
        end_if_idle(float("-inf"), nanny)
        assert process.poll() is None, "nobody knew what it had used before"
        end_if_idle(1e9, nanny)
        assert process.wait(10) != 0
        assert spent(SimpleNamespace(pid=None)) == end_if_idle(0.0, SimpleNamespace(pid=None)) == float("-inf")
    finally:
        process.kill()
        process.communicate()
