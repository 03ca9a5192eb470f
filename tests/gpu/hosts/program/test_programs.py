"""Whole programs on the simulator: their results, output and exit codes are their own, and mistakes are told."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpu.base import nesting
from tests import needs


def test_a_vector_addition_has_its_arguments_output_and_exit_code(program):
    ended = program(
        """
#include <iostream>
#include <vector>
__global__ void add(const float *a, const float *b, float *c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i] + b[i];
}
int main(int argc, char **argv) {
    int n = atoi(argv[1]);
    std::vector<float> a(n), b(n), c(n);
    for (int i = 0; i < n; i++) a[i] = i, b[i] = 2 * i;
    float *device[3];
    for (float *&each : device) CHECK(cudaMalloc(&each, n * sizeof(float)));
    CHECK(cudaMemcpy(device[0], a.data(), n * sizeof(float), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(device[1], b.data(), n * sizeof(float), cudaMemcpyHostToDevice));
    add<<<(n + 127) / 128, 128>>>(device[0], device[1], device[2], n);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(c.data(), device[2], n * sizeof(float), cudaMemcpyDeviceToHost));
    bool right = true;
    for (int i = 0; i < n; i++) right = right && c[i] == 3 * i;
    std::cout << argc << " " << argv[2] << " " << right << std::endl;
    return 3;
}
""",
        arguments=("1000", "--check"),
    )
    assert (ended.code, ended.stdout) == (3, "3 --check 1\n"), ended.stderr
    assert ended.stderr.startswith("lockstep: 1 launch on the simulator")


def test_templates_are_launched_as_their_arguments_say(program):
    ended = program(
        """
namespace ladder {
template <typename T> struct Sum { __host__ __device__ T operator()(T a, T b) const { return a + b; } };
template <typename T> struct Most { __host__ __device__ T operator()(T a, T b) const { return a > b ? a : b; } };
template <typename T, unsigned int N, template <typename> class Op>
__global__ void __launch_bounds__(N) reduce(const T *in, T *out) {
    __shared__ T kept[N];
    Op<T> combine;
    kept[threadIdx.x] = in[blockIdx.x * N + threadIdx.x];
    __syncthreads();
    for (unsigned int d = N / 2; d > 0; d /= 2) {
        if (threadIdx.x < d) kept[threadIdx.x] = combine(kept[threadIdx.x], kept[threadIdx.x + d]);
        __syncthreads();
    }
    if (threadIdx.x == 0) out[blockIdx.x] = kept[0];
}
}
template <typename T, unsigned int N, template <typename> class Op>
T run() {
    T *in, *out, result;
    CHECK(cudaMallocManaged(&in, N * sizeof(T)));
    CHECK(cudaMalloc((void **)&out, sizeof(T)));
    for (unsigned int i = 0; i < N; i++) in[i] = (T)i / 2;
    ladder::reduce<T, N, Op><<<1, N>>>(in, out);
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpy(&result, out, sizeof(T), cudaMemcpyDefault));
    CHECK(cudaFree(in));
    CHECK(cudaFree(out));
    return result;
}
int main() {
    printf("%g %g %d %lld\\n", run<float, 64, ladder::Sum>(), run<double, 32, ladder::Most>(),
           run<int, 256, ladder::Sum>(), run<long long, 32, ladder::Most>());
}
""",
        "--check",
    )
    floats, most = sum(i / 2 for i in range(64)), 31 / 2
    assert (ended.code, ended.stdout) == (0, f"{floats:g} {most:g} {sum(i // 2 for i in range(256))} 15\n"), (
        ended.stderr
    )
    assert "4 launches on the simulator" in ended.stderr
    assert "no findings" in ended.stderr


def test_symbols_are_written_and_read_by_their_names(program):
    ended = program(
        """
__constant__ int edges[3];
__device__ unsigned int bins[2], total = 5;
static __device__ float unused[4];
__managed__ int seen = 0;
__global__ void count(const int *values, int n) {
    int i = threadIdx.x;
    if (i < n) atomicAdd(&bins[values[i] >= edges[1]], 1u);
    if (i == 0) total += n, seen = seen + 1;
}
int main() {
    int host[] = {1, 5, 7, 2, 9, 0}, limits[] = {0, 5, 10}, *values;
    unsigned int found[2], all;
    CHECK(cudaMalloc(&values, sizeof host));
    CHECK(cudaMemcpy(values, host, sizeof host, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpyToSymbol(edges, limits, sizeof limits));
    count<<<1, 32>>>(values, 6);
    CHECK(cudaMemcpyFromSymbol(found, bins, sizeof found));
    CHECK(cudaMemcpyFromSymbol(&all, total, sizeof all));
    void *address;
    CHECK(cudaGetSymbolAddress(&address, bins));
    CHECK(cudaMemset(address, 0, sizeof found));
    unsigned int after[2];
    CHECK(cudaMemcpyFromSymbol(&after[1], bins, 4, 4));
    printf("%u %u %u %u %d\\n", found[0], found[1], all, after[1], seen);
}
"""
    )
    assert (ended.code, ended.stdout) == (0, "3 3 11 0 1\n"), ended.stderr


def test_what_a_kernel_prints_stands_between_what_the_program_does(program):
    ended = program(
        """
__global__ void tell(int value) { printf("kernel %d\\n", value); }
int main() {
    printf("before\\n");
    tell<<<1, 1>>>(7);
    CHECK(cudaDeviceSynchronize());
    printf("after\\n");
    exit(4);
}
"""
    )
    assert (ended.code, ended.stdout) == (4, "before\nkernel 7\nafter\n")


def test_an_access_out_of_bounds_is_the_error_of_who_asks_next_and_a_finding(program):
    ended = program(
        """
__global__ void fill(int *out, int n) { out[threadIdx.x] = n; }
int main() {
    int *out;
    CHECK(cudaMalloc(&out, 16 * sizeof(int)));
    fill<<<1, 32>>>(out, 1);
    printf("%s\\n", cudaGetErrorName(cudaGetLastError()));
    CHECK(cudaDeviceSynchronize());
}
""",
        report=True,
    )
    assert (ended.code, ended.stdout) == (1, "cudaSuccess\n")
    assert "program.cu:17 an illegal memory access was encountered" in ended.stderr
    (launch,) = ended.report["launches"]
    assert launch["findings"][0]["kind"] == "out-of-bounds"
    assert "element 16 of out, which has 16" in ended.stderr
    assert launch["place"] == "program.cu:15"


def test_a_race_fails_a_checked_program_that_ends_well(program):
    text = """
__global__ void race(int *out) { out[0] = threadIdx.x; out[1] += out[0]; }
int main() {
    int *out;
    CHECK(cudaMalloc(&out, 8));
    CHECK(cudaMemset(out, 0, 8));
    race<<<1, 64>>>(out);
    CHECK(cudaDeviceSynchronize());
}
"""
    ended = program(text, "--check")
    assert ended.code == 1
    assert "race, launched at program.cu:16:" in ended.stderr
    assert program(text).code == 0


def test_a_crash_is_the_programs_own_and_its_launches_are_told(program):
    ended = program(
        """
__global__ void touch(int *out) { *out = 1; }
int main() {
    int *out;
    CHECK(cudaMalloc(&out, 4));
    touch<<<1, 1>>>(out);
    CHECK(cudaDeviceSynchronize());
    printf("%d\\n", *out);
}
"""
    )
    assert ended.code == 128 + 11
    assert "The program crashed: SIGSEGV." in ended.stderr
    assert "1 launch on the simulator" in ended.stderr


def test_errors_of_calls_have_cudas_names(program):
    ended = program(
        """
__global__ void nothing() {}
int main() {
    int here, *null = nullptr, *memory;
    CHECK(cudaMalloc(&memory, 4));
    auto tell = [](cudaError_t error) { printf("%s: %s\\n", cudaGetErrorName(error), cudaGetErrorString(error)); };
    tell(cudaMemcpy(memory, &here, 8, cudaMemcpyHostToDevice));
    tell(cudaMemcpy(null, &here, 4, cudaMemcpyHostToDevice));
    tell(cudaMalloc(&null, (size_t)1 << 50));
    tell(cudaFree(memory));
    tell(cudaFree(memory));
    tell(cudaSetDevice(3));
    cudaGetLastError();
    nothing<<<1, 2048>>>();
    tell(cudaGetLastError());
    tell(cudaGetLastError());
}
"""
    )
    assert ended.code == 0
    assert [line.partition(":")[0].removeprefix("cuda") for line in ended.stdout.splitlines()] == [
        *("ErrorInvalidValue", "ErrorInvalidValue", "ErrorMemoryAllocation", "Success", "ErrorInvalidValue"),
        *("ErrorInvalidDevice", "ErrorInvalidConfiguration", "Success"),
    ]


def test_kernels_are_launched_and_asked_for_by_pointers(program):
    ended = program(
        """
template <typename T>
__global__ void scale(T *values, T by, unsigned char) { values[threadIdx.x] *= by; }
__global__ void negate(double *values, double) { values[threadIdx.x] *= -1; }
__global__ void twice(double *values, double) { values[threadIdx.x] *= 2; }
int main() {
    double host[4] = {1, 2, 3, 4}, *values, by = 10;
    unsigned char none = 0;
    CHECK(cudaMalloc(&values, sizeof host));
    CHECK(cudaMemcpy(values, host, sizeof host, cudaMemcpyHostToDevice));
    void *arguments[] = {&values, &by, &none};
    CHECK(cudaLaunchKernel((const void *)scale<double>, dim3(1), dim3(4), arguments, 0, 0));
    for (auto kernel : {negate, twice}) kernel<<<1, 4>>>(values, 0);
    int blocks, grid, block;
    CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, negate, 256, 0));
    CHECK(cudaOccupancyMaxPotentialBlockSize(&grid, &block, scale<float>));
    cudaFuncAttributes found;
    CHECK(cudaFuncGetAttributes(&found, twice));
    CHECK(cudaMemcpy(host, values, sizeof host, cudaMemcpyDeviceToHost));
    printf("%g %g %d %d %d\\n", host[0], host[3], blocks, block, found.maxThreadsPerBlock);
}
"""
    )
    assert (ended.code, ended.stdout) == (0, "-20 -80 8 1024 1024\n"), ended.stderr


@needs.cplusplus
@needs.posix
def test_blocks_of_more_threads_than_a_block_can_have_are_never_resident(program):
    ended = program(
        """
__global__ void fill(int *values) { values[threadIdx.x] = 1; }
int main() {
    for (int threads : {1, 1024, 1025, 2048, 0, -32}) {
        int blocks = -7;
        int code = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, fill, threads, 0);
        printf("%d %d, ", code, blocks);
    }
}
"""
    )
    assert (ended.code, ended.stdout) == (0, "0 32, 0 2, 0 0, 0 0, 1 -7, 1 -7, "), ended.stderr


@needs.cplusplus
@needs.posix
@pytest.mark.parametrize("options", [(), ("--check",)])
def test_a_kernel_has_more_than_48_kb_of_shared_memory_if_the_host_allows_it(program, options):
    ended = program(
        """
__global__ void reverse(int *out, int n) {
    extern __shared__ int values[];
    for (int i = threadIdx.x; i < n; i += blockDim.x) values[i] = i;
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = values[n - 1 - i];
}
int main() {
    int most, *out, host;
    CHECK(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0));
    CHECK(cudaMalloc(&out, most));
    int n = most / 4;
    reverse<<<1, 96, most>>>(out, n);
    if (cudaGetLastError() == cudaSuccess) return 1;
    CHECK(cudaFuncSetAttribute(reverse, cudaFuncAttributeMaxDynamicSharedMemorySize, most));
    cudaFuncAttributes found;
    CHECK(cudaFuncGetAttributes(&found, reverse));
    reverse<<<1, 96, most>>>(out, n);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(&host, out + 1, sizeof host, cudaMemcpyDeviceToHost));
    printf("%d %d %d\\n", n, host, found.maxDynamicSharedSizeBytes);
}
""",
        *options,
    )
    assert (ended.code, ended.stdout) == (0, "58112 58110 232448\n"), ended.stderr


def test_several_files_headers_macros_and_streams(program):
    ended = program(
        """
#include "shape.h"
int offset();
void run_other(int *values);
__global__ void shift(Shape shape, int *values) { values[threadIdx.x] = shape.first + threadIdx.x * STEP; }
int main() {
    int *values, *pinned;
    cudaStream_t stream;
    cudaEvent_t first, last;
    float milliseconds = -1;
    CHECK(cudaStreamCreate(&stream));
    CHECK(cudaEventCreate(&first));
    CHECK(cudaEventCreate(&last));
    CHECK(cudaMalloc(&values, 4 * sizeof(int)));
    CHECK(cudaMallocHost(&pinned, 4 * sizeof(int)));
    CHECK(cudaEventRecord(first, stream));
    shift<<<dim3(1), dim3(4), 0, stream>>>(Shape{'x', offset()}, values);
    run_other(values);
    CHECK(cudaEventRecord(last, stream));
    CHECK(cudaMemcpyAsync(pinned, values, 16, cudaMemcpyDeviceToHost, stream));
    CHECK(cudaStreamSynchronize(stream));
    CHECK(cudaEventElapsedTime(&milliseconds, first, last));
    printf("%d %d %d\\n", pinned[0], pinned[3], milliseconds > 0);
}
""",
        "-D",
        "STEP=3",
        beside={
            "shape.h": "struct Shape { char letter; int first; };\n",
            "other.cu": "static __global__ void shift(int *v) { v[threadIdx.x] += 100; }\n"
            "void run_other(int *v) { shift<<<1, 4>>>(v); }\n",
            "offset.cpp": "int offset() { return 5; }\n",
        },
    )
    assert (ended.code, ended.stdout) == (0, "105 114 1\n"), ended.stderr


def test_device_code_of_other_files_is_linked(program):
    """Functions, kernels and variables of another file, whose own kernels use the same memory."""
    ended = program(
        """
extern __device__ int step;
__device__ int scaled(int x);
__global__ void child(int *values);
void run_other(int *values);
__global__ void parent(int *values) {
    values[threadIdx.x] = scaled(threadIdx.x) + step++;
    if (threadIdx.x == 0) child<<<1, 1>>>(values);
}
int main() {
    int *values, host[2], start = 10;
    CHECK(cudaMalloc(&values, sizeof(host)));
    CHECK(cudaMemcpyToSymbol(step, &start, sizeof(int)));
    run_other(values);
    parent<<<1, 2>>>(values);
    run_other(values);
    CHECK(cudaMemcpy(host, values, sizeof(host), cudaMemcpyDeviceToHost));
    printf("%d %d\\n", host[0], host[1]);
}
""",
        beside={
            "other.cu": "__device__ int step = 1;\n"
            "__device__ int scaled(int x) { return 100 * x; }\n"
            "__global__ void child(int *values) { values[0] += 1000; }\n"
            "__global__ void advance(int *values) { step += 20; values[1] += step; }\n"
            "void run_other(int *values) { advance<<<1, 1>>>(values); }\n",
        },
    )
    # step: 10, then 30; both threads read 30 and write 31; then 51. values[1]: 100 + 30 + 51.
    assert (ended.code, ended.stdout) == (0, "1030 181\n"), ended.stderr


def test_static_functions_of_several_files_have_the_same_name(program):
    """As `Chebyshev_Expansion_0_1` in HeCBench's fresnel."""
    ended = program(
        """
__device__ int first(int x);
__device__ int second(int x);
__device__ static int own(int x) { return x + 1; }
__global__ void k(int *v) { *v = own(100) + first(20) * second(30); }
int main() {
    int *v, host;
    CHECK(cudaMalloc(&v, 4));
    k<<<1, 1>>>(v);
    CHECK(cudaMemcpy(&host, v, 4, cudaMemcpyDeviceToHost));
    printf("%d\\n", host);
}
""",
        beside={
            "first.cu": "__device__\nstatic int own(int x) { return 2 * x; }\n"
            "__device__ int first(int x) { return own(x); }\n",
            "second.cu": "static __device__ int own(int x) { return 3 * x; }\n"
            "__device__ int second(int x) { return own(x); }\n",
        },
    )
    assert (ended.code, ended.stdout) == (0, "3701\n"), ended.stderr


def test_device_code_that_no_file_defines_is_named(program):
    ended = program(
        "__device__ int scaled(int x);\n__global__ void k(int *v) { *v = scaled(*v); }\n"
        "int main() { int *v; CHECK(cudaMalloc(&v, 4)); k<<<1, 1>>>(v); return cudaGetLastError(); }\n",
        beside={"other.cu": "__global__ void unrelated() {}\n"},
    )
    assert ended.code == 98
    assert "a call of scaled, which is not defined here" in ended.stderr


def test_each_file_has_its_own_copy_of_a_variable_that_two_define(program):
    ended = program(
        """
#include "shared.h"
extern __device__ int counter = 10;
__device__ int mine = 7;
void run_other(int *values);
__global__ void add(int *values) { values[threadIdx.x] = ++counter * 100 + table[threadIdx.x] + mine; }
int main() {
    int *values, host[4], set[2] = {1, 2}, read;
    CHECK(cudaMalloc(&values, sizeof host));
    CHECK(cudaMemcpyToSymbol(table, set, sizeof set));
    add<<<1, 1>>>(values);
    run_other(values + 2);
    CHECK(cudaMemcpyFromSymbol(&read, counter, sizeof read));
    CHECK(cudaMemcpy(host, values, sizeof host, cudaMemcpyDeviceToHost));
    printf("%d %d %d\\n", host[0], host[2], read);
}
""",
        beside={
            "shared.h": "__constant__ int table[2];\n",
            "other.cu": '#include "shared.h"\n__device__ volatile int counter = 20, unused;\n'
            "__global__ void add_other(int *v) { counter = counter + 1; *v = counter * 100 + table[0]; }\n"
            "void run_other(int *v) { add_other<<<1, 1>>>(v); }\n",
        },
    )
    assert (ended.code, ended.stdout) == (0, "1108 2100 11\n"), ended.stderr


def test_host_code_that_does_not_compile_is_told_with_its_line(program):
    ended = program("int main() { undeclared(); }\n")
    assert ended.code == 1
    assert "program.cu:10:" in ended.stderr
    assert "undeclared" in ended.stderr


def test_what_the_simulator_refuses_is_said_once_and_fails_the_launch(program):
    ended = program(
        """
struct Base { __device__ virtual int value() { return 1; } };
__global__ void call(Base *base, int *out) { *out = base->value(); }
int main() {
    int *out;
    CHECK(cudaMalloc(&out, 4));
    for (int i = 0; i < 2; i++) call<<<1, 1>>>(nullptr, out);
    printf("%s\\n", cudaGetErrorName(cudaGetLastError()));
}
"""
    )
    assert ended.stdout == "cudaErrorInvalidDeviceFunction\n"
    assert ended.stderr.count("virtual function") == 1
    assert ended.code == 2


def test_arguments_of_every_kind_arrive(program):
    ended = program(
        """
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <cooperative_groups.h>
#include <curand_kernel.h>
namespace cg = cooperative_groups;
struct Odd { char letter; double number; short last; };
__device__ float total(cg::thread_block_tile<32> tile, float x) {
    for (int d = 16; d; d /= 2) x += tile.shfl_down(x, d);
    return x;
}
__global__ void kernel(float *__restrict__ out, const __half *__restrict__ in, const int n, unsigned char c,
                       float3 three, Odd odd, bool yes, long long big, __half half, curandState *) {
    auto tile = cg::tiled_partition<32>(cg::this_thread_block());
    float sum = total(tile, __half2float(in[threadIdx.x]));
    float given[] = {sum, 1.0f * n, 1.0f * c, three.z, (float)odd.number, 1.0f * odd.last, 1.0f * yes, 1.0f * big,
                     __half2float(half)};
    if (threadIdx.x == 0)
        for (int i = 0; i < 9; i++) out[i] = given[i];
}
int main() {
    __half host[32], *in;
    float found[9], *out;
    for (int i = 0; i < 32; i++) host[i] = __float2half(i * 0.5f);
    CHECK(cudaMalloc(&out, sizeof found));
    CHECK(cudaMalloc(&in, sizeof host));
    CHECK(cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice));
    kernel<<<1, 32>>>(out, in, 20, 200, make_float3(1, 2, 3), {'a', 0.25, -7}, true, 1LL << 40, __float2half(1.5f),
                      nullptr);
    CHECK(cudaMemcpy(found, out, sizeof found, cudaMemcpyDeviceToHost));
    for (float each : found) printf("%g ", each);
}
"""
    )
    assert ended.code == 0, ended.stderr
    assert ended.stdout == f"248 20 200 3 0.25 -7 1 {2.0**40:g} 1.5 "


def test_fast_launches_give_the_same_and_pointers_in_memory_are_still_followed(program):
    text = """
struct List { float *values; int count; };
__global__ void scale(const float *in, float *out, float by) { out[threadIdx.x] = in[threadIdx.x + 1] * by; }
__global__ void add(List list) { if (threadIdx.x < list.count) list.values[threadIdx.x] += 1; }
__global__ void follow(float **rows, float *out) { out[threadIdx.x] += rows[threadIdx.x % 2][0]; }
__global__ void pass_on(float **rows, float *out) { follow<<<1, 4>>>(rows, out); }
__global__ void divide(float *out) { assert(threadIdx.x < 3); out[threadIdx.x] /= 2; }
int main() {
    float host[9], found[8], *in, *out, **rows;
    for (int i = 0; i < 9; i++) host[i] = i;
    CHECK(cudaMalloc(&in, sizeof host));
    CHECK(cudaMalloc(&out, sizeof found));
    CHECK(cudaMallocManaged(&rows, 2 * sizeof(float *)));
    CHECK(cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice));
    rows[0] = in + 3, rows[1] = in + 4;
    scale<<<1, 7>>>(in + 1, out, 2);
    add<<<1, 32>>>(List{out, 3});
    follow<<<1, 4>>>(rows, out);
    pass_on<<<1, 1>>>(rows, out);
    CHECK(cudaMemcpy(found, out, sizeof found, cudaMemcpyDeviceToHost));
    for (int i = 0; i < 7; i++) printf("%g ", found[i]);
    divide<<<1, 4>>>(out);
    printf("%s", cudaGetErrorName(cudaDeviceSynchronize()));
}
"""
    said = "11 15 15 18 12 14 16 cudaErrorAssert"
    for options in ((), ("--fast",)):
        ended = program(text, *options)
        assert (ended.code, ended.stdout) == (0, said), ended.stderr
    refused = program(text, "--fast", "--check")
    assert refused.code == 2
    assert "--fast runs without checks" in refused.stderr


def test_a_file_without_main_is_no_program(program):
    ended = program("__global__ void k() {}")
    assert (ended.code, ended.stdout) == (2, "")
    assert ended.stderr.startswith("lockstep: The program has no function main. ")


def test_a_program_whose_reader_goes_ends_without_a_word(program):
    ended = program("#include <csignal>\nint main() { raise(SIGPIPE); }")
    assert (ended.code, ended.stderr) == (128 + 13, "")


def test_a_compiler_that_says_nothing_is_named(program, monkeypatch):
    monkeypatch.setenv("CXX", "/bin/false")
    assert program("int main() {}").stderr.startswith(
        "lockstep: The host code does not compile: false exited with code 1"
    )


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("#include <thrust/none.h>\nint main() {}\n", "or name the folder that contains thrust/ with -I"),
        (
            "#include <cub/cub.cuh>\nint main() { size_t n; cub::DeviceReduce::Sum(nullptr, n, &n, &n, 4); }\n",
            "cub::Device* launches CUB's own kernels, which the simulator does not support",
        ),
    ],
    ids=["thrust", "cub"],
)
def test_libraries_of_the_toolkit_are_refused_with_a_sentence(program, text, sentence):
    ended = program(text)
    assert ended.code == 1
    assert "program.cu:" in ended.stderr
    assert sentence in ended.stderr


THRUST = next((each for each in Path("/usr/local").glob("cuda/include/cccl") if (each / "thrust").is_dir()), None)


@needs.needs(THRUST, "Thrust's headers: install the CUDA toolkit")
def test_thrust_runs_on_this_processor_and_kernels_reach_its_memory(program):
    ended = program(
        """
#include <cub/cub.cuh>
#include <thrust/device_malloc.h>
#include <thrust/device_free.h>
#include <thrust/device_vector.h>
#include <thrust/host_vector.h>
#include <thrust/sequence.h>
#include <thrust/sort.h>
#include <thrust/transform.h>
#ifndef __CUDACC__
#error "This is CUDA code."
#endif
struct Square { __device__ int operator()(int x) const { return x * x; } };
__global__ void twice(int *x) {
    using Reduce = cub::BlockReduce<int, 4>;
    __shared__ Reduce::TempStorage kept;
    int all = Reduce(kept).Sum(x[threadIdx.x]);
    x[threadIdx.x] *= 2;
    if (threadIdx.x == 0) x[0] = all;
}
int main() {
    thrust::device_vector<int> v(4);
    thrust::sequence(v.begin(), v.end(), 1);
    thrust::transform(v.begin(), v.end(), v.begin(), Square());
    twice<<<1, 4>>>(thrust::raw_pointer_cast(v.data()));
    int *d;
    CHECK(cudaMalloc(&d, 16));
    CHECK(cudaMemcpy(d, thrust::raw_pointer_cast(v.data()), 16, cudaMemcpyDeviceToDevice));
    thrust::device_ptr<int> p(d);
    thrust::sort(p, p + 4, thrust::greater<int>());
    thrust::host_vector<int> h = v;
    printf("%d %d %d %d, %d %d\\n", h[0], h[1], h[2], h[3], (int)p[0], (int)p[3]);
    cudaStream_t stream;
    CHECK(cudaStreamCreate(&stream));
    thrust::sort(thrust::cuda::par.on(stream), p, p + 4);
    thrust::sort(thrust::cuda::par_nosync.on(stream), p, p + 4, thrust::greater<int>());
    thrust::device_ptr<int> allocated = thrust::device_malloc<int>(4);
    CHECK(cudaMemcpy(allocated.get(), d, 16, cudaMemcpyDeviceToDevice));
    twice<<<1, 4>>>(allocated.get());
    printf("%d %d\\n", (int)allocated[0], (int)allocated[3]);
    thrust::device_free(allocated);
    try {
        thrust::device_vector<int> large(1ull << 60);
    } catch (thrust::system_error &error) {
        puts(error.what());
    } catch (std::bad_alloc &) {
        puts("too large");
    }
}
"""
    )
    assert (ended.code, ended.stdout) == (0, "30 8 18 32, 32 8\n88 16\ntoo large\n"), ended.stderr
    assert f"Thrust's algorithms run on this CPU, from {THRUST}." in ended.stderr


@needs.needs(THRUST, "Thrust's headers: install the CUDA toolkit")
def test_host_code_with_thrust_is_not_compared(program):
    """Its algorithms, which streams order on a GPU, run as host code."""
    ended = program(
        """#include <thrust/version.h>
__global__ void set(int *v) { v[0] = 1; }
int main() { int *v; CHECK(cudaMallocManaged(&v, 4)); set<<<1, 1>>>(v); return v[0] - 1; }""",
        "--check",
    )
    assert ended.code == 0, ended.stderr


def test_the_device_says_that_it_is_a_gpu_that_is_described(program):
    ended = program(
        """
        int main() {
            cudaDeviceProp device;
            CHECK(cudaGetDeviceProperties(&device, 0));
            printf("%d.%d %d %d\\n", device.major, device.minor, device.multiProcessorCount, device.l2CacheSize);
        }
        """,
        "--gpu",
        "a100",
    )
    assert (ended.code, ended.stdout) == (0, "8.0 108 41943040\n"), ended.stderr


def test_host_and_kernels_share_an_atomic(program):
    ended = program(
        """
#include <cuda/atomic>
#include <new>
using Flag = cuda::atomic<int, cuda::thread_scope_system>;
__global__ void answer(Flag *asked, Flag *count, float *sum) {
    count->fetch_add(asked->load(cuda::memory_order_acquire), cuda::memory_order_relaxed);
    cuda::atomic_ref<float>(*sum).fetch_add(0.5f);
}
int main() {
    Flag *flags;
    float *sum;
    CHECK(cudaMallocManaged(&flags, 2 * sizeof(Flag)));
    CHECK(cudaMallocManaged(&sum, sizeof(float)));
    Flag *asked = new (flags) Flag(0), *count = new (flags + 1) Flag{1};
    *asked = 3;
    asked->fetch_max(2), asked->fetch_sub(1);
    answer<<<1, 32>>>(asked, count, sum);
    CHECK(cudaDeviceSynchronize());
    int expected = 65;
    bool was = count->compare_exchange_strong(expected, 7);
    cuda::std::atomic_ref<float>(*sum) += 1.0f;
    printf("%d %d %d %g\\n", was, count->load(), asked->load(), *sum);
}
"""
    )
    assert (ended.code, ended.stdout) == (0, "1 7 2 17\n"), ended.stderr


def test_what_an_overload_lacks_is_said_and_not_that_there_are_several(program):
    ended = program(
        """
__global__ void f(int *out) { union { int a[2]; long b; } u = {{1, 2}}; out[0] = u.a[0]; }
__global__ void f(float *out) { out[0] = 1; }
int main() { f<<<1, 1>>>((int *)nullptr); }
"""
    )
    assert "the simulator does not support braces for a union that starts with an array" in ended.stderr
    assert "several kernels" not in ended.stderr


def test_what_only_the_simulator_does_not_launch_is_said(program):
    """And for a launch that no GPU takes, the limit."""
    terms = " + ".join(["1"] * (nesting.MAX_EXPRESSION_DEPTH - 20))
    ended = program(
        f"__device__ int count(int n) {{ return n == 0 ? 0 : count(n - 1) + {terms}; }}\n"
        """
__global__ void find(int *out) { out[0] = count(out[0] + 60); }
int main() {
    int *out;
    CHECK(cudaMalloc(&out, sizeof(int)));
    CHECK(cudaMemset(out, 0, sizeof(int)));
    find<<<1, 2048>>>(out);
    printf("%s ", cudaGetErrorName(cudaGetLastError()));
    find<<<1, 1>>>(out);
    printf("%s\\n", cudaGetErrorName(cudaGetLastError()));
}
"""
    )
    assert ended.stdout == "cudaErrorInvalidConfiguration cudaErrorInvalidConfiguration\n"
    complaint = "recursive calls within deeply nested expressions exceed the simulator's stack"
    assert complaint in " ".join(ended.stderr.split())
    limit = "lockstep: The launch at program.cu:17 fails. find: a block of 2048 threads; at most 1024 are possible.\n"
    assert ended.stderr.startswith(limit)
    assert ended.stderr.count("lockstep: ") == 2


def test_a_specialization_is_launched_whatever_its_signature_names(program):
    ended = program(
        """
typedef float real;
template <typename T, int N> __global__ void fill(T *out, real value) { out[threadIdx.x] = value * N; }
template <> __global__ void fill<double, 3>(double *out, real value) { out[threadIdx.x] = value + 100; }
template <typename T> __global__ void fill(T *out, int64_t value) { out[threadIdx.x] = value; }
template <> __global__ void fill(int *out, int64_t value) { out[threadIdx.x] = value + 200; }
int main() {
    double *out, found;
    int *whole, number;
    CHECK(cudaMalloc(&out, sizeof found));
    CHECK(cudaMalloc(&whole, sizeof number));
    fill<double, 2><<<1, 1>>>(out, 1.5f);
    CHECK(cudaMemcpy(&found, out, sizeof found, cudaMemcpyDeviceToHost));
    printf("%g ", found);
    fill<double, 3><<<1, 1>>>(out, 1.5f);
    CHECK(cudaMemcpy(&found, out, sizeof found, cudaMemcpyDeviceToHost));
    fill<<<1, 1>>>(whole, (int64_t)7);
    CHECK(cudaMemcpy(&number, whole, sizeof number, cudaMemcpyDeviceToHost));
    printf("%g %d\\n", found, number);
}
"""
    )
    assert (ended.code, ended.stdout) == (0, "3 101.5 207\n"), ended.stderr


def test_lambdas_are_launched_from_macros_and_templates(program):
    """Several in one line, in instantiations of one function, and of one that the host calls too."""
    ended = program(
        """
#define LAMBDA [=] __device__
#define PARALLEL_FOR(i, n, ...) for_each(n, [=] __device__ (int i) { __VA_ARGS__ })
template <int Block, typename F> __global__ void each(int n, F f) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) f(i + Block - 32);
}
template <typename F> void for_each(int n, F f) { each<32><<<(n + 31) / 32, 32>>>(n, f); }
template <typename T> void scale(T *x, int n, T by) {
    for_each(n, LAMBDA(int i) { x[i] *= by; }), each<33><<<1, 1>>>(1, LAMBDA(int i) { x[i] += by + threadIdx.x; });
}
int main() {
    float *x;
    double *y;
    int *z;
    CHECK(cudaMallocManaged(&x, 40 * sizeof *x));
    CHECK(cudaMallocManaged(&y, 40 * sizeof *y));
    CHECK(cudaMallocManaged(&z, 4 * sizeof *z));
    for_each(40, [=] __device__(int i) { x[i] = i, y[i] = 2 * i, z[i % 4] = 0; });
    scale(x, 40, 0.5f), scale(y, 40, 10.0);
    PARALLEL_FOR(i, 40, x[i] += 1; atomicAdd(&z[i % 4], 1);); PARALLEL_FOR(j, 40,
        y[j] += 2;
        if (j == 39) y[j] = -1; );
    auto twice = [] __host__ __device__(float v) { return 2 * v; };
    each<32><<<1, 32>>>(3, [=] __device__(int i) mutable -> void { x[i] = twice(x[i]); });
    CHECK((each<32><<<1, 1>>>(1, [z] __device__(int i) { z[1] = 7; }), cudaDeviceSynchronize()));
    printf("%g %g %g %g %d %d %g\\n", x[1], x[39], y[1], y[39], z[0], z[1], twice(3));
}
"""
    )
    assert (ended.code, ended.stdout) == (0, "4 20.5 32 -1 10 7 6\n"), ended.stderr


def test_memory_without_values_is_found_behind_pointers_in_structs_and_lambdas(program):
    ended = program(
        """
struct View { float *data; int n; };
struct Both { View in, out; };
template <typename F> __global__ void each(int n, F f) { if (threadIdx.x < n) f(threadIdx.x); }
__global__ void twice(Both both) { both.out.data[threadIdx.x] = 2 * both.in.data[threadIdx.x]; }
int main() {
    float *a, *b;
    CHECK(cudaMalloc(&a, 64));
    CHECK(cudaMalloc(&b, 64));
    twice<<<1, 16>>>(Both{{a, 16}, {b, 16}});
    each<<<1, 16>>>(16, [=] __device__(int i) { b[i] += 1; });  // which the launch before has written
    CHECK(cudaMalloc(&a, 64));
    each<<<1, 16>>>(16, [=] __device__(int i) { a[i] += 1; });
}
""",
        "--check",
    )
    assert ended.code == 1
    assert ended.stderr.count("Uninitialized __global__ memory read") == 2
    assert "element 0 of both.in.data" in ended.stderr
    assert "element 0 of f.a" in ended.stderr
