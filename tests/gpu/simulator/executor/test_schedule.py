"""Shuffled warps: races show, what is free of races gives the same bits, barriers hold, and one seed is one order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpu.base.errors import InputError, LaunchError
from gpu.base.lane_mask import LaneMask
from gpu.engines.simulator import SimulatedBuffer, SimulatorEngine
from gpu.patterns import all_patterns, find_pattern
from gpu.recording.trace import Trace
from gpu.run.pattern_run import run_pattern
from gpu.run.workload import Workload
from gpu.simulator.checkers.races.races import RaceChecker
from gpu.simulator.executor.launch import SimulatedKernel
from gpu.simulator.executor.scheduling.choosers import LateChooser
from gpu.simulator.executor.state.batch import BlockBatch
from gpu.simulator.executor.state.observer import IssuedStep, Observer
from gpu.simulator.simulated_module import SimulatedModule
from tests.gpu.simulator import statements
from tests.gpu.simulator.kernel_runner import build
from tests.gpu.simulator.trace_checks import check_states, waiting_lanes
from tests.gpu.simulator.watched_launch import launch_watched

Array = np.ndarray[Any, Any]

KOGGE_STONE = """
__global__ void k(const int *in, int *out) {
    __shared__ int s[1024];
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    s[t] = in[i];
    __syncthreads();
    for (int d = 1; d < blockDim.x; d *= 2) {
        int left = t >= d ? s[t - d] : 0;
        FIRST;
        s[t] += left;
        SECOND;
    }
    out[i] = s[t];
}"""

BRENT_KUNG = """
__global__ void k(const int *in, int *out) {
    __shared__ int s[1024];
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    s[t] = in[i];
    for (int d = 1; d < blockDim.x; d *= 2) {
        FIRST;
        int at = (t + 1) * 2 * d - 1;
        if (at < blockDim.x) s[at] += s[at - d];
    }
    for (int d = blockDim.x / 4; d > 0; d /= 2) {
        SECOND;
        int at = (t + 1) * 2 * d - 1;
        if (at + d < blockDim.x) s[at + d] += s[at];
    }
    __syncthreads();
    out[i] = s[t];
}"""

REDUCTION = """
__device__ float tree(float *s, int t) {
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
        if (t < half) s[t] += s[t + half];
        __syncthreads();
    }
    return s[0];
}
__global__ void k(const float *in, float *out) {
    extern __shared__ float s[];
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    float mine[2];
    mine[0] = in[i]; mine[1] = mine[0] * 0.5f;
    s[t] = mine[0] - mine[1];
    __syncthreads();
    float sum = tree(s, t);
    out[i] = sum + __syncthreads_count(in[i] > 0.5f) + 1000 * __syncthreads_or(t == 40);
}"""

SYNCS = {"FIRST": "__syncthreads()", "SECOND": "__syncthreads()"}


def run(module: SimulatedModule, schedule: str, given: Array, block: int, shared_bytes: int = 0) -> Array:
    """Run a kernel over as many blocks as it takes, and return what it writes."""
    out = np.zeros_like(given)
    arguments = [given.view(np.uint8), out.view(np.uint8)]
    grid = (given.size // block, 1, 1)
    module.kernel("k").launch(grid, (block, 1, 1), arguments, schedule=schedule, shared_bytes=shared_bytes)
    return out


def values(size: int) -> Array:
    return np.random.default_rng(3).integers(-(2**31), 2**31, size).astype(np.int32)


@pytest.mark.parametrize(
    ("source", "missing", "block"),
    [
        *(
            (source, missing, block)
            for source in (KOGGE_STONE, BRENT_KUNG)
            for missing in SYNCS
            for block in (128, 256)
        ),
        *((KOGGE_STONE, missing, 64) for missing in SYNCS),
        (BRENT_KUNG, "FIRST", 64),  # the second half of a scan of 64 is all one warp's
    ],
)
def test_a_scan_without_a_barrier_gives_other_answers(source: str, missing: str, block: int) -> None:
    whole, given = build(source, SYNCS), values(block)
    right = np.cumsum(given, dtype=np.int32)
    schedules = ["round-robin", *(f"shuffle:{seed}" for seed in range(12))]
    for schedule in schedules:
        assert (run(whole, schedule, given, block) == right).all()
    racy = build(source, SYNCS | {missing: ""})
    answers = [run(racy, schedule, given, block).tobytes() for schedule in schedules]
    assert len(set(answers)) > 1
    assert answers == [run(racy, schedule, given, block).tobytes() for schedule in schedules]


@settings(max_examples=10, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 10**12), block=st.sampled_from([32, 64, 128, 256]), blocks=st.integers(1, 20))
def test_a_reduction_gives_the_same_bits_for_every_seed(seed: int, block: int, blocks: int) -> None:
    given = np.random.default_rng(seed).random(block * blocks).astype(np.float32)
    module = build(REDUCTION)
    expected = run(module, "round-robin", given, block, 4 * block)
    assert run(module, f"shuffle:{seed}", given, block, 4 * block).tobytes() == expected.tobytes()
    rows = given.reshape(blocks, block)
    sums = (rows / 2).sum(axis=1, dtype=np.float64) + (rows > 0.5).sum(axis=1) + 1000 * (block > 40)
    assert np.allclose(expected.reshape(blocks, block), sums[:, None], rtol=1e-5)


@settings(max_examples=6, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(body=statements.bodies(), seed=st.integers(0, 1000))
def test_random_programs_without_races(body: str, seed: int) -> None:
    module = build(f"""
    #define LEAVE(value) {{ out[t] = (value); return; }}
    __global__ void k(const int *in, int *out) {{
        int t = blockIdx.x * blockDim.x + threadIdx.x;
        int a = in[t], b = in[t ^ 1], c = t;
        {body}
    }}""")
    given = np.random.default_rng(seed).integers(-20, 20, 160).astype(np.int32)
    assert (run(module, f"shuffle:{seed}", given, 80) == run(module, "round-robin", given, 80)).all()


class _ScheduledEngine(SimulatorEngine):
    """An engine that runs every launch in an order, and looks for races; what it launches another one has built."""

    def __init__(self, builder: SimulatorEngine, schedule: str) -> None:
        super().__init__()
        self.builder = builder
        self.schedule = schedule
        self.checker = RaceChecker()

    def build(self, file: str, defines: Any = None) -> Any:
        return self.builder.build_simulated_module(file, defines)

    def launch(self, kernel: Any, grid: Any, block: Any, *arguments: Any, shared_bytes: int = 0) -> None:
        assert isinstance(kernel, SimulatedKernel)
        bound = [argument.data if isinstance(argument, SimulatedBuffer) else argument for argument in arguments]
        options: dict[str, Any] = {"shared_bytes": shared_bytes, "observers": [self.checker]}
        kernel.launch(grid, block, bound, schedule=self.schedule, **options)


@pytest.fixture(scope="module")
def lockstep_engine() -> SimulatorEngine:
    return SimulatorEngine("lockstep")


# Whose blocks put their part of the result where the next free place is.
UNORDERED = {("compaction", "ballot")}


LADDERS = [
    (name, variant.name)
    for name, pattern in all_patterns().items()
    for variant in pattern.variants
    if not variant.library
]


def check_ladder(
    in_turn: SimulatorEngine,
    names: tuple[str, str],
    block: int,
    sizes: tuple[int, int],
    image: tuple[int, int],
    *schedules: str,
) -> None:
    """Let a variant run in some orders: each must give what lockstep does, without a finding.

    `sizes` are those of what has one dimension and of what has two.
    """
    declared = find_pattern(names[0])
    chosen = declared.variant(names[1])
    params = {field.name: field.default for field in declared.parameters} | dict(declared.step_params)
    # Integers, so that the order in which atomics add makes no difference; a matrix has digits.
    type = {"dtype": "int32"} if declared.dimensions == 1 and not declared.is_image_pattern else {}
    params |= {
        name: value
        for name, value in {"n": sizes[declared.dimensions - 1], "block": block, **type}.items()
        if name in params
    }
    if not declared.is_image_pattern:
        inputs = declared.make_input(params, 7)
    else:
        pixels = np.random.default_rng(7).integers(0, 256, image, np.uint8)
        inputs = {"image": pixels, "maxval": np.array(255, np.uint8)}

    def outputs(engine: SimulatorEngine) -> Any:
        return run_pattern(
            engine, Workload(declared, chosen, inputs, params), lambda progress: None, with_reference=False
        ).outputs

    rights = outputs(in_turn)
    for schedule in schedules:
        engine = _ScheduledEngine(in_turn, schedule)
        found = outputs(engine)
        if chosen.deliberate_error:
            continue
        assert engine.checker.findings == []
        for name, right in rights.items():
            given = found[name]
            if names in UNORDERED:
                right, given = np.sort(right, axis=None), np.sort(given, axis=None)
            assert given.tobytes() == right.tobytes()


def _list_variants_by_tier(remainder: int, *slow: tuple[str, str]) -> list[Any]:
    """Return all variants; the first tier has those whose numbers have a remainder modulo 4, but not the slow ones.

    It has a quarter of the variants with another order of warps, and another quarter with another order of lanes.
    """
    assert set(slow) <= set(LADDERS)
    return [
        pytest.param(names, marks=[pytest.mark.sweep] * (number % 4 != remainder or names in slow))
        for number, names in enumerate(LADDERS)
    ]


@pytest.mark.parametrize(
    "names", _list_variants_by_tier(0, ("matmul", "warpgroups"), ("sort", "one-thread")), ids="-".join
)
def test_the_ladders(lockstep_engine: SimulatorEngine, names: tuple[str, str]) -> None:
    check_ladder(lockstep_engine, names, 64, (150, 19), (21, 35), "shuffle:5")


@pytest.mark.parametrize(
    "names",
    _list_variants_by_tier(
        1, ("matmul", "warpgroups"), ("sort", "peak"), ("convolution", "register-tiled"), ("convolution", "fft")
    ),
    ids="-".join,
)
def test_the_ladders_with_lanes_apart_and_with_registers(
    lockstep_engine: SimulatorEngine, names: tuple[str, str]
) -> None:
    seed = LADDERS.index(names)
    check_ladder(lockstep_engine, names, 16, (20, 3), (2, 5), f"lanes:{seed}", "cached:0", f"cached:{seed + 1}")


@pytest.mark.parametrize(
    "text", ["", "shuffle", "shuffle:", "shuffle:-1", "shuffle:1.5", "Shuffle:1", "random:1", "shuffle:٣"]
)
def test_what_is_no_schedule(text: str) -> None:
    with pytest.raises(
        InputError, match="is not a schedule: use round-robin, shuffle:SEED, lanes:SEED, preempt:SEED or cached:SEED"
    ):
        run(build(REDUCTION), text, np.zeros(32, np.float32), 32, 128)


@pytest.mark.parametrize(
    ("body", "line"),
    [
        ("if (t < 40) __syncthreads();", 2),
        ("if (t < 64) __syncthreads();", 2),
        ("if (t < 64) { out[t] = 1; __syncthreads(); } else { out[t] = 2;\n__syncthreads(); }", None),
        ("for (int k = 0; k < (t < 64 ? 3 : 2); k++) __syncthreads();", 2),
        ("if (t >= 64) return;\nout[t] = __syncthreads_count(1);\nif (t < 32) out[t] = __syncthreads_or(1);", 4),
    ],
)
@pytest.mark.parametrize("seed", range(4))
def test_a_barrier_that_some_do_not_reach(body: str, line: int | None, seed: int) -> None:
    module = build(f"__global__ void k(const int *in, int *out) {{ int t = threadIdx.x;\n{body}\n}}")
    with pytest.raises(LaunchError, match="is not reached by thread") as caught:
        run(module, f"shuffle:{seed}", values(128), 128)
    assert caught.value.kind == "barrier"
    assert caught.value.position is not None
    assert line in (None, caught.value.position.line)
    assert caught.value.thread in caught.value.message


def test_threads_that_have_returned_are_not_waited_for() -> None:
    module = build("""__global__ void k(const int *in, int *out) {
        int t = threadIdx.x;
        if (t >= 70) return;
        for (int round = 0; round < 3; round++) { __syncthreads(); out[t] = in[t] + __syncthreads_count(t < 50); }
    }""")
    given = values(128)
    for seed in range(4):
        out = run(module, f"shuffle:{seed}", given, 128)
        assert (out[:70] == given[:70] + 50).all()
        assert not out[70:].any()


def test_warps_and_blocks_that_wait_for_each_other_end() -> None:
    module = build("""
    __device__ volatile int flags[64];
    __global__ void k(const int *in, int *out) {
        __shared__ volatile int ready;
        int t = threadIdx.x, b = blockIdx.x;
        if (t == 0) ready = 0;
        __syncthreads();
        if (t == 32) {                                  // waits for the next block, and tells the first warp
            if (b + 1 < gridDim.x) while (flags[b + 1] == 0) { }
            flags[b] = 1;
            __threadfence_block();
            ready = 1;
        }
        if (t < 32) { while (ready == 0) { } }
        out[b * 64 + t] = flags[b];
    }""")
    for seed in range(3):
        module.set_constant("flags", np.zeros(64, np.int32))
        assert run(module, f"shuffle:{seed}", values(64 * 6), 64).reshape(6, 64)[:, :32].all()


def test_a_loop_that_does_not_end_is_reported_with_its_line() -> None:
    module = build("__global__ void k(const int *in, int *out) {\nwhile (out[0] == 0) { }\n}")
    out = np.zeros(64, np.uint8)
    with pytest.raises(LaunchError, match="this loop did not end") as caught:
        module.kernel("k").launch((1, 1, 1), (64, 1, 1), [out, out], schedule="shuffle:1", max_rounds=500)
    assert caught.value.position is not None
    assert caught.value.position.line == 2


def test_a_fault_ends_all_warps_and_the_kernel_runs_again() -> None:
    module = build(
        "__global__ void k(const int *in, int *out) { __syncthreads(); out[threadIdx.x] = in[threadIdx.x]; }"
    )
    short = np.zeros(4 * 100, np.uint8)
    with pytest.raises(LaunchError, match=r"element \d+ of out, which has 100"):
        module.kernel("k").launch((1, 1, 1), (256, 1, 1), [np.zeros(1024, np.uint8), short], schedule="shuffle:1")
    given = values(256)
    assert (run(module, "shuffle:1", given, 256) == given).all()


def trace_kernel(source: str, schedule: str, given: Array, block: int, **options: Any) -> tuple[Trace, Array]:
    out = np.zeros_like(given)
    grid = (given.size // block, 1, 1)
    arguments = [given.view(np.uint8), out.view(np.uint8)]
    made = build(source, SYNCS).trace("k", grid, (block, 1, 1), arguments, schedule=schedule, **options)
    return made, out


@pytest.mark.parametrize("seed", range(3))
def test_a_shuffled_trace_says_what_each_warp_did(seed: int) -> None:
    given = values(2 * 40) % 100
    pick = "__device__ int pick(int *s, int t, int d) { int got = 0; if (t >= d) got = s[t - d]; return got; }"
    source = pick + KOGGE_STONE.replace("t >= d ? s[t - d] : 0", "pick(s, t, d)")
    made, out = trace_kernel(source, f"shuffle:{seed}", given, 40)
    assert made.schedule == f"shuffle:{seed}"
    assert (out == np.cumsum(given.reshape(2, 40), axis=1, dtype=np.int32).ravel()).all()
    check_states(made)
    for event in made.events:
        assert np.unique(event.lanes // 32).size == 1
    # Each warp's own events are those that it has in lockstep.
    together, _ = trace_kernel(source, "round-robin", given, 40)
    for first in range(0, 2 * 64, 32):
        assert warp_events(made, first) == warp_events(together, first)
    for element in (0, 31, 39, 40, 79):
        found = made.ancestry(made.find_node("out", element, len(made.events)))
        assert sorted(node.element for node in found.inputs) == list(range(element // 40 * 40, element + 1))
        assert sum(int(node.value) for node in found.inputs) == out[element]


def warp_events(made: Trace, first: int) -> list[Any]:
    """Return the statements of a warp, with its lanes and its variables; what resumes a statement is left out."""
    found = []
    for event in made.events:
        lanes = event.lanes[(event.lanes >= first) & (event.lanes < first + 32)]
        if lanes.size and not event.is_resumed:
            found.append((event.kind, event.position, event.function, lanes.tolist()))
    return found


def test_who_waits_at_a_barrier_at_any_moment() -> None:
    made, _ = trace_kernel(KOGGE_STONE, "shuffle:4", values(2 * 96), 96)
    waiting = np.zeros(192, bool)
    passed, most = 0, 0
    for event in made.events:
        assert (waiting_lanes(made, event.number) == waiting).all()
        assert not waiting[event.lanes].any()
        if event.kind == "barrier":
            waiting[event.lanes] = True
            for block in (waiting[:96], waiting[96:]):
                if block.all():
                    block[:] = False
                    passed += 1
        most = max(most, int(waiting.sum()))
    assert passed == 2 * 15
    assert most >= 96
    lockstep, _ = trace_kernel(KOGGE_STONE, "round-robin", values(96), 96)
    assert not any(waiting_lanes(lockstep, step).any() for step in range(len(lockstep.events)))


def test_an_array_of_each_threads_own_is_one_for_all_warps() -> None:
    made, _ = trace_kernel(REDUCTION, "shuffle:4", np.ones(128, np.float32), 128, shared_bytes=512)
    assert [each.name for each in made.arrays if each.space == "local"] == ["mine"]
    assert (made.array("mine", len(made.events)) == [1, 0.5]).all()


def test_kernels_that_kernels_launch_are_shuffled_too() -> None:
    source = """
    __global__ void child(int *out, int first) {
        __shared__ int s[64];
        int t = threadIdx.x;
        s[t] = out[first + t];
        __syncthreads();
        out[first + t] = s[63 - t] + t;
    }
    __global__ void k(const int *in, int *out) {
        __shared__ int done;
        int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
        out[i] = in[i];
        __syncthreads();
        if (t == 40) { child<<<1, 64>>>(out, i - t); cudaDeviceSynchronize(); done = 7; }
        __syncthreads();
        out[i] = 2 * out[i] + done;
    }"""
    given = values(128) % 1000
    right = 2 * (given.reshape(2, 64)[:, ::-1] + np.arange(64)) + 7
    for schedule in ("round-robin", "shuffle:1", "shuffle:2"):
        made, out = trace_kernel(source, schedule, given, 64)
        assert (out.reshape(2, 64) == right).all()
        assert [each.kernel for each in made.launches] == ["k", "child", "child"]
        check_states(made)
        found = made.ancestry(made.find_node("out", 3, len(made.events)))
        assert [node.element for node in found.inputs if node.array == 0] == [60]


class StepCounter(Observer):
    """Counts the statements of the first warp and of all others."""

    def __init__(self) -> None:
        self.first = self.others = 0

    def step(self, batch: BlockBatch, step: IssuedStep, mask: LaneMask) -> None:
        if mask.bits[0]:
            self.first += 1
        else:
            self.others += 1


FLAG = "*(volatile int *)flag"


@pytest.mark.parametrize(
    ("wait", "ends"),
    [
        (f"for (int k = 0; k < 1000000 && {FLAG} == 0; ++k) {{}}", True),
        (f"unsigned tries = 100000; while ({FLAG} == 0 && tries--) {{}}", True),
        (f"int k = 0; while ({FLAG} == 0) {{ if (++k == 30000) break; }}", True),
        (f"for (long long k = 0; k < 1LL << 40; k += 2) {{ int is_set = {FLAG}; if (is_set) break; }}", True),
        ("for (int k = 0; k < 500; ++k) if (atomicAdd(flag, 0)) break;", True),
        (f"while ({FLAG} == 0) {{}}", False),
        (f"int k = 0; while ({FLAG} == 0) ++k;", False),
        ("unsigned ns = 8; while (atomicAdd(flag, 0) == 0) { __nanosleep(ns); if (ns < 256) ns *= 2; }", False),
        # Not a wait: each iteration reads another element, or another lane acts in each.
        (f"int sum = 0; for (int k = 0; k < 40; ++k) sum += (&{FLAG})[k]; while (!sum && !{FLAG}) {{}}", False),
        (f"for (int k = 0; k < 40; ++k) if (k > 29 && k < 31) atomicAdd(&out[1], 1); while ({FLAG} == 0) {{}}", False),
    ],
)
def test_a_wait_may_be_longer_than_any_number_of_iterations(wait: str, ends: bool) -> None:
    source = f"""__global__ void f(int *flag, int *out) {{
        if (threadIdx.x == 0) {{
            for (int i = 0; i < 60; ++i) out[2 + i] = i;
            atomicExch(flag, 1);
        }} else if (threadIdx.x == 32) {{
            {wait}
            out[0] = {FLAG};
        }}
    }}"""
    out = np.zeros(62, np.int32)
    module, chooser = build(source), LateChooser(1)
    arguments = [np.zeros(40, np.int32).view(np.uint8), out.view(np.uint8)]
    module.kernel("f").launch((1, 1, 1), (64, 1, 1), arguments, schedule=chooser)
    assert out[0] == (not ends)
    assert out[1] == ("out[1]" in wait)


@pytest.mark.parametrize("schedule", ["shuffle:1", "shuffle:2"])
@pytest.mark.parametrize("read", ["*(volatile int *)flag", "atomicAdd(flag, 0)"])
def test_warps_that_wait_for_another_hardly_slow_it_down(schedule: str, read: str) -> None:
    source = f"""__global__ void f(int *flag, int *out) {{
        if (threadIdx.x == 0) {{
            for (int i = 0; i < 60; ++i) out[i] = i;
            atomicExch(flag, 1);
        }} else if (threadIdx.x % 32 == 0) {{
            while ({read} == 0) {{}}
            atomicAdd(&out[60], out[59]);
        }}
    }}"""
    counter, out = StepCounter(), np.zeros(61, np.int32)
    launch_watched(counter, source, np.zeros(1, np.int32), out, block=1024, schedule=schedule)
    assert out[60] == 31 * 59
    # In turns, each of the 31 warps would execute as many statements as the first one.
    assert counter.others < 8 * counter.first
