"""What the checkers find while a launch is recorded, and where in the recording."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpu.recording.data import FailedAccess
from gpu.recording.trace import Trace
from gpu.recording.validation import validate_trace
from gpu.simulator.counting.counters import Counters
from gpu.simulator.simulated_module import SimulatedModule, TraceSettings
from tests.gpu.simulator.executor.test_schedule import KOGGE_STONE, SYNCS
from tests.gpu.simulator.watched_launch import launch_watched

RACY = """
__global__ void k(const int *in, int *out) {
    __shared__ int s[64], t[64];
    int i = threadIdx.x;
    out[i] = t[i] * 0;
    s[i] = in[i];
    out[i] += s[63 - i];
    if (i == 5) out[i + in[64]] = 1;
    out[i] = s[i];
}"""


def trace_kernel(
    source: str = RACY, *, last: int = 0, defines: Any = None, schedule: str = "round-robin", **settings: Any
) -> Trace:
    given = np.append(np.arange(64), last).astype(np.int32)
    launch = (1, 1, 1), (64, 1, 1), [given.view(np.uint8), np.zeros(64 * 4, np.uint8)]
    module = SimulatedModule(source, Path("k.cu"), defines or {})
    return module.trace("k", *launch, TraceSettings(**settings), schedule=schedule)


@pytest.mark.parametrize("schedule", ["round-robin", "shuffle:1", "shuffle:2"])
def test_findings_have_the_event_that_found_them(schedule: str) -> None:
    trace = trace_kernel(schedule=schedule)
    kinds = [found.finding.kind for found in trace.findings]
    assert sorted(set(kinds)) == ["race", "uninitialized"]
    assert [found.event for found in trace.findings] == sorted(found.event for found in trace.findings)
    for found in trace.findings:
        event = trace.events[found.event]
        assert event.position.line in {position.line for position in found.finding.positions}
        numbers = dict(zip(("thread", "block"), _numbers(found.finding.threads[-1]), strict=True))
        assert (numbers["thread"], numbers["block"]) in set(zip(event.threads, event.blocks, strict=True))
    # Shuffled, a warp may come to the other's half of s before it is written, too.
    unwritten = trace.findings[0]
    assert trace.events[unwritten.event].position.line == 5
    assert unwritten.finding.count == 64


def _numbers(text: str) -> tuple[int, int]:
    thread, block = (part.split(",")[0] for part in text.split("(")[1:])
    return int(thread), int(block)


def test_a_function_that_returns_no_value_is_recorded() -> None:
    """Its value is undefined in C++; in the simulator it is 0."""
    source = """
__device__ int twice(int x) { int result = 2 * x; }
__global__ void k(const int *in, int *out) {
    int v = twice(in[threadIdx.x]);
    out[threadIdx.x] = v + 7;
}"""
    trace = trace_kernel(source)
    assert trace.array("out", len(trace.events)).tolist() == [7] * 64


def test_a_fault_is_the_last_finding() -> None:
    trace = trace_kernel(last=90)
    last = trace.findings[-1]
    assert last.finding.kind == "out-of-bounds"
    assert last.event == len(trace.events) - 1
    assert trace.events[last.event].position.line == 8
    assert "element 95 of out, which has 64" in last.finding.message
    assert last.finding.message.split(". ")[0] in trace.failure
    assert {found.finding.kind for found in trace.findings[:-1]} == {"race", "uninitialized"}


@pytest.mark.parametrize("schedule", ["round-robin", "shuffle:1"])
def test_a_barrier_that_is_missed_is_found_at_that_barrier(schedule: str) -> None:
    trace = trace_kernel(
        "__global__ void k(const int *in, int *out) {\nint i = threadIdx.x;\nif (i < 40)\n__syncthreads();\n}",
        schedule=schedule,
    )
    (found,) = trace.findings
    assert found.finding.kind == "barrier"
    assert trace.events[found.event].position.line == 4
    assert trace.events[found.event].kind == "barrier"


def test_a_trace_that_is_not_checked_has_no_findings_but_the_fault() -> None:
    assert trace_kernel(checked=False).findings == ()
    assert [found.finding.kind for found in trace_kernel(last=90, checked=False).findings] == ["out-of-bounds"]


def test_arrays_that_start_without_values() -> None:
    source = "__global__ void k(const int *in, int *out) { out[threadIdx.x] += in[threadIdx.x]; }"
    assert trace_kernel(source).findings == ()
    (found,) = trace_kernel(source, uninitialized={"out"}).findings
    assert "element 0 of out" in found.finding.message


def test_what_is_found_after_the_recording_has_ended() -> None:
    trace = trace_kernel(last=90, max_lane_events=128)
    assert len(trace.events) == 2
    assert [(found.event, found.finding.kind) for found in trace.findings] == [
        (1, "uninitialized"),
        (2, "race"),
        (2, "out-of-bounds"),
    ]


def test_findings_and_schedule_are_saved(tmp_path: Path) -> None:
    trace = trace_kernel(last=90, schedule="shuffle:3")
    trace.save(tmp_path / "trace.zip")
    again = Trace.load(tmp_path / "trace.zip")
    assert again.findings == trace.findings
    assert len(again.findings) >= 3
    assert again.schedule == "shuffle:3"


def test_other_observers_see_the_same_launch() -> None:
    alone = Counters()
    given, out = np.arange(64, dtype=np.int32), np.zeros(64, np.int32)
    launch_watched(alone, KOGGE_STONE, given, out, kernel="k", block=64, defines=SYNCS)
    for schedule in ("round-robin", "shuffle:8"):
        beside = Counters()
        trace_kernel(KOGGE_STONE, defines=SYNCS, observers=[beside], schedule=schedule)
        assert beside.total() == alone.total()
        assert list(beside.per_line().values()) == list(alone.per_line().values())


@pytest.mark.parametrize(
    ("statement", "action", "size", "offsets", "threads"),
    [
        ("out[i] = in[i + 5];", "read", 4, (260, 264, 268, 272), (60, 61, 62, 63)),
        ("out[i - 2] = 1;", "write", 4, (-8, -4), (0, 1)),
        ("if (i > 61) atomicAdd(&out[i + 10], 1);", "atomic", 4, (288, 292), (62, 63)),
        ("((float4 *)out)[i - 1] = make_float4(1, 1, 1, 1);", "write", 16, (-16, *range(256, 1008, 16)), None),
        ("if (i == 7) *(int *)((char *)out + 2 * i) = 1;", "write", 4, (14,), (7,)),
        ("__shared__ int s[32]; s[i] = i;", "write", 4, tuple(range(128, 256, 4)), tuple(range(32, 64))),
    ],
)
def test_the_failed_access_has_all_lanes_that_are_wrong(statement, action, size, offsets, threads) -> None:
    source = f"__global__ void k(const int *in, int *out) {{ int i = threadIdx.x; {statement} }}"
    trace = SimulatedModule(source, Path("k.cu"), {}).trace(
        "k", (1, 1, 1), (64, 1, 1), [np.zeros(260, np.uint8), np.zeros(256, np.uint8)]
    )
    access = trace.findings[-1].access
    assert access is not None
    assert (access.action, access.size, access.offsets) == (action, size, offsets)
    assert access.threads == threads or threads is None
    assert set(access.blocks) == {0}
    name = "s" if "__shared__" in statement else "in" if action == "read" else "out"
    assert trace.arrays[access.memory].name == name
    validate_trace(trace.data)


def test_a_failed_access_is_saved_and_a_wrong_one_is_rejected(tmp_path: Path) -> None:
    trace = trace_kernel(last=90)
    access = trace.findings[-1].access
    assert access == FailedAccess("write", 1, 4, (95 * 4,), (0,), (5,))
    for wrong in (replace(access, memory=9), replace(access, threads=()), replace(access, action="peek")):
        findings = (replace(trace.findings[-1], access=wrong),)
        with pytest.raises(ValueError, match="failed access"):
            validate_trace(replace(trace.data, launch=replace(trace.data.launch, findings=findings)))


@pytest.mark.parametrize("blocks", [1, 3])
def test_shared_memory_with_an_index_of_64_unsigned_bits_is_recorded(blocks: int) -> None:
    text = """__global__ void k(int *out) {
        __shared__ int s[8];
        size_t i = threadIdx.x;
        s[i] = (int)i;
        __syncthreads();
        atomicAdd(&s[7 - i], 10);
        __syncthreads();
        out[blockIdx.x * (size_t)blockDim.x + i] = s[i];
    }"""
    trace = SimulatedModule(text, Path("k.cu"), {}).trace(
        "k", (blocks, 1, 1), (8, 1, 1), [np.zeros(32 * blocks, np.uint8)]
    )
    assert not trace.findings
    assert trace.array("out", len(trace.events)).tolist() == [*range(10, 18)] * blocks


_WAITING = """
__global__ void wait(int *out) {
    __shared__ volatile int flag;
    int i = threadIdx.x;
    if (i == 0) flag = 0;
    __syncthreads();
    if (i < 32) {
        if (i == 0) while (!flag) {}
        __syncwarp();
        __threadfence_block();
        out[i] = out[i + 32];
    } else {
        out[i] = i;
        __threadfence_block();
        __syncwarp();
        if (i == 32) flag = 1;
    }
}
__global__ void meet(int *out) {
    int i = threadIdx.x;
    if (i % 32 < 16) {
        __syncwarp();
        out[i] = out[i + 16];
    } else {
        out[i] = i;
        __syncwarp();
    }
}
"""


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        ("wait", [*range(32, 64), *range(32, 64)]),
        ("meet", [*range(16, 32), *range(16, 32), *range(48, 64), *range(48, 64)]),
    ],
)
def test_lanes_that_wait_for_later_lanes_are_recorded_in_a_fair_order(kernel: str, expected: list[int]) -> None:
    out = np.zeros(64, np.int32)
    trace = SimulatedModule(_WAITING, Path("k.cu"), {}).trace(
        kernel, (1, 1, 1), (64, 1, 1), [out.view(np.uint8)], max_seconds=2
    )
    assert (trace.failure, trace.findings) == ("", ())
    assert out.tolist() == expected
