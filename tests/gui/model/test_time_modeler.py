"""What is seen is modeled beside all else: by a queue of its own, remembered, and never shown beside something else."""

from __future__ import annotations

import pytest

from gpu.declaration.pattern import Progress
from gpu.engines.base import Device
from gpu.messages.events import Failure
from gpu.messages.modeled_time import ModelPattern
from gui.model import time_modeler as subject
from gui.model.request_queue import RequestQueue
from gui.model.time_modeler import ModelFollower, TimeModeler, list_gpus
from tests.gui.conftest import FakeHost, make_modeled_time


@pytest.fixture
def modeling(qapp, monkeypatch):
    monkeypatch.setattr(subject, "SETTLE_MS", 1)
    FakeHost.instances = []
    jobs = RequestQueue(FakeHost)
    made = TimeModeler(jobs, "", jobs)
    yield made
    jobs.close()


@pytest.fixture
def host(modeling):
    """The process's end, which answers when it is told to."""
    modeling.jobs.started  # noqa: B018
    host = FakeHost.instances[-1]
    host.answers_later = True
    return host


class ModelingProbe:
    def __init__(self, modeling):
        self.request = ModelPattern("scan", "naive", "h200", {"n": 8})
        self.busy = False
        self.results = []
        self.completed = ModelFollower(modeling, lambda: self.request, lambda: self.busy, modeling)
        self.completed.changed.connect(self.results.append)


@pytest.fixture
def modeling_probe(modeling):
    return ModelingProbe(modeling)


def answer(host, event=None):
    (request,) = host.pending.values()
    found = make_modeled_time(request)
    host.answer(event or found)
    return found


def test_the_process_starts_when_it_is_first_asked(qtbot, modeling, modeling_probe) -> None:
    assert not modeling.started
    assert FakeHost.instances == []
    modeling_probe.completed.update_model()
    qtbot.waitUntil(lambda: modeling.started)
    assert [host.engine for host in FakeHost.instances] == ["simulator"]


def test_what_is_seen_is_modeled_once_and_remembered(qtbot, host, modeling_probe) -> None:
    modeling_probe.completed.update_model()
    qtbot.waitUntil(lambda: len(host.pending) == 1)
    found = answer(host)
    qtbot.waitUntil(lambda: modeling_probe.results == [found])
    modeling_probe.completed.update_model()
    assert not modeling_probe.completed.under_way
    modeling_probe.request = ModelPattern("scan", "naive", "h200", {"n": 16})
    modeling_probe.completed.update_model()
    assert modeling_probe.results[-1] is None
    modeling_probe.request = ModelPattern("scan", "naive", "h200", {"n": 8})
    modeling_probe.completed.update_model()
    assert modeling_probe.results[-1] == found
    qtbot.wait(20)
    assert len(host.requests) == 1


def test_a_time_of_another_text_never_comes_to_be_shown(qtbot, host, modeling_probe) -> None:
    modeling_probe.completed.update_model()
    qtbot.waitUntil(lambda: len(host.pending) == 1)
    modeling_probe.request = ModelPattern("scan", "naive", "h200", {"n": 8}, sources={"scan.cu": "another"})
    modeling_probe.completed.update_model()
    first = answer(host)
    qtbot.waitUntil(lambda: len(host.pending) == 1)
    assert first not in modeling_probe.results
    second = answer(host)
    qtbot.waitUntil(lambda: modeling_probe.results[-1:] == [second])
    assert first not in modeling_probe.results


def test_a_bound_is_passed_on_while_its_time_is_modeled(qtbot, host, modeling_probe) -> None:
    bounds: list[str] = []
    modeling_probe.completed.bound_found.connect(bounds.append)
    modeling_probe.completed.update_model()
    qtbot.waitUntil(lambda: len(host.pending) == 1)
    (number,) = host.pending
    host.deliver(number, Progress(None, "at least 3 us"))
    qtbot.waitUntil(lambda: bounds == ["at least 3 us"])
    modeling_probe.completed.clear_model()
    host.deliver(number, Progress(None, "at least 4 us"))
    qtbot.wait(20)
    assert bounds == ["at least 3 us"]


def test_a_model_waits_for_what_runs(qtbot, host, modeling_probe) -> None:
    modeling_probe.busy = True
    modeling_probe.completed.update_model()
    qtbot.wait(30)
    assert host.requests == []
    modeling_probe.busy = False
    qtbot.waitUntil(lambda: len(host.requests) == 1)


def test_another_gpu_is_another_model(qtbot, host, modeling, modeling_probe) -> None:
    modeling_probe.completed.update_model()
    qtbot.waitUntil(lambda: len(host.pending) == 1)
    answer(host)
    qtbot.waitUntil(lambda: len(modeling_probe.results) == 1)
    modeling_probe.request = ModelPattern("scan", "naive", "t4", {"n": 8})
    modeling.select_gpu("t4")
    assert modeling_probe.results[-1] is None
    qtbot.waitUntil(lambda: [request.gpu for request in host.requests] == ["h200", "t4"])


def test_why_there_is_none_is_shown_and_remembered(qtbot, host, modeling_probe) -> None:
    modeling_probe.completed.update_model()
    qtbot.waitUntil(lambda: len(host.pending) == 1)
    answer(host, Failure("compile", "nvcc rejects scan.cu."))
    qtbot.waitUntil(lambda: len(modeling_probe.results) == 1)
    assert modeling_probe.results[0].message == "nvcc rejects scan.cu."


def test_what_was_stopped_is_asked_again(qtbot, host, modeling, modeling_probe) -> None:
    modeling_probe.completed.update_model()
    qtbot.waitUntil(lambda: len(host.pending) == 1)
    modeling.jobs.stop()
    qtbot.waitUntil(lambda: len(host.requests) == 2)


@pytest.mark.parametrize("ends_in_time", [False, True])
def test_an_obsolete_request_delays_others_only_briefly(qtbot, monkeypatch, host, modeling, ends_in_time) -> None:
    qtbot.waitUntil(lambda: modeling.jobs.device is not None)
    results = []
    slow, quick = (ModelPattern("sort", name, "h200", {"n": 8}) for name in ("odd-even", "bitonic"))
    modeling.request_model("slow", slow, lambda model: None)
    modeling.request_model("quick", quick, results.append)
    assert host.requests == [slow]
    monkeypatch.setattr(subject, "_STALE_S", 0.05)
    modeling.cancel_request("slow")
    if ends_in_time:
        answer(host)
    qtbot.waitUntil(lambda: host.requests == [slow, quick])
    found = answer(host)
    qtbot.waitUntil(lambda: results == [found])
    assert host.cancels == (0 if ends_in_time else 1)


def test_nothing_seen_is_nothing_modeled(qtbot, host, modeling_probe) -> None:
    modeling_probe.request = None
    modeling_probe.completed.update_model()
    qtbot.waitUntil(lambda: len(modeling_probe.results) == 1)
    assert modeling_probe.results[0].message == "There is no complete launch or input to model."
    assert host.requests == []
    modeling_probe.request = ModelPattern("scan", "naive", "h200", {"n": 8})
    modeling_probe.completed.update_model()
    assert modeling_probe.results[-1] is None
    qtbot.waitUntil(lambda: len(host.requests) == 1)


@pytest.mark.parametrize(
    ("chosen", "name", "gpu"),
    [
        ("", "NVIDIA H100 80GB HBM3", "h100"),
        ("t4", "NVIDIA H100 80GB HBM3", "t4"),
        ("", "NVIDIA GeForce 256", "h200"),
    ],
)
def test_the_default_is_the_gpu_that_is_here(qapp, chosen, name, gpu) -> None:
    jobs = RequestQueue(FakeHost)
    modeling = TimeModeler(jobs, chosen, jobs)
    heard = []
    modeling.gpu_changed.connect(heard.append)
    before = modeling.gpu
    modeling.set_device(Device("cuda", name, "gpu", 1024, 49152, 132))
    assert modeling.gpu == gpu
    assert heard == ([gpu] if gpu != before else [])


def test_a_simulator_is_no_gpu_that_is_here(qapp) -> None:
    jobs = RequestQueue(FakeHost)
    modeling = TimeModeler(jobs, "", jobs)
    modeling.set_device(Device("simulator", "H100 in name only", "compiled", 1024, 49152, 1))
    assert modeling.gpu == "h200"


def test_validated_gpus_stand_first() -> None:
    assert list_gpus()[:2] == ("h200", "h100")
    assert len(list_gpus()) == 11
