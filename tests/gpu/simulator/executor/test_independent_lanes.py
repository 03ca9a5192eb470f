"""Lanes that part: they wait for each other where the language promises it, and nowhere else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpu.base.errors import LaunchError
from gpu.patterns import find_pattern
from gpu.run.pattern_run import record_pattern
from gpu.run.workload import Workload
from gpu.simulator.checkers.races.races import RaceChecker
from gpu.simulator.simulated_module import SimulatedModule
from gpu.stepping.moment.lanes import LaneState, LaneStates
from gpu.stepping.tally import Tally
from tests.gpu.simulator import statements
from tests.gpu.simulator.kernel_runner import build
from tests.gpu.simulator.trace_checks import check_states

Array = np.ndarray[Any, Any]
SEEDS = range(6)


def run(module: SimulatedModule, schedule: str, block: int = 32, size: int | None = None, **options: Any) -> Array:
    """Run a kernel of one block over 0, 1, ..., and return what it writes."""
    given = np.arange(size or block, dtype=np.int32)
    out = np.zeros_like(given)
    arguments = [given.view(np.uint8), out.view(np.uint8)]
    module.kernel("k").launch((1, 1, 1), (block, 1, 1), arguments, schedule=schedule, **options)
    return out


def make_kernel(body: str) -> SimulatedModule:
    return build(f"""
    #include <cooperative_groups.h>
    namespace cg = cooperative_groups;
    __device__ int flag, lock, count;
    __global__ void k(const int *in, int *out) {{
        __shared__ int s[64];
        int t = threadIdx.x;
        {body}
    }}""")


MEETINGS = {
    "shuffles": "int v = in[t]; for (int d = 16; d; d /= 2) v += __shfl_down_sync(~0u, v, d); out[t] = v;",
    "a part of a warp": "if (t < 12) out[t] = __shfl_xor_sync(0xfff, in[t], 1) + __reduce_add_sync(0xfff, t);",
    "two parts at once": "unsigned m = t % 2 ? 0xaaaaaaaa : 0x55555555; out[t] = __shfl_up_sync(m, in[t], 2);",
    "votes": "out[t] = __any_sync(~0u, t == 3) + 2 * __all_sync(~0u, t < 32) + 4 * __match_any_sync(~0u, t / 5);",
    "the warp": "s[t] = in[t]; __syncwarp(); int v = s[t ^ 7]; __syncwarp(); s[t] = v;"
    "__syncwarp(); out[t] = s[31 - t];",
    "lanes that have ended": "if (t >= 20) return; s[t] = in[t]; __syncwarp(); out[t] = s[19 - t];",
    "the block": "s[t] = in[t]; out[t] = __syncthreads_count(t < 5) + s[31 - t];",
    "tiles": "auto tile = cg::tiled_partition<8>(cg::this_thread_block()); s[t] = in[t]; tile.sync();"
    "out[t] = s[t ^ 5] + tile.shfl_down(in[t], 1) + tile.any(t == 9);",
    "a group": "auto g = cg::binary_partition(cg::tiled_partition<32>(cg::this_thread_block()), t < 7);"
    "s[t] = in[t]; g.sync(); out[t] = g.size() + g.shfl(s[t], 2);",
    "atomics": "int old = atomicAdd(&count, 1); atomicMax(&out[0], old); atomicAdd(&out[1 + t % 4], t);",
}


@pytest.mark.parametrize("body", MEETINGS.values(), ids=MEETINGS)
def test_lanes_meet_where_it_is_promised(body: str) -> None:
    module = make_kernel(body)
    right = run(module, "round-robin").tolist()
    for seed in SEEDS:
        module.set_constant("count", np.zeros(1, np.int32))
        found = RaceChecker()
        assert run(module, f"lanes:{seed}", observers=[found]).tolist() == right
        assert found.findings == []


def test_lanes_meet_from_different_lines() -> None:
    """As on hardware since Volta; in lockstep each line's lanes are among themselves."""
    module = make_kernel("if (t < 9) out[t] = __ballot_sync(~0u, t & 1); else out[t] = __ballot_sync(~0u, t & 1);")
    for seed in SEEDS:
        assert (run(module, f"lanes:{seed}").view(np.uint32) == 0xAAAAAAAA).all()


def test_a_lane_waits_for_another_of_its_warp() -> None:
    """Hardware since Volta lets both go on; lanes that went together would wait for ever."""
    module = make_kernel("""
        volatile int *ready = &flag;
        if (t == 0) { while (*ready == 0) { } out[0] = 7; } else if (t == 1) { *ready = 1; }
        while (atomicCAS(&lock, 0, 1) != 0) { }
        volatile int *guarded = &count;
        *guarded = *guarded + 1;
        __threadfence();
        atomicExch(&lock, 0);
        out[t] = 1;""")
    for seed in SEEDS:
        for name in ("flag", "lock", "count"):
            module.set_constant(name, np.zeros(1, np.int32))
        assert run(module, f"lanes:{seed}", max_rounds=20_000).all()
        memory = module._variables["count"].memory
        assert memory is not None
        assert memory.data.view(np.int32)[0] == 32  # type: ignore[attr-defined]


def test_updates_are_lost_between_the_read_and_the_write() -> None:
    module = make_kernel("if (t == 0) s[0] = 0; __syncthreads(); s[0] += 1; __syncthreads(); out[t] = s[0];")
    counted = {int(run(module, f"lanes:{seed}")[0]) for seed in SEEDS}
    assert len(counted) > 1
    assert min(counted) >= 1
    assert max(counted) <= 32


@pytest.mark.parametrize(
    ("body", "who", "op"),
    [
        ("if (t < 31) out[t] = __shfl_sync(~0u, t, 0); else __syncthreads();", r"\(31,0,0\)", "__shfl_sync"),
        ("if (t < 16) __syncwarp(); else __syncwarp(0xffff0000);", r"\(16,0,0\)", "__syncwarp"),
    ],
)
def test_lanes_that_are_named_and_do_not_come(body: str, who: str, op: str) -> None:
    for seed in SEEDS:
        with pytest.raises(LaunchError, match=rf"Divergent thread\(s\) in warp: {op}\(\) names thread {who}") as caught:
            run(make_kernel(body.replace("__syncwarp(0xffff0000)", "__syncthreads()")), f"lanes:{seed}")
        assert caught.value.kind == "barrier"
        assert caught.value.position is not None
        assert caught.value.position.line == 8


def test_a_barrier_that_a_lane_does_not_reach() -> None:
    for seed in SEEDS:
        with pytest.raises(LaunchError, match=r"__syncthreads\(\) is not reached by thread"):
            run(make_kernel("if (t != 5) __syncthreads(); out[t] = 1;"), f"lanes:{seed}")


@st.composite
def exchanges(draw: st.DrawFn) -> list[tuple[str, int]]:
    """Return steps in which each thread takes from another one's place: across warps, or within one."""
    near = st.tuples(st.just("__syncwarp();"), st.integers(1, 31))
    far = st.tuples(st.just("__syncthreads();"), st.integers(1, 63))
    return draw(st.lists(near | far, min_size=1, max_size=4))


@settings(max_examples=8, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(steps=exchanges(), seed=st.integers(0, 1000))
def test_programs_with_and_without_their_barriers(steps: list[tuple[str, int]], seed: int) -> None:
    """Free of races, they give the same in every order; without what orders them they do not."""
    orders = [f"shuffle:{seed}", f"lanes:{seed}", f"cached:{seed}"]
    text = "s[t] = in[t]; __syncthreads();" + "".join(
        f"{{ int v = s[t ^ {by}]; {sync} s[t] = v * 3 + s[t]; {sync} }}" for sync, by in steps
    )
    # A step within a warp follows one across warps only behind a barrier of the block.
    text = text.replace("{ int v", "__syncthreads(); { int v") + "__syncthreads(); out[t] = s[t];"
    whole = make_kernel(text)
    right = run(whole, "round-robin", 64).tolist()
    for schedule in orders:
        found = RaceChecker()
        assert run(whole, schedule, 64, observers=[found]).tolist() == right
        assert found.findings == []
    racy = make_kernel(f"s[t] = in[t] + 1; __syncthreads(); s[t] += 5 * s[t ^ {steps[0][1]}]; out[t] = s[t];")
    found = RaceChecker()
    answers = {run(racy, f"lanes:{seed + each}", 64, observers=[found]).tobytes() for each in range(4)}
    assert len(answers) > 1
    assert found.findings


@settings(max_examples=6, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(body=statements.bodies(), seed=st.integers(0, 1000))
def test_random_programs_without_races(body: str, seed: int) -> None:
    module = build(f"""
    #define LEAVE(value) {{ out[t] = (value); return; }}
    __global__ void k(const int *in, int *out) {{
        int t = threadIdx.x;
        int a = in[t], b = in[t ^ 1], c = t;
        {body}
    }}""")
    right = run(module, "round-robin", 40)
    for schedule in (f"lanes:{seed}", f"cached:{seed}"):
        assert (run(module, schedule, 40) == right).all()


@pytest.mark.parametrize("seed", [0, 1, pytest.param(2, marks=pytest.mark.sweep)])
def test_a_trace_says_what_each_lane_did(seed: int) -> None:
    params = {"input": "ramp", "n": 16, "operator": "sum", "dtype": "int32", "block": "8"}
    pattern = find_pattern("reduction")
    for variant in ("shuffle", "last-warp", "volatile"):
        made = record_pattern(
            Workload(pattern, pattern.variant(variant), {}, params), lambda _: None, schedule=f"lanes:{seed}"
        )
        together = record_pattern(Workload(pattern, pattern.variant(variant), {}, params), lambda _: None)
        for launch, other in zip(made.launches, together.launches, strict=True):
            trace = launch.trace
            check_states(trace)
            assert all(event.lanes.size == 1 for event in trace.events)
            for lane in range(8):
                assert own_statements(trace, lane) == own_statements(other.trace, lane)
        states = LaneStates(made)
        found = {int(state) for moment in range(made.event_count) for state in np.unique(states.lanes_at(moment).state)}
        assert {LaneState.ACTIVE, LaneState.READY, LaneState.WAITING, LaneState.FINISHED} <= found
        assert LaneState.IDLE not in found
        if variant != "volatile":
            assert (
                Tally(made).counts_at(made.event_count).operations
                == Tally(together).counts_at(together.event_count).operations
            )


def own_statements(trace: Any, lane: int) -> list[Any]:
    return [(event.kind, event.position) for event in trace.events if lane in event.lanes and not event.is_resumed]


def test_the_preset_keeps_its_promise() -> None:
    """Lanes that part give the last warp by volatile alone another sum; registers do so where nothing is volatile."""
    pattern = find_pattern("reduction")
    (preset,) = [each for each in pattern.presets if "volatile" in each.title]
    sums = {}
    for schedule in ("round-robin", "shuffle:1", "lanes:1", "lanes:2", "cached:0", "cached:1"):
        made = record_pattern(
            Workload(pattern, pattern.variant("volatile"), {}, preset.params), lambda _: None, schedule=schedule
        )
        trace = made.launches[-1].trace
        sums[schedule] = int(trace.array("partial", len(trace.events))[0])
        assert trace.findings
    assert {sums[each] for each in ("round-robin", "shuffle:1", "cached:0", "cached:1")} == {64 * 63 // 2}
    assert len({sums[each] for each in ("round-robin", "lanes:1", "lanes:2")}) == 3


@pytest.mark.parametrize("schedule", ["round-robin", "shuffle:1", "lanes:1"])
@pytest.mark.parametrize("block", [32, 77])
def test_lanes_of_two_branches_meet_at_two_calls(schedule: str, block: int) -> None:
    module = build("""__global__ void k(const int *in, int *out) {
        __shared__ volatile int s[96];
        int t = threadIdx.x;
        out[t] = -1;
        if (t % 2) {
            s[t] = in[t];
            __syncwarp();
            out[t] = s[t - 1];
        } else {
            s[t] = -in[t];
            __syncwarp();
            out[t] = t + 1 < blockDim.x ? s[t + 1] : 0;
        }
    }""")
    expected = [1 - t if t % 2 else (t + 1 if t + 1 < block else 0) for t in range(block)]
    for _ in range(2):
        assert run(module, schedule, block).tolist() == expected
