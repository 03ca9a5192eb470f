"""Where values come from: the textbook's trees and networks come out of the execution."""

from __future__ import annotations

import time

import numpy as np
import pytest

from gpu.stepping.dataflow.writes import Operations
from tests.gpu.simulator.trace_checks import check_states, find_ancestry, input_elements, list_operators, trace_kernel

N = 64
RANDOM = np.random.default_rng(5)

NEIGHBORED = """
__global__ void k(const int *in, int *out) {
    __shared__ int s[64];
    int t = threadIdx.x;
    s[t] = in[blockIdx.x * blockDim.x + t];
    __syncthreads();
    for (int stride = 1; stride < blockDim.x; stride *= 2) {
        if (t % (2 * stride) == 0) s[t] += s[t + stride];
        __syncthreads();
    }
    if (t == 0) out[blockIdx.x] = s[0];
}
"""
UP, DOWN = "int stride = 1; stride < blockDim.x; stride *= 2", "int stride = 32; stride; stride /= 2"
INTERLEAVED = NEIGHBORED.replace(UP, DOWN).replace("t % (2 * stride) == 0", "t < stride")


@pytest.mark.parametrize(("source", "stride"), [(NEIGHBORED, 1), (INTERLEAVED, 32)])
def test_a_reduction_adds_every_input_once(source, stride):
    values = RANDOM.integers(0, 99, 2 * N).astype(np.int32)
    made, _ = trace_kernel(source, [values, np.zeros(2, np.int32)], grid=2, block=N)
    for block in range(2):
        found = find_ancestry(made, "out", block)
        assert input_elements(found) == list(range(block * N, (block + 1) * N))
        assert list_operators(found) == ["+"] * (N - 1)
        assert {node.block for node in found.operations} == {block}
        first = found.nodes[found.operations[0].sources[0]], found.nodes[found.operations[0].sources[1]]
        assert first[1].element - first[0].element == stride
        used = [source for node in found.operations for source in node.sources]
        assert len(set(used)) == len(used) == 2 * (N - 1)
    check_states(made)


def test_a_tree_names_the_threads_that_made_it():
    made, _ = trace_kernel(NEIGHBORED, [np.ones(N, np.int32), np.zeros(1, np.int32)], block=N)
    found = find_ancestry(made, "out", 0)
    assert sorted(node.thread for node in found.operations) == sorted(
        thread for stride in (1, 2, 4, 8, 16, 32) for thread in range(0, N, 2 * stride)
    )
    writer = made.find_writer("out", 0, len(made.events))
    assert (writer.block, writer.thread, made.events[writer.event].position.line) == (0, 0, 11)
    assert made.find_writer("out", 0, writer.event) is None


def test_a_shuffle_reduction():
    source = """
    __global__ void k(const float *in, float *out) {
        float v = in[threadIdx.x];
        for (int offset = 16; offset > 0; offset /= 2) v += __shfl_down_sync(0xffffffff, v, offset);
        if (threadIdx.x == 0) out[0] = v;
    }
    """
    made, _ = trace_kernel(source, [RANDOM.random(32).astype(np.float32), np.zeros(1, np.float32)])
    found = find_ancestry(made, "out", 0)
    assert input_elements(found) == list(range(32))
    assert list_operators(found) == ["+"] * 31


def test_a_kogge_stone_scan():
    source = """
    __global__ void k(const int *in, int *out) {
        __shared__ int s[2][64];
        int t = threadIdx.x, from = 0;
        s[0][t] = in[t];
        __syncthreads();
        for (int d = 1; d < 64; d *= 2) {
            s[1 - from][t] = t >= d ? s[from][t] + s[from][t - d] : s[from][t];
            from = 1 - from;
            __syncthreads();
        }
        out[t] = s[from][t];
    }
    """
    made, (_, out) = trace_kernel(source, [np.arange(N, dtype=np.int32), np.zeros(N, np.int32)], block=N)
    assert (out == np.cumsum(np.arange(N))).all()
    for i in range(N):
        assert input_elements(find_ancestry(made, "out", i)) == list(range(i + 1))
    adds = {node for i in range(N) for node in (n.number for n in find_ancestry(made, "out", i).operations)}
    assert len(adds) == sum(N - d for d in (1, 2, 4, 8, 16, 32))
    check_states(made)


def test_a_brent_kung_scan_of_two_elements_a_thread():
    source = """
    __global__ void k(const int *in, int *out) {
        __shared__ int s[64];
        int t = threadIdx.x;
        s[t] = in[t];
        s[t + 32] = in[t + 32];
        for (int d = 1; d <= 32; d *= 2) {
            __syncthreads();
            int i = (t + 1) * 2 * d - 1;
            if (i < 64) s[i] += s[i - d];
        }
        for (int d = 16; d > 0; d /= 2) {
            __syncthreads();
            int i = (t + 1) * 2 * d - 1;
            if (i + d < 64) s[i + d] += s[i];
        }
        __syncthreads();
        out[t] = s[t];
        out[t + 32] = s[t + 32];
    }
    """
    made, (_, out) = trace_kernel(source, [np.arange(N, dtype=np.int32), np.zeros(N, np.int32)], block=32)
    assert (out == np.cumsum(np.arange(N))).all()
    adds = set()
    for i in range(N):
        found = find_ancestry(made, "out", i)
        assert input_elements(found) == list(range(i + 1))
        assert len(found.operations) == i
        adds |= {node.number for node in found.operations}
    assert len(adds) == 2 * N - 2 - 6


def test_a_compare_exchange_by_min_and_max_has_both_as_sources():
    source = """
    __global__ void k(int *a) {
        __shared__ int s[32];
        int t = threadIdx.x;
        s[t] = a[t];
        for (int k = 2; k <= 32; k *= 2)
            for (int j = k / 2; j > 0; j /= 2) {
                __syncthreads();
                int p = t ^ j;
                if (p > t) {
                    int x = s[t], y = s[p];
                    bool up = (t & k) == 0;
                    s[t] = up ? min(x, y) : max(x, y);
                    s[p] = up ? max(x, y) : min(x, y);
                }
            }
        a[t] = s[t];
    }
    """
    made, (out,) = trace_kernel(source, [RANDOM.permutation(32).astype(np.int32)])
    assert (out == np.arange(32)).all()
    for i in range(32):
        found = find_ancestry(made, "a", i)
        assert input_elements(found) == list(range(32))
        assert set(list_operators(found)) <= {"min", "max"}
    check_states(made)


def test_a_choice_has_the_chosen_side_as_its_source():
    source = """
    __global__ void k(const int *a, const int *b, int *c) {
        int t = threadIdx.x;
        c[t] = a[t] > b[t] ? a[t] : b[t];
    }
    """
    a, b = RANDOM.integers(0, 99, 32).astype(np.int32), RANDOM.integers(0, 99, 32).astype(np.int32)
    made, _ = trace_kernel(source, [a, b, np.zeros(32, np.int32)])
    for i in range(32):
        (node,) = find_ancestry(made, "c", i).nodes.values()
        assert (node.operator, node.array, node.element) == ("", 0 if a[i] > b[i] else 1, i)


def test_atomics_on_one_element_chain_in_lane_order():
    source = "__global__ void k(const int *in, int *bins) { int v = in[threadIdx.x]; atomicAdd(&bins[v % 4], v); }"
    values = RANDOM.integers(0, 99, 64).astype(np.int32)
    made, _ = trace_kernel(source, [values, np.zeros(4, np.int32)], block=64)
    for b in range(4):
        found = find_ancestry(made, "bins", b)
        assert list_operators(found) == ["atomic add"] * int((values % 4 == b).sum())
        assert [node.element for node in found.inputs if node.array == 0] == np.flatnonzero(values % 4 == b).tolist()
        assert [node.thread for node in found.operations] == np.flatnonzero(values % 4 == b).tolist()
    check_states(made)


def test_a_histogram_counts_with_constants():
    source = "__global__ void k(const int *in, int *bins) { atomicAdd(&bins[in[threadIdx.x]], 1); }"
    made, _ = trace_kernel(source, [np.zeros(8, np.int32), np.zeros(1, np.int32)], block=8)
    found = find_ancestry(made, "bins", 0)
    assert [(node.array, node.element) for node in found.inputs] == [(1, 0)]
    assert [node.operands for node in found.operations] == [(None, 1)] * 8


def test_atomic_exchange_and_compare_and_swap_copy():
    source = """
    __global__ void k(const int *in, int *cell, int *found) {
        int t = threadIdx.x;
        found[t] = atomicExch(&cell[0], in[t]);
        atomicCAS(&cell[1], 0, in[t]);
    }
    """
    values = np.arange(1, 9, dtype=np.int32)
    made, (_, cell, _) = trace_kernel(source, [values, np.zeros(2, np.int32), np.zeros(8, np.int32)], block=8)
    assert cell.tolist() == [8, 1]
    assert [input_elements(find_ancestry(made, "cell", i)) for i in range(2)] == [[7], [0]]
    assert [input_elements(find_ancestry(made, "found", i)) for i in range(8)] == [[0], *([i] for i in range(7))]
    check_states(made)


def test_structs_and_vectors():
    source = """
    struct Pair { float a; float b; __device__ float sum() const { return a + b; } };
    __global__ void k(const float4 *in, float *out) {
        float4 v = in[threadIdx.x];
        Pair p = {v.x, v.z};
        p.b += v.w;
        out[threadIdx.x] = p.sum();
    }
    """
    made, _ = trace_kernel(source, [RANDOM.random(128).astype(np.float32), np.zeros(32, np.float32)])
    for i in range(32):
        found = find_ancestry(made, "out", i)
        assert input_elements(found) == [4 * i, 4 * i + 2, 4 * i + 3]
        assert list_operators(found) == ["+", "+"]
    check_states(made)


def test_functions_pass_nodes_through_arguments_results_and_references():
    source = """
    __device__ int twice(int x) { if (x > 50) return x; return x + x; }
    __device__ void swap(int &a, int &b) { int c = a; a = b; b = c; }
    __global__ void k(int *a, int *b) {
        int x = a[threadIdx.x], y = b[threadIdx.x];
        swap(x, y);
        a[threadIdx.x] = twice(x);
        b[threadIdx.x] = y;
    }
    """
    a, b = RANDOM.integers(0, 99, 32).astype(np.int32), RANDOM.integers(0, 99, 32).astype(np.int32)
    made, _ = trace_kernel(source, [a, b])
    for i in range(32):
        found = find_ancestry(made, "a", i)
        assert [(node.array, node.element) for node in found.inputs] == [(1, i)]
        assert list_operators(found) == ([] if b[i] > 50 else ["+"])
        assert [(node.array, node.element) for node in find_ancestry(made, "b", i).inputs] == [(0, i)]
    check_states(made)


def test_index_arithmetic_makes_no_nodes_and_constants_clear_them():
    source = "__global__ void k(int *a, int *b) { int i = 31 - threadIdx.x; b[i] = i * 3; a[i] = 0; a[i] += 2; }"
    made, _ = trace_kernel(source, [np.ones(32, np.int32), np.ones(32, np.int32)])
    for i in range(32):
        assert made.find_node("a", i, len(made.events)) == 0
        assert made.find_node("b", i, len(made.events)) == 0
        assert made.ancestry(0).nodes == {}


def test_the_ancestry_of_a_large_reduction_takes_a_processor_less_than_200_ms():
    source = """
    __global__ void k(const float *in, float *out, int n) {
        __shared__ float s[1024];
        int t = threadIdx.x;
        float sum = 0;
        for (int i = t; i < n; i += 1024) sum += in[i];
        s[t] = sum;
        __syncthreads();
        for (int half = 512; half > 0; half /= 2) {
            if (t < half) s[t] += s[t + half];
            __syncthreads();
        }
        if (t == 0) out[0] = s[0];
    }
    """
    n = 1 << 14
    values = np.random.default_rng(5).random(n).astype(np.float32)
    made, (_, out) = trace_kernel(source, [values, np.zeros(1, np.float32), np.int32(n)], block=1024)
    node = made.find_node("out", 0, len(made.events))
    made.ancestry(node)
    times = []
    for _ in range(5):
        start = time.process_time()
        found = made.ancestry(node)
        times.append(time.process_time() - start)
    assert min(times) < 0.2
    elements, *operations = found.groups
    assert (elements.elements == np.arange(n)).all()
    assert (elements.values == values).all()
    # The first sum of each thread starts at 0, which nothing made, but is an operation all the same.
    assert sum(group.numbers.size for group in operations) == n + 1023
    assert len(found) == 2 * n + 1023
    for group in operations:
        assert group.operator == "+"
        assert group.sources.shape == (group.numbers.size, 2)
        assert (group.sources < group.numbers[:, None]).all()
    assert operations[-1].values.tolist() == out.tolist()
    assert [node.number for node in found.operations][-1] == found.root


def test_a_long_chain_of_atomics_in_one_event():
    source = "__global__ void k(int *in, int *out) { out[threadIdx.x + 1] = atomicAdd(out, in[threadIdx.x]); }"
    values = np.arange(1, 1025, dtype=np.int32)
    made, (_, out) = trace_kernel(source, [values, np.zeros(1025, np.int32)], block=1024)
    found = find_ancestry(made, "out", 0)
    assert input_elements(found) == sorted([*range(1024), 0])
    assert found.nodes[found.root].value == out[0] == values.sum()
    middle = find_ancestry(made, "out", 500)
    assert len(middle.operations) == 499


@pytest.mark.parametrize("schedule", ["round-robin", "shuffle:3"])
@pytest.mark.parametrize("size", [64, 40])
@pytest.mark.parametrize(
    ("op", "type", "result"),
    [
        ("__reduce_add_sync", "int", np.add.reduce),
        ("__reduce_min_sync", "int", np.minimum.reduce),
        ("__reduce_max_sync", "unsigned", np.maximum.reduce),
        ("__reduce_xor_sync", "unsigned", np.bitwise_xor.reduce),
        ("__any_sync", "int", np.any),
        ("__all_sync", "int", np.all),
        ("__ballot_sync", "unsigned", lambda values: sum(int(value != 0) << lane for lane, value in enumerate(values))),
    ],
)
def test_what_a_warp_votes_and_reduces_comes_from_all_its_lanes(op, type, result, size, schedule):
    source = f"""
    __global__ void k(const {type} *in, {type} *out) {{
        int t = threadIdx.x;
        out[t] = {op}(0xffffffff, in[t]);
    }}
    """
    dtype = np.int32 if type == "int" else np.uint32
    values = RANDOM.integers(0, 1000, size).astype(dtype)
    values[5] = 0
    made, (_, out) = trace_kernel(source, [values, np.zeros(size, dtype)], block=size, schedule=schedule)
    for t in (0, 31, 33, size - 1):
        own = values[t // 32 * 32 : t // 32 * 32 + 32]
        assert out[t] == result(own)
        found = find_ancestry(made, "out", t)
        assert input_elements(found) == list(range(t // 32 * 32, t // 32 * 32 + own.size))
        assert len([node for node in found.operations if node.operator != op]) == own.size - 1


@pytest.mark.parametrize("schedule", ["round-robin", "shuffle:3"])
@pytest.mark.parametrize("size", [32, 50])
def test_lanes_that_match_come_from_each_other(size, schedule):
    source = """
    __global__ void k(const int *in, unsigned *out) {
        int t = threadIdx.x;
        out[t] = __match_any_sync(t < 32 ? 0xffffffff : (1u << (blockDim.x - 32)) - 1, in[t]);
    }
    """
    values = RANDOM.integers(0, 4, size).astype(np.int32)
    made, (_, out) = trace_kernel(source, [values, np.zeros(size, np.uint32)], block=size, schedule=schedule)
    for t in (0, 17, 31, size - 1):
        equal = [i for i in range(t // 32 * 32, min(t // 32 * 32 + 32, size)) if values[i] == values[t]]
        assert out[t] == sum(1 << i % 32 for i in equal)
        found = find_ancestry(made, "out", t)
        assert input_elements(found) == equal
        assert list_operators(found) == sorted(["__match_any_sync"] * len(equal) + ["|"] * (len(equal) - 1))


@pytest.mark.parametrize("schedule", ["round-robin", "shuffle:3", "shuffle:4"])
@pytest.mark.parametrize(("op", "operator"), [("count", "+"), ("and", "&&"), ("or", "||")])
@pytest.mark.parametrize("size", [1, 32, 77])
def test_what_a_block_votes_comes_from_all_its_threads(op, operator, size, schedule):
    source = f"""
    __global__ void k(const int *in, int *out) {{
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        int first = __syncthreads_{op}(in[i]);
        int second = __syncthreads_{op}(first == in[i]);
        out[i] = first * 1000 + second;
    }}
    """
    values = RANDOM.integers(0, 3, 2 * size).astype(np.int32)
    values[:size] += 1
    made, (_, out) = trace_kernel(source, [values, np.zeros(2 * size, np.int32)], grid=2, block=size, schedule=schedule)
    vote = {"count": np.sum, "and": np.all, "or": np.any}[op]
    for i in (0, size - 1, size, 2 * size - 1):
        own = values[i // size * size :][:size]
        first = int(vote(own != 0))
        assert out[i] == first * 1000 + int(vote(own == first))
        found = find_ancestry(made, "out", i)
        assert input_elements(found) == [*range(i // size * size, i // size * size + size)]
        # Both votes, each recorded once for all warps of the block; and the sum of the two.
        assert list_operators(found).count(operator) == 2 * (size - 1) + (operator == "+")


def test_the_nodes_of_a_vote_are_as_many_as_its_threads():
    source = """
    __global__ void k(const int *in, int *out) { out[threadIdx.x] = __syncthreads_count(in[threadIdx.x] > 0); }
    """
    for schedule in ("round-robin", "shuffle:1"):
        made, _ = trace_kernel(
            source, [np.arange(96, dtype=np.int32), np.zeros(96, np.int32)], block=96, schedule=schedule
        )
        assert Operations.from_trace(made).node.size == 96 + 96 + 95


def test_a_vote_comes_from_those_of_its_threads_whose_votes_come_from_somewhere():
    source = """
    __global__ void k(const int *in, int *out) {
        int vote = 1;
        if (threadIdx.x < 3) vote = in[threadIdx.x];
        out[threadIdx.x] = __syncthreads_count(vote);
    }
    """
    made, (_, out) = trace_kernel(source, [np.ones(3, np.int32), np.zeros(40, np.int32)], block=40)
    assert out[7] == 40
    assert input_elements(find_ancestry(made, "out", 7)) == [0, 1, 2]


def test_tiles_of_a_warp_reduce_among_themselves():
    source = """
    __global__ void k(const unsigned *in, unsigned *out) {
        int t = threadIdx.x;
        unsigned mine = 0xf7u << (t / 8 * 8);
        if (t % 8 != 3) out[t] = __reduce_add_sync(mine, in[t]) + (__ballot_sync(mine, in[t] > 1u) << 16);
    }
    """
    values = np.arange(1, 33, dtype=np.uint32)
    made, (_, out) = trace_kernel(source, [values, np.zeros(32, np.uint32)])
    for t in (0, 8, 15, 31):
        tile = [lane for lane in range(t // 8 * 8, t // 8 * 8 + 8) if lane % 8 != 3]
        bits = sum(1 << lane for lane in tile if values[lane] > 1)
        assert out[t] == (values[tile].sum() + (bits << 16)) % 2**32
        assert input_elements(find_ancestry(made, "out", t)) == tile


def test_a_flag_comes_from_what_is_asked_about() -> None:
    text = """__global__ void k(const int *in, int *out, int n) {
        int i = threadIdx.x;
        out[i] = (i < n && in[i] > 4 ? 1 : 0) | (i < 0 ? 2 : 8);
    }"""
    given = np.array([7, 1, 9, 3], np.int32)
    made, (_, out) = trace_kernel(text, [given, np.zeros(4, np.int32), np.int32(3)], grid=1, block=4)
    assert out.tolist() == [9, 8, 9, 8]
    for element, sources in ((0, [0]), (1, [1]), (2, [2]), (3, [])):
        assert input_elements(find_ancestry(made, "out", element)) == sources


def test_what_a_list_holds_is_added_up() -> None:
    source = """struct Node { int value; Node *next; };
    __global__ void k(int *out, const int *in) {
        __shared__ Node nodes[32];
        int i = threadIdx.x, sum = 0;
        nodes[i].value = in[i];
        nodes[i].next = i + 1 < 32 ? &nodes[i + 1] : nullptr;
        __syncthreads();
        for (Node *each = &nodes[i]; each; each = each->next) sum += each->value;
        out[i] = sum;
    }"""
    given = np.random.default_rng(6).integers(-9, 9, 32).astype(np.int32)
    made, (out, _) = trace_kernel(source, [np.zeros(32, np.int32), given])
    np.testing.assert_array_equal(out, np.cumsum(given[::-1])[::-1])
    assert input_elements(find_ancestry(made, "out", 29)) == [29, 30, 31]
