"""What threads keep in registers: until something orders it, and never against their own program."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gpu.base.errors import LaunchError
from gpu.base.paths import KERNELS
from gpu.patterns import find_pattern
from gpu.recording.arrays import TraceAccess
from gpu.recording.trace import Trace
from gpu.run.pattern_run import record_pattern
from gpu.run.workload import Workload
from gpu.simulator.checkers.races.races import RaceChecker
from gpu.simulator.simulated_module import SimulatedModule
from tests.gpu.simulator.kernel_runner import build
from tests.gpu.simulator.trace_checks import check_states

Array = np.ndarray[Any, Any]
SCHEDULES = tuple(f"cached:{seed}" for seed in range(5))
ALL_KEPT = "cached:0"


def make_kernel(body: str) -> SimulatedModule:
    return build(f"""
    __device__ int flag;
    __global__ void k(const int *in, int *out) {{
        __shared__ int s[64];
        int t = threadIdx.x;
        s[t] = in[t];
        __syncthreads();
        {body}
    }}""")


def run(module: SimulatedModule, schedule: str, block: int = 32, **options: Any) -> Array:
    given = np.arange(100, 100 + block, dtype=np.int32)
    out = np.zeros_like(given)
    arguments = [given.view(np.uint8), out.view(np.uint8)]
    module.kernel("k").launch((1, 1, 1), (block, 1, 1), arguments, schedule=schedule, **options)
    return out


ORDERED = {
    "its own writes": "s[t] = 5; s[t] += 2; int v = s[t]; s[t] = v * 2; out[t] = s[t] + t;",
    "a barrier": "s[t] += 1; __syncthreads(); int v = s[31 - t]; __syncthreads(); s[t] = v; __syncthreads();"
    "out[t] = s[t ^ 3];",
    "a barrier that counts": "s[t] += 1; int all = __syncthreads_count(t < 9); out[t] = s[31 - t] + all;",
    "__syncwarp": "s[t] += 1; __syncwarp(); int v = s[31 - t]; __syncwarp(); s[t] = v; __syncwarp();out[t] = s[t ^ 3];",
    "part of a warp": "if (t < 8) { s[t] += 1; __syncwarp(0xff); out[t] = s[7 - t]; }",
    "the end": "if (t < 16) { out[t] = s[t]; return; } out[t] = 3;",
    "an atomic of its own": "s[t] = 1; atomicAdd(&s[t], 4); out[t] = s[t];",
    "its own, read as volatile": "s[t] = 9; out[t] = *(volatile int *)&s[t];",
    "its own, written as volatile": "s[t] = 9; *(volatile int *)&s[t] = 4; out[t] = s[t];",
    "parts of an element": "s[t] = 0x01020304; out[t] = ((unsigned char *)s)[4 * t + 1]; ((char *)s)[4 * t] = 9;"
    "out[t] += s[t];",
    "a vector": "if (t < 8) { s[4 * t] = 7; int4 v = ((int4 *)s)[t]; v.y = 3; ((int4 *)s)[t] = v;"
    "out[t] = s[4 * t + 1] + v.x; }",
    "a vector across lanes": "if (t < 8) ((int4 *)s)[t] = make_int4(t, 1, 2, 3); __syncthreads(); out[t] = s[31 - t];",
    "two names of one place": "int *p = s; p[t] = 8; s[t] += 1; out[t] = p[t];",
}


@pytest.mark.parametrize("body", ORDERED.values(), ids=ORDERED)
def test_what_is_ordered_is_seen(body: str) -> None:
    module = make_kernel(body)
    right = run(module, "round-robin").tolist()
    for schedule in SCHEDULES:
        found = RaceChecker()
        assert run(module, schedule, observers=[found]).tolist() == right
        assert found.findings == []


RACY = {
    "a write that is kept back": "s[t] = 1; out[t] = s[31 - t];",
    "a read that is not repeated": "int before = s[31 - t]; *(volatile int *)&s[t] = 1; out[t] = before + s[31 - t];",
    "a last warp without volatile": "for (int d = 16; d; d /= 2) s[t] += s[(t + d) & 31]; out[t] = s[t];",
}


@pytest.mark.parametrize("body", RACY.values(), ids=RACY)
def test_what_is_not_ordered_need_not_be_seen(body: str) -> None:
    module = make_kernel(body)
    answers, lines = set(), set()
    for schedule in ("round-robin", *SCHEDULES):
        found = RaceChecker()
        answers.add(run(module, schedule, observers=[found]).tobytes())
        lines.add(tuple(sorted({place.line for each in found.findings for place in each.positions})))
    assert len(answers) > 1
    assert len(lines) == 1  # the same mistakes in every order
    volatile = make_kernel(body.replace("s[", "((volatile int *)s)["))
    assert len({run(volatile, schedule).tobytes() for schedule in ("round-robin", *SCHEDULES)}) == 1


def test_a_flag_that_stays_in_a_register_is_waited_for_in_vain() -> None:
    source = "if (t == 32) { *(volatile int *)&flag = 1; } if (t == 0) { while (flag == 0) { } } out[t] = 1;"
    for waits in (source, source.replace("flag == 0", "*(volatile int *)&flag == 0")):
        module = make_kernel("int before = flag; " + waits + " out[t] += before;")
        module.set_constant("flag", np.zeros(1, np.int32))
        if waits == source:
            with pytest.raises(LaunchError, match="this loop did not end"):
                run(module, ALL_KEPT, 64, max_rounds=100)
        else:
            assert run(module, ALL_KEPT, 64, max_rounds=100)[0] == 1


def test_mistakes_are_found_where_they_stand() -> None:
    with pytest.raises(LaunchError, match=r"Invalid __shared__ write of size 4 bytes .* element 64 of s") as caught:
        run(make_kernel("s[t + 33] = 1;"), ALL_KEPT)
    assert caught.value.position is not None
    assert caught.value.position.line == 8


def test_what_children_find_and_leave() -> None:
    module = build("""
    __global__ void child(int *out) { out[threadIdx.x] += 1; }
    __global__ void k(const int *in, int *out) {
        int t = threadIdx.x;
        out[t] = in[t];
        __syncthreads();
        if (t == 0) { child<<<1, 32>>>(out); cudaDeviceSynchronize(); }
        __syncthreads();
        out[t] *= 2;
    }""")
    for schedule in SCHEDULES:
        assert run(module, schedule).tolist() == [2 * (each + 1) for each in range(100, 132)]


def test_the_old_last_warp_is_wrong_without_volatile() -> None:
    """The answer to an old text's question; a recording of it is stepped like any other."""
    pattern = find_pattern("reduction")
    text = (KERNELS / "reduction.cu").read_text(encoding="utf-8").replace("volatile VALUE *w = s", "VALUE *w = s")
    params = {"input": "ramp", "n": 64, "operator": "sum", "dtype": "int32", "block": "64"}
    sums = set()
    for schedule in ("round-robin", ALL_KEPT):
        sources = {"reduction.cu": text}
        made = record_pattern(
            Workload(pattern, pattern.variant("volatile"), {}, params, sources=sources),
            lambda _: None,
            schedule=schedule,
        )
        trace = made.launches[-1].trace
        check_states(trace)
        end = len(trace.events)
        sums.add(int(trace.array("partial", end)[0]))
        found = trace.ancestry(trace.find_node("partial", 0, end))
        # What made the sum are the elements that came into it, and no others.
        assert sum(int(node.value) for node in found.inputs) == trace.array("partial", end)[0]
        stale = [
            access
            for event in trace.events
            for access in event.accesses
            if access.action == "read"
            and access.values.tolist() != _values_in_memory(trace, access, event.number).tolist()
        ]
        assert bool(stale) == (schedule == ALL_KEPT)
    assert len(sums) == 2


def _values_in_memory(trace: Trace, access: TraceAccess, step: int) -> Array:
    """Return what the memory itself held where lanes read."""
    content: Array = trace.array(int(access.arrays[0]), step)[access.elements]
    return content
