"""Pictures of textbook algorithms, against networks derived by hand."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from gpu.patterns import find_pattern
from gpu.run.pattern_run import record_pattern
from gpu.run.workload import Workload
from gpu.stepping.dataflow.dataflow import Dataflow
from gpu.stepping.tally import Tally
from tests.gpu.stepping.dataflow.flow_checks import check_flow, computed_columns, edges_by_column, source_columns
from tests.gpu.stepping.recordings import record, record_launch

VALUES = np.array([3, 1, 7, 0, 4, 1, 6, 3, 5, 2, 2, 8, 1, 0, 9, 4], np.int32)

BRENT_KUNG = """
__global__ void k(const int *in, int *out) {
    __shared__ int s[2 * BLOCK];
    int t = threadIdx.x;
    s[t] = in[t];
    s[t + BLOCK] = in[t + BLOCK];
    for (int stride = 1; stride <= BLOCK; stride *= 2) {
        __syncthreads();
        int i = (t + 1) * 2 * stride - 1;
        if (i < 2 * BLOCK) s[i] += s[i - stride];
    }
    for (int stride = BLOCK / 2; stride > 0; stride /= 2) {
        __syncthreads();
        int i = (t + 1) * 2 * stride - 1;
        if (i + stride < 2 * BLOCK) s[i + stride] += s[i];
    }
    __syncthreads();
    out[t] = s[t];
    out[t + BLOCK] = s[t + BLOCK];
}
"""

KOGGE_STONE = """
__global__ void k(const int *in, int *out) {
    __shared__ int s[16];
    int t = threadIdx.x;
    s[t] = in[t];
    for (int d = 1; d < 16; d *= 2) {
        __syncthreads();
        int v = t >= d ? s[t - d] : 0;
        __syncthreads();
        if (t >= d) s[t] += v;
    }
    out[t] = s[t];
}
"""
WAITING = KOGGE_STONE.replace("int v = t >= d ? s[t - d] : 0;", "int v; if (t >= d) v = s[t - d] + s[t];").replace(
    "s[t] += v", "s[t] = v"
)


def record_dataflow(source: str, *arguments, **options) -> Dataflow:
    return check_flow(Dataflow(record_launch(source, list(arguments), **options)))


def brent_kung(half: int) -> Dataflow:
    values = np.resize(VALUES, 2 * half)
    source = f"#define BLOCK {half}\n{BRENT_KUNG}"
    return record_dataflow(source, values, np.zeros(2 * half, np.int32), block=half)


def test_a_launch_without_statements_has_no_rows():
    def program(engine, module):
        data = engine.upload(np.arange(8, dtype=np.int32))
        for name in ("nothing", "scale", "nothing"):
            engine.launch(module.kernel(name), (1, 1, 1), (8, 1, 1), data, np.int32(2))

    source = "__global__ void nothing(int *a, int n) {} __global__ void scale(int *a, int n) { a[threadIdx.x] *= n; }"
    launches = [row.launch for row in Dataflow(record(source, program)).rows]
    assert set(launches) == {1}


def test_brent_kung_is_the_textbook_s_picture():
    flow = brent_kung(8)
    assert [row.label for row in flow.rows] == [
        "in",
        *(f"stride = {stride}" for stride in (1, 2, 4, 8, 4, 2, 1)),
    ]
    assert [int(row.computed.sum()) for row in flow.rows] == [0, 8, 4, 2, 1, 1, 3, 7]
    assert computed_columns(flow)[1:] == [
        [1, 3, 5, 7, 9, 11, 13, 15],
        [3, 7, 11, 15],
        [7, 15],
        [15],
        [11],
        [5, 9, 13],
        [2, 4, 6, 8, 10, 12, 14],
    ]
    assert edges_by_column(flow, 5) == {(11, 4, 7), (11, 4, 11)}, "from where the values were last to be seen"
    assert edges_by_column(flow, 1) == {(i, 0, j) for i in range(1, 16, 2) for j in (i - 1, i)}
    assert flow.rows[-1].value.tolist() == np.cumsum(VALUES).tolist()
    row = flow.rows[6]
    assert row.thread[row.computed].tolist() == [0, 1, 2]
    assert row.operators == ("+",)
    assert max(row.column.max() for row in flow.rows) == 15


@pytest.mark.parametrize("half", [1, 2, 32, 64, 128])
def test_brent_kung_over_several_warps(half: int):
    flow = brent_kung(half)
    n = 2 * half
    levels = n.bit_length() - 1
    up = [n >> level for level in range(1, levels + 1)]
    down = [(n >> level) - 1 for level in range(levels - 1, 0, -1)]
    assert [int(row.computed.sum()) for row in flow.rows] == [0, *up, *down]
    assert sum(int(row.operation_counts.sum()) for row in flow.rows) == 2 * n - 2 - levels
    assert flow.rows[-1].value.tolist() == np.cumsum(np.resize(VALUES, n)).tolist()
    for element in {0, half - 1, half, n - 1}:
        assert source_columns(flow, len(flow.rows) - 1, element, "in") == list(range(element + 1))


@pytest.mark.parametrize("source", [KOGGE_STONE, WAITING])
def test_kogge_stone(source: str):
    flow = record_dataflow(source, VALUES, np.zeros(16, np.int32), block=16)
    assert [row.label for row in flow.rows] == ["in", "d = 1", "d = 2", "d = 4", "d = 8"]
    assert [int(row.computed.sum()) for row in flow.rows] == [0, 15, 14, 12, 8]
    for number, d in enumerate((1, 2, 4, 8), 1):
        assert edges_by_column(flow, number) == {(i, number - 1, j) for i in range(d, 16) for j in (i - d, i)}
        assert {row.storage.name for row in flow.rows[1:]} == {"s"}


def test_a_scan_between_two_halves_of_an_array_shows_what_is_carried_over():
    source = """
    __global__ void k(const int *in, int *out) {
        __shared__ int s[2][16];
        int t = threadIdx.x, from = 0;
        s[0][t] = in[t];
        for (int d = 1; d < 16; d *= 2) {
            __syncthreads();
            s[1 - from][t] = t >= d ? s[from][t] + s[from][t - d] : s[from][t];
            from = 1 - from;
        }
        out[t] = s[from][t];
    }
    """
    flow = record_dataflow(source, VALUES, np.zeros(16, np.int32), block=16)
    assert [(int(row.computed.sum()), int(row.operation_counts.sum())) for row in flow.rows[1:]] == [
        (16, 15),
        (16, 14),
        (16, 12),
        (16, 8),
    ]
    assert source_columns(flow, 4, 15, "in") == list(range(16))


@pytest.mark.timeout(30)
def test_a_value_in_a_thousand_cells_that_all_threads_use_is_found_in_a_moment():
    source = """
    __global__ void k(const float *weight, float *out) {
        __shared__ float s[1024];
        float sum = 0;
        s[threadIdx.x] = weight[0];
        if (threadIdx.x == 0) s[0] += 0.25f;
        for (int i = 0; i < 64; ++i) sum += s[threadIdx.x];
        out[threadIdx.x] = sum;
    }
    """
    flow = Dataflow(record_launch(source, [np.array([0.5], np.float32), np.zeros(1024, np.float32)], block=1024))
    assert len(flow.rows[-1].value) == 1024
    assert flow.rows[-1].value.tolist() == [48] + 1023 * [32]
    shown = next(row.number for row in flow.rows if row.storage.name == "s")
    last = flow.rows[-1].sources
    assert last[last[:, 1] == shown].tolist() == [[each, shown, each] for each in range(1024)]


@pytest.mark.parametrize("given", [VALUES, np.sort(VALUES)], ids=["shuffled", "sorted"])
def test_a_sorting_network_shows_every_comparator_whether_or_not_it_exchanges(given: np.ndarray):
    """Every stage of a bitonic network: n / 2 comparators, each of which joins two columns, both ways."""
    pattern = find_pattern("sort")
    params = pattern.check({**pattern.step_params, "input": "random"})
    inputs = {"values": given.astype(params["dtype"])}
    recording = record_pattern(Workload(pattern, pattern.variant("bitonic"), inputs, params), lambda progress: None)
    flow = check_flow(Dataflow(recording))
    stages = [
        (stride if stride < half else 2 * half - 1)
        for half in (1, 2, 4, 8)
        for stride in (half >> shift for shift in range(half.bit_length()))
    ]
    assert len(flow.rows) == 1 + len(stages) == 11
    for number, mask in enumerate(stages, 1):
        assert edges_by_column(flow, number) == {(i, number - 1, j) for i in range(16) for j in (i, i ^ mask)}
    counted = Tally(recording).counts_at(recording.event_count)
    assert (counted.operations, counted.steps) == (16 // 2 * len(stages), len(stages))


def test_rows_are_no_larger_than_what_was_recorded_of_a_large_grid():
    source = "__global__ void k(int *a) { int own = a[threadIdx.x]; own += 1; own *= 2; a[threadIdx.x] = own; }"
    made = record_launch(source, [np.zeros(64, np.int32)], grid=30_000, block=64, max_lane_events=100_000)
    assert made.launches[0].trace.stop_reason
    flow = Dataflow(made)
    row = next(row for row in flow.rows if row.storage.space == "register")
    assert row.storage.count == 30_000 * 64
    tracemalloc.start()
    try:
        assert row.cells.size == 512 * 64
        assert tracemalloc.get_traced_memory()[1] < 8 * row.storage.count / 4
    finally:
        tracemalloc.stop()
