"""Preemption: faults that show only if a thread is stopped between a read and the write that it decides."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from gpu.kernel.simulate import simulate
from gpu.simulator.checkers.races.races import RaceChecker
from tests.gpu.simulator.watched_launch import launch_watched

DEQUE = """__global__ void run(volatile int *top, volatile int *bottom, int *count, int n) {{
    if (blockIdx.x == 0) {{
        for (;;) {{
            const int b = *bottom - 1;
            *bottom = b;
            {fence}
            const int t = *top;
            if (t > b) {{ *bottom = t; break; }}
            if (t < b) {{ count[b] += 1; continue; }}
            {last}
            *bottom = t + 1;
            break;
        }}
    }} else {{
        for (int k = 0; k < 3; k++) {{
            const int t = *top;
            __threadfence();
            const int b = *bottom;
            if (t < b && atomicCAS((int *)top, t, t + 1) == t) count[t] += 1;
        }}
    }}
}}"""
"""The first block owns a deque that has all tasks at first, and takes them from the bottom; the others steal."""


@pytest.mark.parametrize(
    ("fence", "last", "cause"),
    [
        ("__threadfence();", "if (atomicCAS((int *)top, t, t + 1) == t) count[b] += 1;", ""),
        ("__threadfence();", "*top = t + 1; count[b] += 1;", "if a warp stops before an atomic or volatile access"),
        (
            "",
            "if (atomicCAS((int *)top, t, t + 1) == t) count[b] += 1;",
            "may see a thread's write of its flag",
        ),
    ],
    ids=["right", "no compare-and-swap", "no fence"],
)
def test_owner_and_thief_take_the_last_tasks_of_a_deque(fence: str, last: str, cause: str) -> None:
    arrays, source = ["zeros:1", np.array([3], np.int32), "zeros:8", np.int32(3)], DEQUE.format(fence=fence, last=last)
    findings = simulate("test.cu", "run", 3, 1, arrays, source=source).findings
    assert {finding.kind for finding in findings} == ({"race"} if cause else set())
    assert all(cause in finding.message for finding in findings)


WAKE_UP = """__global__ void run(int *items, int *sleeping, int *wake, int n) {{
    if (blockIdx.x == 0) {{
        for (int i = 0; i < n; i++) {{
            atomicAdd(items, 1);
            __threadfence();
            if (atomicExch(sleeping, 0)) atomicExch(wake, 1);
        }}
    }} else {{
        for (int done = 0; done < n;) {{
            const int count = atomicAdd(items, 0);
            if (count > done) {{ done = count; continue; }}
            atomicExch(sleeping, 1);
            {test}
            while (atomicCAS(wake, 1, 0) == 0) {{ }}
        }}
    }}
}}"""


@pytest.mark.parametrize(
    ("test", "kinds"),
    [
        ("__threadfence(); if (atomicAdd(items, 0) > done && atomicExch(sleeping, 0)) continue;", set()),
        ("", {"endless"}),
    ],
    ids=["tested again", "not tested again"],
)
def test_a_wake_up_that_is_lost_before_the_consumer_sleeps(test: str, kinds: set[str]) -> None:
    arguments = ["zeros:1", "zeros:1", "zeros:1", np.int32(2)]
    findings = simulate("test.cu", "run", 2, 1, arguments, source=WAKE_UP.format(test=test)).findings
    assert {finding.kind for finding in findings} == kinds


def test_a_seed_decides_whether_an_update_is_lost() -> None:
    source = "__global__ void f(int *x) { const int old = atomicAdd(x, 0); if (old < 9) atomicExch(x, old + 1); }"

    def run(seed: int) -> int:
        return int(simulate("test.cu", "f", 2, 1, ["zeros:1"], source=source, schedule=f"preempt:{seed}").arrays[0][0])

    results = [run(seed) for seed in range(6)]
    assert set(results) == {1, 2}
    assert results == [run(seed) for seed in range(6)]


@pytest.mark.parametrize("seed", range(6))
def test_a_warp_that_polls_leaves_turns_to_the_others(seed: int) -> None:
    """A compiler may read such a flag once only, but no schedule of warps makes the loop endless."""
    source = """__global__ void f(int *x) {
        if (threadIdx.x / 32 == 3) atomicExch(x, 1);
        else while (x[0] == 0) { }
        atomicAdd(x + 1, 1);
    }"""
    launched = simulate(
        "test.cu", "f", 1, 128, ["zeros:2"], source=source, schedule=f"preempt:{seed}", max_steps=30_000
    )
    assert "endless" not in {finding.kind for finding in launched.findings}
    assert list(launched.arrays[0]) == [1, 128]


class TrialCounter(RaceChecker):
    count = 0

    def launch_begins(self, kernel: str, grid: Sequence[int], block: Sequence[int]) -> None:
        self.count += 1
        super().launch_begins(kernel, grid, block)


@pytest.mark.parametrize(
    ("body", "least", "most"),
    [
        ("out[atomicAdd(x, 1)] = 1;", 0, 0),
        ("if (atomicAdd(x, 1) == 3) out[0] = 1;", 0, 0),
        ("atomicExch(x + blockIdx.x, 1); if (atomicAdd(x + 3 - blockIdx.x, 0)) out[0] = 1;", 0, 0),
        ("if (atomicAdd(x + blockIdx.x, 0) == 0) atomicExch(x + blockIdx.x, 1);", 1, 4),
        ("if (atomicAdd(x, 0) < 2) atomicAdd(x, 1);", 20, 60),
    ],
    ids=["ticket", "last block", "a flag of another block", "a location of each block", "decided write"],
)
def test_only_writes_of_several_warps_that_reads_decide_have_many_trials(body: str, least: int, most: int) -> None:
    trial, arrays = TrialCounter(), [np.zeros(8, np.int32) for _ in range(2)]
    source = f"__global__ void f(int *x, int *out) {{ {body} }}"
    launch_watched(RaceChecker(), source, *arrays, grid=4, block=1, trial_observer=trial)
    assert least <= trial.count <= most
