"""Preemption: faults that show only if a thread is stopped between a read and the write that it decides."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from gpu.base.errors import SourcePosition
from gpu.kernel.simulate import simulate
from gpu.simulator.checkers.races.races import RaceChecker
from gpu.simulator.executor.launches import trials
from gpu.simulator.executor.scheduling.access_history import AccessHistory, StrongAccess
from gpu.simulator.executor.scheduling.directed import DirectedChooser
from gpu.simulator.executor.state.memory import AccessSite
from gpu.simulator.executor.state.time_limit import TimeLimit
from tests.gpu.simulator.kernel_runner import build
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


STACK = """__global__ void run(unsigned long long *head, volatile int *next, int *owner, int rounds) {{
    for (int r = 0; r < rounds; r++) {{
        int got[2] = {{-1, -1}};
        for (int k = 0; k < 2; k++) {{
            for (;;) {{
                const unsigned long long old = atomicAdd(head, 0ull);
                __threadfence();
                const int top = (int)(old & 255) - 1;
                if (top < 0) break;
                if (atomicCAS(head, old, {tag} | (unsigned)next[top]) == old) {{ got[k] = top; break; }}
            }}
            __threadfence();
            if (got[k] >= 0) owner[got[k]] = 1;
        }}
        for (int k = 1; k >= 0; k--) {{
            if (got[k] < 0) continue;
            owner[got[k]] = 0;
            __threadfence();
            for (;;) {{
                const unsigned long long old = atomicAdd(head, 0ull);
                next[got[k]] = (int)(old & 255);
                __threadfence();
                if (atomicCAS(head, old, {tag} | (unsigned)(got[k] + 1)) == old) break;
            }}
        }}
    }}
}}"""
"""Each block takes two cells of a stack and returns them; the lowest byte of `head` has the top cell, from 1."""


def _check_stack(tag: str, rounds: int) -> set[str]:
    """Return the kinds of findings of three blocks, each with one thread, that use a stack of four cells."""
    arguments = [np.array([1], np.uint64), np.array([2, 3, 4, 0], np.int32), "zeros:4", np.int32(rounds)]
    findings = simulate("test.cu", "run", 3, 1, arguments, source=STACK.format(tag=tag)).findings
    return {finding.kind for finding in findings}


@pytest.mark.parametrize(
    ("tag", "rounds", "kinds"),
    [("(((old >> 8) + 1) << 8)", 1, set()), ("0", 2, {"race"})],
    ids=["tag", "no tag"],
)
def test_a_stack_whose_top_returns_while_a_compare_and_swap_waits(tag: str, rounds: int, kinds: set[str]) -> None:
    assert _check_stack(tag, rounds) == kinds


def test_a_slow_machine_finds_the_same_race(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trials, "_MIN_SECONDS", 0)  # the least time has passed after the first trial
    assert _check_stack("0", 2) == {"race"}


@pytest.mark.parametrize(("read", "continues"), [(b"old", False), (b"new", True)])
def test_a_compare_and_swap_is_stopped_until_its_value_returns_and_another_is_out_of_date(
    read: bytes, continues: bool
) -> None:
    memory = {"top": b"A", "next": b"old"}
    sites = {name: AccessSite(SourcePosition("test.cu", line), "atomic") for line, name in enumerate(memory)}

    def build(part: int, name: str, expected: bytes | None = None) -> StrongAccess:
        writes = expected is not None
        return StrongAccess(part, sites[name], name, writes, True, lambda: memory[name], expected)

    history, swap = AccessHistory(), AccessSite(SourcePosition("test.cu", 9), "atomic", op="cas")
    for part in range(2):
        history.note(build(part, "top", b"A")._replace(site=swap))
    history.swaps.add(swap)
    results = []
    for seed in range(4, 40, 6):  # these seeds bring the value back
        memory |= {"top": b"A", "next": b"old"}
        chooser = DirectedChooser(seed, history)
        chooser.preempts(build(0, "top"))
        chooser.preempts(build(0, "next"))
        chooser.preempts(build(0, "top", b"A")._replace(site=swap))
        if chooser.stopped is None:
            continue
        assert [chooser.choose_part([0, 1]) for _ in range(3)] == [1, 1, 1]
        memory["top"] = b"B"
        assert not chooser.preempts(build(1, "next"))
        memory |= {"top": b"A", "next": read}
        results.append(chooser.preempts(build(1, "next")) and chooser.choose_part([0, 1]) == 0)
    assert results
    assert all(results) if continues else not all(results)


@pytest.mark.parametrize(
    ("kernel", "blocks"),
    [
        ("__global__ void __cluster_dims__(2) run(int *x, int *out) {{ {body} cg::this_cluster().sync(); }}", 2),
        ("__global__ void run(int *x, int *out) {{ {body} cg::this_grid().sync(); }}", 2),
        (
            "__global__ void child() {{ }} __global__ void run(int *x, int *out) {{ {body} child<<<1, 1>>>(); }}",
            2,
        ),
        (
            """__global__ void child(int *x, int *out) {{ {body} }}
            __global__ void run(int *x, int *out) {{ child<<<2, 1>>>(x, out); }}""",
            1,
        ),
    ],
    ids=["cluster", "grid barrier", "parent", "child"],
)
@pytest.mark.parametrize(
    ("body", "kinds"),
    [
        ("if (atomicCAS(x, 0, 1) == 0) out[0] = blockIdx.x;", set()),
        (
            """if (blockIdx.x == 0) { if (atomicAdd(x, 0) == 0) { atomicExch(x, 1); out[0] = 0; } }
            else { if (atomicAdd(x, 0) == 0) { atomicExch(x, 1); out[0] = 1; } }""",
            {"race"},
        ),
    ],
    ids=["right", "wrong"],
)
def test_clusters_barriers_of_the_grid_and_child_launches_have_trials(
    kernel: str, blocks: int, body: str, kinds: set[str]
) -> None:
    header = "#include <cooperative_groups.h>\nnamespace cg = cooperative_groups;\n"
    source = header + kernel.format(body=body)
    findings = simulate("test.cu", "run", blocks, 1, ["zeros:1", "zeros:1"], source=source).findings
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


def test_launches_with_several_grids_share_the_time_of_their_trials(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds: list[float | None] = []

    class Recorded(TimeLimit):
        def __init__(self, limit: float | None) -> None:
            seconds.append(limit)
            super().__init__(limit)

    monkeypatch.setattr("gpu.simulator.executor.launches.trials.TimeLimit", Recorded)
    module = build("__global__ void f(int *x) { if (atomicAdd(x, 0) < 2) atomicAdd(x, 1); }")
    for grid in (2, 3, 4, 4):
        launch_watched(RaceChecker(), module, np.zeros(1, np.int32), grid=grid, block=1, trial_observer=TrialCounter())
    first, *others = [limit for limit in seconds if limit is not None and limit <= 1.2]
    assert others == [pytest.approx(first / 2), pytest.approx(first / 3)]
