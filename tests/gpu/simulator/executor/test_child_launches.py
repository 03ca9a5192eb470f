"""Kernels that launch kernels."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from gpu.base.errors import CompileError, LaunchError
from gpu.recording.trace import Trace
from gpu.simulator.checkers.races.races import RaceChecker
from gpu.simulator.counting.counters import Counters
from gpu.simulator.simulated_module import SimulatedModule
from tests.gpu.simulator.kernel_runner import build, launch, run_kernel
from tests.gpu.simulator.trace_checks import check_states, find_ancestry, input_elements, trace_kernel
from tests.gpu.simulator.watched_launch import launch_watched

Array = np.ndarray[Any, Any]

# One thread a launch parts its range in two by a pivot, and launches itself for each half in a stream of its own.
QUICKSORT = """
#define SMALL 32
__device__ void selection_sort(KEY *data, int left, int right) {
    for (int i = left; i <= right; ++i) {
        int least = i;
        for (int j = i + 1; j <= right; ++j) {
            if (data[j] < data[least]) least = j;
        }
        if (least != i) {
            KEY kept = data[least];
            data[least] = data[i];
            data[i] = kept;
        }
    }
}
__global__ void quicksort(KEY *data, int left, int right, int depth) {
    if (depth >= MAX_DEPTH || right - left < SMALL) {
        selection_sort(data, left, right);
        return;
    }
    KEY *l = data + left, *r = data + right, pivot = data[(left + right) / 2];
    while (l <= r) {
        while (*l < pivot) ++l;
        while (*r > pivot) --r;
        if (l <= r) {
            KEY kept = *l;
            *l++ = *r;
            *r-- = kept;
        }
    }
    if (left < r - data) {
        cudaStream_t stream;
        cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
        quicksort<<<1, 1, 0, stream>>>(data, left, r - data, depth + 1);
        cudaStreamDestroy(stream);
    }
    if (l - data < right) {
        cudaStream_t stream;
        cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
        quicksort<<<1, 1, 0, stream>>>(data, l - data, right, depth + 1);
        cudaStreamDestroy(stream);
    }
}
"""


def run_quicksort(values: Array, max_depth: int = 24) -> Array:
    key = {"i": "int", "u": "unsigned", "f": "float"}[values.dtype.kind]
    module = build(QUICKSORT, {"KEY": key, "MAX_DEPTH": max_depth})
    [made] = launch(module, "quicksort", values, np.int32(0), np.int32(values.size - 1), np.int32(0), block=1)
    return made


def organ_pipe(n: int) -> Array:
    return np.minimum(np.arange(n), np.arange(n)[::-1])


ADVERSARIES = {
    "ascending": np.arange(200),
    "descending": np.arange(200)[::-1],
    "equal": np.full(150, 7),
    "two values": np.arange(180) % 2,
    "organ pipe": organ_pipe(170),
    "the middle is least": np.roll(np.arange(160), 80),
    "extremes": np.array([2**31 - 1, -(2**31), 0, -1] * 20),
    "one": np.array([5]),
    "as many as are sorted by selection": np.arange(33)[::-1],
}


@pytest.mark.parametrize("name", ADVERSARIES)
@pytest.mark.parametrize("max_depth", [24, 2])
def test_quicksort_of_adversaries(name: str, max_depth: int) -> None:
    values = ADVERSARIES[name].astype(np.int32)
    np.testing.assert_array_equal(run_quicksort(values, max_depth), np.sort(values))


@settings(max_examples=10, derandomize=True, database=None, deadline=None, phases=(Phase.generate,))
@given(st.integers(1, 600), st.integers(0, 2**32), st.sampled_from(["int32", "uint32", "float32"]))
def test_quicksort_of_random_keys(n: int, seed: int, dtype: str) -> None:
    generator = np.random.default_rng(seed)
    values = generator.integers(0, 2**32, n, dtype=np.uint32).view(np.int32) % generator.integers(2, 10**6)
    values = values.astype(dtype)
    np.testing.assert_array_equal(run_quicksort(values), np.sort(values))


def make_ints(count: int) -> Array:
    return np.zeros(count, np.int32)


def test_each_thread_launches_a_grid_of_its_own() -> None:
    source = """
    __global__ void child(int *out, int from, int width) {
        extern __shared__ int held[];
        held[threadIdx.x] = from + blockIdx.x * blockDim.x + threadIdx.x;
        __syncthreads();
        out[from + blockIdx.x * blockDim.x + threadIdx.x] = held[blockDim.x - 1 - threadIdx.x] * 100 + gridDim.x * 10
            + gridDim.y + width;
    }
    __global__ void parent(int *out, const int *start) {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (start[i + 1] > start[i]) {
            child<<<dim3((start[i + 1] - start[i]) / 2), 2, 2 * sizeof(int)>>>(out, start[i], i * 1000000);
        }
    }"""
    start = np.array([0, 2, 2, 8, 8, 12, 40, 42, 46], np.int32)
    out, _ = run_kernel(source, "parent", make_ints(46), start, grid=2, block=4)
    right = make_ints(46)
    for i, (first, last) in enumerate(pairwise(start)):
        for at in range(first, last):
            partner = first + (at - first) // 2 * 2 + 1 - (at - first) % 2
            right[at] = partner * 100 + (last - first) // 2 * 10 + 1 + i * 1000000
    np.testing.assert_array_equal(out, right)


def test_arguments_are_converted_and_templates_deduced() -> None:
    source = """
    struct Pair { int first; float second; };
    template <typename T> __global__ void fill(T *out, T value) { out[threadIdx.x] = value; }
    template <int N> __global__ void add(float *out, Pair pair) { out[threadIdx.x] += N * pair.first + pair.second; }
    __device__ void start(float *out, int n) { fill<<<1, n>>>(out + 1, 2.5f); }
    __global__ void parent(float *out, int *counts) {
        start(out, 3);
        fill<int><<<1, dim3(2, 1, 1)>>>(counts, 3.99f);
        add<4>
            <<<1, 2>>>(out, Pair{threadIdx.x + 1, 0.25f});
    }"""
    out, counts = run_kernel(source, "parent", np.zeros(5, np.float32), make_ints(3), block=1)
    assert out.tolist() == [4.25, 6.75, 2.5, 2.5, 0]
    assert counts.tolist() == [3, 3, 0]


ORDER = """
__device__ int count;
__global__ void leaf(int *out, int name) { out[count++] = name; }
__global__ void inner(int *out, int name) {
    leaf<<<1, 1>>>(out, name + 1);
    leaf<<<1, 1, 0, cudaStreamTailLaunch>>>(out, name + 4);
    leaf<<<1, 1, 0, cudaStreamFireAndForget>>>(out, name + 2);
    out[count++] = name;
}
__global__ void outer(int *out) {
    inner<<<1, 1>>>(out, 10 * (threadIdx.x + 1));
    WAIT
    leaf<<<1, 1>>>(out, 5 + threadIdx.x);
    out[count++] = -1;
}"""


def test_children_run_in_order_each_with_its_own_and_tails_last() -> None:
    out = run_kernel(ORDER, "outer", make_ints(13), block=2, defines={"WAIT": ""})[0]
    # Both lanes store -1 at one place: count++ of two lanes is one race, which ends as one.
    assert out.tolist() == [-1, 10, 11, 12, 14, 20, 21, 22, 24, 5, 6, 0, 0]


def test_device_synchronize_runs_what_was_launched_at_once() -> None:
    out = run_kernel(ORDER, "outer", make_ints(13), block=2, defines={"WAIT": "cudaDeviceSynchronize();"})[0]
    assert out.tolist() == [10, 11, 12, 14, 20, 21, 22, 24, -1, 5, 6, 0, 0]


def test_copies_follow_earlier_launches_into_their_stream() -> None:
    source = """
    __global__ void put(int *p, int value) { p[0] = value; }
    __global__ void parent(int *p) {
        put<<<1, 1>>>(p, 7);
        cudaMemcpyAsync(p + 1, p, sizeof(int), cudaMemcpyDeviceToDevice);
        put<<<1, 1>>>(p, 8);
        cudaMemsetAsync(p + 2, 1, sizeof(int));
    }"""
    (out,) = run_kernel(source, "parent", make_ints(3), block=1)
    assert out.tolist() == [8, 7, 0x01010101]
    alone = "__global__ void parent(int *p) { cudaMemcpyAsync(p + 1, p, 4, cudaMemcpyDeviceToDevice, 0); }"
    (out,) = run_kernel(alone, "parent", np.array([5, 0], np.int32), block=1)
    assert out.tolist() == [5, 5]


def test_a_parent_that_waits_reads_what_its_children_wrote() -> None:
    source = """
    __global__ void sum(const int *in, int *out, int n) {
        if (n <= 2) {
            *out = n == 2 ? in[0] + in[1] : in[0];
            return;
        }
        int half = n / 2;
        sum<<<1, 1>>>(in, out + 1, half);
        sum<<<1, 1>>>(in + half, out + 2 * half, n - half);
        cudaDeviceSynchronize();
        if (cudaGetErrorString(cudaGetLastError())[0] == 'n') *out = out[1] + out[2 * half];
    }"""
    for n in (1, 2, 3, 21, 64):
        given = np.random.default_rng(n).integers(-99, 99, n).astype(np.int32)
        _, out = run_kernel(source, "sum", given, make_ints(4 * n), np.int32(n), block=1)
        assert out[0] == given.sum()


def launch_failure(source: str, *arguments: Any, kernel: str = "f", **options: Any) -> LaunchError:
    with pytest.raises(LaunchError) as caught:
        run_kernel(source, kernel, *arguments, block=1, **options)
    return caught.value


def test_launches_nest_24_deep_and_no_deeper() -> None:
    source = """
    __global__ void f(int *deepest, int depth, int last) {
        *deepest = depth;
        if (depth < last) f<<<1, 1>>>(deepest, depth + 1, last);
    }"""
    assert run_kernel(source, "f", make_ints(1), np.int32(0), np.int32(24), block=1)[0][0] == 24
    error = launch_failure(source, make_ints(1), np.int32(0), np.int32(25))
    assert error.message.startswith("test.cu:4:27: thread (0,0,0) in block (0,0,0) launches a kernel that cannot run: ")
    assert "at most 24 deep" in error.message
    assert error.advice


def test_a_tree_of_launches_that_is_too_large_ends() -> None:
    source = "__global__ void f(int depth) { if (depth < 22) { f<<<1, 1>>>(depth + 1); f<<<1, 1>>>(depth + 1); } }"
    with pytest.raises(LaunchError, match="launches and their loops have exceeded 500 iterations") as caught:
        build(source).kernel("f").launch((1, 1, 1), (1, 1, 1), [np.int32(0)], max_rounds=500)
    assert caught.value.kind == "unfinished"


def test_loops_of_children_share_the_budget() -> None:
    source = """
    __global__ void child(int *out) { for (int i = 0; i < 60; i++) out[0]++; }
    __global__ void f(int *out) { for (int i = 0; i < 10; i++) child<<<1, 1>>>(out); }"""
    kernel = build(source).kernel("f")
    kernel.launch((1, 1, 1), (1, 1, 1), [make_ints(1).view(np.uint8)], max_rounds=1000)
    with pytest.raises(LaunchError, match=r"did not end|have exceeded 500 iterations"):
        kernel.launch((1, 1, 1), (1, 1, 1), [make_ints(1).view(np.uint8)], max_rounds=500)


BAD_LAUNCHES = {
    "too many threads": ("g<<<1, 1025>>>(p);", "a block of 1025 threads; at most 1024"),
    "no blocks": ("g<<<p[0], 1>>>(p);", r"a grid of \(0, 1, 1\) blocks"),
    "too much shared memory": ("g<<<1, 1, 50000>>>(p);", "needs 50000 bytes of shared memory"),
    "an array of the thread's own": (
        "int own[2]; g<<<1, 1>>>(own);",
        "its argument points to own, in the parent's __local__",
    ),
    "a shared array": (
        "__shared__ int s[2]; g<<<1, 1>>>(s + 1);",
        "its argument points to s, in the parent's __shared__",
    ),
}


@pytest.mark.parametrize("name", BAD_LAUNCHES)
def test_a_launch_that_no_gpu_takes_is_told_with_its_line(name: str) -> None:
    statement, message = BAD_LAUNCHES[name]
    source = f"__global__ void g(int *p) {{ *p = 1; }}\n__global__ void f(int *p) {{\n{statement}\n}}"
    with pytest.raises(LaunchError, match=message) as caught:
        run_kernel(source, "f", make_ints(1), block=1)
    assert caught.value.position is not None
    assert caught.value.position.line == 3
    assert caught.value.position.column == statement.index("g<<<") + 1


# What is wrong, and where: the text around the launch keeps its lines and columns.
REFUSED = {
    "an unknown name in the configuration": ("g<<<1, wrong>>>(p); later();", "wrong", "undeclared identifier 'wrong'"),
    "an unknown name in the arguments": ("g<<<1, 1>>>(p + wrong);", "wrong", "undeclared identifier 'wrong'"),
    "an unknown name behind": ("g<<<1, 1>>>(p); p[0] = wrong;", "wrong", "undeclared identifier 'wrong'"),
    "an argument too few": ("g<<<1, 1>>>();", "g<<<", "no matching function"),
    "no grid": ("g<<<1>>>(p);", "<<<", "no matching function"),
    "a function": ("h<<<1, 1>>>(p);", "h<<<", "a launch of anything but a named __global__ function"),
    "a kernel that is called": ("g<<<1, 1>>>(p); g(p);", "g(p);", "a call of the kernel g"),
    "a launch that a macro writes in part": ("LAUNCH(g)(p);", "LAUNCH", "a launch of which a macro writes only a part"),
    "the host's function": ("g<<<1, 1>>>(p); host(p);", "host", "the host function host: declare it"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_wrong_with_a_launch_is_told_where_it_stands(name: str) -> None:
    statement, place, message = REFUSED[name]
    source = (
        "#define LAUNCH(kernel) kernel<<<1, 1>>>  // <<<\n__global__ void g(int *p) { *p = 1; }\n"
        "__device__ void h(int *p) {}\n"
        f"void host(int *p) {{ g<<<1, 1>>>(p); }}\n__global__ void f(int *p) {{\n    {statement}\n}}"
    )
    with pytest.raises(CompileError) as caught:
        build(source).kernel("f")
    assert message in caught.value.message
    assert caught.value.position is not None
    assert (caught.value.position.line, caught.value.position.column) == (6, 5 + statement.index(place))


def test_comments_strings_and_several_lines_within_a_launch() -> None:
    source = """
    #define LAUNCH(kernel, n, ...) kernel<<<1, n>>>(__VA_ARGS__)
    __global__ void g(int *p, int n) { p[threadIdx.x] += n; }
    __global__ void f(int *p) {
        g<<<1 /* >>> ( */, // one block; >>>
            (p[7] >> 1) + (4 > 2 ? 2 : 1)
        >>> (p,
             1);
        LAUNCH(g, 2, p, __LINE__);
        p[6] = __LINE__;
        printf("<<<1, 1>>>(%d)", p[6]);
    }"""
    given = make_ints(8)
    given[7] = 2
    printed: list[str] = []
    build(source).kernel("f").launch(
        (1, 1, 1), (1, 1, 1), [given.view(np.uint8)], on_print=lambda who, text: printed.append(text)
    )
    assert given.tolist() == [10, 10, 1, 0, 0, 0, 10, 2]
    assert printed == ["<<<1, 1>>>(10)"]


def test_launches_in_a_header(tmp_path: Path) -> None:
    (tmp_path / "tree.cuh").write_text(
        "__global__ void g(int *p) { *p = 3; }\n__device__ void start(int *p) { /* é */ g<<<1, 1>>>(p); }\n"
    )
    text = '#include "tree.cuh"\n__global__ void f(int *p) { start(p); }'
    assert launch(SimulatedModule(text, tmp_path / "test.cu", {}), "f", make_ints(1), block=1)[0][0] == 3
    (tmp_path / "tree.cuh").write_text(
        "__global__ void g(int *p) { *p = 3; }\n__device__ void start(int *p) { /* é */ g<<<1, 1>>>(p); x; }\n"
    )
    with pytest.raises(CompileError, match=r"^tree\.cuh:2:58: "):
        SimulatedModule(text, tmp_path / "test.cu", {})


def test_observers_see_children() -> None:
    source = """
    __global__ void g(int *p, int n) { if (threadIdx.x < n) p[threadIdx.x] += n; }
    __global__ void f(int *p) { g<<<2, 32>>>(p, 3); }"""
    counters, races = Counters(), RaceChecker()
    given = make_ints(32)
    launch_watched(counters, source, given, block=1)
    assert counters.per_line()["test.cu", 2]["l1tex__t_requests_pipe_lsu_mem_global_op_st.sum"] == 2
    launch_watched(races, source, given, block=1)
    assert [finding.positions[0].line for finding in races.findings] == [2]


def test_launches_are_ordered_before_each_other() -> None:
    source = """
    __global__ void g(int *p, int n) { p[threadIdx.x] += p[31 - threadIdx.x] * 0 + n; }
    __global__ void f(int *p) {
        p[0] = 1;
        g<<<1, 16>>>(p, 3);
        cudaDeviceSynchronize();
        p[1] += p[0];
        g<<<1, 16>>>(p, 3);
    }"""
    races = RaceChecker()
    given = make_ints(32)
    launch_watched(races, source, given, block=1)
    assert races.findings == []
    assert given[:3].tolist() == [7, 10, 6]


def test_a_trace_has_launches_with_their_own_grids(tmp_path: Path) -> None:
    source = """
    __global__ void child(float *out, const float *in, int first) {
        __shared__ float held[40];
        int i = first + blockIdx.x * blockDim.x + threadIdx.x;
        held[threadIdx.x] = in[i] * 2;
        __syncthreads();
        out[i] = held[blockDim.x - 1 - threadIdx.x] + 1;
    }
    __global__ void k(float *out, const float *in) {
        child<<<1 + threadIdx.x, 40>>>(out, in, 40 * threadIdx.x);
        WAIT
        out[threadIdx.x + 120] = in[threadIdx.x];
    }"""
    given = np.random.default_rng(3).random(124, np.float32)
    for wait in ("", "cudaDeviceSynchronize();"):
        made, (out, _) = trace_kernel(source.replace("WAIT", wait), [np.zeros(124, np.float32), given], block=2)
        right = (given[:120].reshape(3, 40)[:, ::-1] * 2 + 1).ravel()
        np.testing.assert_array_equal(out[:120], right)
        made.save(tmp_path / "trace.zip")
        for one in (made, Trace.load(tmp_path / "trace.zip")):
            assert [(each.kernel, each.grid, each.block) for each in one.launches] == [
                ("k", (1, 1, 1), (2, 1, 1)),
                ("child", (1, 1, 1), (40, 1, 1)),
                ("child", (2, 1, 1), (40, 1, 1)),
            ]
            assert [(each.parent, each.by_block, each.by_thread) for each in one.launches[1:]] == [(0, 0, 0), (0, 0, 1)]
            assert {one.events[each.event].position.line for each in one.launches[1:]} == {10}
            for event in one.events:
                assert event.threads.max() < one.launches[event.launch].block[0]
                assert event.function == one.launches[event.launch].kernel or event.launch == 0
            check_states(one)
            found = find_ancestry(one, "out", 119)
            assert input_elements(found) == [80]
            assert {(node.block, node.thread) for node in found.operations} == {(1, 0), (1, 39)}


def test_a_statement_that_waits_in_its_middle_goes_on_as_itself() -> None:
    source = """\
__global__ void child(int *a) { a[threadIdx.x] = 5; }
__global__ void k(int *a) {
    if (threadIdx.x == 0) child<<<1, 4>>>(a);
    a[8 + threadIdx.x] = cudaDeviceSynchronize() + 7;
}
"""
    made, (out,) = trace_kernel(source, [np.zeros(16, np.int32)], block=4)
    assert out.tolist() == [5] * 4 + [0] * 4 + [7] * 4 + [0] * 4
    writes = {
        (event.position.line, event.launch): sorted(access.elements.tolist())
        for event in made.events
        for access in event.accesses
        if access.action == "write"
    }
    assert (writes[1, 1], writes[4, 0]) == ([0, 1, 2, 3], [8, 9, 10, 11])
    # A launch is no call.
    assert not {event.frame for event in made.events if event.launch} & set(made.data.calls["frame"].tolist())


def test_a_launch_may_have_spaces_in_its_brackets() -> None:
    source = """
    __global__ void child(int *out, int value) { out[threadIdx.x] = value; }
    __global__ void k(int *out) { child << < 1, 4 >> > (out, 8 >> 1); }"""
    (out,) = run_kernel(source, "k", np.zeros(4, np.int32), block=1)
    assert out.tolist() == [4, 4, 4, 4]
