"""What each lane does at a moment, on kernels small enough to know it by hand."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpu.recording.recording import Recording
from gpu.stepping.moment.lanes import LaneState, LaneStates
from tests.gpu.simulator import statements
from tests.gpu.simulator.trace_checks import returned_lanes, waiting_lanes
from tests.gpu.simulator.trace_checks import trace_kernel as traced
from tests.gpu.stepping.recordings import record, record_launch


def moment_at_line(recording, line: int, nth: int = 0) -> int:
    """Return the moment of the n-th event at a line."""
    found = [
        each.first + event.number
        for each in recording.launches
        for event in each.trace.events
        if event.position.line == line
    ]
    return found[nth]


BRANCHES = """\
__global__ void k(int *a) {
    int t = threadIdx.x;
    if (t < 5) {
        if (t < 2)
            a[t] = 1;
        else
            a[t] = 2;
        a[t] += 1;
    }
    __syncthreads();
    a[t] = 3;
}
"""


def states(lanes, block=0, warp=0, lanes_of=slice(None)):
    return "".join("-AIWFR"[state] for state in lanes.state[block, warp, lanes_of])


def test_lanes_idle_by_the_branch_that_excludes_them():
    recording = record_launch(BRANCHES, [np.zeros(8, np.int32)], block=8)
    lanes = LaneStates(recording)
    then = lanes.lanes_at(moment_at_line(recording, 5))
    assert states(then) == "AA" + "I" * 6 + "-" * 24
    assert then.line[0, 0].tolist() == [0, 0, 4, 4, 4, 3, 3, 3] + [0] * 24
    other = lanes.lanes_at(moment_at_line(recording, 7))
    assert states(other, lanes_of=slice(8)) == "IIAAAIII"
    assert other.line[0, 0, :8].tolist() == [4, 4, 0, 0, 0, 3, 3, 3]
    assert other.summary(0) == (
        "3 active, 3 inactive (branch at line 3), 2 inactive (branch at line 4), 24 not in the block"
    )
    joined = lanes.lanes_at(moment_at_line(recording, 8))
    assert states(joined, lanes_of=slice(8)) == "AAAAAIII"
    assert joined.line[0, 0, :8].tolist() == [0] * 5 + [3] * 3
    barrier = lanes.lanes_at(moment_at_line(recording, 10))
    assert barrier.summary() == "8 waiting at the barrier at line 10, 24 not in the block"
    assert lanes.lanes_at(recording.event_count).summary(0) == "8 finished, 24 not in the block"


LOOPS = """\
__global__ void k(int *a, int n) {
    int t = threadIdx.x;
    if (t >= n)
        return;
    for (int i = 0; i < t + 1; i++) {
        if (i == 1 && t == 3)
            break;
        if (t == 0)
            continue;
        a[t] += i;
    }
    a[t] *= 2;
}
"""


def test_lanes_leave_loops_by_their_condition_by_break_and_by_continue_and_return_early():
    recording = record_launch(LOOPS, [np.zeros(8, np.int32), np.int32(5)], block=8)
    lanes = LaneStates(recording)
    first = lanes.lanes_at(moment_at_line(recording, 10))
    assert states(first, lanes_of=slice(8)) == "IAAAAFFF"
    assert first.line[0, 0, 0] == 8, "it continues"
    second = lanes.lanes_at(moment_at_line(recording, 10, 1))
    assert states(second, lanes_of=slice(8)) == "IAAIAFFF"
    assert second.line[0, 0, [0, 3]].tolist() == [5, 6], "one round was enough for lane 0; lane 3 broke"
    assert second.summary(0).startswith(
        "3 active, 1 inactive (loop at line 5), 1 inactive (branch at line 6), 3 finished"
    )
    last = lanes.lanes_at(moment_at_line(recording, 10, 4))
    assert states(last, lanes_of=slice(8)) == "IIIIAFFF"
    assert last.line[0, 0, :5].tolist() == [5, 5, 5, 6, 0]
    after = lanes.lanes_at(moment_at_line(recording, 12))
    assert states(after, lanes_of=slice(8)) == "AAAAAFFF"


def test_a_warp_that_a_branch_excludes_as_a_whole_and_the_lanes_of_a_last_partial_warp():
    source = """\
__global__ void k(int *a) {
    if (threadIdx.x < 20)
        a[blockIdx.x] = 1;
}
"""
    recording = record_launch(source, [np.zeros(3, np.int32)], block=40, grid=3)
    lanes = LaneStates(recording).lanes_at(1)
    assert lanes.state.shape == (3, 2, 32)
    for block in range(3):
        assert states(lanes, block, 0) == "A" * 20 + "I" * 12
        assert states(lanes, block, 1) == "I" * 8 + "-" * 24
        assert lanes.summary(block) == "20 active, 20 inactive (branch at line 2), 24 not in the block"
    assert lanes.groups()[0].count == 60


def test_switches_and_functions_part_lanes_too():
    source = """\
__device__ int f(int x) {
    if (x == 1)
        return 5;
    return x;
}
__global__ void k(int *a) {
    int t = threadIdx.x;
    switch (t) {
    case 0:
        a[0] = 1;
        break;
    default:
        a[t] = f(t);
    }
    a[t] = t == 2 ? f(1) : 0;
}
"""
    recording = record_launch(source, [np.zeros(4, np.int32)], block=4)
    lanes = LaneStates(recording)
    assert lanes.lanes_at(moment_at_line(recording, 10)).line[0, 0, :4].tolist() == [0, 8, 8, 8]
    within = lanes.lanes_at(moment_at_line(recording, 4))
    assert states(within, lanes_of=slice(4)) == "IIAA", "a return from a function is no end"
    assert within.line[0, 0, :4].tolist() == [8, 2, 0, 0]
    assert lanes.lanes_at(moment_at_line(recording, 3, 1)).line[0, 0, :4].tolist() == [15, 15, 0, 15]


def test_blocks_that_run_one_after_the_other_are_ready_before_and_finished_after():
    source = """\
__global__ void k(int *a) {
    while (atomicAdd(a, 0) < blockIdx.x) {}
    atomicAdd(a, threadIdx.x == 0);
}
"""
    recording = record_launch(source, [np.zeros(1, np.int32)], block=32, grid=3)
    (one,) = recording.launches
    lanes = LaneStates(recording).lanes_at(next(event.number for event in one.trace.events if event.batch == 1))
    assert [states(lanes, block) for block in range(3)] == ["F" * 32, "A" * 32, "R" * 32]
    assert lanes.summary() == "32 active, 32 ready, not running, 32 finished"


def test_a_mistake_leaves_everybody_where_they_were():
    source = """\
__global__ void k(int *a) {
    if (threadIdx.x == 1)
        a[9] = 1;
}
"""
    recording = record_launch(source, [np.zeros(2, np.int32)], block=2)
    assert recording.failure
    assert states(LaneStates(recording).lanes_at(recording.event_count), lanes_of=slice(2)) == "IA"


def test_several_launches():
    recording = record(LOOPS, lambda engine, module: [
        engine.launch(module.kernel("k"), (blocks, 1, 1), (8, 1, 1), engine.upload(np.zeros(8, np.int32)), np.int32(2))
        for blocks in (1, 2)
    ])  # fmt: skip
    lanes = LaneStates(recording)
    assert lanes.lanes_at(recording.launches[1].first - 1).state.shape == (1, 1, 32)
    assert lanes.lanes_at(recording.launches[1].first).state.shape == (2, 1, 32)


def test_warps_that_run_apart_wait_at_a_barrier_for_those_that_come_later():
    source = """\
__global__ void k(int *a) {
    int t = threadIdx.x;
    if (t < 40)
        a[t] = 1;
    __syncthreads();
    a[t] = 2;
}
"""
    made, _ = traced(source, [np.zeros(96, np.int32)], block=96, schedule="shuffle:3")
    recording = Recording.from_trace(made, {})
    every = LaneStates(recording)
    trace = recording.launches[0].trace
    waited = False
    for moment, event in enumerate(trace.events):
        lanes = every.lanes_at(moment)
        state = lanes.state.reshape(-1)
        (warp,) = np.unique(event.lanes // 32)
        others = np.delete(lanes.state[0], warp, axis=0)
        assert (others != LaneState.ACTIVE).all()
        if event.kind != "barrier":
            assert np.flatnonzero(state == LaneState.ACTIVE).tolist() == event.lanes.tolist()
            assert ((state == LaneState.WAITING) == waiting_lanes(trace, moment)).all()
            waited |= waiting_lanes(trace, moment).any()
        assert (lanes.line[state.reshape(lanes.state.shape) == LaneState.WAITING] == 5).all()
        if event.position.line == 4 and warp == 1:
            assert states(lanes, warp=1) == "A" * 8 + "I" * 24
            assert lanes.line[0, 1, 8:].tolist() == [3] * 24
    assert waited


def test_a_launch_by_a_kernel_shows_its_own_blocks():
    source = """\
__global__ void child(int *a) { a[threadIdx.x] = 1; }
__global__ void k(int *a) {
    if (threadIdx.x == 0)
        child<<<2, 3>>>(a);
    a[threadIdx.x] = 2;
}
"""
    recording = record_launch(source, [np.zeros(8, np.int32)], block=8)
    lanes = LaneStates(recording)
    assert lanes.lanes_at(moment_at_line(recording, 1)).state.shape == (2, 1, 32)
    assert lanes.lanes_at(moment_at_line(recording, 1)).summary(1) == "3 active, 29 not in the block"
    assert states(lanes.lanes_at(moment_at_line(recording, 5)), lanes_of=slice(8)) == "A" * 8


def test_a_moment_of_1024_threads_takes_a_processor_less_than_four_milliseconds():
    source = """\
__global__ void k(int *a) {
    int t = threadIdx.x;
    for (int i = 0; i < 40; i++) {
        if ((t ^ i) & 1)
            a[t] += i;
        else if (t % (i + 2) == 0)
            a[t] -= i;
        if (t == i * 7)
            break;
    }
}
"""
    recording = record_launch(source, [np.zeros(1024, np.int32)], block=1024)
    every = LaneStates(recording)
    every.lanes_at(0)
    moments = np.random.default_rng(1).permutation(recording.event_count)
    times = []
    for moment in moments:
        start = time.process_time()
        every.lanes_at(int(moment))
        times.append(time.process_time() - start)
    assert np.median(times) < 4e-3


@settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
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
    recording = record_launch(source, [values, np.zeros(40, np.int32)], block=40)
    trace = recording.launches[0].trace
    every = LaneStates(recording)
    events = list(trace.events)[:150]
    masks = [set(event.lanes.tolist()) for event in events]
    for moment in range(len(events)):
        lanes = every.lanes_at(moment)
        state, cause = lanes.state.reshape(-1), lanes.cause.reshape(-1)
        active = masks[moment]
        assert set(np.flatnonzero(state == LaneState.ACTIVE).tolist()) == active
        assert (state[40:] == LaneState.ABSENT).all()
        assert ((state == LaneState.FINISHED) == returned_lanes(trace, moment)).all()
        for lane in np.flatnonzero(state == LaneState.IDLE).tolist():
            number = int(cause[lane])
            assert lane in masks[number]
            assert active & masks[number]
            later = range(number + 1, moment)
            assert all(lane not in masks[between] or not active & masks[between] for between in later)
            taken = events[number].true_lanes
            if taken is not None:
                others = active & masks[number]
                assert others & set(taken.tolist()) == (set() if lane in taken else others)


@pytest.mark.parametrize("schedule", ["round-robin", "shuffle:1", "shuffle:5"])
def test_a_lane_is_finished_from_the_moment_after_its_last_statement(schedule):
    source = """\
__global__ void k(int *a) {
    int t = threadIdx.x;
    if (t % 3 == 0)
        return;
    a[t] = 1;
    if (t % 3 == 1)
        return;
    a[t] = 2;
}
"""
    recording = record_launch(source, [np.zeros(90, np.int32)], block=90, schedule=schedule)
    last = np.full(90, -1)
    for number, event in enumerate(recording.launches[0].trace.events):
        last[event.lanes] = number
    assert len(np.unique(last)) >= 3
    every = LaneStates(recording)
    for moment in range(recording.event_count + 1):
        finished = every.lanes_at(moment).state.reshape(-1)[:90] == LaneState.FINISHED
        assert finished.tolist() == (last < moment).tolist(), moment
