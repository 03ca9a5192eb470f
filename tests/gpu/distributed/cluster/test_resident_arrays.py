"""What lies on a device, and comes to others."""

from __future__ import annotations

import pickle
import sys

import numpy as np
import pytest

from gpu.distributed.cluster.resident_arrays import ResidentArray, copy_from_worker
from tests.gpu.distributed.lockstep_engines import PlainEngine


class FakeOwner:
    def __init__(self):
        self.engine, self.freed = PlainEngine(), []

    def run_in_engine_thread(self, action):
        return action(self.engine)

    def discard(self, buffer):
        self.freed.append(buffer)


def test_elsewhere_it_arrives_as_an_array_and_is_uploaded_once():
    here, there = FakeOwner(), FakeOwner()
    buffer = here.engine.upload(np.arange(6).reshape(2, 3))
    kept = ResidentArray(here, buffer)
    assert sys.getsizeof(kept) >= 48, "what Dask weighs it by"
    moved = pickle.loads(pickle.dumps(kept))
    assert moved.to_array().tolist() == [[0, 1, 2], [3, 4, 5]]
    first = moved.to_buffer(there, there.engine)
    assert moved.to_buffer(there, there.engine) is first
    assert there.engine.download(first).tolist() == [[0, 1, 2], [3, 4, 5]]
    del kept, moved
    assert (here.freed, there.freed) == ([buffer], [first])


def test_a_handle_without_a_device_is_an_error_that_dask_repeats_for():
    with pytest.raises(OSError, match="only workers receive arrays"):
        copy_from_worker(b"", (1,), "<i4")
