"""Any kernel in one call: what it computes, what it does wrong, what it costs; and what is refused."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpu.base.errors import CompileError, InputError, KernelError, LaunchError
from gpu.base.paths import DOCS, ROOT
from gpu.kernel.simulate import Simulation, simulate

SCALE = """__global__ void scale(const float *in, float *out, float factor, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = factor * in[i];
}"""


def run(source: str, *arguments: Any, grid: Any = 1, block: Any = 32, **options: Any) -> Simulation:
    """Simulate the kernel `f` of a source text."""
    return simulate("test.cu", "f", grid, block, arguments, source=source, **options)


def refusal(source: str, *arguments: Any, **options: Any) -> str:
    """Return the one sentence with which a launch of `f` is refused."""
    with pytest.raises(InputError) as caught:
        run(source, *arguments, **options)
    assert "\n" not in caught.value.message
    assert caught.value.message.endswith(".")
    return caught.value.message


# What works


def test_a_clean_kernel_computes_and_has_no_findings(tmp_path: Path) -> None:
    path = tmp_path / "scale.cu"
    path.write_text(SCALE)
    data = np.arange(100, dtype=np.float32)
    out = np.full((10, 10), -1, np.float32)
    simulation = simulate(path, "scale", 4, (32, 1), [data, out, 2, 100])
    assert simulation.findings == []
    np.testing.assert_array_equal(simulation.arrays[1], 2 * data.reshape(10, 10))
    np.testing.assert_array_equal(simulation.arrays[0], data)
    assert (out == -1).all(), "what is given stays as it is"
    assert sorted(simulation.arrays) == [0, 1]


def test_counters_in_total_and_by_line() -> None:
    simulation = simulate("scale.cu", "scale", 4, 32, ["zeros:128", "zeros:128", 2, 100], source=SCALE)
    total, line = simulation.counters.total, simulation.counters.per_line["scale.cu", 3]
    assert total["warp_statements"] > 0
    assert line["l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"] == 4
    assert line["divergent_branches"] == total["divergent_branches"] == 1


def test_what_is_printed_comes_thread_by_thread() -> None:
    simulation = run('__global__ void f() { printf("%d of %d\\n", threadIdx.x, blockDim.x); }', block=3)
    assert [line.text for line in simulation.printed] == ["0 of 3\n", "1 of 3\n", "2 of 3\n"]
    assert simulation.printed[2].thread == "thread (2,0,0) in block (0,0,0)"


def test_defines_include_folders_and_instantiations(tmp_path: Path) -> None:
    (tmp_path / "inc").mkdir()
    (tmp_path / "inc" / "add.cuh").write_text("template <typename T> __device__ T add(T a, T b) { return a + b; }")
    source = """#include <add.cuh>
template <typename T, int N> __global__ void f(T *out) { out[threadIdx.x] = add<T>(BASE, N); }"""
    simulation = simulate(
        "test.cu",
        "f<double, 5>",
        1,
        4,
        [np.zeros(4)],
        source=source,
        defines={"BASE": "0.5"},
        include_dirs=[tmp_path / "inc"],
    )
    assert simulation.arrays[0].tolist() == [5.5] * 4


def test_one_array_given_twice_is_one_memory() -> None:
    source = "__global__ void f(int *a, const int *b) { a[threadIdx.x] = 7; a[threadIdx.x] += b[threadIdx.x]; }"
    data = np.ones(32, np.int32)
    assert (run(source, data, data).arrays[1] == 14).all()
    assert (run(source, data, data.copy()).arrays[0] == 8).all()
    swap = "__global__ void f(int *a, const int *b) { a[threadIdx.x] = b[63 - threadIdx.x]; }"
    data = np.ones(64, np.int32)
    assert [finding.kind for finding in run(swap, data, data, block=64).findings] == ["race"]
    assert run(swap, data, data.copy(), block=64).findings == []


def test_a_null_pointer_is_given_as_none_or_null() -> None:
    source = "__global__ void f(int *a, const float *b) { a[threadIdx.x] = b == nullptr; }"
    for nothing in (None, "null"):
        assert run(source, "zeros:32", nothing).arrays[0].all()


def test_shared_bytes_reach_the_kernel() -> None:
    source = """__global__ void f(int *a) {
        extern __shared__ int tile[];
        tile[threadIdx.x] = threadIdx.x;
        __syncthreads();
        a[threadIdx.x] = tile[31 - threadIdx.x];
    }"""
    assert run(source, "zeros:32", shared_bytes=128).arrays[0].tolist() == list(range(31, -1, -1))
    assert run(source, "zeros:32", shared_bytes=64).findings[0].kind == "out-of-bounds"


def test_a_file_with_host_code_and_missing_includes() -> None:
    source = """#include <opencv2/core.hpp>
__global__ void f(int *a) { a[threadIdx.x] = 1; }
int main() { cv::Mat image; f<<<1, 32>>>(nullptr); }"""
    assert run(source, "zeros:32").arrays[0].all()


def test_structs_come_as_their_numbers() -> None:
    source = """struct Body { float4 place; int charge; double mass; };
__global__ void f(float4 *v, Body *b, Body one, float2 by) {
    v[threadIdx.x].y += by.y;
    b[threadIdx.x].mass = one.mass + one.charge;
}"""
    vectors = np.arange(8, dtype=np.float32).reshape(2, 4)
    simulation = run(source, vectors, "arange:2", "1,2,3,4,5,6.5", (1, 10), block=2)
    assert simulation.arrays[0][:, 1].tolist() == [11, 15]
    bodies = simulation.arrays[1]
    assert bodies.dtype.names == ("place", "charge", "mass")
    assert bodies["place"].tolist() == [[0] * 4, [1] * 4]
    assert (bodies["charge"].tolist(), bodies["mass"].tolist()) == ([0, 1], [11.5, 11.5])
    again = run(source, vectors, bodies, np.void(bodies[0].tobytes()), (1, 10), block=2)
    assert again.arrays[1]["mass"].tolist() == [11.5, 11.5]


def test_half_precision_arrays_are_float16() -> None:
    source = "#include <cuda_fp16.h>\n__global__ void f(__half *a) { a[threadIdx.x] = (float)a[threadIdx.x] * 2.0f; }"
    assert run(source, np.full(32, 1.5, np.float16)).arrays[0].tolist() == [3.0] * 32
    assert run(source, "full:32:0.25").arrays[0].tolist() == [0.5] * 32


@pytest.mark.parametrize(
    ("spec", "type", "expected"),
    [
        ("zeros:3", "float", [0, 0, 0]),
        ("full:2:-1.5", "double", [-1.5, -1.5]),
        ("full:2:0xFF", "unsigned char", [255, 255]),
        ("full:2:1e3", "int", [1000, 1000]),
        ("full:1:true", "bool", [True]),
        ("full:1:inf", "float", [np.inf]),
        ("arange:4", "short", [0, 1, 2, 3]),
        ("arange:2", "int2", [[0, 0], [1, 1]]),
        ("full:1:7", "uchar4", [[7] * 4]),
    ],
)
def test_specifications(spec: str, type: str, expected: list[Any]) -> None:
    simulation = run(f"__global__ void f({type} *a) {{}}", spec)
    assert simulation.arrays[0].tolist() == expected


@pytest.mark.parametrize("type", ["float", "int", "unsigned char", "bool", "float4", "double"])
def test_random_is_the_same_for_a_seed_and_different_for_another(type: str) -> None:
    def run_with_spec(spec: str) -> Any:
        return run(f"__global__ void f({type} *a) {{}}", spec).arrays[0]

    first = run_with_spec("random:200:1")
    np.testing.assert_array_equal(first, run_with_spec("random:200:1"))
    assert (first != run_with_spec("random:200:2")).any()
    np.testing.assert_array_equal(run_with_spec("random:200"), run_with_spec("random:200:0"))
    assert first.min() >= 0
    assert first.max() < (1 if first.dtype.kind == "f" else 100)
    assert len(np.unique(first)) > 1


def test_files(tmp_path: Path) -> None:
    def run_with_file(type: str, values: Any) -> Any:
        np.save(tmp_path / "data.npy", values)
        return run(f"__global__ void f({type} *a) {{}}", f"file:{tmp_path / 'data.npy'}").arrays[0]

    assert run_with_file("float", np.ones((2, 3), np.float32)).tolist() == [1] * 6
    assert run_with_file("unsigned char", np.array([0, 255], np.int64)).tolist() == [0, 255]
    assert run_with_file("float", np.array([1, 2], np.int32)).tolist() == [1, 2]
    assert run_with_file("float", np.array([0.1, np.nan])).dtype == np.float32
    assert run_with_file("float4", np.arange(8, dtype=np.float32)).shape == (2, 4)
    assert run_with_file("int", np.asfortranarray(np.arange(4).reshape(2, 2))).tolist() == [0, 1, 2, 3]


# What is found


PLANTED = {
    "out-of-bounds": ("a[i + 1] = 1;", 31),
    "misaligned": ("*(long long *)(a + 1) = 1;", 0),
    "null-pointer": ("int *p = nullptr; p[i] = 1;", 0),
    "barrier": ("if (i < 16) __syncthreads();", 16),
    "assertion": ("assert(i != 5);", 5),
    "unfinished": ("while (a[i] == 0) a[i] = 0;", 0),
    "endless": ("while (i >= 0) a[i] = 0;", 0),
    "uninitialized": ("a[i] = tile[i];", 0),
}


@pytest.mark.parametrize("kind", PLANTED)
def test_a_planted_mistake_is_found_with_its_line_and_thread(kind: str) -> None:
    statement, lane = PLANTED[kind]
    source = f"""__global__ void f(int *a) {{
    __shared__ int tile[32];
    int i = threadIdx.x;
    {statement}
}}"""
    simulation = run(source, "zeros:32", max_steps=1000)
    finding = simulation.findings[0]
    assert finding.kind == kind
    assert [position.line for position in finding.positions] == [4]
    assert finding.threads == (f"thread ({lane},0,0) in block (0,0,0)",)
    assert not finding.message.startswith("test.cu:4")
    assert simulation.counters.total["warp_statements"] > 0


def test_a_race_has_both_lines_and_both_threads() -> None:
    source = """__global__ void f(int *a) {
    __shared__ int tile[64];
    int i = threadIdx.x;
    tile[i] = i;
    a[i] = tile[63 - i];
}"""
    [finding] = run(source, "zeros:64", block=64).findings
    assert finding.kind == "race"
    assert sorted(position.line for position in finding.positions) == [4, 5]
    assert len(set(finding.threads)) == 2
    clean = source.replace("= i;\n    a", "= i;\n    __syncthreads();\n    a")
    assert run(clean, "zeros:64", block=64).findings == []


def test_recursion_without_end_is_a_finding_at_the_call() -> None:
    source = "__device__ int g(int n) { return g(n + 1) + 1; }\n__global__ void f(int *a) { a[0] = g(0); }"
    [finding] = run(source, "zeros:1", block=1).findings
    assert finding.kind == "stack-overflow"
    assert [(position.line, position.column) for position in finding.positions] == [(1, 34)]
    assert finding.message.startswith(
        "Stack overflow: g is called more than 64 levels deep. Check the condition that ends the recursion."
    )


def test_reading_an_empty_array_is_a_finding() -> None:
    source = "__global__ void f(int *a, const int *b) { a[threadIdx.x] = b[threadIdx.x]; }"
    assert [finding.kind for finding in run(source, "empty:32", "empty:32").findings] == ["uninitialized"]
    assert run(source, "empty:32", "zeros:32").findings == []


def test_what_was_printed_before_a_mistake_is_kept() -> None:
    simulation = run('__global__ void f(int *a) { printf("here\\n"); a[5] = 1; }', "zeros:1", block=1)
    assert [line.text for line in simulation.printed] == ["here\n"]
    assert simulation.findings[0].kind == "out-of-bounds"


# What is refused


POINTER, SCALAR = "__global__ void f(int *a) {}", "__global__ void f(unsigned char n) {}"


@pytest.mark.parametrize(
    ("source", "arguments", "words"),
    [
        (POINTER, [], "f takes 1 argument (int32 * a), not 0"),
        ("__global__ void f(int *a, float b) {}", ["zeros:1"], "f takes 2 arguments (int32 * a, float32 b), not 1"),
        ("__global__ void f() {}", [1], "f takes 0 arguments (none), not 1"),
        (POINTER, ["ones:5"], "'ones:5' is none of these"),
        (POINTER, ["zeros"], "'zeros' is none of these"),
        (POINTER, ["5"], "is a pointer, which takes zeros:N, full:N:V"),
        (POINTER, [5], "not the number 5"),
        (POINTER, [[1, 2]], "not [1, 2]"),
        (POINTER, ["zeros:5:6"], "takes zeros:N, not 'zeros:5:6'"),
        (POINTER, ["full:5"], "takes full:N:V, not 'full:5'"),
        (POINTER, ["zeros:0"], "needs N to be at least 1, not 0"),
        (POINTER, ["zeros:-3"], "needs N to be at least 1, not -3"),
        (POINTER, ["zeros:many"], "needs a whole number for N, not 'many'"),
        (POINTER, ["random:5:x"], "needs a whole number for SEED, not 'x'"),
        (POINTER, ["zeros:1000000000"], "the limit is 2 GiB"),
        (POINTER, ["full:5:1.5"], "takes int32, but got 1.5, a floating-point number"),
        (POINTER, ["full:5:abc"], "needs a number, not 'abc'"),
        (POINTER, ["full:5:3000000000"], "takes int32, -2147483648 to 2147483647, but got 3000000000"),
        ("__global__ void f(char *a) {}", ["arange:129"], "takes int8, -128 to 127, but got 128"),
        (POINTER, ["file:no/such.npy"], "There is no file no/such.npy."),
        (POINTER, [np.zeros(3, np.float32)], "takes an array of int32, not of float32"),
        (POINTER, [np.zeros(3, ">i4")], "not of >i4"),
        (POINTER, [np.array(["x"], object)], "not of object"),
        ("__global__ void f(float4 *a) {}", [np.zeros(3, np.float32)], "has elements of 16 bytes"),
        ("__global__ void f(float4 *a) {}", [np.zeros(4, np.int32)], "takes an array of float32, not of int32"),
        ("__global__ void f(int **a) {}", ["full:3:1"], "contains pointers, which only zeros:N can fill"),
        (SCALAR, ["zeros:5"], "is a number, not a pointer, but 'zeros:5' creates an array"),
        (SCALAR, [np.zeros(3)], "is a number, not an array of float64"),
        (SCALAR, [None], "is a number, not None"),
        (SCALAR, ["abc"], "needs a number, not 'abc'"),
        (SCALAR, [256], "takes uint8, 0 to 255, but got 256"),
        (SCALAR, [-1], "takes uint8, 0 to 255, but got -1"),
        (SCALAR, [1.0], "takes uint8, but got 1.0, a floating-point number"),
        ("__global__ void f(float x) {}", ["1e40"], "takes float32, but got 1e+40, which is too large"),
        ("__global__ void f(double x) {}", ["1e400"], "takes float64, but got 1e400, which is too large"),
        ("__global__ void f(float2 x) {}", ["1"], "is a struct of 2 numbers, separated by commas, not '1'"),
        ("__global__ void f(float2 x) {}", [np.zeros(3, np.float32)], "has 8 bytes, not 12"),
    ],
)
def test_arguments_that_do_not_fit_are_refused_in_one_sentence(source: str, arguments: list[Any], words: str) -> None:
    message = refusal(source, *arguments)
    assert words in message
    if "takes 1 argument" not in message and "takes 2 arguments" not in message and "takes 0" not in message:
        assert message.startswith("Argument 0 (")


@pytest.mark.parametrize(
    ("type", "values", "words"),
    [
        ("int", np.ones(3), "takes int32, but"),
        ("int", np.array([2**40]), "-2147483648 to 2147483647, but"),
        ("bool", np.array([2]), "takes bool, 0 to 1, but"),
        ("float", np.array([1e300]), "which is too large"),
        ("float", np.array([1j]), "contains complex128"),
        ("float", np.array(["a"]), "contains <U1"),
        ("float", np.zeros(0, np.float32), "which contains no elements"),
        ("float4", np.zeros(6, np.float32), "has 4 numbers per element"),
        ("S", np.zeros(6, np.float32), "needs elements of 8 bytes"),
    ],
)
def test_files_that_do_not_fit_are_refused(tmp_path: Path, type: str, values: Any, words: str) -> None:
    np.save(tmp_path / "data.npy", values)
    source = f"struct S {{ int a; short b; }};\n__global__ void f({type} *a) {{}}"
    assert words in refusal(source, f"file:{tmp_path / 'data.npy'}")


def test_files_that_are_no_arrays_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "data.npy"
    for content in (b"", b"hello", b"\x93NUMPY\x01\x00"):
        path.write_bytes(content)
        assert "is not a complete .npy file" in refusal(POINTER, f"file:{path}")
    np.save(path, np.array([{}], object), allow_pickle=True)
    assert "is not a complete .npy file" in refusal(POINTER, f"file:{path}")
    np.savez(tmp_path / "many.npz", np.zeros(3))
    assert "is not a complete .npy file" in refusal(POINTER, f"file:{tmp_path / 'many.npz'}")


def test_a_file_that_is_not_there_and_bad_extents_and_names() -> None:
    with pytest.raises(InputError, match=r"There is no file nothing\.cu\."):
        simulate("nothing.cu", "f", 1, 1)
    assert "The block is one to three whole numbers" in refusal(POINTER, "zeros:1", block=(1, 2, 3, 4))
    assert "The grid is one to three whole numbers" in refusal(POINTER, "zeros:1", grid=1.5)
    assert "is not a valid macro name" in refusal(POINTER, "zeros:1", defines={"A B": 1})
    assert "There is no include folder no/such." in refusal(POINTER, "zeros:1", include_dirs=["no/such"])


def test_launches_that_no_gpu_takes_are_errors_not_findings() -> None:
    with pytest.raises(LaunchError, match="at most 1024"):
        run(POINTER, "zeros:1", block=(32, 33))
    with pytest.raises(LaunchError, match="bytes of shared memory"):
        run(POINTER, "zeros:1", shared_bytes=1 << 20)


def test_kernels_that_cannot_be_had() -> None:
    with pytest.raises(KernelError, match="has no kernel 'g'; it has f"):
        simulate("test.cu", "g", 1, 1, source=POINTER)
    with pytest.raises(CompileError, match="undeclared identifier 'tix'"):
        run("__global__ void f() { tix = 1; }")


# Schedules and traces

RACY_SUM = """__global__ void f(const int *in, int *out) {
    __shared__ int s[128];
    int t = threadIdx.x;
    s[t] = in[t];
    for (int half = 64; half > 0; half /= 2) {
        SYNC;
        if (t < half) s[t] += s[t + half];
    }
    out[t] = s[0];
    if (in[127]) out[t + in[127]] = 0;
}"""


def run_racy_sum(sync: str = "", last: int = 0, **options: Any) -> Simulation:
    values = np.append(np.arange(127), last).astype(np.int32)
    return run(RACY_SUM, values, "zeros:128", block=128, defines={"SYNC": sync}, **options)


def test_a_race_gives_other_answers_in_another_schedule() -> None:
    schedules = ["round-robin", *(f"shuffle:{seed}" for seed in range(6))]
    answers = [run_racy_sum(schedule=schedule).arrays[1].tobytes() for schedule in schedules]
    assert len(set(answers)) > 1
    assert run_racy_sum(schedule="shuffle:3").arrays[1].tobytes() == answers[4]
    right = [run_racy_sum("__syncthreads()", schedule=schedule).arrays[1][0] for schedule in schedules]
    assert right == [127 * 126 // 2] * 7


@pytest.mark.parametrize("schedule", ["round-robin", "shuffle:2", "lanes:2", "cached:0"])
def test_a_trace_changes_nothing_else(schedule: str) -> None:
    plain = run_racy_sum(schedule=schedule)
    traced = run_racy_sum(schedule=schedule, traced=True)
    assert plain.trace is None
    assert traced.trace is not None
    assert traced.findings == plain.findings
    assert plain.findings[0].kind == "race"
    assert traced.counters == plain.counters
    assert traced.arrays[1].tobytes() == plain.arrays[1].tobytes()
    end = len(traced.trace.events)
    assert traced.trace.array("out", end).tobytes() == traced.arrays[1].tobytes()
    assert traced.trace.schedule == schedule


@pytest.mark.parametrize("schedule", ["round-robin", "shuffle:2", "lanes:2", "cached:0"])
def test_a_recorded_launch_ends_at_its_first_invalid_access(schedule: str) -> None:
    plain = run_racy_sum(last=1, schedule=schedule)
    traced = run_racy_sum(last=1, schedule=schedule, traced=True)
    assert traced.trace is not None
    assert traced.findings[0] == plain.findings[0]
    assert plain.findings[0].kind == "out-of-bounds"
    assert {each.positions for each in traced.findings} <= {each.positions for each in plain.findings}
    assert traced.counters == plain.counters
    end = len(traced.trace.events)
    assert traced.trace.array("out", end).tobytes() == traced.arrays[1].tobytes()


def test_a_trace_knows_which_arrays_start_without_values() -> None:
    simulation = run("__global__ void f(int *a) { a[threadIdx.x] += 1; }", "empty:32", traced=True)
    assert [finding.kind for finding in simulation.findings] == ["uninitialized"]


def test_what_is_printed_and_the_limit_of_steps_hold_in_a_trace() -> None:
    source = '__global__ void f(int *a) { printf("%d\\n", threadIdx.x); while (a[0] == 0) { } }'
    simulation = run(source, "zeros:1", traced=True, max_steps=100, schedule="shuffle:1")
    assert [printed.text for printed in simulation.printed] == [f"{lane}\n" for lane in range(32)]
    assert "allow more steps" in simulation.findings[0].message


def test_what_is_no_schedule() -> None:
    said = refusal("__global__ void f(int *a) { }", "zeros:1", schedule="shuffle:one")
    assert said == (
        "'shuffle:one' is not a schedule: use round-robin, shuffle:SEED, lanes:SEED, preempt:SEED or cached:SEED, "
        "where SEED is a whole number from 0."
    )


# The example in README and docs


def test_the_examples_in_the_documentation_find_what_they_say(capsys: pytest.CaptureFixture[str]) -> None:
    pages = "\n".join(page.read_text("utf-8") for page in (ROOT / "README.md", *DOCS.glob("*.md")))
    blocks = re.findall(r"```python\n(.*?)```", pages, re.DOTALL)
    examples = [block for block in blocks if "gpu.kernel.simulate" in block]
    assert examples
    for example in examples:
        exec(compile(example, "example", "exec"), {})
        lines = capsys.readouterr().out.splitlines()
        assert lines[0].startswith("race 4 ('thread (")
        assert lines[-3].startswith("[1. 2. 3. 4.]")
        assert lines[-2:] == ["round-robin [32]", "shuffle:0 [33]"]
