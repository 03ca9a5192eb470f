"""The engine's process on several devices: two workers that simulate, for all tests that leave them alive."""

from __future__ import annotations

import queue
import time
from contextlib import contextmanager
from dataclasses import replace
from importlib.util import find_spec

import numpy as np
import pytest

from tests import needs

pytest.importorskip("distributed", reason=needs.skip_reason(needs.DASK))

from gpu.declaration.pattern import Progress
from gpu.distributed.cluster.settings import ClusterSettings
from gpu.messages.bodies import AdvanceBodies, LoadBodies, PickBody, SaveBodies
from gpu.messages.events import EngineHalt, Failure, Ready
from gpu.messages.requests import Acknowledgment
from gpu.messages.runs.distributed_run import is_loss
from gpu.messages.runs.pattern_runs import RunPattern, RunResult
from gpu.patterns import find_pattern
from gpu.process.engine_host import EngineHost

PATIENCE_S = 90


class ClusterHost:
    """A host, and what it has told."""

    def __init__(self, asked):
        self.events = queue.Queue()
        self.host = EngineHost(asked, deliver=lambda number, event: self.events.put((number, event)))
        self.events_by_job = []

    def ready(self):
        self.host.start()
        return self.wait_for_event(0)

    def wait_for_event(self, number, *kinds):
        """Return the next event of a job that is of these kinds, or its last one."""
        while True:
            found, event = self.events.get(timeout=PATIENCE_S)
            self.events_by_job.append(event)
            if found == number and (isinstance(event, kinds) or not isinstance(event, (Progress, EngineHalt))):
                return event

    def run(self, request):
        self.events_by_job.clear()
        return self.wait_for_event(self.host.submit(request))


@contextmanager
def start_two_workers():
    there = ClusterHost(ClusterSettings(workers=2))
    there.started = there.ready()
    yield there
    there.host.close()


@pytest.fixture(scope="module")
def two():
    with start_two_workers() as there:
        yield there


@pytest.fixture
def two_to_kill():
    """Two workers for one test: those that replace killed workers have other addresses."""
    with start_two_workers() as there:
        yield there


def scan(n, **options):
    return RunPattern("scan", "three-kernels", {"n": n, "dtype": "int32"}, **options)


def test_a_run_comes_with_its_result_and_with_what_the_workers_did(two):
    assert [each.device.engine for each in two.started.workers] == ["simulator"] * 2
    assert two.started.device.name.startswith("2 x ")
    assert bool(two.started.dashboard) == (find_spec("bokeh") is not None), "what Dask draws its page with"
    done = two.run(scan(5000))
    values = find_pattern("scan").prepare_inputs({}, find_pattern("scan").check({"n": 5000, "dtype": "int32"}), 0)[
        "values"
    ]
    assert np.array_equal(done.arrays["result"].open(), np.cumsum(values))
    assert done.report.verified
    assert done.report.simulated
    assert {each.worker for each in done.distributed.tasks} == {each.address for each in two.started.workers}
    assert done.distributed.exchanged_bytes > 0
    shown = [each for each in two.events_by_job if isinstance(each, Progress) and each.fraction is not None]
    assert shown[-1].message.endswith(f"of {len(done.distributed.tasks)} tasks")


def test_stop_leaves_the_workers_where_they_are(two):
    number = two.host.submit(scan(2**23))
    two.wait_for_event(number, Progress)
    two.host.cancel()
    assert two.wait_for_event(number, Failure).kind == "cancelled"
    two.events_by_job.clear()
    after = two.run(scan(1000))
    assert {each.worker for each in after.distributed.tasks} <= {each.address for each in two.started.workers}
    assert not any(isinstance(each, Ready) for each in two.events_by_job), "nothing was started anew"


def test_what_one_device_does_is_refused_in_a_sentence(two):
    refused = two.run(RunPattern("matmul", "cublas", {"n": 8}))
    assert (refused.kind, refused.message) == ("input", "cuBLAS runs on one device only.")


def test_bodies_are_played_saved_and_picked(two, tmp_path):
    frame = AdvanceBodies(1, "tiled", {"preset": "plummer", "bodies": 64}, steps=0, width=64, height=48)
    assert two.run(frame).arrays["picture"].open().any()
    played = two.run(replace(frame, steps=2))
    assert (played.figures.steps, played.figures.bodies) == (2, 64)
    number = two.host.submit(replace(frame, steps=200))
    two.wait_for_event(number, Progress)
    two.host.cancel()
    assert two.wait_for_event(number, Failure).kind == "cancelled"
    assert two.run(replace(frame, steps=1)).figures.steps == 3
    assert two.run(SaveBodies(str(tmp_path / "bodies.npy"), 1)) == Acknowledgment()
    saved = two.run(LoadBodies(str(tmp_path / "bodies.npy"))).arrays["bodies"].open()
    picked = two.run(PickBody(1, frame.camera, 64, 48, 32, 24))
    assert np.array_equal(picked.arrays["bodies"].open(), saved)
    assert -1 <= picked.number < 64
    ended = two.run(PickBody(9, frame.camera, 64, 48, 32, 24))
    assert ended.message == "This simulation has ended, and its bodies were deleted."


def test_a_worker_that_is_killed_is_told_and_its_tasks_are_done_again(two_to_kill):
    import psutil

    address = two_to_kill.started.workers[0].address
    worker = psutil.Process(_find_listening_pid(int(address.rpartition(":")[2])))
    two_to_kill.events_by_job.clear()
    # A suspended worker keeps its tasks, so that the run cannot end before the worker is killed.
    worker.suspend()
    number = two_to_kill.host.submit(scan(2**23))
    two_to_kill.wait_for_event(number, Progress)
    worker.kill()
    done = two_to_kill.wait_for_event(number)
    assert isinstance(done, RunResult)
    assert done.report.verified
    (lost,) = done.distributed.lost_workers
    assert (lost.address, lost.again > 0) == (address, True)
    assert any(is_loss(each) for each in two_to_kill.events_by_job if isinstance(each, Progress))


def test_nobody_at_an_address_is_one_sentence():
    nowhere = ClusterHost(ClusterSettings("tcp://127.0.0.1:1"))
    failed = nowhere.ready()
    nowhere.host.close()
    assert (failed.kind, failed.message) == ("engine", "No Dask scheduler answers at tcp://127.0.0.1:1.")


def test_workers_end_with_the_host():
    there = ClusterHost(ClusterSettings(workers=1))
    port = int(there.ready().workers[0].address.rpartition(":")[2])
    worker = _find_listening_pid(port)
    there.host.close()
    end = time.monotonic() + 10
    while _is_alive(worker) and time.monotonic() < end:
        time.sleep(0.05)
    assert not _is_alive(worker)


def _find_listening_pid(port):
    import psutil

    return next(
        each.pid for each in psutil.net_connections("tcp") if each.status == "LISTEN" and each.laddr.port == port
    )


def _is_alive(process):
    import psutil

    return psutil.pid_exists(process) and psutil.Process(process).status() != psutil.STATUS_ZOMBIE
