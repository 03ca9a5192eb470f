from __future__ import annotations

import json
import zipfile

import numpy as np
import pytest

from gpu.base.errors import InputError
from gpu.recording.file import collect_arrays
from gpu.recording.recording import Recording
from tests.gpu.stepping.recordings import record

TWO = """
__device__ int counter;
__global__ void add(const int *in, int *out, int n) {
    __shared__ int s[8];
    int i = threadIdx.x;
    s[i] = in[i];
    if (i < n) out[i] = s[i] + 1;
}
__global__ void twice(int *a, int *b) { a[threadIdx.x] *= 2; counter = 3; }
"""


def program(engine, module):
    given, out = engine.upload(np.arange(8, dtype=np.int32)), engine.allocate((8,), np.int32)
    engine.fill(out, 0)
    engine.launch(module.kernel("add"), (1, 1, 1), (8, 1, 1), given, out, np.int32(5))
    engine.launch(module.kernel("twice"), (1, 1, 1), (8, 1, 1), out, given)
    engine.fill(out, 7)
    engine.launch(module.kernel("twice"), (1, 1, 1), (8, 1, 1), out, out)


def read_numbers(recording: Recording) -> list[dict[str, int | None]]:
    return [
        {array.name: launch.buffers[array.number] for array in launch.trace.arrays} for launch in recording.launches
    ]


def test_launches_follow_each_other_and_buffers_keep_their_identity():
    recording = record(TWO, program)
    first, second, third = recording.launches
    assert (first.first, second.first) == (0, first.count)
    assert recording.event_count == first.count + second.count + third.count
    add, twice, again = read_numbers(recording)
    assert add["s"] is None
    assert (twice["a"], twice["b"], twice["counter"]) == (add["out"], add["in"], add["counter"])
    assert len({add["out"], add["in"], add["counter"]}) == 3
    assert again["a"] not in add.values(), "what the host fills is another buffer"
    assert "b" not in again, "an array given twice is one"
    assert second.trace.array("a", 0).tolist() == [1, 2, 3, 4, 5, 0, 0, 0]


def test_a_moment_belongs_to_the_launch_whose_event_is_next():
    recording = record(TWO, program)
    first, second, third = recording.launches
    assert recording.locate_moment(0) == (first, 0)
    assert recording.locate_moment(first.count - 1) == (first, first.count - 1)
    assert recording.locate_moment(first.count) == (second, 0)
    assert recording.locate_moment(recording.event_count) == (third, third.count)
    for moment in (-1, recording.event_count + 1):
        with pytest.raises(InputError, match=f"there is no moment {moment}"):
            recording.locate_moment(moment)


def test_a_program_that_launches_nothing():
    recording = record(TWO, lambda engine, module: None)
    assert (recording.launches, recording.event_count) == ((), 0)
    with pytest.raises(InputError, match="has 0 events"):
        recording.locate_moment(0)


def test_a_mistake_ends_the_recording_and_is_told():
    def fails(engine, module):
        buffers = [engine.upload(np.arange(8, dtype=np.int32)) for _ in range(2)]
        engine.launch(module.kernel("twice"), (1, 1, 1), (8, 1, 1), *buffers)
        short = engine.upload(np.zeros(2, np.int32))
        engine.launch(module.kernel("add"), (1, 1, 1), (8, 1, 1), buffers[0], short, np.int32(8))
        raise AssertionError("it went on")

    recording = record(TWO, fails)
    assert [launch.trace.failure != "" for launch in recording.launches] == [False, True]
    assert "Invalid __global__ write" in recording.failure
    assert recording.launches[1].trace.failure.partition(" by thread ")[0] in recording.failure
    assert "by thread 2: element 2 of out" in recording.failure  # as the window names it
    assert "by thread 2: element 2 of out" in recording.findings[0][1].message
    assert recording.event_count > recording.launches[1].first


def test_a_program_that_is_too_long_runs_to_its_end_all_the_same():
    ends = []

    def counts(engine, module):
        buffer = engine.upload(np.ones(8, np.int32))
        for _ in range(5):
            engine.launch(module.kernel("twice"), (1, 1, 1), (8, 1, 1), buffer, buffer)
        ends.append(engine.download(buffer))

    recording = record(TWO, counts, max_lane_events=40)
    assert ends[0].tolist() == [32] * 8
    assert [launch.trace.lane_events for launch in recording.launches] == [16, 16, 8]
    assert "The recording ends" in recording.stopped
    whole = record(TWO, counts)
    assert (len(whole.launches), whole.stopped) == (5, "")


def test_save_and_load(tmp_path):
    recording = record(TWO, program)
    recording.save(tmp_path / "a.zip")
    again = Recording.load(tmp_path / "a.zip")
    (tmp_path / "a.zip").unlink()
    assert again.event_count == recording.event_count
    assert again.text("kernel.cu") == TWO
    assert again.text("other.cu") == ""
    assert read_numbers(again) == read_numbers(recording)
    for here, there in zip(recording.launches, again.launches, strict=True):
        assert (here.first, here.count, here.buffers) == (there.first, there.count, there.buffers)
        assert (here.trace.kernel, here.trace.arrays) == (there.trace.kernel, there.trace.arrays)
        for name, array in collect_arrays(here.trace.data).items():
            assert np.array_equal(array, collect_arrays(there.trace.data)[name])


def test_what_is_no_recording_is_refused(tmp_path):
    path = tmp_path / "a.zip"
    with pytest.raises(InputError, match="There is no file"):
        Recording.load(path)
    record(TWO, program).save(path)
    whole = path.read_bytes()
    for cut in (0, 20, len(whole) // 2, len(whole) - 9):
        path.write_bytes(whole[:cut])
        with pytest.raises(InputError, match="is not a recording, or is damaged"):
            Recording.load(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("recording.json", json.dumps({"version": 99}))
    with pytest.raises(InputError, match="is a recording of version 99"):
        Recording.load(path)
    path.write_bytes(whole.replace(b"0/arrays.bin", b"0/arrays.xyz"))
    with pytest.raises(InputError, match="is not a recording, or is damaged"):
        _ = Recording.load(path).launches[0].trace


RACE = """
__global__ void k(int *a) {
    __shared__ int s[64];
    s[threadIdx.x] = threadIdx.x;
    a[threadIdx.x] = s[63 - threadIdx.x];
}
"""


def test_findings_have_the_moment_of_the_whole_program(tmp_path):
    def twice(engine, module):
        buffer = engine.allocate((64,), np.int32)
        for _ in range(2):
            engine.launch(module.kernel("k"), (1, 1, 1), (64, 1, 1), buffer)

    recording = record(RACE, twice)
    recording.save(tmp_path / "a.zip")
    for found in (recording, Recording.load(tmp_path / "a.zip")):
        (first, race), (second, again) = found.findings
        assert (race.kind, again.kind) == ("race", "race")
        assert found.locate_moment(first)[0].number == 0
        assert found.locate_moment(second)[0].number == 1
        assert first + recording.launches[1].first == second


def test_only_what_nobody_filled_or_wrote_is_uninitialized():
    source = "__global__ void k(int *a, int *b) { b[threadIdx.x] = a[threadIdx.x]; }"

    def reads(engine, module):
        empty, filled, out = (engine.allocate((8,), np.int32) for _ in range(3))
        engine.fill(filled, 1)
        for given in (filled, empty):
            engine.launch(module.kernel("k"), (1, 1, 1), (8, 1, 1), given, out)
        engine.launch(module.kernel("k"), (1, 1, 1), (8, 1, 1), out, filled)

    recording = record(source, reads)
    assert [(found.kind, recording.locate_moment(event)[0].number) for event, found in recording.findings] == [
        ("uninitialized", 1)
    ]


def test_warps_run_in_the_order_that_is_asked_for():
    def program(engine, module):
        engine.launch(module.kernel("k"), (1, 1, 1), (64, 1, 1), engine.allocate((64,), np.int32))

    orders = {}
    for schedule in ("round-robin", "shuffle:1", "shuffle:2", "shuffle:1 "):
        recording = record(RACE, program, schedule=schedule.strip())
        orders[schedule] = [event.lanes.tolist() for event in recording.launches[0].trace.events]
    assert orders["shuffle:1"] == orders["shuffle:1 "]
    assert len(orders["round-robin"]) == 2
    assert len(orders["shuffle:1"]) == 4


def test_arrays_keep_the_extents_that_the_host_or_the_kernel_gives_them(tmp_path):
    source = """
    __constant__ float WEIGHTS[9];
    __global__ void k(const float *image, float *out) {
        extern __shared__ float any[];
        __shared__ float tile[4][6];
        tile[threadIdx.x][0] = image[threadIdx.x] * WEIGHTS[threadIdx.x];
        any[threadIdx.x] = tile[threadIdx.x][0];
        out[threadIdx.x] = any[threadIdx.x];
    }
    """

    def run(engine, module):
        module.set_constant("WEIGHTS", np.ones((3, 3), np.float32))
        image, out = engine.upload(np.ones((2, 3, 5), np.float32)), engine.allocate((30,), np.float32)
        engine.launch(module.kernel("k"), (1, 1, 1), (4, 1, 1), image, out, shared_bytes=64)

    recording = record(source, run)
    recording.save(tmp_path / "saved")
    for each in (recording, Recording.load(tmp_path / "saved")):
        launch = each.launches[0]
        found = {array.name: launch.shapes[array.number] for array in launch.trace.arrays}
        assert found == {"image": (2, 3, 5), "out": (30,), "WEIGHTS": (3, 3), "tile": (4, 6), "any": None}
