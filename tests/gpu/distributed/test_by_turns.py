"""A chunk in parts on two streams of a GPU: the same result, and two parts under way at a time."""

from __future__ import annotations

from contextlib import closing, contextmanager

import numpy as np
import pytest

from gpu import engines
from gpu.base.errors import CompileError
from gpu.declaration import distributed_program
from gpu.declaration.distributed_program import ChunkInput, WorkerContext, run_independent_chunk
from gpu.patterns import find_pattern
from tests.gpu.distributed.lockstep_engines import PlainEngine

RNG = np.random.default_rng(4)


class StreamRecordingEngine(PlainEngine):
    """A simulator that notes which stream it is asked on; it has none."""

    def __init__(self):
        super().__init__()
        self.transfers, self.stream, self.join_count = [], None, 0

    @contextmanager
    def on_stream(self, number):
        self.stream = number
        try:
            yield
        finally:
            self.stream = None

    def join_streams(self):
        self.join_count += 1

    def upload(self, values):
        self.transfers.append(("upload", self.stream))
        return super().upload(values)

    def download(self, buffer, count=None):
        self.transfers.append(("download", self.stream))
        return super().download(buffer, count)


def run_chunk(name, values, before, after, **params):
    """Return a run of the middle of an input, and its own rows' result."""
    pattern = find_pattern(name)
    params = pattern.check(params)
    inputs = {name: np.array(255, np.uint8) for name in ("maxval",) if values.dtype == np.uint8}
    inputs["image" if inputs else "values"] = values
    program = pattern.variant(pattern.default_variant).run
    piece = ChunkInput(inputs, 1, before, len(values) - after, before, after)
    rules = pattern.distributed.halo(params), pattern.distributed.granularity(params)
    return lambda engine: run_independent_chunk(WorkerContext(engine, params, "", program), piece, "result", *rules)


CHUNKS = {
    "convolution": run_chunk("convolution", RNG.integers(0, 256, (64, 33), np.uint8), 2, 1, size=5),
    "edges": run_chunk("convolution", RNG.integers(0, 256, (64, 33, 3), np.uint8), 0, 0, size=3, border="zero"),
    "stencil": run_chunk("stencil", RNG.random((60, 11), np.float32), 5, 5, rows=5),
    "softmax": run_chunk("softmax", RNG.random((40, 16), np.float32), 0, 0),
}


@pytest.mark.parametrize("name", CHUNKS)
def test_parts_are_what_the_chunk_is(monkeypatch, name):
    whole = CHUNKS[name](PlainEngine())
    monkeypatch.setattr(distributed_program, "OVERLAP_PART_BYTES", 500)
    engine = StreamRecordingEngine()
    assert CHUNKS[name](engine).tobytes() == whole.tobytes()
    assert engine.join_count == 1
    streams = [stream for what, stream in engine.transfers if what == "upload"]
    assert len(streams) > 3
    assert streams == [number % 2 for number in range(len(streams))], "by turns"
    uploads = np.cumsum([what == "upload" for what, _ in engine.transfers])
    downloads = np.cumsum([what == "download" for what, _ in engine.transfers])
    assert (uploads - downloads).max() == 2, "no more than two are on the device"


def test_a_small_chunk_is_one_part():
    engine = StreamRecordingEngine()
    CHUNKS["stencil"](engine)
    assert engine.transfers == [("upload", None), ("download", None)]


def test_what_fails_leaves_no_stream_behind(monkeypatch):
    monkeypatch.setattr(distributed_program, "OVERLAP_PART_BYTES", 500)
    engine = StreamRecordingEngine()
    engine.sources = {"softmax.cu": "extern C nonsense"}
    with pytest.raises(CompileError):
        CHUNKS["softmax"](engine)
    assert (engine.stream, engine.join_count) == (None, 1)


@pytest.mark.gpu
@pytest.mark.parametrize("name", CHUNKS)
def test_a_gpu_computes_parts_as_it_does_the_chunk(monkeypatch, name):
    with closing(engines.create_engine("cuda")) as engine:
        whole = CHUNKS[name](engine)
        monkeypatch.setattr(distributed_program, "OVERLAP_PART_BYTES", 500)
        assert CHUNKS[name](engine).tobytes() == whole.tobytes()
        times = engine.take_times()
        assert min(times.upload, times.kernel, times.download) > 0
        after = engine.upload(np.arange(5))
        assert engine.download(after).tolist() == [0, 1, 2, 3, 4], "on no stream any more"
