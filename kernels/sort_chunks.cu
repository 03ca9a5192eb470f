// Sort over several devices: each has sorted its chunk by a rung of sort.cu. Keys at equal distances of all chunks are
// sorted, and every so many-th of them is a splitter; what lies between two splitters goes to one device, which merges
// what it gets. Between equal keys the chunk decides, and then the place in it, so that many equal keys are shared too,
// and keep their order. Source: Shi and Schaeffer, Parallel Sorting by Regular Sampling, J. Parallel Distrib. Comput.
// 14 (1992). Least traffic: 8 bytes a key for each merge of two, and the same a place.
//
// kernel             idea
// sort_chunk_sample  some of a chunk's keys, at equal distances
// sort_chunk_bounds  how many of a chunk's keys go before each splitter
// sort_chunk_share   a bucket's share of a chunk
// sort_chunk_merge   two sorted shares of a bucket become one

#include "sort_keys.cuh"

// So many keys of the result are a thread's own.
#define OUTPUTS 8

extern "C" __global__ void sort_chunk_sample(const KEY *keys, KEY *sample, int n, int count) {
    int k = blockIdx.x * BLOCK_SIZE + threadIdx.x;
    if (k < count) sample[k] = keys[(long long)k * n / count];
}

// Idea: a thread searches its splitter. Of keys that are equal to it those go before it that are in a chunk before its
// own; in its own chunk its place is known.
extern "C" __global__ void sort_chunk_bounds(const KEY *keys, int n, int chunk, const KEY *splitters, const int *chunks,
                                             const int *places, int count, int *bounds) {
    int k = blockIdx.x * BLOCK_SIZE + threadIdx.x;
    if (k >= count) return;
    if (chunks[k] == chunk) {
        bounds[k] = places[k];
        return;
    }
    KEY splitter = splitters[k];
    bool equal_goes_before = chunk < chunks[k];
    int low = 0, high = n;
    while (low < high) {
        int middle = low + (high - low) / 2;
        bool goes_before = equal_goes_before ? !before(splitter, keys[middle]) : before(keys[middle], splitter);
        if (goes_before)
            low = middle + 1;
        else
            high = middle;
    }
    bounds[k] = low;
}

// Idea: what is sent is a buffer by itself, and what stays stays on the device. Limit: memory's bandwidth.
extern "C" __global__ void sort_chunk_share(const KEY *keys, const int *places, KEY *share_keys, int *share_places,
                                            int first, int count) {
    int stride = gridDim.x * BLOCK_SIZE;
    for (int i = blockIdx.x * BLOCK_SIZE + threadIdx.x; i < count; i += stride) {
        share_keys[i] = keys[first + i];
        if (PAIRS) share_places[i] = places[first + i];
    }
}

// Idea: sort_merge_path, for two runs of any lengths; of equal keys those of the left one go first. Limit: neighboring
// threads read and write eight keys apart; each doubling of the runs is a pass over memory.
extern "C" __global__ void sort_chunk_merge(const KEY *left, const int *left_places, int of_left, const KEY *right,
                                            const int *right_places, int of_right, KEY *keys, int *places) {
    int first = OUTPUTS * (blockIdx.x * BLOCK_SIZE + threadIdx.x);
    int n = of_left + of_right;
    if (first >= n) return;
    // phase: search
    int low = max(first - of_right, 0);
    int high = min(first, of_left);
    while (low < high) {
        int middle = (low + high) / 2;
        if (before(right[first - 1 - middle], left[middle]))
            high = middle;
        else
            low = middle + 1;
    }
    // phase: merge
    int i = low;
    int j = first - low;
    for (int out = first; out < min(first + OUTPUTS, n); ++out) {
        bool from_right = i == of_left || (j < of_right && before(right[j], left[i]));
        keys[out] = from_right ? right[j] : left[i];
        if (PAIRS) places[out] = from_right ? right_places[j] : left_places[i];
        i += !from_right;
        j += from_right;
    }
}
