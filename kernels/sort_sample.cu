// Evenly spread samples of an array's keys, to show the progress of a sort.

#include "sort_keys.cuh"

// Key k of `sample` is a pseudorandom key of the k-th of `count` parts: positions at equal distances would be the same
// within all sorted sections.
extern "C" __global__ void sort_sample(const KEY *keys, KEY *sample, int n, int count) {
    int k = blockIdx.x * BLOCK_SIZE + threadIdx.x;
    if (k >= count) return;
    long long first = (long long)k * n / count;
    long long end = (long long)(k + 1) * n / count;
    unsigned int any = (unsigned int)k * 2654435761u >> 8;
    sample[k] = keys[first + any % (unsigned int)(end - first)];
}
