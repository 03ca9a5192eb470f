"""Parts of the runtime API that NVIDIA's samples use beyond those of simple programs."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize("option", ["--check", "--fast"])
def test_threads_of_a_program_share_the_device(program, option):
    """Eight threads launch two kernels in turn, whose first launches compile the file."""
    ended = program(
        """
#include <thread>
#include <vector>
__global__ void add(int *values, int by, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) values[i] += by;
}
__global__ void twice(int *values, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) values[i] *= 2;
}
int main() {
    const int n = 1000, count = 8;
    int results[count];
    std::vector<std::thread> threads;
    for (int t = 0; t < count; t++)
        threads.emplace_back([&, t] {
            std::vector<int> host(n, t);
            int *device;
            CHECK(cudaMalloc(&device, n * sizeof(int)));
            CHECK(cudaMemcpy(device, host.data(), n * sizeof(int), cudaMemcpyHostToDevice));
            for (int r = 0; r < 5; r++) {
                add<<<4, 256>>>(device, t, n);
                twice<<<4, 256>>>(device, n);
            }
            CHECK(cudaMemcpy(host.data(), device, n * sizeof(int), cudaMemcpyDeviceToHost));
            CHECK(cudaFree(device));
            results[t] = host[n - 1];
        });
    for (auto &each : threads) each.join();
    for (int each : results) printf("%d ", each);
}
""",
        option,
    )
    expected = []
    for thread in range(8):
        value = thread
        for _ in range(5):
            value = 2 * (value + thread)
        expected.append(f"{value} ")
    assert (ended.code, ended.stdout) == (0, "".join(expected)), ended.stderr


def test_attributes_hints_and_flags_have_cudas_names(program):
    ended = program(
        """
int main() {
    int overlap, pitch, l2;
    CHECK(cudaDeviceGetAttribute(&overlap, cudaDevAttrGpuOverlap, 0));
    CHECK(cudaDeviceGetAttribute(&pitch, cudaDevAttrTexturePitchAlignment, 0));
    CHECK(cudaDeviceGetAttribute(&l2, cudaDevAttrMaxPersistingL2CacheSize, 0));
    CHECK(cudaSetDeviceFlags(cudaDeviceBlockingSync | cudaDeviceMapHost));
    cudaStream_t stream;
    CHECK(cudaStreamCreate(&stream));
    cudaStreamAttrValue value = {};
    value.accessPolicyWindow.hitRatio = 1.0f;
    value.accessPolicyWindow.hitProp = cudaAccessPropertyPersisting;
    CHECK(cudaStreamSetAttribute(stream, cudaStreamAttributeAccessPolicyWindow, &value));
    CHECK(cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, l2));
    CHECK(cudaCtxResetPersistingL2Cache());
    float *memory;
    CHECK(cudaMallocManaged(&memory, 400));
    cudaMemLocation place;
    place.type = cudaMemLocationTypeDevice;
    place.id = 0;
    CHECK(cudaMemAdvise(memory, 400, cudaMemAdviseSetPreferredLocation, place));
    CHECK(cudaMemPrefetchAsync(memory, 400, place, 0, stream));
    CHECK(cudaMemPrefetchAsync(memory, 400, 0, stream));
    printf("%d %d %d", overlap, pitch, l2);
}
"""
    )
    assert (ended.code, ended.stdout) == (0, "1 32 0"), ended.stderr


def test_cudas_keywords_are_macros_in_other_files(program):
    ended = program(
        """
#include "shared.h"
int twice_elsewhere(int);
int main() { printf("%d", twice_elsewhere(18) + twice(1)); }
""",
        beside={
            "shared.h": "#pragma once\n__host__ __device__ __forceinline__ int twice(int x) { return 2 * x; }\n",
            "other.cpp": """
#include <cuda_runtime.h>
#include "shared.h"
__host__ int twice_elsewhere(int x) { return twice(x); }
""",
        },
    )
    assert (ended.code, ended.stdout) == (0, "38"), ended.stderr


def test_a_variables_extent_may_be_in_parentheses(program):
    ended = program(
        """
#define RADIUS 3
#define LENGTH (2 * RADIUS + 1)
__constant__ int weights[LENGTH];
__device__ int table[2][(LENGTH)], sums[(2)] = {0, 0};
__global__ void fill() {
    for (int i = 0; i < LENGTH; i++) table[1][i] = weights[i] * i, sums[1] += weights[i];
}
int main() {
    int host[LENGTH], found[2][LENGTH], total[2];
    for (int i = 0; i < LENGTH; i++) host[i] = 10 + i;
    CHECK(cudaMemcpyToSymbol(weights, host, sizeof host));
    fill<<<1, 1>>>();
    CHECK(cudaMemcpyFromSymbol(found, table, sizeof found));
    CHECK(cudaMemcpyFromSymbol(total, sums, sizeof total));
    printf("%d %d %d", found[1][LENGTH - 1], found[0][0], total[1]);
}
"""
    )
    assert (ended.code, ended.stdout) == (0, f"{16 * 6} 0 {sum(range(10, 17))}"), ended.stderr
