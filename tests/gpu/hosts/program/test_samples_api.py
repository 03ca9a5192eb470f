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


def test_pools_priorities_and_cooperative_limits(program):
    ended = program(
        """
#include <cooperative_groups.h>
#include <nvtx3/nvToolsExt.h>
#include <cuda/std/limits>
#include <cuda/std/type_traits>
static_assert(cuda::std::numeric_limits<int>::max() == 2147483647);
__global__ void wait_for_all(int *count) {
    if (!cuda::std::is_same_v<decltype(count), int *>) *count = cuda::std::numeric_limits<int>::max();
    atomicAdd(count, 1);
    cooperative_groups::this_grid().sync();
    if (threadIdx.x + blockIdx.x == 0) *count *= 10;
}
int main() {
    int least, greatest, priority, blocks;
    CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    cudaStream_t stream;
    CHECK(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, greatest - 3));
    CHECK(cudaStreamGetPriority(stream, &priority));
    nvtxRangePushA("launches");
    unsigned flags;
    char bus[13];
    CHECK(cudaStreamGetFlags(stream, &flags));
    CHECK(cudaDeviceGetPCIBusId(bus, 13, 0));
    wait_for_all<<<1, 32, 50000>>>(nullptr);
    printf("%d %d %d %u %s %s\\n", least, greatest, priority, flags, bus, cudaGetErrorName(cudaGetLastError()));
    cudaMemPool_t pool;
    unsigned long long threshold = 1 << 20, read = 0;
    CHECK(cudaDeviceGetDefaultMemPool(&pool, 0));
    CHECK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
    CHECK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &read));
    printf("%llu %d\\n", read, cudaMemPoolSetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &read));
    cudaMemAccessDesc access = {{cudaMemLocationTypeDevice, 0}, cudaMemAccessFlagsProtReadWrite};
    CHECK(cudaMemPoolSetAccess(pool, &access, 1));
    access.location.id = 1;
    printf("%s\\n", cudaGetErrorName(cudaMemPoolSetAccess(pool, &access, 1)));
    int *count;
    CHECK(cudaMallocFromPoolAsync(&count, sizeof(int), pool, stream));
    CHECK(cudaMemsetAsync(count, 0, sizeof(int), stream));
    CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, wait_for_all, 1024, 0));
    cudaDeviceProp properties;
    CHECK(cudaGetDeviceProperties(&properties, 0));
    void *arguments[] = {&count};
    printf("%d %d ", properties.maxTexture1DLayered[1], properties.maxTexture2DLayered[0]);
    printf("%s\\n", cudaGetErrorName(cudaDeviceGetP2PAttribute(&blocks, cudaDevP2PAttrAccessSupported, 0, 1)));
    for (int grid : {3, blocks * properties.multiProcessorCount + 1})
        printf("%s ", cudaGetErrorName(cudaLaunchCooperativeKernel(wait_for_all, grid, 1024, arguments, 0, stream)));
    int host;
    CHECK(cudaMemcpyAsync(&host, count, sizeof(int), cudaMemcpyDeviceToHost, stream));
    CHECK(cudaStreamSynchronize(stream));
    size_t bytes;
    CHECK(cudaOccupancyAvailableDynamicSMemPerBlock(&bytes, wait_for_all, 2, 1024));
    printf("%d %zu\\n", host, bytes);
    CHECK(cudaFreeAsync(count, stream));
}
"""
    )
    assert ended.stdout.splitlines() == [
        "0 -5 -5 1 0000:00:00.0 cudaErrorInvalidValue",
        "1048576 1",
        "cudaErrorInvalidValue",
        "2048 32768 cudaErrorInvalidDevice",
        f"cudaSuccess cudaErrorCooperativeLaunchTooLarge 30720 {228 * 1024 // 2 - 1024}",
    ], ended.stderr
