"""Which GPU a worker takes, and what it shares with others of its machine."""

from __future__ import annotations

import asyncio
import os
import threading
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from gpu.base.errors import LaunchError
from gpu.distributed.cluster import worker
from gpu.distributed.cluster.worker import (
    PLUGIN,
    can_copy_test_buffers,
    export_test_buffer,
    rotate_visible_devices,
    set_buffer_sharing,
)
from tests.gpu.distributed.lockstep_engines import LockstepEngine, PlainEngine


@pytest.mark.parametrize(
    ("visible", "ordinal", "gpus", "expected"),
    [
        ("", 0, 4, "0,1,2,3"),
        ("", 2, 4, "2,3,0,1"),
        ("", 3, 2, "1,0"),  # four workers on two GPUs: each sees both, and no number that there is not
        ("GPU-a, GPU-b", 1, 2, "GPU-b,GPU-a"),
        ("3,1", 2, 2, "3,1"),
        ("0,7,1", 1, 1, "0"),  # CUDA sees none from the first one on that there is not
    ],
)
def test_each_worker_has_another_gpu_first_and_sees_all(visible, ordinal, gpus, expected):
    assert rotate_visible_devices(visible, ordinal, gpus) == expected


@pytest.mark.parametrize("known", [2, 0])
def test_a_worker_looks_for_gpus_only_where_nobody_has(monkeypatch, known):
    looked = []
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.setattr(worker, "set_local_owner", lambda plugin: None)
    monkeypatch.setattr(worker, "_engines", {})
    monkeypatch.setattr(worker.engines, "create_engine", lambda name: PlainEngine())
    monkeypatch.setattr(worker, "run_probe_in_subprocess", lambda: looked.append(1) or SimpleNamespace(gpus=(0, 1)))
    plugin = worker.EnginePlugin("cuda", {"1": (1, 2)}, known)
    plugin.setup(SimpleNamespace(name="1"))
    assert plugin.engine
    assert (os.environ["CUDA_VISIBLE_DEVICES"], len(looked)) == ("1,0", known == 0)


class MemoryKeepingEngine(PlainEngine):
    keeps_memory = False

    def enable_memory_pool(self):
        self.keeps_memory = True


@pytest.mark.parametrize(
    ("workers", "gpus", "kept"), [(2, 2, True), (1, 2, True), (3, 2, False), (2, 0, False)], ids=str
)
def test_who_has_a_gpu_for_itself_keeps_its_memory(monkeypatch, workers, gpus, kept):
    """Of a cluster of somebody's own it is not known how many there are, and others may use it."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.setattr(worker, "set_local_owner", lambda plugin: None)
    monkeypatch.setattr(worker, "_engines", {})
    monkeypatch.setattr(worker.engines, "create_engine", lambda name: MemoryKeepingEngine())
    monkeypatch.setattr(worker, "run_probe_in_subprocess", lambda: SimpleNamespace(gpus=(0, 1)))
    plugin = worker.EnginePlugin("cuda", {"1": (0, workers)}, gpus)
    plugin.setup(SimpleNamespace(name="1"))
    assert plugin.engine.keeps_memory == kept


@pytest.fixture
def fake_worker(monkeypatch):
    """The inside of a worker, without a worker."""

    def make_worker(engine, data=None):
        freed = deque()
        plugin = SimpleNamespace(
            engine=engine, test_buffer=None, sharing_enabled=False, discard=freed.append, freed=freed
        )
        there = SimpleNamespace(plugins={PLUGIN: plugin}, data={} if data is None else data)
        monkeypatch.setattr(worker, "get_worker", lambda: there)
        return there

    return make_worker


_closed_by = []


class ClosingEngine(PlainEngine):
    def close(self):
        super().close()
        _closed_by.append(threading.get_ident())


@pytest.mark.parametrize(("status", "closed"), [("closing", True), ("running", False)])
def test_a_worker_that_ends_closes_its_engine_in_its_thread(monkeypatch, status, closed):
    monkeypatch.setattr(worker, "set_local_owner", lambda plugin: None)
    monkeypatch.setattr(worker, "_engines", {})
    with ThreadPoolExecutor(1) as thread:
        there = SimpleNamespace(status=SimpleNamespace(name=status), executors={"default": thread}, name="0")
        plugin = worker.EnginePlugin(f"{__name__}:ClosingEngine", {})
        plugin.setup(there)
        _closed_by.clear()
        assert thread.submit(lambda: plugin.engine).result()
        owner = thread.submit(threading.get_ident).result()
        asyncio.run(plugin.teardown(there))
        assert _closed_by == [owner] * closed


class RefusingEngine(LockstepEngine):
    def share(self, buffer):
        raise LaunchError("The driver rejected the run: operation not supported.")


@pytest.mark.parametrize("engine", [PlainEngine(), RefusingEngine()], ids=["none", "refused"])
def test_who_cannot_share_offers_nothing(fake_worker, engine):
    fake_worker(engine)
    assert export_test_buffer() is None


class PeerCheckingEngine(LockstepEngine):
    def copy_shared(self, handle, shape, dtype):
        if handle == b"far":
            raise OSError("another process's memory cannot be reached")
        return self.upload(worker.np.array([0, 1, 2, 3 if handle == b"near" else 4], dtype))


@pytest.mark.parametrize(
    ("handles", "reached"), [([b"near", b"near"], True), ([b"near", b"far"], False), ([b"other"], False)]
)
def test_every_other_worker_is_to_be_reached_with_what_it_offers(fake_worker, handles, reached):
    fake_worker(PeerCheckingEngine())
    assert can_copy_test_buffers(handles) == reached


class SpillingDict(dict):
    """What keeps a worker's data where some of it may go to a disk."""


@pytest.mark.parametrize(("data", "shares"), [({}, True), (SpillingDict(), False)])
def test_who_writes_data_to_a_disk_shares_no_memory(fake_worker, data, shares):
    there = fake_worker(PlainEngine(), data)
    plugin = there.plugins[PLUGIN]
    plugin.test_buffer = "what it offered"
    set_buffer_sharing(True, there)
    assert (plugin.sharing_enabled, plugin.test_buffer, [*plugin.freed]) == (shares, None, ["what it offered"])
