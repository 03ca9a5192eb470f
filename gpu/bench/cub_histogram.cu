// CUB's histogram of 256 bins of uint8, as a peer. Prints CUB's version, then the milliseconds of each repetition.
// Arguments: "uniform" or "constant", pixels, seed, warm-up rounds, repetitions.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cub/cub.cuh>

#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        cudaError_t status = call;                                                                                     \
        if (status != cudaSuccess) {                                                                                   \
            fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(status));                                            \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

__global__ void fill_uniform(unsigned int *words, size_t count, unsigned int seed) {
    size_t stride = (size_t)gridDim.x * blockDim.x;
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < count; i += stride) {
        unsigned int x = (unsigned int)i * 2654435761u + seed;
        x = (x ^ (x >> 16)) * 0x7feb352du;
        x = (x ^ (x >> 15)) * 0x846ca68bu;
        words[i] = x ^ (x >> 16);
    }
}

int main(int, char **arguments) {
    bool uniform = strcmp(arguments[1], "uniform") == 0;
    size_t count = strtoull(arguments[2], nullptr, 10);
    unsigned int seed = atoi(arguments[3]);
    int warm_up = atoi(arguments[4]), repetitions = atoi(arguments[5]);

    unsigned char *pixels;
    int *bins;
    CHECK(cudaMalloc(&pixels, count));
    CHECK(cudaMalloc(&bins, 256 * sizeof(int)));
    if (uniform)
        fill_uniform<<<2048, 256>>>((unsigned int *)pixels, count / 4, seed);
    else
        CHECK(cudaMemset(pixels, seed & 255, count));

    void *scratch = nullptr;
    size_t scratch_bytes = 0;
    CHECK(cub::DeviceHistogram::HistogramEven(nullptr, scratch_bytes, pixels, bins, 257, 0, 256, (int)count));
    CHECK(cudaMalloc(&scratch, scratch_bytes));
    cudaEvent_t start, end;
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&end));
    printf("%d.%d.%d\n", CUB_MAJOR_VERSION, CUB_MINOR_VERSION, CUB_SUBMINOR_VERSION);
    for (int i = 0; i < warm_up + repetitions; ++i) {
        CHECK(cudaEventRecord(start));
        CHECK(cub::DeviceHistogram::HistogramEven(scratch, scratch_bytes, pixels, bins, 257, 0, 256, (int)count));
        CHECK(cudaEventRecord(end));
        CHECK(cudaEventSynchronize(end));
        float milliseconds;
        CHECK(cudaEventElapsedTime(&milliseconds, start, end));
        if (i >= warm_up) printf("%.5f\n", milliseconds);
    }
    return 0;
}
