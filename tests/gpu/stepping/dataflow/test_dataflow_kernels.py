"""Pictures of all kinds of kernels, each in lockstep and in shuffled orders."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpu.stepping.dataflow.dataflow import Dataflow
from gpu.stepping.dataflow.writes import MAX_TURNS
from gpu.stepping.schedule_comparison import find_first_difference
from tests.gpu.simulator import statements
from tests.gpu.stepping.dataflow.flow_checks import check_flow, computed_columns, edges_by_column, source_columns
from tests.gpu.stepping.recordings import record, record_launch

RANDOM = np.random.default_rng(7)


def record_dataflow(source: str, *arguments: Any, **options: Any) -> Dataflow:
    """Return the picture of a launch, which must be the same in a shuffled order."""
    flow = check_flow(Dataflow(record_launch(source, list(arguments), **options)))
    for seed in (1, 2):
        shuffled = check_flow(Dataflow(record_launch(source, list(arguments), schedule=f"shuffle:{seed}", **options)))
        assert [row.label for row in shuffled.rows] == [row.label for row in flow.rows]
        assert computed_columns(shuffled) == computed_columns(flow)
        assert [row.sources.tolist() for row in shuffled.rows] == [row.sources.tolist() for row in flow.rows]
        assert find_first_difference(flow, shuffled) is None
    return flow


def labels(flow: Dataflow) -> list[str]:
    return [row.label for row in flow.rows]


def count_computed_cells(flow: Dataflow) -> list[int]:
    return [int(row.computed.sum()) for row in flow.rows]


REDUCTION = """
__global__ void k(const int *in, int *out) {
    __shared__ int s[64];
    int t = threadIdx.x;
    s[t] = in[blockIdx.x * blockDim.x + t];
    __syncthreads();
    for (HOW) {
        if (WHO) s[t] += s[t + stride];
        __syncthreads();
    }
    if (t == 0) out[blockIdx.x] = s[0];
}
"""
NEIGHBORED = REDUCTION.replace("HOW", "int stride = 1; stride < blockDim.x; stride *= 2").replace(
    "WHO", "t % (2 * stride) == 0"
)
INTERLEAVED = REDUCTION.replace("HOW", "int stride = blockDim.x / 2; stride; stride /= 2").replace("WHO", "t < stride")


HILLIS_STEELE = """
__global__ void k(const int *in, int *out) {
    __shared__ int s[16];
    int t = threadIdx.x;
    s[t] = in[t];
    for (int distance = 1; distance < 16; distance *= 2) {
        __syncthreads();
        int left = t >= distance ? s[t - distance] : 0;
        __syncthreads();
        s[t] += left;
    }
    out[t] = s[t];
}
"""


@pytest.mark.parametrize("seed", range(3))
def test_a_value_cached_in_a_register_belongs_to_the_iteration_that_computed_it(seed: int):
    arguments = [np.arange(16, dtype=np.int32), np.zeros(16, np.int32)]
    flow = check_flow(Dataflow(record_launch(HILLIS_STEELE, arguments, block=16)))
    cached = check_flow(Dataflow(record_launch(HILLIS_STEELE, arguments, block=16, schedule=f"cached:{seed}")))
    assert labels(flow) == ["in", "distance = 1", "distance = 2", "distance = 4", "distance = 8"]
    assert labels(cached) == labels(flow)


@pytest.mark.parametrize(("source", "upwards"), [(NEIGHBORED, True), (INTERLEAVED, False)])
def test_reductions_of_several_blocks_stand_side_by_side(source: str, upwards: bool):
    values = RANDOM.integers(0, 99, 128).astype(np.int32)
    flow = record_dataflow(source, values, np.zeros(2, np.int32), grid=2, block=64)
    strides = [1, 2, 4, 8, 16, 32]
    strides = strides if upwards else strides[::-1]
    assert labels(flow) == ["in", *(f"stride = {stride}" for stride in strides), "out"]
    assert count_computed_cells(flow) == [0, 64, 32, 16, 8, 4, 2, 2]
    for number, stride in enumerate(strides, 1):
        ends = range(0, 64, 2 * stride) if upwards else range(stride)
        assert edges_by_column(flow, number) == {
            (b + i, number - 1, b + j) for b in (0, 64) for i in ends for j in (i, i + stride)
        }
    assert flow.rows[-1].value.tolist() == values.reshape(2, 64).sum(axis=1).tolist()
    assert edges_by_column(flow, 7) == {(0, 6, 0), (1, 6, 64)}
    assert source_columns(flow, 7, 1, "in") == list(range(64, 128))
    first = flow.rows[1]
    assert set(zip(first.block[first.computed].tolist(), first.thread[first.computed].tolist(), strict=True)) == {
        (b, i) for b in range(2) for i in (range(0, 64, 2) if upwards else range(32))
    }


def test_blocks_that_load_two_elements_a_thread_stand_under_their_sections():
    source = """
    __global__ void k(const int *in, int *out) {
        __shared__ int s[4];
        int t = threadIdx.x, i = blockIdx.x * 8 + t;
        s[t] = in[i] + in[i + 4];
        __syncthreads();
        for (int stride = 2; stride; stride /= 2) {
            if (t < stride) s[t] += s[t + stride];
            __syncthreads();
        }
        if (t == 0) out[blockIdx.x] = s[0];
    }
    """
    flow = record_dataflow(source, np.arange(24, dtype=np.int32), np.zeros(3, np.int32), grid=3, block=4)
    assert flow.rows[1].column.tolist() == [0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19]
    assert flow.rows[-1].value.tolist() == [28, 92, 156]


def test_a_shuffle_reduction_has_a_cell_for_each_lane():
    source = """
    __global__ void k(const int *in, int *out) {
        int v = in[threadIdx.x];
        for (int offset = 16; offset > 0; offset /= 2) v += __shfl_down_sync(0xffffffff, v, offset);
        if (threadIdx.x % 32 == 0) out[threadIdx.x / 32] = v;
    }
    """
    flow = record_dataflow(source, np.arange(64, dtype=np.int32), np.zeros(2, np.int32), block=64)
    assert labels(flow) == ["in", *(f"offset = {offset}" for offset in (16, 8, 4, 2, 1)), "out"]
    assert {(row.storage.space, row.storage.name) for row in flow.rows[1:6]} == {("register", "v")}
    assert count_computed_cells(flow) == [0, 64, 64, 64, 64, 64, 2]
    for number, offset in enumerate((16, 8, 4, 2, 1), 1):
        expected = {(w + i, number - 1, w + i) for w in (0, 32) for i in range(32)}
        expected |= {(w + i, number - 1, w + i + offset) for w in (0, 32) for i in range(32 - offset)}
        assert edges_by_column(flow, number) == expected
    assert source_columns(flow, 6, 1, "in") == list(range(32, 64))
    # The tree alone, of all that the lanes did.
    needed = {(row, cell) for row, cell in flow.find_ancestors(6, 0) if flow.rows[row].computed[cell] and row < 6}
    assert len(needed) == 31


def test_a_grid_stride_loop_accumulates_round_by_round():
    source = """
    __global__ void k(const float *in, float *out, int n) {
        float sum = 0;
        for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum += in[i];
        out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
    }
    """
    values = RANDOM.random(22).astype(np.float32)
    flow = record_dataflow(source, values, np.zeros(8, np.float32), np.int32(22), grid=2, block=4)
    accumulations = [row for row in flow.rows if row.storage.name == "sum"]
    assert [int(row.computed.sum()) for row in accumulations] == [8, 8, 6]
    assert len(set(labels(flow))) == len(flow.rows), "labels tell the rounds apart"
    last = next(row for row in reversed(flow.rows) if row.storage.name in ("out", "sum"))
    for t in range(8):
        assert source_columns(flow, last.number, t, "in") == list(range(t, 22, 8))


def test_operations_of_one_statement_are_one_even_in_functions_that_it_calls():
    source = """
    __device__ float weigh(float x, float w) { return x * w; }
    __global__ void k(const float *a, const float *b, float *out) {
        int t = threadIdx.x;
        out[t] = weigh(a[t], 0.5f) + weigh(b[t], 2.0f) * a[t];
    }
    """
    a, b = RANDOM.random(8).astype(np.float32), RANDOM.random(8).astype(np.float32)
    flow = record_dataflow(source, a, b, np.zeros(8, np.float32), block=8)
    assert labels(flow) == ["a", "b", "out"]
    row = flow.rows[2]
    assert (row.line, row.operation_counts.tolist(), row.operators) == (5, [4] * 8, ("*", "+"))
    assert edges_by_column(flow, 2) == {(t, source, t) for t in range(8) for source in (0, 1)}


def test_index_arithmetic_from_data_makes_no_row():
    source = """
    __global__ void k(const int *in, int *out) {
        int t = threadIdx.x;
        int where = in[t] * 3 % 8;
        int value = in[t] * 2;
        out[where] = value;
    }
    """
    flow = record_dataflow(source, np.arange(8, dtype=np.int32), np.zeros(8, np.int32), block=8)
    assert labels(flow) == ["in", "out"]
    assert flow.rows[1].operators == ("*",)
    assert edges_by_column(flow, 1) == {(3 * i % 8, 0, i) for i in range(8)}


def test_exchanges_by_copies_show_what_moved():
    source = """
    __global__ void k(int *a, int n) {
        int t = threadIdx.x;
        for (int phase = 0; phase < n; phase++) {
            int i = 2 * t + phase % 2;
            if (i + 1 < n && a[i] > a[i + 1]) {
                int kept = a[i];
                a[i] = a[i + 1];
                a[i + 1] = kept;
            }
            __syncthreads();
        }
    }
    """
    values = RANDOM.permutation(9).astype(np.int32)
    flow = record_dataflow(source, values, np.int32(9), block=5)
    expected, held = [values.tolist()], values.tolist()
    for phase in range(9):
        swaps = [i for i in range(phase % 2, 8, 2) if held[i] > held[i + 1]]
        for i in swaps:
            held[i], held[i + 1] = held[i + 1], held[i]
        if swaps:
            expected.append(list(held))
    assert [row.value.tolist() for row in flow.rows] == expected
    for before, row in pairwise(flow.rows):
        assert (row.operation_counts == 0).all()
        assert row.operators == ()
        changed = np.flatnonzero(row.value != before.value).tolist()
        assert row.column[row.computed].tolist() == changed
        assert edges_by_column(flow, row.number) == {
            (c, before.number, before.value.tolist().index(int(row.value[c]))) for c in changed
        }


def test_a_bitonic_sort_makes_a_row_of_comparators_for_each_step():
    source = """
    __global__ void k(int *a) {
        __shared__ int s[32];
        int t = threadIdx.x;
        s[t] = a[t];
        s[t + 16] = a[t + 16];
        for (int k = 2; k <= 32; k *= 2)
            for (int j = k / 2; j > 0; j /= 2) {
                __syncthreads();
                int i = 2 * t - (t & (j - 1));
                int x = s[i], y = s[i + j];
                bool up = (i & k) == 0;
                s[i] = up ? min(x, y) : max(x, y);
                s[i + j] = up ? max(x, y) : min(x, y);
            }
        __syncthreads();
        a[t] = s[t];
        a[t + 16] = s[t + 16];
    }
    """
    flow = record_dataflow(source, RANDOM.permutation(32).astype(np.int32), block=16)
    assert count_computed_cells(flow)[1:] == [32] * 15
    assert labels(flow)[1:4] == ["k = 2, j = 1", "k = 4, j = 2", "j = 1"]
    assert flow.rows[-1].value.tolist() == list(range(32))
    j = 1
    assert edges_by_column(flow, 1) == {(i, 0, p) for i in range(32) for p in (i, i ^ j)}
    for cell in (0, 17, 31):
        assert source_columns(flow, len(flow.rows) - 1, cell, "a") == list(range(32))


def test_what_is_packed_in_shared_memory_shows_where_it_came_from():
    source = """
    __global__ void k(const int *in, int *out) {
        __shared__ int packed[32];
        int t = threadIdx.x, value = in[t];
        unsigned kept = __ballot_sync(0xffffffff, value > 0);
        if (value > 0) packed[__popc(kept & ((1u << t) - 1))] = value;
        __syncthreads();
        if (t < __popc(kept)) out[t] = packed[t];
    }
    """
    values = RANDOM.integers(-9, 9, 32).astype(np.int32)
    flow = record_dataflow(source, values, np.zeros(32, np.int32))
    assert labels(flow) == ["in", "out"]
    kept = np.flatnonzero(values > 0)
    assert flow.rows[1].value.tolist() == values[kept].tolist()
    assert edges_by_column(flow, 1) == {(place, 0, int(i)) for place, i in enumerate(kept)}


def test_a_histogram_s_atomics_queue_in_their_bins():
    source = """
    __global__ void k(const int *in, int *bins) {
        __shared__ int s[4];
        if (threadIdx.x < 4) s[threadIdx.x] = 0;
        __syncthreads();
        atomicAdd(&s[in[blockIdx.x * blockDim.x + threadIdx.x]], 1);
        __syncthreads();
        if (threadIdx.x < 4) atomicAdd(&bins[threadIdx.x], s[threadIdx.x]);
    }
    """
    values = RANDOM.integers(0, 4, 24).astype(np.int32)
    flow = check_flow(Dataflow(record_launch(source, [values, np.zeros(4, np.int32)], grid=2, block=12)))
    counts = [np.bincount(part, minlength=4) for part in values.reshape(2, 12)]
    deepest = int(np.max(counts))
    assert labels(flow) == ["in", "bins", "s", *(f"turn {turn}" for turn in range(2, deepest + 1)), "bins", "turn 2"]
    for turn, row in enumerate(flow.rows[2 : 2 + deepest], 1):
        of_bins = np.concatenate(counts)
        assert row.value.tolist() == np.minimum(of_bins, turn)[row.cells].tolist()
        assert row.cells[row.computed].tolist() == np.flatnonzero(of_bins >= turn).tolist(), (
            "one atomic an element and turn"
        )
        assert row.operation_counts[row.computed].tolist() == [1] * int(row.computed.sum())
    first, last = flow.rows[2 + deepest], flow.rows[3 + deepest]
    assert (first.value.tolist(), last.value.tolist()) == (counts[0].tolist(), sum(counts).tolist())
    assert source_columns(flow, last.number, 0, "in") == [], "what chose a bin is no part of its count"
    assert {(end, at) for end, at, _ in edges_by_column(flow, last.number)} >= {(b, first.number) for b in range(4)}


def test_threads_that_want_one_element_take_turns():
    """Each turn says what its thread saw, above it, and left; each has a thread of its own, in the order of lanes."""
    source = """
    __global__ void k(const int *in, int *bins) {
        for (int i = threadIdx.x; i < 8; i += 4) atomicAdd(&bins[in[i]], 10);
    }
    """
    values = np.array([1, 0, 1, 1, 2, 2, 0, 1], np.int32)
    flow = check_flow(Dataflow(record_launch(source, [values, np.zeros(3, np.int32)], block=4)))
    assert labels(flow) == ["in", "bins", "line 3", "turn 2", "turn 3", "line 3, round 2", "turn 2"]
    made = [(row.thread[row.computed].tolist(), row.value.tolist()) for row in flow.rows[2:]]
    assert made == [
        ([1, 0], [10, 10, 0]),
        ([2], [10, 20, 0]),
        ([3], [10, 30, 0]),
        ([2, 3, 0], [20, 40, 10]),
        ([1], [20, 40, 20]),
    ]
    assert edges_by_column(flow, 4) == {(1, 3, 1)}


def test_a_queue_longer_than_one_would_follow_is_one_row():
    source = "__global__ void k(int *sum) { atomicAdd(sum, 1); }"
    assert MAX_TURNS == 32, "a whole warp"
    for block, rows in ((9, 10), (MAX_TURNS, MAX_TURNS + 1), (MAX_TURNS + 1, 2)):
        flow = check_flow(Dataflow(record_launch(source, [np.zeros(1, np.int32)], block=block)))
        assert (len(flow.rows), int(flow.rows[-1].value[0])) == (rows, block)


def test_a_race_keeps_what_was_not_lost():
    source = "__global__ void k(const int *in, int *bins) { bins[in[threadIdx.x]]++; }"
    values = RANDOM.integers(0, 3, 24).astype(np.int32)
    flow = check_flow(Dataflow(record_launch(source, [values, np.zeros(3, np.int32)], block=24)))
    row = flow.rows[-1]
    assert row.value.tolist() == [1, 1, 1]
    assert row.operation_counts.tolist() == [1, 1, 1]
    assert row.thread.tolist() == [int(np.flatnonzero(values == b)[-1]) for b in range(3)]


def test_a_tiled_convolution_reaches_the_pixels_under_the_filter():
    source = """
    __constant__ float FILTER[3];
    __global__ void k(const float *in, float *out, int n) {
        __shared__ float tile[10];
        int t = threadIdx.x, i = blockIdx.x * 8 + t;
        for (int j = t; j < 10; j += 8) {
            int at = blockIdx.x * 8 + j - 1;
            tile[j] = at >= 0 && at < n ? in[at] : 0.0f;
        }
        __syncthreads();
        float sum = 0;
        for (int tap = 0; tap < 3; tap++) sum += FILTER[tap] * tile[t + tap];
        if (i < n) out[i] = sum;
    }
    """

    def program(engine, module):
        module.set_constant("FILTER", np.array([1, 2, 3], np.float32))
        given = engine.upload(np.arange(13, dtype=np.float32))
        out = engine.allocate((13,), np.float32)
        engine.launch(module.kernel("k"), (2, 1, 1), (8, 1, 1), given, out, np.int32(13))

    flow = check_flow(Dataflow(record(source, program)))
    assert labels(flow)[:2] == ["in", "FILTER"]
    taps = [row for row in flow.rows if row.label.startswith("tap")]
    assert [row.label for row in taps] == ["tap = 0", "tap = 1", "tap = 2"]
    for i in range(13):
        cell = int(np.searchsorted(taps[-1].column, i))
        near = [j for j in (i - 1, i, i + 1) if 0 <= j < 13]
        assert source_columns(flow, taps[-1].number, cell, "in") == near
        assert source_columns(flow, taps[-1].number, cell, "FILTER") == [0, 1, 2]


def test_a_matrix_product_reaches_its_row_and_its_column():
    source = """
    __global__ void k(const float *a, const float *b, float *c, int n) {
        int x = blockIdx.x * 2 + threadIdx.x, y = blockIdx.y * 2 + threadIdx.y;
        float sum = 0;
        for (int k = 0; k < n; k++) sum += a[y * n + k] * b[k * n + x];
        c[y * n + x] = sum;
    }
    """
    a, b = RANDOM.random(16).astype(np.float32), RANDOM.random(16).astype(np.float32)
    flow = record_dataflow(source, a, b, np.zeros(16, np.float32), np.int32(4), grid=(2, 2), block=(2, 2))
    last = flow.rows[-1]
    assert [row.label for row in flow.rows if row.operators] == ["k = 0", "k = 1", "k = 2", "k = 3"]
    for cell in range(16):
        y, x = divmod(int(last.column[cell]), 4)
        assert source_columns(flow, last.number, cell, "a") == [y * 4 + k for k in range(4)]
        assert source_columns(flow, last.number, cell, "b") == [k * 4 + x for k in range(4)]


TWO = """
__global__ void square(const int *in, int *out) { out[threadIdx.x] = in[threadIdx.x] * in[threadIdx.x]; }
__global__ void sum(const int *in, int *out, int n) {
    int total = 0;
    for (int i = 0; i < n; i++) total += in[i];
    out[0] = total;
}
"""


def two_launches(engine, module, *, refill: bool = False):
    values, squares = engine.upload(np.arange(6, dtype=np.int32)), engine.allocate((6,), np.int32)
    total = engine.allocate((1,), np.int32)
    engine.launch(module.kernel("square"), (1, 1, 1), (6, 1, 1), values, squares)
    if refill:
        engine.fill(squares, 4)
    engine.launch(module.kernel("sum"), (1, 1, 1), (1, 1, 1), squares, total, np.int32(6))


def test_a_launch_goes_on_where_the_one_before_it_ended():
    flow = check_flow(Dataflow(record(TWO, two_launches)))
    assert labels(flow)[:2] == ["in", "out"]
    assert [row.launch for row in flow.rows] == [0, 0, *[1] * 6]
    assert flow.rows[-1].value.tolist() == [55]
    assert source_columns(flow, len(flow.rows) - 1, 0, "in") == list(range(6))
    assert edges_by_column(flow, 2) == {(0, 1, 0)}


def test_what_the_host_fills_is_an_input_of_its_own():
    flow = check_flow(Dataflow(record(TWO, lambda engine, module: two_launches(engine, module, refill=True))))
    inputs = [row for row in flow.rows if row.is_input]
    assert [(row.launch, row.value.tolist()) for row in inputs] == [(0, [*range(6)]), (1, [4] * 6)]
    assert flow.rows[-1].value.tolist() == [24]
    last = len(flow.rows) - 1
    assert {row for row, _ in flow.find_ancestors(last, 0) if flow.rows[row].is_input} == {inputs[1].number}


def test_threads_that_return_early():
    source = """
    __global__ void k(const int *in, int *out, int n) {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i >= n) return;
        out[i] = in[i] + 1;
    }
    """
    flow = record_dataflow(
        source, np.arange(40, dtype=np.int32), np.zeros(40, np.int32), np.int32(37), grid=2, block=20
    )
    assert computed_columns(flow)[1] == list(range(37))
    assert flow.rows[1].column.tolist() == list(range(37)), "what nobody wrote is not shown"


def test_a_kernel_that_fails_is_shown_up_to_there():
    source = """
    __global__ void k(const int *in, int *out) {
        int v = in[threadIdx.x];
        for (int i = 1; i < 5; i++) {
            v += v;
            if (i == 3) out[threadIdx.x + 1000] = v;
        }
        out[threadIdx.x] = v;
    }
    """
    flow = check_flow(Dataflow(record_launch(source, [np.arange(8, dtype=np.int32), np.zeros(8, np.int32)], block=8)))
    assert flow.recording.failure
    assert labels(flow) == ["in", "i = 1", "i = 2", "i = 3"]
    assert flow.rows[-1].value.tolist() == [8 * i for i in range(8)]


def test_a_program_that_launches_nothing_has_no_rows():
    flow = Dataflow(record(TWO, lambda engine, module: None))
    assert (flow.rows, flow.row_at(0)) == ((), 0)
    assert flow.cell_at(0, "in", 0) is None


def test_moments_find_rows_and_cells():
    flow = Dataflow(record_launch(NEIGHBORED, [np.arange(64, dtype=np.int32), np.zeros(1, np.int32)], block=64))
    for row in flow.rows[1:]:
        assert flow.row_at(row.first + 1) == row.number
        assert flow.row_at(row.first) == row.number - 1
    assert flow.row_at(flow.recording.event_count) == len(flow.rows) - 1
    third = flow.rows[3]
    assert flow.cell_at(third.first, "s", 4) == (2, 4)
    assert flow.cell_at(third.last + 1, "s", 4) == (3, 4)
    assert flow.cell_at(third.last + 1, "s", 64) is None
    assert flow.cell_at(third.last + 1, "nothing", 0) is None
    assert flow.cell_at(0, "in", 5) == (0, 5)
    who = third.find_writer(8)
    assert who is not None
    assert (who.block, who.thread, who.line, who.moment) == (0, 8, third.line, third.first)
    assert flow.rows[0].find_writer(0) is None


def test_what_comes_from_no_input_makes_the_same_rows_in_any_order():
    source = """__global__ void k(const int *in, int *out) {
        int t = threadIdx.x, b = t;
        if (t < 32) b = in[t];
        b = b + 1;
        out[t] = b;
    }"""
    arguments = [np.arange(64, dtype=np.int32), np.zeros(64, np.int32)]
    flow = check_flow(Dataflow(record_launch(source, arguments, block=64)))
    assert (
        find_first_difference(
            flow, check_flow(Dataflow(record_launch(source, arguments, block=64, schedule="shuffle:1")))
        )
        is None
    )
    assert [int(row.computed.sum()) for row in flow.rows[1:]] == [32]


@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
@given(body=statements.bodies(), seed=st.integers(0, 1000), threads=st.sampled_from([1, 31, 40, 64]))
def test_random_programs(body: str, seed: int, threads: int):
    source = f"""
    #define LEAVE(value) {{ out[t] = (value); return; }}
    __global__ void k(const int *in, int *out) {{
        int t = threadIdx.x;
        int a = in[t], b = in[t + 64], c = t;
        {body}
    }}
    """
    values = np.random.default_rng(seed).integers(-20, 20, 128).astype(np.int32)
    arguments = [values, np.zeros(64, np.int32)]
    flow = check_flow(Dataflow(record_launch(source, arguments, block=threads)))
    shuffled = check_flow(Dataflow(record_launch(source, arguments, block=threads, schedule=f"shuffle:{seed}")))
    assert find_first_difference(flow, shuffled) is None
    trace = flow.recording.launches[0].trace
    for t in (0, threads // 2, threads - 1):
        found = flow.cell_at(flow.recording.event_count, "out", t)
        if found is not None and flow.rows[found[0]].computed[found[1]]:
            wanted = sorted(
                node.element for node in trace.ancestry(trace.find_node("out", t, len(trace.events))).inputs
            )
            assert source_columns(flow, *found, "in") == wanted


def test_what_is_only_written_in_wider_words_is_seen_element_by_element() -> None:
    source = """__global__ void k(const unsigned *in, unsigned short *out) {
        ((unsigned *)out)[threadIdx.x] = in[threadIdx.x] + 1;
    }"""
    given = np.arange(8, dtype=np.uint32) * 0x10003 + 5
    flow = record_dataflow(source, given, np.zeros(16, np.uint16), block=8)
    (written,) = [row for row in flow.rows if row.storage.name == "out" and row.computed.any()]
    np.testing.assert_array_equal(written.value[written.computed], (given + 1).view(np.uint16))
