"""A recording that has no more room: it ends where it ends, and what it has is as it is without a limit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gpu.recording.file import collect_arrays
from gpu.recording.recording import Recording
from gpu.recording.trace import Trace
from gpu.simulator.simulated_module import SimulatedModule, TraceSettings
from gpu.simulator.trace import recorder
from gpu.simulator.trace.recorder import MAXIMUM_LANE_EVENTS
from gpu.stepping.launch_tree import build_launch_tree

SOURCE = """
__global__ void child(int *a, int at) { a[at] += 1; if (at < 12) child<<<1, 1>>>(a, at + 4); }
__device__ int twice(int x) { int y = x * 2; return y; }
__global__ void k(int *a, unsigned char *b, int *c) {
    __shared__ int s[8];
    int t = threadIdx.x;
    s[t] = twice(a[t]) + 1;
    __syncthreads();
    int2 v = ((int2 *)a)[t % 4];
    a[t] = s[7 - t] + v.x;
    atomicAdd(&c[t % 2], twice(a[t]));
    if (t == 0) child<<<1, 1>>>(a, 8);
    atomicMax((int *)b + t % 2, t);
    ((unsigned char *)c)[20 + t] = b[8 + t] ^ 3;
    int *p = t < 4 ? c : s;
    atomicAdd(p + t, c[t] + 1);
    cudaDeviceSynchronize();
    atomicExch(&c[t % 2], twice(a[8]));
    if (t == 1) child<<<1, 1>>>(a, 9);
}
"""
TABLES = ("accesses", "registers", "pointers", "operations", "barriers", "batches", "calls", "inputs")


@pytest.fixture(scope="module")
def module() -> SimulatedModule:
    return SimulatedModule(SOURCE, Path("kernel.cu"), {})


def trace_kernel(module: SimulatedModule, max_lane_events: int = MAXIMUM_LANE_EVENTS) -> Trace:
    a, b, c = np.arange(16, dtype=np.int32), np.arange(32, dtype=np.int32), np.arange(8, dtype=np.int32)
    given = [each.view(np.uint8) for each in (a, b, c)]
    made = module.trace("k", (1, 1, 1), (8, 1, 1), given, TraceSettings(max_lane_events))
    assert not made.failure
    # The launch itself goes on.
    assert a[8:13].tolist() == [9, 10, 10, 11, 13]
    assert c[0] == c[1] == 18
    return made


def last_node(made: Trace) -> int:
    """Return the highest number of a node that a recording gave."""
    data = made.data
    counts = data.masks.rows["count"][data.operations["mask"]]
    ends = np.concatenate((data.operations["first"] + counts, data.inputs["first"] + data.inputs["count"]))
    return int(ends.max(initial=1)) - 1


def check_is_prefix(made: Trace, whole: Trace) -> None:
    """See that a recording is the beginning of the whole one, and agrees with itself."""
    assert made.stop_reason
    events, all_events = made.data.events.copy(), whole.data.events[: len(made.events)].copy()
    for late in ("work", "taken"):  # what a statement did last, and whom it chose, may be missing of the last one
        events[late][-1:] = all_events[late][-1:] = 0
    assert (events == all_events).all()
    found, expected = collect_arrays(made.data), collect_arrays(whole.data)
    for table in TABLES:
        assert (found[table] == expected[table][: len(found[table])]).all(), table
    assert [each.name for each in made.data.functions] == [
        each.name for each in whole.data.functions[: len(made.data.functions)]
    ]
    assert made.launches == whole.launches[: len(made.launches)]
    assert all(each.event < len(made.events) for each in made.launches)
    assert all(finding.event <= len(made.events) for finding in made.findings)
    assert set(made.data.batches["launch"].tolist()) <= set(range(len(made.launches)))
    for array in made.arrays:
        assert array == whole.arrays[array.number]
        for step in range(max(len(made.events) - 3, 0), len(made.events)):
            assert (made.array(array.number, step) == whole.array(array.number, step)).all()
        made.array(array.number, len(made.events))
    grids = build_launch_tree(Recording.from_trace(made, {}))
    assert [grid.parent for grid in grids if grid.parent < 0] == [-1]


def test_statements_of_lanes_are_recorded_up_to_the_limit(module: SimulatedModule) -> None:
    whole = trace_kernel(module)
    assert not whole.stop_reason
    assert not trace_kernel(module, max_lane_events=whole.lane_events).stop_reason
    for limit in {0, 1, 8, *range(20, whole.lane_events, 25), whole.lane_events - 1}:
        made = trace_kernel(module, max_lane_events=limit)
        assert f"The recording ends after {limit} statements" in made.stop_reason
        assert made.lane_events <= limit
        check_is_prefix(made, whole)


def test_nodes_are_given_up_to_the_limit(module: SimulatedModule, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = trace_kernel(module)
    last = last_node(whole)
    monkeypatch.setattr(recorder, "MAX_NODES", last + 1)
    assert not trace_kernel(module).stop_reason
    for end in {1, 2, 16, *range(17, last, 23), last}:
        monkeypatch.setattr(recorder, "MAX_NODES", end)
        made = trace_kernel(module)
        assert f"The recording ends after {end - 1} values" in made.stop_reason
        assert last_node(made) < end
        check_is_prefix(made, whole)


def test_nodes_fit_where_they_are_kept() -> None:
    assert np.iinfo(np.int32).max == recorder.MAX_NODES
