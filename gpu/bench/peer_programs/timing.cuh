// Functions shared by the programs that time peers.
#include <cstdio>
#include <cstdlib>

#include "../../engines/cuda/lead.cu"

#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        cudaError_t status = call;                                                                                     \
        if (status != cudaSuccess) {                                                                                   \
            fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(status));                                            \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

__device__ unsigned int hash(size_t i, unsigned int seed) {
    unsigned int x = (unsigned int)i * 2654435761u + seed;
    x = (x ^ (x >> 16)) * 0x7feb352du;
    x = (x ^ (x >> 15)) * 0x846ca68bu;
    return x ^ (x >> 16);
}

__global__ void fill_words(unsigned int *words, size_t count, unsigned int seed) {
    size_t stride = (size_t)gridDim.x * blockDim.x;
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < count; i += stride) words[i] = hash(i, seed);
}

// Values from 0 to 1.
__global__ void fill_fractions(float *values, size_t count, unsigned int seed) {
    size_t stride = (size_t)gridDim.x * blockDim.x;
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < count; i += stride)
        values[i] = hash(i, seed) * (1.0f / 4294967296.0f);
}

// Repeat an action and print the milliseconds of each repetition after the first `warm_up`. Before each, as before each
// launch of our variants, read twice as much memory as the cache holds: it is cold and clean, and the GPU busy.
template <typename Action>
void time_rounds(int warm_up, int repetitions, Action action) {
    int cache, multiprocessors;
    CHECK(cudaDeviceGetAttribute(&cache, cudaDevAttrL2CacheSize, 0));
    CHECK(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, 0));
    int vectors = 2 * (cache / (int)sizeof(uint4));
    uint4 *zeros;
    CHECK(cudaMalloc(&zeros, (vectors + 1) * sizeof(uint4)));
    CHECK(cudaMemset(zeros, 0, (vectors + 1) * sizeof(uint4)));
    cudaEvent_t start, end;
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&end));
    for (int round = 0; round < warm_up + repetitions; ++round) {
        lead<<<2 * multiprocessors, 1024>>>(zeros, (unsigned int *)&zeros[vectors], vectors);
        CHECK(cudaEventRecord(start));
        action();
        CHECK(cudaEventRecord(end));
        CHECK(cudaEventSynchronize(end));
        float milliseconds;
        CHECK(cudaEventElapsedTime(&milliseconds, start, end));
        if (round >= warm_up) printf("%.6f\n", milliseconds);
    }
}
