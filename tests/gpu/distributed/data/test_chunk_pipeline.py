"""A chunk that is read, computed and written a part at a time: what is in memory, what overlaps, what fails."""

from __future__ import annotations

import threading
from contextlib import closing
from dataclasses import dataclass

import numpy as np
import pytest

from gpu.base.errors import InputError
from gpu.distributed import streaming
from gpu.distributed.data.chunk_pipeline import background_writer
from gpu.distributed.data.chunks import Chunk, ChunkInParts, ChunkPartReader, MemoryUsage
from gpu.distributed.data.sources import EmbeddedSource, Excerpt
from gpu.files import images, netpbm
from gpu.patterns import find_pattern
from tests.gpu.distributed.test_streaming import stream_pattern as run_streamed

ROWS = np.arange(80, dtype=np.int32).reshape(40, 2)


def make_chunk_parts(source, rows, *, at_once=False, look_at=lambda piece: None):
    """Return the rows from 10 until before 30, with two more on either side, to be read so many at a time."""
    chunk = Chunk({"values": Excerpt(source, 8, 32)}, {"beside": np.array(7)}, 0, 10, 30, 2, 2)
    return ChunkPartReader(ChunkInParts(chunk, rows, 8, at_once), look_at)


@pytest.mark.parametrize("at_once", [False, True])
@pytest.mark.parametrize("rows", [1, 7, 20, 50])
def test_parts_are_the_chunk_with_what_they_see_of_others(rows, at_once):
    parts = make_chunk_parts(EmbeddedSource(ROWS, 0), rows, at_once=at_once)
    pieces = [*parts.read(2)]
    assert [piece.start for piece in pieces] == [*range(10, 30, rows)]
    assert pieces[-1].stop == 30
    for piece in pieces:
        assert np.array_equal(piece.inputs["values"], ROWS[piece.start - piece.before : piece.stop + piece.after])
        assert (piece.before, piece.after, piece.inputs["beside"]) == (2, 2, 7)


@dataclass(frozen=True)
class SlowSource:
    """Rows that are there when they are let go."""

    reads: list
    permits: threading.Semaphore

    def read(self, start, stop):
        self.reads.append((start, stop))
        assert self.permits.acquire(timeout=20)
        return ROWS[start:stop]


def test_the_next_part_is_read_while_one_is_used_and_no_more():
    asked, let_go = [], threading.Semaphore(1)
    parts = make_chunk_parts(SlowSource(asked, let_go), 5)
    with closing(parts.read(0)) as pieces:
        first = next(pieces)
        while len(asked) < 2:  # the thread is about to
            pass
        assert asked == [(10, 15), (15, 20)]
        assert parts.nbytes == 2 * 5 * 8
        parts.release_part(first)
        let_go.release(9)
        for piece in pieces:
            parts.release_part(piece)
    assert asked == [(10, 15), (15, 20), (20, 25), (25, 30)]
    assert parts.nbytes == 2 * 5 * 8, "what is done with is held no longer"


@dataclass
class SlowTarget:
    """Where rows go, when they are let go."""

    permits: threading.Semaphore
    fails_at: int = -1

    def __post_init__(self):
        self.rows = {}

    def write(self, start, rows):
        assert self.permits.acquire(timeout=20)
        if start == self.fails_at:
            raise InputError("The disk is full.")
        self.rows[start] = rows.copy()


@pytest.mark.parametrize(("together", "starts"), [(1, [4, 7, 10, 13]), (6, [4, 10]), (100, [4])])
def test_rows_are_written_in_their_places_and_so_many_together(together, starts):
    held, target = MemoryUsage(), SlowTarget(threading.Semaphore(9))
    with background_writer(target, 4, together, held) as put:
        for first in range(0, 12, 3):
            put(ROWS[first : first + 3])
    assert [*target.rows] == starts
    assert np.array_equal(np.concatenate([*target.rows.values()]), ROWS[:12])
    held.add(1000)
    assert held.peak == 1000, "nothing is held when all is written"


def test_who_makes_faster_than_the_disk_writes_waits_for_it():
    target, held, went_on, two = SlowTarget(threading.Semaphore(0)), MemoryUsage(), [], threading.Event()

    def make():
        with background_writer(target, 0, 1, held) as put:
            for row in range(6):
                put(ROWS[row : row + 1])
                went_on.append(row)
                if row == 1:
                    two.set()

    maker = threading.Thread(target=make)
    maker.start()
    assert two.wait(20)
    while held.peak < 3 * 8:  # the third waits
        pass
    maker.join(0.02)
    assert went_on == [0, 1]
    assert held.peak == 3 * 8
    target.permits.release(6)
    maker.join(20)
    assert [*target.rows] == [*range(6)]


def test_a_disk_that_takes_no_more_ends_the_run():
    target = SlowTarget(threading.Semaphore(9), fails_at=1)

    def make():
        with background_writer(target, 0, 1, MemoryUsage()) as put:
            for row in range(40):
                put(ROWS[row : row + 1])

    with pytest.raises(InputError, match="disk is full"):
        make()
    assert len(target.rows) < 6, "nobody goes on for long"


def test_an_image_in_parts_is_the_image_and_little_of_it_is_held(cluster, monkeypatch, tmp_path):
    pixels = np.random.default_rng(6).integers(0, 256, (96, 64), np.uint8)
    images.write_image(str(tmp_path / "in.pgm"), pixels, 255)
    monkeypatch.setattr(streaming, "OVERLAP_PART_BYTES", 4 * 64)
    run = run_streamed(cluster, "convolution", tmp_path / "in.pgm", tmp_path / "out.pgm", (2,), size=3, filter="emboss")
    found, _ = netpbm.read(tmp_path / "out.pgm", "out.pgm", 2**20)
    pattern = find_pattern("convolution")
    inputs = {"image": pixels, "maxval": np.array(255, np.uint8)}
    params = pattern.check({"size": 3, "filter": "emboss"})
    exact = pattern.reference(inputs, params)
    assert np.array_equal(found, pattern.present(inputs, params, {"result": exact.astype(np.float32)})["image"])
    assert (run.read_bytes, run.written_bytes) == (pixels.nbytes, pixels.nbytes)
    assert [record.step for record in run.distributed_run.tasks] == ["run in parts"] * 2
    # Of 48 rows, and as many of floats: two parts that are read, of four rows and two of others', and four of floats,
    # one that is made and three to be written.
    assert max(record.memory_bytes for record in run.distributed_run.tasks) <= (2 * 6 + 4 * 4 * 4) * 64 + 1000


def test_a_part_that_the_pattern_does_not_take_leaves_nothing(cluster, monkeypatch, tmp_path):
    values = np.ones((40, 8), np.float32)
    values[33, 3] = np.nan
    np.save(tmp_path / "in.npy", values)
    monkeypatch.setattr(streaming, "OVERLAP_PART_BYTES", 5 * 32)
    with pytest.raises(InputError, match=r"In the chunk at element 20: .*nan"):
        run_streamed(cluster, "stencil", tmp_path / "in.npy", tmp_path / "out.npy", (2,), rows=5)
    assert [each.name for each in tmp_path.iterdir()] == ["in.npy"]


def test_chunks_that_go_in_parts_are_longer(cluster, monkeypatch, tmp_path):
    monkeypatch.setattr(streaming, "CHUNK_BYTES", 20 * 10)
    monkeypatch.setattr(streaming, "LONG_CHUNK_BYTES", 20 * 40)
    pixels = np.random.default_rng(1).integers(0, 256, (80, 20), np.uint8)
    one, source = cluster.limit_workers(1), tmp_path / "image.pgm"
    images.write_image(source, pixels, 255)
    assert len(run_streamed(one, "convolution", source, tmp_path / "to.pgm").distributed_run.tasks) == 2
    counted = [each for each in run_streamed(one, "histogram", source).distributed_run.tasks if each.elements]
    assert len(counted) == 8, "one that is read at once"
