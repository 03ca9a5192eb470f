"""Counts of textbook kernels, by hand."""

from __future__ import annotations

import time

import numpy as np
import pytest

from gpu.base.errors import InputError
from gpu.recording.recording import Recording
from gpu.stepping.tally import Counts, Tally, number_statements
from tests.gpu.simulator.trace_checks import trace_kernel as traced
from tests.gpu.stepping.recordings import record, record_launch

BRENT_KUNG = """\
__global__ void k(int *a) {
    __shared__ int s[16];
    int t = threadIdx.x;
    s[t] = a[t];
    s[t + 8] = a[t + 8];
    for (int stride = 1; stride < 16; stride *= 2) {
        __syncthreads();
        int i = (t + 1) * stride * 2 - 1;
        if (i < 16)
            s[i] += s[i - stride];
    }
    for (int stride = 4; stride > 0; stride /= 2) {
        __syncthreads();
        int i = (t + 1) * stride * 2 - 1;
        if (i + stride < 16)
            s[i + stride] += s[i];
    }
    __syncthreads();
    a[t] = s[t];
    a[t + 8] = s[t + 8];
}
"""

KOGGE_STONE = """\
__global__ void k(int *a) {
    __shared__ int s[16];
    int t = threadIdx.x;
    s[t] = a[t];
    for (int stride = 1; stride < 16; stride *= 2) {
        __syncthreads();
        int other = 0;
        if (t >= stride)
            other = s[t - stride];
        __syncthreads();
        if (t >= stride)
            s[t] += other;
    }
    a[t] = s[t];
}
"""

NEIGHBORED = """\
__global__ void k(int *a, int n) {
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    for (int stride = 1; stride < blockDim.x; stride *= 2) {
        if (t % (2 * stride) == 0 && i + stride < n)
            a[i] += a[i + stride];
        __syncthreads();
    }
}
"""

SHUFFLE = """\
__global__ void k(int *a) {
    int v = a[threadIdx.x];
    for (int d = 16; d > 0; d /= 2)
        v += __shfl_down_sync(0xffffffff, v, d);
    if (threadIdx.x == 0)
        a[0] = v;
}
"""


def test_brent_kung_of_16():
    recording = record_launch(BRENT_KUNG, [np.arange(16, dtype=np.int32)], block=8)
    end = Tally(recording).counts_at(recording.event_count)
    assert (end.operations, end.steps) == (26, 7)
    assert (end.parallelism, end.peak) == (26 / 7, 8)
    assert end.idle_fraction == 1 - 26 / (7 * 32), "lanes that the block does not have are idle too"
    assert end.barriers == 8


def test_kogge_stone_of_16():
    recording = record_launch(KOGGE_STONE, [np.arange(16, dtype=np.int32)], block=16)
    end = Tally(recording).counts_at(recording.event_count)
    assert (end.operations, end.steps) == (49, 4)


NEIGHBORED_LESS = """\
__global__ void k(int *a, int n) {
    int t = threadIdx.x, first = blockIdx.x * blockDim.x;
    for (int stride = 1; stride < blockDim.x; stride *= 2) {
        int i = 2 * stride * t;
        if (i < blockDim.x && first + i + stride < n)
            a[first + i] += a[first + i + stride];
        __syncthreads();
    }
}
"""


def _step_counts(recording: Recording) -> list[Counts]:
    """Return what each step comes to, the first one first."""
    tally = Tally(recording)
    found = {tally.counts_at(moment).steps: tally.step_counts_at(moment) for moment in range(recording.event_count + 1)}
    assert found.pop(0).operations == 0
    return [found[step] for step in sorted(found)]


@pytest.mark.parametrize("schedule", ["round-robin", "shuffle:1"])
def test_neighbored_pairs_leave_half_then_three_quarters_then_seven_eighths_of_every_warp_idle(schedule: str):
    """One block of 128 threads; the second kernel has full warps while there are any, and leaves the others alone."""
    arguments = [np.ones(128, np.int32), np.int32(128)]
    first, second = (
        Recording.from_trace(traced(source, arguments, block=128, schedule=schedule)[0], {})
        for source in (NEIGHBORED, NEIGHBORED_LESS)
    )
    neighbored, less = _step_counts(first), _step_counts(second)
    assert [each.operations for each in neighbored] == [each.operations for each in less] == [64, 32, 16, 8, 4, 2, 1]
    assert [each.idle_fraction for each in neighbored] == [1 / 2, 3 / 4, 7 / 8, 15 / 16, *[31 / 32] * 3]
    assert [each.idle_fraction for each in less] == [0, 0, 1 / 2, 3 / 4, 7 / 8, 15 / 16, 31 / 32]
    assert [each.divergent_branches for each in neighbored] == [4, 4, 4, 4, 4, 2, 1]
    assert [each.divergent_branches for each in less] == [0, 0, 1, 1, 1, 1, 1]
    end = Tally(first).counts_at(first.event_count)
    assert (end.operations, end.steps, end.peak, end.barriers) == (127, 7, 64, 7)
    assert end.idle_fraction == 1 - 127 / (32 * (5 * 4 + 2 + 1))
    assert Tally(second).counts_at(second.event_count).idle_fraction == 1 - 127 / (32 * (2 + 6))


def test_a_step_counts_what_led_to_it_since_the_step_before():
    recording = record_launch(NEIGHBORED, [np.ones(256, np.int32), np.int32(256)], block=64, grid=4)
    steps, end = _step_counts(recording), Tally(recording).counts_at(recording.event_count)
    assert sum(each.sectors for each in steps) == end.sectors
    assert sum(each.operations for each in steps) == end.operations == 252
    assert end.barriers == 6 * 4


@pytest.mark.parametrize("schedule", ["round-robin", "shuffle:1", "shuffle:2"])
def test_steps_do_not_depend_on_the_order_of_warps(schedule):
    made, _ = traced(NEIGHBORED, [np.ones(256, np.int32), np.int32(256)], block=64, grid=4, schedule=schedule)
    recording = Recording.from_trace(made, {})
    end = Tally(recording).counts_at(recording.event_count)
    assert (end.operations, end.steps, end.barriers) == (252, 6, 24)


def test_what_a_lane_makes_for_nobody_is_work_all_the_same():
    recording = record_launch(SHUFFLE, [np.ones(32, np.int32)])
    end = Tally(recording).counts_at(recording.event_count)
    assert (end.operations, end.steps, end.idle_fraction) == (5 * 32, 5, 0)


def test_arithmetic_on_indices_is_left_out():
    source = """\
__global__ void k(const int *where, int *a) {
    int i = where[threadIdx.x] * 2 + 1;
    int j = i - 1;
    if (where[j / 2] + 5 > 0)
        a[i] = a[j] * 3;
}
"""
    recording = record_launch(source, [np.arange(8, dtype=np.int32), np.ones(16, np.int32)], block=8)
    end = Tally(recording).counts_at(recording.event_count)
    assert (end.operations, end.steps) == (8, 1)


def test_lanes_and_memory():
    source = """\
__global__ void k(int *a) {
    __shared__ int s[2048];
    if (threadIdx.x >= 64)
        return;
    s[threadIdx.x * 32] = a[threadIdx.x * 8];
}
"""
    recording = record_launch(source, [np.zeros(512, np.int32)], block=80)
    tally = Tally(recording)
    start, end = tally.counts_at(0), tally.counts_at(recording.event_count)
    assert (start.parallelism, start.idle_fraction, start.lanes_per_warp) == (None,) * 3
    # All 80 test, 16 return, and of the two warps that are left all work.
    assert end.lanes_per_warp == (80 + 16 + 64) / (3 + 1 + 2)
    assert (end.sectors, end.ideal_sectors, end.bank_conflicts) == (64, 8, 62)
    assert (end.operations, end.steps, end.idle_fraction) == (0, 0, None)


def test_launches_add_up():
    recording = record(SHUFFLE, lambda engine, module: [
        engine.launch(module.kernel("k"), (1, 1, 1), (32, 1, 1), engine.upload(np.ones(32, np.int32)))
        for _ in range(3)
    ])  # fmt: skip
    tally = Tally(recording)
    assert [tally.counts_at(each.first).steps for each in recording.launches] == [0, 5, 10]
    assert tally.counts_at(recording.event_count).operations == 480
    with pytest.raises(InputError, match="there is no moment"):
        tally.counts_at(recording.event_count + 1)


def test_a_hundred_thousand_statements_of_lanes_take_a_processor_less_than_a_second():
    recording = record_launch(NEIGHBORED, [np.ones(8192, np.int32), np.int32(8192)], block=1024, grid=4)
    assert recording.launches[0].trace.lane_events > 100_000
    start = time.process_time()
    Tally(recording)
    assert time.process_time() - start < 1.0


def test_statements_of_different_functions_have_different_numbers():
    helper = "__device__ int twice(int x) { int y = x; return y + x; }"
    body = "int v = twice(a[threadIdx.x]); v += 1; v *= 3; a[threadIdx.x] = v;"
    (launch,) = record_launch(
        f"{helper} __global__ void k(int *a) {{ {body} }}", [np.arange(32, dtype=np.int32)]
    ).launches
    events = launch.trace.data.events
    places = [*zip(events["function"].tolist(), events["position"].tolist(), strict=True)]
    assert len({function for function, _ in places}) == 2
    numbers = number_statements(launch.trace).tolist()
    assert len(set(numbers)) == len(set(places)) == len({*zip(numbers, places, strict=True)})
