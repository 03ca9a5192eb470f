"""Traces: what ran, what was held when, and a trace as a file."""

from __future__ import annotations

import json
import time
import tracemalloc
import zipfile
from dataclasses import FrozenInstanceError, fields, replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpu.base.errors import InputError
from gpu.recording.data import TraceLanes
from gpu.recording.file import collect_arrays, save_trace
from gpu.recording.statements import ExecutedStatement
from gpu.recording.trace import Trace
from gpu.recording.variables import TraceVariables
from gpu.simulator.simulated_module import SimulatedModule, TraceSettings
from tests.gpu.simulator import statements
from tests.gpu.simulator.trace_checks import check_states, find_ancestry, returned_lanes, running_lanes, trace_kernel

PARTIAL = """
__global__ void k(int *a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int sum = 0;
    for (int j = 0; j < i % 3; j++) {
        sum += a[i];
        if (sum > 40) break;
    }
    a[i] = sum;
}
"""


def trace_partial_warp():
    return trace_kernel(PARTIAL, [np.arange(100, dtype=np.int32), np.int32(90)], grid=2, block=50)[0]


def test_events_say_what_ran_where_and_who():
    made = trace_partial_warp()
    first = made.events[0]
    assert (first.kind, first.position.line, first.function) == ("declare", 3, "k")
    assert first.lanes.tolist() == [*range(50), *range(64, 114)]
    assert first.blocks.tolist() == [0] * 50 + [1] * 50
    assert first.threads.tolist() == [*range(50)] * 2
    test = made.events[1]
    assert (test.kind, test.true_lanes.tolist()) == ("if", list(range(104, 114)))
    assert made.events[2].kind == "return"
    assert made.events[2].lanes.tolist() == test.true_lanes.tolist()
    assert not returned_lanes(made, 2).any()
    assert np.flatnonzero(returned_lanes(made, 3)).tolist() == test.true_lanes.tolist()
    assert (np.flatnonzero(running_lanes(made, 3)) == made.events[3].lanes).all()
    assert {event.kind for event in made.events} == {"declare", "if", "return", "loop", "evaluate", "advance"}
    assert made.lane_events == sum(event.lanes.size for event in made.events)


def test_every_state_is_that_of_an_independent_replay():
    check_states(trace_partial_warp())


def test_variables_are_known_by_name_where_they_are_defined():
    made = trace_partial_warp()
    assert set(made.registers(0)) == {"n"}
    assert set(made.pointers(0)) == {"a"}
    variables = made.registers(len(made.events) - 1)
    assert variables["i"].values[64:114].tolist() == list(range(50, 100))
    assert variables["sum"].defined.sum() == 90
    assert not variables["i"].defined[50:64].any()
    alone = made.registers(len(made.events) - 1, {"i", "nothing"})
    assert alone.keys() == {"i"}
    assert alone["i"].values.tolist() == variables["i"].values.tolist()


POINTERS = """
__device__ int take(const int *from) { return *from; }
__global__ void k(int *a, int *b) {
    __shared__ int s[2][64];
    int t = threadIdx.x;
    int *p = t < 8 ? a + t : s[1] + t;
    *p = t;
    p = 0;
    if (t > 3) p = &b[2 * t];
    int mine[4];
    int *q = mine;
    for (q = q + 1; q < mine + 3; q++) *q = take(b + t);
    b[t] = mine[1];
}
"""


@pytest.mark.parametrize("schedule", ["round-robin", "shuffle:1"])
def test_pointers_are_shown_as_array_and_element(schedule, tmp_path):
    made, _ = trace_kernel(POINTERS, [np.zeros(64, np.int32), np.zeros(200, np.int32)], block=64, schedule=schedule)
    made.save(tmp_path / "trace.zip")
    made = Trace.load(tmp_path / "trace.zip")
    own = [event for event in made.events if 40 in event.lanes]
    stored = next(event for event in own if event.position.line == 7)
    known = made.pointers(stored.number)
    assert [known["p"].values[lane] for lane in (33, 40)] == ["s[97]", "s[104]"]
    assert known["a"].values[40] == "a[0]"
    cleared = next(event for event in own if event.position.line == 8)
    assert cleared.pointers["p"].values[40] == "null"
    set_again = next(event for event in own if event.position.line == 9 and event.kind == "evaluate")
    assert set_again.pointers["p"].values[40] == "b[80]"
    taken = next(event for event in own if event.function == "take")
    assert made.pointers(taken.number)["from"].values[40] == "b[40]"
    last = made.pointers(own[-1].number)
    assert last["q"].values[40] == "mine[3]"
    first = next(event for event in made.events if event.position.line == 7 and 0 in event.lanes)
    assert [made.pointers(first.number)["p"].values[lane] for lane in (0, 7, 8)] == ["a[0]", "a[7]", "s[72]"]
    last = next(event for event in reversed(made.events) if 0 in event.lanes)
    assert [made.pointers(last.number)["p"].values[lane] for lane in (0, 3, 4)] == ["null", "null", "b[8]"]


def test_barriers_and_calls_are_events():
    source = """
    __device__ int f(int x) { int y = x * 2; return y; }
    __global__ void k(int *a) {
        int t = threadIdx.x;
        a[t] = f(f(a[t]));
        __syncthreads();
        a[t] = a[t] + 1;
    }
    """
    made, _ = trace_kernel(source, [np.arange(32, dtype=np.int32)])
    seen = [(event.kind, event.function, event.is_resumed) for event in made.events]
    assert seen == [
        ("declare", "k", False),
        ("evaluate", "k", False),
        *[("declare", "f", False), ("return", "f", False)] * 2,
        ("evaluate", "k", True),
        ("barrier", "k", False),
        ("evaluate", "k", False),
    ]
    assert set(made.registers(3)) == {"x", "y"}
    check_states(made)


def test_an_array_given_twice_is_one():
    source = "__global__ void k(int *a, int *b) { a[threadIdx.x] += 1; b[threadIdx.x] *= 2; }"
    data = np.arange(32, dtype=np.int32)
    raw = data.view(np.uint8)
    made = SimulatedModule(source, Path("k.cu"), {}).trace("k", (1, 1, 1), (32, 1, 1), [raw, raw])
    assert len(made.arrays) == 1
    assert (made.array("a", 2) == data).all()
    assert [node.operator for node in made.ancestry(made.find_node("a", 3, 2)).operations] == ["+", "*"]


def test_elements_read_in_other_sizes():
    source = """
    __global__ void k(unsigned *a, unsigned char *out) {
        extern __shared__ unsigned char bytes[];
        unsigned *words = (unsigned *)bytes;
        int t = threadIdx.x;
        words[t] = a[t];
        __syncthreads();
        out[t] = bytes[4 * t + 1];
        bytes[4 * t + 1] = 7;
        a[t] = words[t];
    }
    """
    made, _ = trace_kernel(source, [np.arange(32, dtype=np.uint32) * 999, np.zeros(32, np.uint8)], shared_bytes=128)
    assert made.array(2, len(made.events)).size == 32
    assert [node.element for node in trace_byte_ancestry(made).inputs] == [5]


def trace_byte_ancestry(made):
    return made.ancestry(made.find_node("out", 5, len(made.events)))


def test_the_bytes_of_a_vector_are_elements_of_their_own():
    source = "__global__ void k(uchar4 *a, uchar4 *b) { b[threadIdx.x] = a[31 - threadIdx.x]; }"
    made, _ = trace_kernel(source, [np.arange(128, dtype=np.uint8), np.zeros(128, np.uint8)])
    check_states(made)
    (event,) = made.events
    reads, writes = (
        np.array([access.elements for access in event.accesses if access.action == action])
        for action in ("read", "write")
    )
    assert (writes == np.arange(4)[:, None] + 4 * np.arange(32)).all()
    assert (reads == writes[:, ::-1]).all()


def test_what_the_launch_has_written_by_each_step():
    source = """
    __global__ void k(short *out, int *a) {
        __shared__ int s[40];
        int t = threadIdx.x;
        if (t > 3) s[t] = a[t];
        __syncthreads();
        if (t % 3 == blockIdx.x) out[blockIdx.x * 40 + t] = s[39 - t] + 1;
        if (blockIdx.x == 1 && t == 0) s[2] = 5;
    }
    """
    made, _ = trace_kernel(source, [np.zeros(80, np.int16), np.arange(40, dtype=np.int32)], grid=2, block=40)
    written = {array.number: np.zeros(array.count, bool) for array in made.arrays}
    assert [array.space for array in made.arrays] == ["global", "global", "shared", "shared"]
    for event in made.events:
        for array in made.arrays:
            assert (made.memory.find_written(array, event.number) == written[array.number]).all()
        for access in event.accesses:
            if access.action == "write":
                for number, element in zip(access.arrays, access.elements, strict=True):
                    written[number][element] = True
    assert [count.sum() for count in written.values()] == [27, 0, 36, 37]
    for array in made.arrays:
        assert (made.memory.find_written(array, len(made.events)) == written[array.number]).all()


def test_the_parts_of_a_value_have_their_members_names():
    source = """
    struct P { float2 at; int n; };
    __device__ P made(float2 v) { P p; p.at = v; p.n = 3; return p; }
    __global__ void k(float2 *a, float *b) { b[threadIdx.x] = made(a[0]).at.y + made(a[0]).n; }
    """
    made, _ = trace_kernel(source, [np.arange(64, dtype=np.float32), np.zeros(32, np.float32)])

    def parts(terms):
        for term in terms:
            if term.kind == "part":
                yield term.text, term.type, term.value
            yield from parts(term.parts)

    assert list(parts(made.events[0].statement.terms)) == [
        ("y", "float32", [1, 1]),
        ("at", "", [0, 2]),
        ("n", "int32", [2, 1]),
    ]


def test_every_event_but_a_barrier_has_a_statement():
    source = "__global__ void k(int *a) { a[threadIdx.x] = 1; __syncthreads(); a[threadIdx.x] = 2; }"
    made, _ = trace_kernel(source, [np.zeros(32, np.int32)])
    assert [event.kind for event in made.events] == ["evaluate", "barrier", "evaluate"]
    assert [event.statement == ExecutedStatement() for event in made.events] == [False, True, False]


def test_a_trace_that_is_too_large_stops_and_the_launch_goes_on():
    made, _ = trace_kernel(
        PARTIAL, [np.arange(100, dtype=np.int32), np.int32(90)], grid=2, block=50, max_lane_events=250
    )
    assert len(made.events) == 3
    assert made.lane_events == 210
    assert "The recording ends after 250" in made.stop_reason
    assert not trace_partial_warp().stop_reason


def test_a_mistake_of_the_kernel_ends_the_trace_and_is_told():
    module = SimulatedModule("__global__ void k(int *a) { a[0] = 1; a[threadIdx.x] = 2; }", Path("k.cu"), {})
    made = module.trace("k", (1, 1, 1), (32, 1, 1), [np.zeros(16, np.uint8)])
    assert "out of bounds" in made.failure or "Invalid __global__ write" in made.failure
    assert len(made.events) == 2
    assert made.array("a", 2).tolist() == [1, 0, 0, 0]


def test_save_and_load(tmp_path):
    made = trace_partial_warp()
    made.save(tmp_path / "trace.zip")
    again = Trace.load(tmp_path / "trace.zip")
    assert (again.source, again.kernel, again.grid, again.block) == (PARTIAL, "k", (2, 1, 1), (50, 1, 1))
    assert len(again.events) == len(made.events)
    for name, array in collect_arrays(made.data).items():
        assert (collect_arrays(again.data)[name] == array).all()
    check_states(again)
    end = len(made.events)
    assert again.ancestry(again.find_node("a", 5, end)) == made.ancestry(made.find_node("a", 5, end))


def test_another_version_is_refused(tmp_path):
    trace_partial_warp().save(tmp_path / "trace.zip")
    with zipfile.ZipFile(tmp_path / "trace.zip") as archive:
        manifest, arrays = json.loads(archive.read("manifest.json")), archive.read("arrays.bin")
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as archive:
        archive.writestr("manifest.json", json.dumps({**manifest, "version": 99}))
        archive.writestr("arrays.bin", arrays)
    with pytest.raises(InputError, match="is a trace of version 99; this program reads version 7"):
        Trace.load(tmp_path / "other.zip")


def test_broken_files_are_refused(tmp_path):
    trace_partial_warp().save(tmp_path / "trace.zip")
    whole = (tmp_path / "trace.zip").read_bytes()
    broken = tmp_path / "broken.zip"
    with pytest.raises(InputError, match=r"There is no file"):
        Trace.load(broken)
    for cut in (0, 10, len(whole) // 2, len(whole) - 10):
        broken.write_bytes(whole[:cut])
        with pytest.raises(InputError, match="is not a trace, or is damaged"):
            Trace.load(broken)
    for at in range(40, len(whole) - 200, 397):
        broken.write_bytes(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
        try:
            again = Trace.load(broken)
        except InputError:
            continue
        # Only what the archive says of itself, such as a member's date, can be another without harm.
        assert (again.data.events == trace_partial_warp().data.events).all()


@pytest.mark.parametrize("nowhere", [10_000, -9])
@pytest.mark.parametrize(
    ("table", "column"),
    [
        ("events", "mask"),
        ("accesses", "elements"),
        ("registers", "node"),
        ("operations", "nodes"),
        ("inputs", "memory"),
    ],
)
def test_a_number_that_points_nowhere_is_refused(table, column, nowhere, tmp_path):
    data = trace_partial_warp().data
    wrong = getattr(data, table).copy()
    wrong[column][-1] = nowhere
    save_trace(replace(data, **{table: wrong}), tmp_path / "trace.zip")
    with pytest.raises(InputError, match="is not a trace, or is damaged"):
        Trace.load(tmp_path / "trace.zip")


def test_arrays_of_another_length_than_the_manifest_says_are_refused(tmp_path):
    trace_partial_warp().save(tmp_path / "trace.zip")
    with zipfile.ZipFile(tmp_path / "trace.zip") as archive:
        manifest, arrays = archive.read("manifest.json"), archive.read("arrays.bin")
    for wrong in (arrays[:-1], arrays + b"0"):
        with zipfile.ZipFile(tmp_path / "wrong.zip", "w") as archive:
            archive.writestr("manifest.json", manifest)
            archive.writestr("arrays.bin", wrong)
        with pytest.raises(InputError, match="is not a trace, or is damaged"):
            Trace.load(tmp_path / "wrong.zip")


@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(body=statements.bodies(), seed=st.integers(0, 1000))
def test_random_programs(body, seed):
    source = f"""
    #define LEAVE(value) {{ out[t] = (value); return; }}
    __global__ void k(const int *in, int *out) {{
        int t = threadIdx.x;
        int a = in[t], b = in[t + 40], c = t;
        {body}
    }}
    """
    values = np.random.default_rng(seed).integers(-20, 20, 80).astype(np.int32)
    made, _ = trace_kernel(source, [values, np.zeros(40, np.int32)], block=40)
    if len(made.events) < 60:
        check_states(made)
    for i in (0, 7, 33, 39):
        find_ancestry(made, "out", i)


def test_a_moment_of_a_million_lane_events_is_there_in_20_ms():
    source = """
    __global__ void k(const int *in, int *out) {
        __shared__ int s[256];
        int t = threadIdx.x;
        s[t] = in[blockIdx.x * 256 + t];
        for (int stride = 128; stride; stride /= 2) {
            __syncthreads();
            if (t < stride) s[t] += s[t + stride];
        }
        if (t == 0) out[blockIdx.x] = s[0];
    }
    """
    blocks = 128
    made, (values, _) = trace_kernel(source, [np.arange(256 * blocks, dtype=np.int32), np.zeros(blocks, np.int32)],
                              grid=blocks, block=256)  # fmt: skip
    assert made.lane_events > 1_000_000
    times = []
    for step in range(0, len(made.events), 3):
        start = time.thread_time()
        state = {(each.name, each.block): made.array(each.number, step) for each in made.arrays}
        made.registers(step)
        times.append(time.thread_time() - start)
    assert np.median(times) < 0.02
    # What is looked at may be written to: it is nobody else's.
    state["s", 5][:] = -1
    assert made.array("s", len(made.events), 5)[0] == values[5 * 256 : 6 * 256].sum()


def test_a_number_that_points_past_the_end_of_what_it_points_into_is_refused(tmp_path):
    source = """
    __device__ int f(int *x) { return *x + 1; }
    __global__ void k(int *a, int n) {
        __shared__ int s[32];
        int t = threadIdx.x;
        int *p = s + t;
        *p = a[t];
        __syncthreads();
        if (t < n) a[t] = f(p) * 2;
    }
    """
    made, _ = trace_kernel(source, [np.arange(32, dtype=np.int32), np.int32(9)], schedule="shuffle:1")
    data = made.data
    ends = {
        "kind": len(data.kinds), "position": len(data.positions), "function": len(data.functions),
        "batch": len(data.batches), "launch": len(data.launches), "mask": len(data.masks.rows),
        "taken": len(data.masks.rows), "event": len(data.events), "memory": len(data.memories),
        "dtype": len(data.values.dtypes), "operator": len(data.operators), "name": len(data.pointer_names),
        # A barrier that nobody has come past may come after the last event.
        "before": len(data.events) + 1,
    }  # fmt: skip
    tables = ("events", "accesses", "registers", "pointers", "operations", "barriers", "batches", "calls", "inputs")
    tried = set()
    for table in tables:
        rows = getattr(data, table)
        for column in set(rows.dtype.names) & set(ends):
            if not rows.size:
                continue
            damaged = rows.copy()
            damaged[column][-1] = ends[column]
            Trace(replace(data, **{table: damaged})).save(tmp_path / "damaged.zip")
            with pytest.raises(InputError, match="damaged"):
                Trace.load(tmp_path / "damaged.zip")
            tried.add(column)
    assert tried >= {"kind", "position", "function", "batch", "mask", "taken", "event", "before", "memory", "dtype"}
    barriers = data.barriers.copy()
    barriers["before"][-1] = len(data.events)
    Trace(replace(data, barriers=barriers)).save(tmp_path / "last.zip")
    assert len(Trace.load(tmp_path / "last.zip").events) == len(data.events)


def test_a_step_is_one_of_the_trace_or_its_end():
    made = trace_partial_warp()
    end = len(made.events)
    made.array("a", 0)
    made.array("a", end)
    for step in (-1, end + 1):
        with pytest.raises(InputError, match=f"The trace has {end} events; there is no step {step}"):
            made.array("a", step)


def test_what_an_operation_made_is_no_element_of_an_array():
    made = trace_partial_warp()
    groups = made.ancestry(made.find_node("a", 5, len(made.events))).groups
    assert {bool(group.operator) for group in groups} == {False, True}
    for group in groups:
        if group.operator:
            assert (group.array, set(group.elements.tolist())) == (-1, {-1})
        else:
            assert group.event == -1
            assert group.array >= 0
            assert (group.elements >= 0).all()
            assert set(group.blocks.tolist()) == set(group.threads.tolist()) == {-1}


def test_a_block_of_three_dimensions_takes_whole_warps_of_all_its_threads():
    source = "__global__ void k(int *a) { a[threadIdx.x + 8 * threadIdx.y + 16 * threadIdx.z] = 1; }"
    made, _ = trace_kernel(source, [np.zeros(80, np.int32)], block=(8, 2, 5))
    assert [launch.lanes_per_block for launch in made.launches] == [96]


def test_an_element_that_nobody_wrote_is_made_of_itself():
    made, _ = trace_kernel(
        "__global__ void k(int *a, const int *b) { if (threadIdx.x < 3) a[threadIdx.x] = b[threadIdx.x]; }",
        [np.arange(32, dtype=np.int32), np.arange(40, dtype=np.int32)],
    )
    for name, number, element in (("a", 0, 7), ("a", 0, 31), ("b", 1, 0), ("b", 1, 39)):
        (node,) = made.ancestry(made.find_node(name, element, len(made.events))).inputs
        assert (node.array, node.element) == (number, element)


def test_a_branch_that_no_lane_takes_is_taken_by_nobody():
    source = """
    __global__ void k(int *a) {
        int t = threadIdx.x;
        if (t > 100) a[t] = 1;
        if (t < 3) a[t] = 2;
        if (t < 100) a[t] += 1;
    }
    """
    made, _ = trace_kernel(source, [np.zeros(32, np.int32)])
    taken = {event.position.line: event.true_lanes for event in made.events if event.kind == "if"}
    assert {line: lanes.tolist() for line, lanes in taken.items()} == {4: [], 5: [0, 1, 2], 6: [*range(32)]}
    assert [event.true_lanes for event in made.events if event.kind != "if"] == [None] * (len(made.events) - 3)


@pytest.mark.parametrize("schedule", ["round-robin", "shuffle:1"])
def test_memory_of_a_threads_own_that_is_read_in_several_sizes(schedule):
    source = """
    union Bits { float real; unsigned whole; unsigned char bytes[20]; };
    __global__ void k(const float *in, unsigned *out) {
        int t = threadIdx.x;
        Bits own;
        if (t == 50) return;
        own.real = in[t];
        if (t % 3) own.bytes[3] = 128;
        own.bytes[16] = t;
        out[t] = own.whole;
    }
    """
    values = np.random.default_rng(6).random(64).astype(np.float32)
    made, (_, out) = trace_kernel(source, [values, np.zeros(64, np.uint32)], block=64, schedule=schedule)
    right = values.view(np.uint8).reshape(64, 4).copy()
    right[np.arange(64) % 3 != 0, 3] = 128
    right[50] = 0
    assert out.tobytes() == right.tobytes()
    end = len(made.events)
    own = made.array("own", end).view(np.uint8).reshape(64, 20)
    ran = np.arange(64) != 50
    assert (own[ran, :4] == right[ran]).all()
    assert (own[ran, 16] == np.arange(64)[ran]).all()
    for t in (0, 1, 33, 63):
        assert [node.element for node in made.ancestry(made.find_node("out", t, end)).inputs] == [t]
        writer = made.find_writer("own", 5 * t + 4, end)
        assert (writer.thread, made.events[writer.event].position.line) == (t, 9)


def test_calls_are_numbered_in_the_order_in_which_they_begin():
    source = """
    __device__ int g(int x) { return x + 1; }
    __device__ int f(int x) { return g(x) * 2; }
    __global__ void k(int *a) {
        a[threadIdx.x] = f(1);
        a[threadIdx.x] += g(2);
    }
    """
    made, _ = trace_kernel(source, [np.zeros(64, np.int32)], block=64)
    calls = dict.fromkeys((event.function, event.frame) for event in made.events)
    assert list(calls) == [("k", 0), ("f", 1), ("g", 2), ("g", 3)]


def test_variables_take_no_older_write_than_they_need():
    source = """
    __global__ void k(int *a) {
        int t = threadIdx.x, x = 0;
        for (int i = 0; i < t; i++) x += a[i];
        if (t < 16) x = 2 * t; else x = 3 * t;
        a[t] = x;
        if (t < 8) x = 4 * t;
        a[t] += x;
    }
    """
    made, _ = trace_kernel(source, [np.arange(32, dtype=np.int32)])
    asked = list[int]()

    class Lanes(TraceLanes):
        def mask_lanes(self, number):
            asked.append(number)
            return super().mask_lanes(number)

    variables = TraceVariables(made.data, Lanes(made.data))
    t = np.arange(32)
    for line, right, writes in (
        (6, np.where(t < 16, 2 * t, 3 * t), 2),
        (8, np.select([t < 8, t < 16], [4 * t, 2 * t], 3 * t), 3),
    ):
        step = next(event.number for event in made.events if event.position.line == line)
        asked.clear()
        found = variables.registers(step, {"x"})["x"]
        assert found.values.tolist() == right.tolist()
        assert found.defined.all()
        assert len(asked) == writes
        asked.clear()
        assert variables.registers(step, {"x"})["x"].values.tolist() == right.tolist()
        assert asked == []


def test_what_a_trace_tells_cannot_be_changed():
    made = trace_partial_warp()
    last = made.events[len(made.events) - 1]
    node = made.ancestry(made.find_node("a", 5, len(made.events))).operations[0]
    told = [
        *made.registers(last.number).values(), made.arrays[0], made.launches[0], last.accesses[0], last.statement, node,
        made.find_writer("a", 5, len(made.events)), made.data, made.data.launch, made.data.functions[0],
        made.data.memories[0], made.data.integers, made.data.values, made.data.masks,
    ]  # fmt: skip
    for each in told:
        with pytest.raises(FrozenInstanceError):
            setattr(each, fields(each)[0].name, None)


def test_shared_memory_of_blocks_that_have_ended_takes_no_room():
    source = """
    __global__ void k(int *a) {
        __shared__ unsigned char s[20000];
        if (threadIdx.x < 2) s[threadIdx.x * 19999] = 1;
        __syncthreads();
        if (threadIdx.x == 0) a[blockIdx.x] = s[19999];
    }
    """
    module, out = SimulatedModule(source, Path("k.cu"), {}), np.zeros(256, np.int32)
    peaks = []
    for blocks in (32, 160):  # 32 run at a time
        tracemalloc.start()
        made = module.trace("k", (blocks, 1, 1), (1024, 1, 1), [out.view(np.uint8)], TraceSettings(checked=False))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert len(made.data.batches) == blocks // 32
    assert out.tolist() == [1] * 160 + [0] * 96
    # While it runs, a block's memory has the provenance of each byte beside it: four bytes each.
    assert peaks[1] - peaks[0] < 4 * 20000 * 32
