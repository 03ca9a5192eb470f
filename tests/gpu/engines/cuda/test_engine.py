"""The engine for GPUs: what its times include."""

from __future__ import annotations

import numpy as np
import pytest

from gpu.base.errors import LaunchError
from gpu.engines.base import Engine, SequencingEngine

pytestmark = pytest.mark.gpu


def test_a_sequence_is_timed_as_one_launch(cuda_engine: Engine) -> None:
    assert isinstance(cuda_engine, SequencingEngine)
    kernel = cuda_engine.build("histogram.cu").kernel("histogram_interleaved")
    pixels, counts = cuda_engine.upload(np.full(100, 7, np.uint8)), cuda_engine.allocate((256,), np.uint32)

    def count() -> None:
        cuda_engine.fill(counts, 0)
        cuda_engine.launch(kernel, (1, 1, 1), (64, 1, 1), pixels, counts, np.int32(100), np.int32(256))

    cuda_engine.take_times()
    count()
    assert cuda_engine.take_times().launches == 2
    cuda_engine.fill(counts, 5)
    cuda_engine.take_times()
    with cuda_engine.time_as_sequence():
        count()
        # Preparing a launch can take longer than a kernel: in between, the GPU would wait for the CPU.
        assert cuda_engine.download(counts)[7] == 5, "nothing is queued before the end"
    times = cuda_engine.take_times()
    assert times.launches == 1
    assert times.kernel > 0
    assert cuda_engine.download(counts)[7] == 100
    count()
    assert cuda_engine.take_times().launches == 2, "the next launches are timed separately again"


def test_a_launch_that_fails_ends_its_sequence(cuda_engine: Engine) -> None:
    assert isinstance(cuda_engine, SequencingEngine)
    kernel = cuda_engine.build("histogram.cu").kernel("histogram_interleaved")
    pixels, counts = cuda_engine.upload(np.zeros(1, np.uint8)), cuda_engine.upload(np.zeros(256, np.uint32))
    arguments = pixels, counts, np.int32(1), np.int32(256)
    with pytest.raises(LaunchError), cuda_engine.time_as_sequence():
        cuda_engine.launch(kernel, (1, 1, 1), (2048, 1, 1), *arguments)
    cuda_engine.take_times()
    cuda_engine.launch(kernel, (1, 1, 1), (64, 1, 1), *arguments)
    assert cuda_engine.take_times().launches == 1
