from __future__ import annotations

from types import SimpleNamespace

import pytest

from gpu.declaration.pattern import Progress
from gpu.messages.events import Failure, Ready
from gpu.messages.files import LoadImage
from gpu.messages.requests import ArrayResult
from gui.model.request_queue import RequestQueue
from tests.gui.conftest import DEVICE, FakeHost


@pytest.fixture
def jobs(qtbot):
    FakeHost.instances = []
    made = RequestQueue(FakeHost)
    made.start("null")
    made.host = FakeHost.instances[-1]
    made.host.answers_later = True
    yield made
    made.close()


def post_request(jobs, channel, name, got, **options):
    jobs.post(channel, LoadImage(name), lambda event: got.append((name, event)), **options)


def requested_paths(host):
    return [request.path for request in host.requests]


def test_only_the_newest_of_a_channel_waits(qtbot, jobs):
    got = []
    for name in "abcde":
        post_request(jobs, "run", name, got)
    assert requested_paths(jobs.host) == ["a"]
    jobs.host.answer(ArrayResult({}))
    qtbot.waitUntil(lambda: len(jobs.host.requests) == 2)
    assert requested_paths(jobs.host) == ["a", "e"]
    jobs.host.answer(ArrayResult({}))
    qtbot.waitUntil(lambda: len(got) == 2)
    assert [name for name, _ in got] == ["a", "e"]


def test_channels_wait_their_turn_and_priority_goes_first(qtbot, jobs):
    got = []
    post_request(jobs, "first", "first", got)
    post_request(jobs, "idle", "idle", got, priority=-1)
    post_request(jobs, "usual", "usual", got)
    post_request(jobs, "later", "later", got)
    post_request(jobs, "urgent", "urgent", got, priority=2)
    for served in range(1, 6):
        qtbot.waitUntil(lambda served=served: len(jobs.host.requests) == served)
        jobs.host.answer(ArrayResult({}))
    qtbot.waitUntil(lambda: len(got) == 5)
    assert requested_paths(jobs.host) == ["first", "urgent", "usual", "later", "idle"]


def test_a_dropped_channel_is_never_asked_for(qtbot, jobs):
    got = []
    post_request(jobs, "a", "a", got)
    post_request(jobs, "b", "b", got)
    assert jobs.has_request("a")
    assert jobs.has_request("b")
    jobs.drop("b")
    jobs.host.answer(ArrayResult({}))
    qtbot.waitUntil(lambda: bool(got))
    assert requested_paths(jobs.host) == ["a"]
    assert not jobs.has_request("a")


def test_progress_reaches_only_the_job_that_runs(qtbot, jobs):
    seen = []
    jobs.post("a", LoadImage("a"), lambda event: None, seen.append)
    jobs.host.deliver(1, Progress(0.25))
    jobs.host.deliver(7, Progress(0.75))
    qtbot.waitUntil(lambda: bool(seen))
    assert seen == [Progress(0.25)]


def test_stop_cancels_what_runs_and_keeps_only_the_background(qtbot, jobs):
    got = []
    post_request(jobs, "a", "a", got)
    post_request(jobs, "b", "b", got)
    post_request(jobs, "c", "c", got, priority=-1)
    with qtbot.waitSignal(jobs.ready):
        jobs.stop()
    qtbot.waitUntil(lambda: requested_paths(jobs.host) == ["a", "c"])
    assert jobs.host.cancels == 1
    assert got[0][1].kind == "cancelled"


def test_stop_without_work_does_not_restart_the_engine(jobs):
    jobs.stop()
    assert jobs.host.cancels == 0


def test_the_start_of_a_process_does_not_count_as_the_age_of_a_request(qtbot, monkeypatch):
    class SlowHost(FakeHost):
        def start(self):
            self.answers_later = True

        def cancel(self):
            for number in list(self.pending):
                del self.pending[number]
                self.deliver(number, Failure("cancelled", "Stopped."))

    def become_ready():
        with qtbot.waitSignal(jobs.ready):
            jobs._host.deliver(0, Ready(DEVICE))

    seconds, got = 100.0, []
    monkeypatch.setattr("gui.model.request_queue.time", SimpleNamespace(monotonic=lambda: seconds))
    jobs = RequestQueue(SlowHost)
    jobs.start("null")
    post_request(jobs, "a", "first", got)
    seconds = 105.0
    assert jobs.age("a") == 0
    become_ready()
    seconds = 108.0
    assert jobs.age("a") == 3
    post_request(jobs, "a", "second", got)
    jobs.stop()  # the process starts again
    post_request(jobs, "a", "third", got)
    qtbot.waitUntil(lambda: requested_paths(jobs._host) == ["first", "third"])
    seconds = 120.0
    assert jobs.age("a") == 0
    become_ready()
    seconds = 121.0
    assert jobs.age("a") == 1
    jobs.close()


def test_events_of_an_engine_that_was_replaced_are_ignored(qtbot, jobs):
    got = []
    post_request(jobs, "a", "a", got)
    old = jobs.host
    jobs.start("simulator")
    old.deliver(1, ArrayResult({}))
    old.deliver(0, Failure("engine", "gone"))
    new = FakeHost.instances[-1]
    new.answers_later = True
    post_request(jobs, "a", "b", got)
    new.answer(ArrayResult({}))
    qtbot.waitUntil(lambda: bool(got))
    assert [name for name, _ in got] == ["b"]
    qtbot.waitUntil(lambda: old.closed)  # a process takes a while to end
    assert new.engine == "simulator"


def test_an_engine_that_cannot_start_is_told(qtbot, jobs):
    failure = Failure("engine", "No driver.")
    with qtbot.waitSignal(jobs.engine_failed) as caught:
        jobs.host.deliver(0, failure)
    assert caught.args == [failure]


def test_busy_is_told_once_a_change(qtbot, jobs):
    seen = []
    jobs.busy_changed.connect(seen.append)
    post_request(jobs, "a", "a", [])
    post_request(jobs, "b", "b", [])
    jobs.host.answer(ArrayResult({}))
    qtbot.waitUntil(lambda: len(jobs.host.requests) == 2)
    jobs.host.answer(ArrayResult({}))
    qtbot.waitUntil(lambda: seen[-1:] == [False])
    assert seen == [True, False]


def test_a_mistake_in_one_answer_does_not_hold_up_the_next(qtbot, jobs):
    got = []

    def fail(event):
        raise ValueError("a mistake")

    jobs.post("a", LoadImage("a"), fail)
    post_request(jobs, "b", "b", got)
    with qtbot.captureExceptions() as caught:
        jobs.host.answer(ArrayResult({}))
        qtbot.waitUntil(lambda: len(jobs.host.requests) == 2)
    assert "a mistake" in str(caught[0][1])
    jobs.host.answer(ArrayResult({}))
    qtbot.waitUntil(lambda: len(got) == 1)


def test_ready_says_the_device(qtbot, jobs):
    with qtbot.waitSignal(jobs.ready) as caught:
        jobs.host.start()
    assert isinstance(Ready(caught.args[0]), Ready)
    assert caught.args[0].engine == "null"


def test_the_side_process_starts_when_it_is_needed_and_ends_with_the_window(make_window):
    window = make_window()
    assert [host.engine for host in FakeHost.instances] == ["null"]
    assert window.bench.side_jobs is window.bench.side_jobs
    assert [host.engine for host in FakeHost.instances] == ["null", "simulator"]
    window.close()
    assert all(host.closed for host in FakeHost.instances)
