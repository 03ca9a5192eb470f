"""What is seen is modeled beside all else: by a queue of its own, remembered, and never shown beside something else."""

from __future__ import annotations

import pytest

from gpu.engines.base import Device
from gpu.messages.requests import Failure, ModelPattern, Result
from gui.model import modeling as subject
from gui.model.jobs import Jobs
from gui.model.modeling import FollowedModel, Modeling, gpus
from tests.gui.conftest import FakeHost, modeled


@pytest.fixture
def modeling(qapp, monkeypatch):
    monkeypatch.setattr(subject, "REST_MS", 1)
    FakeHost.made = []
    jobs = Jobs(FakeHost)
    made = Modeling(jobs, "", jobs)
    yield made
    jobs.close()


@pytest.fixture
def host(modeling):
    """The process's end, which answers when it is told to."""
    modeling.jobs.started  # noqa: B018
    host = FakeHost.made[-1]
    host.patient = True
    return host


class Seen:
    def __init__(self, modeling):
        self.request = ModelPattern("scan", "naive", "h200", {"n": 8})
        self.busy = False
        self.shown = []
        self.followed = FollowedModel(modeling, lambda: self.request, lambda: self.busy, modeling)
        self.followed.changed.connect(self.shown.append)


@pytest.fixture
def seen(modeling):
    return Seen(modeling)


def answer(host, event=None):
    (request,) = host.open.values()
    found = modeled(request)
    host.answer(event or Result({}, modeled=found))
    return found


def test_the_process_starts_when_it_is_first_asked(qtbot, modeling, seen) -> None:
    assert not modeling.started
    assert FakeHost.made == []
    seen.followed.follow()
    qtbot.waitUntil(lambda: modeling.started)
    assert [host.engine for host in FakeHost.made] == ["simulator"]


def test_what_is_seen_is_modeled_once_and_remembered(qtbot, host, seen) -> None:
    seen.followed.follow()
    qtbot.waitUntil(lambda: len(host.open) == 1)
    found = answer(host)
    qtbot.waitUntil(lambda: seen.shown == [found])
    seen.followed.follow()
    assert not seen.followed.under_way
    seen.request = ModelPattern("scan", "naive", "h200", {"n": 16})
    seen.followed.follow()
    assert seen.shown[-1] is None
    seen.request = ModelPattern("scan", "naive", "h200", {"n": 8})
    seen.followed.follow()
    assert seen.shown[-1] == found
    qtbot.wait(20)
    assert len(host.requests) == 1


def test_a_time_of_another_text_never_comes_to_be_shown(qtbot, host, seen) -> None:
    seen.followed.follow()
    qtbot.waitUntil(lambda: len(host.open) == 1)
    seen.request = ModelPattern("scan", "naive", "h200", {"n": 8}, sources={"scan.cu": "another"})
    seen.followed.follow()
    first = answer(host)
    qtbot.waitUntil(lambda: len(host.open) == 1)
    assert first not in seen.shown
    second = answer(host)
    qtbot.waitUntil(lambda: seen.shown[-1:] == [second])
    assert first not in seen.shown


def test_a_model_waits_for_what_runs(qtbot, host, seen) -> None:
    seen.busy = True
    seen.followed.follow()
    qtbot.wait(30)
    assert host.requests == []
    seen.busy = False
    qtbot.waitUntil(lambda: len(host.requests) == 1)


def test_another_gpu_is_another_model(qtbot, host, modeling, seen) -> None:
    seen.followed.follow()
    qtbot.waitUntil(lambda: len(host.open) == 1)
    answer(host)
    qtbot.waitUntil(lambda: len(seen.shown) == 1)
    seen.request = ModelPattern("scan", "naive", "t4", {"n": 8})
    modeling.choose("t4")
    assert seen.shown[-1] is None
    qtbot.waitUntil(lambda: [request.gpu for request in host.requests] == ["h200", "t4"])


def test_why_there_is_none_is_shown_and_remembered(qtbot, host, seen) -> None:
    seen.followed.follow()
    qtbot.waitUntil(lambda: len(host.open) == 1)
    answer(host, Failure("compile", "nvcc rejects scan.cu."))
    qtbot.waitUntil(lambda: len(seen.shown) == 1)
    assert seen.shown[0].message == "nvcc rejects scan.cu."


def test_what_was_stopped_is_asked_again(qtbot, host, modeling, seen) -> None:
    seen.followed.follow()
    qtbot.waitUntil(lambda: len(host.open) == 1)
    modeling.jobs.stop()
    qtbot.waitUntil(lambda: len(host.requests) == 2)


def test_nothing_seen_is_nothing_modeled(qtbot, host, seen) -> None:
    seen.request = None
    seen.followed.follow()
    qtbot.wait(20)
    assert host.requests == []


@pytest.mark.parametrize(
    ("chosen", "name", "gpu", "here"),
    [
        ("", "NVIDIA H100 80GB HBM3", "h100", "h100"),
        ("t4", "NVIDIA H100 80GB HBM3", "t4", "h100"),
        ("", "NVIDIA GeForce 256", "h200", ""),
    ],
)
def test_the_default_is_the_gpu_that_is_here(qapp, chosen, name, gpu, here) -> None:
    jobs = Jobs(FakeHost)
    modeling = Modeling(jobs, chosen, jobs)
    heard = []
    modeling.gpu_changed.connect(heard.append)
    before = modeling.gpu
    modeling.take_device(Device("cuda", name, "gpu", 1024, 49152, 132))
    assert (modeling.gpu, modeling.here) == (gpu, here)
    assert heard == ([gpu] if gpu != before else [])


def test_a_simulator_is_no_gpu_that_is_here(qapp) -> None:
    jobs = Jobs(FakeHost)
    modeling = Modeling(jobs, "", jobs)
    modeling.take_device(Device("simulator", "H100 in name only", "compiled", 1024, 49152, 1))
    assert (modeling.gpu, modeling.here) == ("h200", "")


def test_validated_gpus_stand_first() -> None:
    assert gpus()[:2] == ("h200", "h100")
    assert len(gpus()) == 8
