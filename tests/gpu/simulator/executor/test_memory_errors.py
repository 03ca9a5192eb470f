"""What a kernel does wrong, and launches that no GPU takes: where it happened, in which thread, to what."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gpu.base.errors import KernelError, LaunchError
from tests.gpu.simulator.kernel_runner import build, launch, run_kernel

Array = np.ndarray[Any, Any]


def zeros(*shape: int, dtype: Any = np.int32) -> Array:
    return np.zeros(shape, dtype)


def failure(source: str, *arguments: Any, **shape: Any) -> LaunchError:
    """Run the kernel `f` and return the error that it ends in."""
    with pytest.raises(LaunchError) as caught:
        run_kernel(source, "f", *arguments, **shape)
    return caught.value


# The statement on line 7, the access it fails in, and the first lane and the element that are wrong.
OUTSIDE = {
    "global read": ("out[i] = in[i + 1];", "__global__ read of size 4 bytes", 31, "element 32 of in, which has 32"),
    "global write": ("out[i * 2] = 1;", "__global__ write of size 2 bytes", 16, "element 32 of out, which has 32"),
    "before the start": ("out[i] = in[i - 3];", "__global__ read of size 4 bytes", 0, "element -3 of in"),
    "in some lanes": ("if (i > 20) out[i] = in[i + 7];", "__global__ read", 25, "element 32 of in, which has 32"),
    "the same for all": ("out[i] = in[n];", "__global__ read of size 4 bytes", 0, "element 32 of in, which has 32"),
    "through a pointer": ("const int *p = in + n; out[i] = p[i - 33];", "__global__ read", 0, "element -1 of in"),
    "update": ("out[n + i] += 1;", "__global__ read of size 2 bytes", 0, "element 32 of out, which has 32"),
    "atomic": ("atomicAdd(&count[i / 16], 1u);", "__global__ atomic of size 4 bytes", 16, "element 1 of count"),
    "very far": ("out[i] = in[i * 1000000000];", "__global__ read of size 4 bytes", 1, "element 1000000000 of in"),
    "unsigned": ("out[i] = in[threadIdx.x - 1];", "__global__ read", 0, "element 4294967295 of in, which has 32"),
    "as another type": ("((long long *)out)[i] = 1;", "__global__ write", 8, "element 8 of out, which has 8"),
    "shared read": ("out[i] = tile[i + 1];", "__shared__ read of size 4 bytes", 31, "element 32 of tile, which has 32"),
    "shared write": ("tile[i - 1] = 1;", "__shared__ write of size 4 bytes", 0, "element -1 of tile, which has 32"),
    "shared atomic": ("atomicMax(&tile[40 - i], 1);", "__shared__ atomic of size 4 bytes", 0, "element 40 of tile"),
    "local read": ("out[i] = mine[i / 8];", "__local__ read of size 8 bytes", 24, "element 3 of mine, which has 3"),
    "local write": ("mine[2 - i] = 1;", "__local__ write of size 8 bytes", 3, "element -1 of mine, which has 3"),
    "constant read": ("out[i] = table[i];", "__constant__ read of size 4 bytes", 5, "element 5 of table, which has 5"),
    "device variable": ("state[i] = 1;", "__global__ write of size 1 bytes", 7, "element 7 of state, which has 7"),
}


def make_source(statement: str) -> str:
    return f"""__constant__ int table[5];
__device__ char state[7];
__global__ void f(const int *in, short *out, unsigned int *count, int n) {{
    __shared__ int tile[32];
    double mine[3];
    int i = threadIdx.x;
    {statement}
}}"""


@pytest.mark.parametrize("name", OUTSIDE)
def test_an_access_outside_names_place_thread_and_element(name: str) -> None:
    statement, access, lane, element = OUTSIDE[name]
    arguments = zeros(32), zeros(32, dtype=np.int16), zeros(1, dtype=np.uint32), np.int32(32)
    error = failure(make_source(statement), *arguments)
    assert f"Invalid {access}" in error.message
    assert error.message.startswith("test.cu:7:")
    assert f"thread ({lane},0,0) in block (0,0,0)" in error.message
    assert element in error.message
    assert error.position is not None
    assert (error.position.file, error.position.line) == ("test.cu", 7)
    assert error.position.column >= 5
    assert error.advice


def test_the_thread_and_block_are_named_in_three_dimensions() -> None:
    source = """__global__ void f(int *out) {
        int thread = threadIdx.x + 4 * (threadIdx.y + 3 * threadIdx.z);
        int block = blockIdx.x + 2 * (blockIdx.y + 3 * blockIdx.z);
        out[24 * block + thread] = 1;
    }"""
    error = failure(source, zeros(24 * 10 + 19), block=(4, 3, 2), grid=(2, 3, 2))
    assert error.message.startswith("test.cu:4:9: ")
    assert "thread (3,1,1) in block (0,2,1): element 259 of out, which has 259." in error.message


def test_an_access_outside_touches_nothing() -> None:
    """Neither what lies beside the array, nor what the good lanes of the same statement would have written."""
    source = "__global__ void f(int *middle) { middle[(int)threadIdx.x - 1] = 7; }"
    memory = zeros(3 * 64)
    with pytest.raises(LaunchError):
        build(source).kernel("f").launch((1, 1, 1), (32, 1, 1), [memory[64:128].view(np.uint8)])
    assert not memory.any()


def test_an_array_shorter_than_one_element_has_none() -> None:
    error = failure("__global__ void f(double *a) { a[0] = 1; }", zeros(7, dtype=np.uint8), block=1)
    assert "element 0 of a, which has 0." in error.message
    error = failure("__global__ void f(const int *a, int *b) { b[0] = a[0]; }", zeros(0), zeros(1), block=1)
    assert "element 0 of a, which has 0." in error.message


def test_an_address_must_be_a_multiple_of_the_elements_size() -> None:
    for index in ("1", "threadIdx.x + 1", "2 * threadIdx.x + 1"):
        source = f"__global__ void f(char *a, int *b) {{ b[threadIdx.x] = *(int *)(a + {index}); }}"
        error = failure(source, zeros(64, dtype=np.int8), zeros(2), block=2)
        assert error.message.endswith(
            "Invalid __global__ read of size 4 bytes by thread (0,0,0) in block (0,0,0): its address in a is "
            "misaligned."
        )
        assert error.message.startswith("test.cu:1:")


def test_a_vector_at_a_wrong_address_is_refused_before_any_of_it_is_written() -> None:
    source = "__global__ void k(float *a) { *(float4 *)(a + 1 + threadIdx.x) = make_float4(1, 2, 3, 4); }"
    a = np.zeros(16, np.float32)
    with pytest.raises(LaunchError, match=r"__global__ write of size 16 bytes by thread \(0,0,0\) .* is misaligned"):
        build(source).kernel("k").launch((1, 1, 1), (8, 1, 1), [a.view(np.uint8)])
    assert not a.any()


def test_constants_cannot_be_written() -> None:
    source = """__constant__ int table[4];
    __global__ void f(int *out) {
        int *sneaky = (int *)table;
        if (threadIdx.x > 5) sneaky[0] = 3;
    }"""
    error = failure(source, zeros(1))
    assert error.message.startswith("test.cu:4:")
    assert "thread (6,0,0) in block (0,0,0) writes to table in __constant__ memory" in error.message


@pytest.mark.parametrize("use", ["out[0] = *p;", "*p = 1;", "p[threadIdx.x] = 1;", "atomicAdd(p + 1, 1);"])
def test_a_null_pointer_leads_nowhere(use: str) -> None:
    error = failure(f"__global__ void f(int *out) {{\n int *p = 0;\n {use}\n}}", zeros(1))
    assert error.message.startswith("test.cu:3:")
    assert "null pointer" in error.message


def test_a_barrier_that_some_threads_do_not_reach() -> None:
    source = """__global__ void f(int *out) {
        if (threadIdx.x < 40)
            __syncthreads();
        out[threadIdx.x] = 1;
    }"""
    error = failure(source, zeros(64), block=64, grid=3)
    assert error.message.startswith("test.cu:3:13: Barrier error detected.")
    assert "thread (40,0,0) in block (0,0,0)" in error.message
    assert error.advice


def test_a_barrier_that_whole_blocks_skip_is_right() -> None:
    source = """__global__ void f(int *out) {
        __shared__ int box;
        if (blockIdx.x % 2) {
            if (threadIdx.x == 0) box = blockIdx.x;
            __syncthreads();
            out[blockIdx.x * blockDim.x + threadIdx.x] = box;
        }
    }"""
    [out] = run_kernel(source, "f", zeros(5, 40), block=40, grid=5)
    np.testing.assert_array_equal(out, np.where(np.arange(5) % 2, np.arange(5), 0)[:, None] + zeros(5, 40))


def test_a_barrier_in_a_loop_that_threads_leave_at_different_times() -> None:
    source = "__global__ void f(int *out) { for (int k = 0; k < threadIdx.x; k++) __syncthreads(); out[0] = 1; }"
    error = failure(source, zeros(1))
    assert "Divergent thread(s) in block" in error.message
    assert "is not reached by thread (0,0,0) in block (0,0,0)" in error.message


def test_a_barrier_that_some_threads_leave_a_function_before() -> None:
    source = """__device__ void meet(int i) {
        if (i < 3) return;
        __syncthreads();
    }
    __global__ void f(int *out) { meet(threadIdx.x); out[threadIdx.x] = 1; }"""
    error = failure(source, zeros(32))
    assert error.message.startswith("test.cu:3:9: Barrier error detected.")
    assert "is not reached by thread (0,0,0) in block (0,0,0)" in error.message


def test_an_endless_loop_names_its_line_and_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpu.simulator.executor.children.MAXIMUM_ROUNDS", 500)
    source = """__global__ void f(int *out) {
        int i = threadIdx.x;
        do { out[i]++; }
        while (i == 7 && blockIdx.x == 1);
    }"""
    error = failure(source, zeros(32), grid=2)
    assert error.message.startswith("test.cu:3:9: ")
    assert "thread (7,0,0) in block (1,0,0)" in error.message


def test_the_limit_counts_each_batch_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpu.simulator.executor.children.MAXIMUM_ROUNDS", 500)
    monkeypatch.setattr("gpu.simulator.executor.launches.attempts.BATCH_LANES", 32)
    [out] = run_kernel("__global__ void f(int *out) { for (int k = 0; k < 400; k++) out[0]++; }", "f", zeros(1), grid=9)
    assert out[0] == 400 * 9


FILL = "__global__ void fill(float *out, int n, unsigned char c) { if (threadIdx.x < n) out[threadIdx.x] = c; }"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "fill takes 3 arguments, not 0."),
        ([zeros(4), np.int32(4)], "fill takes 3 arguments, not 2."),
        ([zeros(4), np.int32(4), np.uint8(1), np.int32(1)], "fill takes 3 arguments, not 4."),
        ([np.int32(4), np.int32(4), np.uint8(1)], "the argument out is float32 *, not int32."),
        ([zeros(4), zeros(4), np.uint8(1)], "the argument n is int32, not an array."),
        ([zeros(4), np.int64(4), np.uint8(1)], "the argument n is int32, not int64."),
        ([zeros(4), np.float32(4), np.uint8(1)], "the argument n is int32, not float32."),
        ([zeros(4), np.int32(4), np.int8(1)], "the argument c is uint8, not int8."),
    ],
)
def test_arguments_must_be_those_of_the_kernel(arguments: list[Any], message: str) -> None:
    with pytest.raises(LaunchError) as caught:
        run_kernel(FILL, "fill", *arguments)
    assert message in caught.value.message


@pytest.mark.parametrize(
    ("block", "grid", "message"),
    [
        (1025, 1, "1025 threads"),
        ((32, 33), 1, "1056 threads"),
        ((16, 16, 5), 1, "1280 threads"),
        (0, 1, "empty"),
        (32, 0, "empty"),
        (32, (4, 0, 4), "empty"),
        ((32, 0, 1), 1, "empty"),
    ],
)
def test_a_launch_has_threads_and_not_too_many(block: Any, grid: Any, message: str) -> None:
    with pytest.raises(LaunchError, match=message) as caught:
        run_kernel(FILL, "fill", zeros(4), np.int32(4), np.uint8(1), block=block, grid=grid)
    assert caught.value.message.startswith("fill:")


TWO_ARRAYS = """
__global__ void fill(int *out) {
    __shared__ double a[4096];
    extern __shared__ int rest[];
    a[threadIdx.x] = rest[threadIdx.x] = threadIdx.x;
    out[threadIdx.x] = a[threadIdx.x] + rest[threadIdx.x];
}"""


def test_static_and_extern_shared_memory_together_have_a_limit() -> None:
    [out] = run_kernel(TWO_ARRAYS, "fill", zeros(32), shared_bytes=16 * 1024)
    assert out.tolist() == [2 * i for i in range(32)]
    with pytest.raises(LaunchError, match="49156 bytes of shared memory"):
        run_kernel(TWO_ARRAYS, "fill", zeros(32), shared_bytes=16 * 1024 + 4)


def test_the_shared_memory_of_called_functions_counts_too() -> None:
    source = """
    __device__ int far(int i) { __shared__ int big[12 * 1024]; big[i] = i; __syncthreads(); return big[i]; }
    __global__ void fill(int *out) {
        __shared__ int small[4];
        small[threadIdx.x % 4] = 0;
        out[threadIdx.x] = far(threadIdx.x) + small[0];
    }"""
    with pytest.raises(LaunchError, match="49168 bytes of shared memory"):
        run_kernel(source, "fill", zeros(32))


def test_a_constant_that_is_not_there_or_too_small() -> None:
    module = build("__constant__ int table[4]; __global__ void f(int *out) { out[0] = table[0]; }")
    with pytest.raises(KernelError, match="'tabel'"):
        module.set_constant("tabel", zeros(4))
    with pytest.raises(KernelError, match="table holds 16 bytes; 20 do not fit"):
        module.set_constant("table", zeros(5))
    assert launch(module, "f", zeros(1))[0].tolist() == [0]
