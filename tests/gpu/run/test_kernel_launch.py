"""Kernels that no pattern declares: what they take, what comes of a launch, and its recording."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gpu.base.errors import CompileError, InputError, KernelError, LaunchError
from gpu.engines.null import NullEngine
from gpu.messages.kernels import (
    CountKernel,
    DescribeKernels,
    KernelLaunch,
    KernelParameter,
    RunKernel,
    StepKernel,
    are_results_equal,
)
from gpu.messages.shared_arrays import SharedFolder
from gpu.messages.verdicts import Mistake, Remedy, decide_launch_verdict
from gpu.recording.recording import Recording
from gpu.run.handlers.execution import execute_request
from gpu.run.kernel_launch import run_kernel

TEXT = """struct Pair { int a; float b; };
__global__ void shift(float *data, const int *__restrict__ by, int n, float scale, Pair pair) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n - 1) data[i] = data[i + 1] * scale;
    if (i == 3) printf("by %d\\n", by[0]);
}
template <typename T, int N> __global__ void fill(T *out) { out[threadIdx.x] = N; }
__global__ void strange(int *a) { goto inside; { inside: a[0]++; } }
"""


@pytest.fixture
def folder():
    made = SharedFolder()
    yield made
    made.close()


def run_request(request, folder):
    return execute_request(NullEngine(), request, folder, lambda progress: None)


def launch_request(kernel, *arguments, text=TEXT, grid=(1,), block=(32,), **options):
    return KernelLaunch("/nowhere/mine.cu", text, kernel, grid, block, arguments, **options)


def test_the_kernels_of_a_file_and_what_they_take(folder):
    request = DescribeKernels("/nowhere/mine.cu", TEXT, {}, ("fill<int, 3>",))
    shift, strange, instance, template = run_request(request, folder)
    assert shift.name == "shift"
    assert shift.parameters == (
        KernelParameter("data", "float32 *", "pointer", False, 0),
        KernelParameter("by", "const int32 *", "pointer", True, 0),
        KernelParameter("n", "int32", "integer"),
        KernelParameter("scale", "float32", "real"),
        KernelParameter("pair", shift.parameters[4].type, "struct", parts=2),
    )
    assert "does not support" in strange.refusal
    assert (instance.name, [each.name for each in instance.parameters]) == ("fill<int, 3>", ["out"])
    assert (template.name, template.template) == ("fill", True)


def test_macros_count_and_a_text_that_does_not_compile_is_told(folder):
    text = "__global__ void k(REAL *a) { }"
    (kernel,) = run_request(DescribeKernels("/x.cu", text, {"REAL": "double"}), folder)
    assert kernel.parameters[0].type == "float64 *"
    with pytest.raises(CompileError):
        run_request(DescribeKernels("/x.cu", "int x = ;", {}), folder)


def test_a_launch_gives_arrays_findings_what_is_printed_and_figures_by_line(folder):
    result = run_request(RunKernel(launch_request("shift", "arange:32", "full:1:7", "32", "2", "1,2")), folder)
    assert np.array_equal(result.arrays["0"].open()[:31], 2 * np.arange(1, 32))
    simulated = result.simulation
    check = simulated.check
    assert check.mistakes == (Mistake("race", (4,)),)
    assert {(each.line, each.message.split(" ")[0]) for each in check.diagnostics} == {(2, "Unused"), (4, "Race")}
    assert not check.clean
    assert len(check.orders) == 3
    assert simulated.printed == (("thread (3,0,0) in block (0,0,0)", "by 7\n"),)
    assert simulated.lines[4].statements > 0
    assert simulated.lines[4].sectors is not None
    assert simulated.lines[3].sectors is None


TURNED = """__global__ void turn(int *out) {
    __shared__ int s[64];
    s[threadIdx.x] = threadIdx.x;
    BARRIER
    out[threadIdx.x] = s[63 - threadIdx.x];
}
"""


PUBLISHED = """__global__ void publish(int *data, int *flag, int *out) {
    if (blockIdx.x == 0) {
        *data = 42;
        BEFORE
        atomicExch(flag, 1);
    } else {
        while (atomicAdd(flag, 0) == 0) {}
        AFTER
        *out = *data;
    }
}
"""


@pytest.mark.parametrize("missing", ["BEFORE", "AFTER"])
def test_a_missing_fence_is_offered_at_its_place(folder, missing: str) -> None:
    text = PUBLISHED.replace(missing, "")
    text = text.replace("BEFORE", "__threadfence();").replace("AFTER", "__threadfence();")
    request = launch_request("publish", "zeros:1", "zeros:1", "zeros:1", text=text, grid=(2,), block=(1,))
    remedy = run_request(RunKernel(request), folder).simulation.check.remedy
    place = PUBLISHED.split("\n").index(f"        {missing}") + 1
    assert (remedy.line, remedy.text) == (place + 1, "        __threadfence();")


REVERSED = """__global__ void reverse(const float *a, float *b) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    __shared__ float s[64];
    s[i] = a[i];
    b[i] = s[63 - i];
}
"""


def test_an_edit_is_offered_for_a_race_that_is_an_uninitialized_read_in_another_schedule(folder) -> None:
    request = launch_request("reverse", "random:64", "zeros:64", text=REVERSED, block=(64,))
    check = run_request(RunKernel(request), folder).simulation.check
    assert {mistake.kind for mistake in check.mistakes} == {"race", "uninitialized"}
    assert (check.remedy.line, check.remedy.text) == (5, "    __syncthreads();")
    assert "element 63 of s. It occurs with --schedule " in check.diagnostics[-1].message


def test_a_missing_barrier_is_told_with_what_mends_it(folder):
    text = TURNED.replace("BARRIER", "")
    check = run_request(RunKernel(launch_request("turn", "zeros:64", text=text, block=(64,))), folder).simulation.check
    assert decide_launch_verdict(check).words == "race in lines 3 and 5"
    assert check.remedy.text == "    __syncthreads();"
    assert check.remedy.line == 5
    whole = TURNED.replace("BARRIER", "__syncthreads();")
    check = run_request(RunKernel(launch_request("turn", "zeros:64", text=whole, block=(64,))), folder).simulation.check
    assert check.clean
    assert decide_launch_verdict(check).words == "✓ no findings"


@pytest.mark.parametrize(
    ("body", "kind", "ended"),
    [("if (threadIdx.x < 3) __syncwarp();", "warp-mask", False), ("out[64] = 1;", "out-of-bounds", True)],
)
def test_other_orders_are_tried_unless_a_mistake_ends_the_launch(folder, body, kind, ended):
    text = f"__global__ void f(int *out) {{ {body} }}"
    check = run_request(RunKernel(launch_request("f", "zeros:64", text=text)), folder).simulation.check
    assert {each.kind for each in check.mistakes} >= {kind}
    assert check.ended == ended
    assert bool(check.orders) != ended


def test_a_result_that_an_order_decides_is_told_though_nothing_races(folder):
    text = "__global__ void first(int *out) { atomicCAS(out, 0, threadIdx.x / 32 + 1); }"
    check = run_request(RunKernel(launch_request("first", "zeros:1", text=text, block=(128,))), folder).simulation.check
    assert not check.mistakes
    assert decide_launch_verdict(check).words == f"its result depends on the schedule: {check.differing[0]}"


def test_a_template_is_run_by_its_instantiation(folder):
    result = run_request(RunKernel(launch_request("fill<short, 5>", "zeros:32")), folder)
    assert np.array_equal(result.arrays["0"].open(), np.full(32, 5, np.int16))


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        (launch_request("shift", "zeros:4"), InputError, "takes 5 arguments"),
        (launch_request("shift", "zeros:x", "zeros:1", "1", "1", "1,2"), InputError, "data"),
        (launch_request("shift", "file:/no/such.npy", "zeros:1", "1", "1", "1,2"), InputError, "such.npy"),
        (launch_request("none"), KernelError, "has no kernel 'none'"),
        (launch_request("fill", "zeros:4"), KernelError, "is a template"),
        (launch_request("fill<int, 1>", "zeros:4", block=(2000,)), KernelError, "at most 1024"),
        (launch_request("fill<int, 1>", "zeros:4", defines={"1": "2"}), InputError, "is not a valid macro name"),
    ],
)
def test_what_cannot_be_launched_is_told_in_a_sentence(folder, given, error, words):
    for request in (RunKernel(given), StepKernel(given)):
        with pytest.raises(error, match=words):
            run_request(request, folder)


def test_a_launch_is_recorded_with_its_text(folder):
    result = run_request(StepKernel(launch_request("shift", "arange:32", "zeros:1", "32", "1", "1,2")), folder)
    recording = Recording.load(Path(result.path))
    assert recording.event_count > 3
    assert recording.text("mine.cu") == TEXT
    assert {finding.kind for _, finding in recording.findings} == {"race"}
    (only,) = recording.launches
    assert only.trace.kernel == "shift"
    again = run_request(
        StepKernel(launch_request("shift", "arange:32", "zeros:1", "32", "1", "1,2"), "shuffle:3"), folder
    )
    assert Recording.load(again.path).event_count >= recording.event_count


def test_a_file_without_kernels_is_told(folder):
    with pytest.raises(KernelError, match=r"x\.cu has no __global__ function"):
        run_request(DescribeKernels("/x.cu", "int main() { return 0; }", {}), folder)


COUNTED = """__global__ void add(const int *in, int *out, int n) {
    __shared__ int s[64];
    int t = threadIdx.x;
    s[t] = in[t];
    __syncthreads();
    if (t < n) out[t] = s[t] + s[63 - t];
    atomicAdd(&out[64], 1);
}
"""


def test_a_launch_is_counted_as_a_whole(folder):
    result = run_request(
        CountKernel(launch_request("add", "arange:64", "zeros:65", "40", text=COUNTED, block=(64,))), folder
    )
    counts = result.counted_launch.counts
    assert (counts.elements, counts.per_element_unit, counts.input) == (1, "per launch", "64 threads")
    # 64 ints are read and 40 written, of 32 bytes a sector; each atomic on one address wants its own.
    assert counts.sectors == 8 + 5 + 64
    assert counts.wavefronts == 2 + 2 + 2
    assert counts.operations == 40 + 64
    assert (counts.barriers, counts.atomics, counts.conflicts) == (1, 2, 0)
    assert (counts.branches, counts.divergent_branches) == (2, 1)
    assert result.counted_launch.mistakes == ()
    assert result.counted_launch.simulated_ms > 0
    out = result.arrays["1"].open()
    assert out[:40].tolist() == [63] * 40
    assert out[64] == 64


def test_what_is_wrong_with_a_launch_is_counted_with_it(folder):
    racing = CountKernel(launch_request("add", "arange:64", "zeros:65", "40", block=(64,),
                                text=COUNTED.replace("__syncthreads();", "")))  # fmt: skip
    assert run_request(racing, folder).counted_launch.mistakes == (Mistake("race", (4, 6)),)


def test_a_launch_that_a_mistake_ends_is_not_counted(folder):
    with pytest.raises(LaunchError, match=r"Invalid __global__ read of size 4 bytes .* element 32 of in") as ended:
        run_request(
            CountKernel(launch_request("add", "arange:32", "zeros:65", "40", text=COUNTED, block=(64,))), folder
        )
    assert ended.value.position is not None
    assert ended.value.position.line == 4


def test_results_are_alike_but_for_rounding():
    one = np.array([1.0, np.nan, 3e6], np.float32)
    assert are_results_equal(one, one * np.float32(1 + 1e-6))
    assert not are_results_equal(one, one * np.float32(1.01))
    assert not are_results_equal(one, one.astype(np.float64))
    assert not are_results_equal(one, one[:2])
    assert are_results_equal(np.arange(3), np.arange(3))
    assert not are_results_equal(np.arange(3), np.array([0, 1, 3]))


def test_a_race_in_a_warp_is_mended_by_a_barrier_of_the_warp() -> None:
    text = """__global__ void turn(int *a) {
    __shared__ int s[32];
    if (threadIdx.x < 32) {
        s[threadIdx.x] = a[threadIdx.x];
        a[threadIdx.x] = s[31 - threadIdx.x];
    }
}
"""
    launch = KernelLaunch("mine.cu", text, "turn", (1,), (64,), ("arange:64",))
    check = run_kernel(launch)[1].check
    assert check.remedy == Remedy("Insert __syncwarp(); before line 5", 5, "        __syncwarp();")


def test_a_race_that_only_another_schedule_shows_is_found(folder):
    """Without a fence no trial runs, and in lockstep the first warp finds its own ticket only."""
    text = """__global__ void f(int *ticket, int *out) {
        int mine = atomicAdd(ticket, 1);
        if (threadIdx.x % 32 == 0 && mine / 32 != threadIdx.x / 32) out[0] += 1;
    }"""
    request = launch_request("f", "zeros:1", "zeros:1", text=text, block=(128,))
    check = run_request(RunKernel(request), folder).simulation.check
    assert decide_launch_verdict(check).words == "race in line 3"
    assert "It occurs with --schedule shuffle:" in check.diagnostics[0].message
