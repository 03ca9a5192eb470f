// Sample sort on several devices: samples of all chunks are sorted, and some of them at equal distances are splitters;
// the keys between two splitters are a bucket, which one device sorts by a variant of sort.cu. Between equal keys the
// chunk decides, and then the position in it, so that many equal keys are divided too, and the sort is stable. Source:
// Frazer and McKellar, Samplesort: A Sampling Approach to Minimal Storage Tree Sorting, J. ACM 17 (1970). Minimum
// traffic: a key is read twice and written once before the exchange, and read and written once after it.
//
// kernel             idea
// sort_chunk_sample  samples a chunk's keys
// sort_chunk_counts  counts the keys of each section for each bucket
// sort_chunk_bounds  the start of each bucket in a chunk
// sort_chunk_share   writes the keys of a few buckets to separate arrays
// sort_chunk_join    concatenates the shares of a bucket

#include "sort_keys.cuh"

// Keys per lane of a warp's section of a chunk.
#define KEYS_A_LANE 16
#define SECTION (KEYS_A_LANE * WARP)

// Resident blocks per multiprocessor, which leaves 64 registers per thread.
#define BLOCKS_AT_ONCE (1024 / BLOCK_SIZE)

// Buckets written per launch, each to a separate array.
#define AT_ONCE 4

extern "C" __global__ void sort_chunk_sample(const KEY *keys, const int *places, KEY *sample, int count) {
    int k = blockIdx.x * BLOCK_SIZE + threadIdx.x;
    if (k < count) sample[k] = keys[places[k]];
}

// Whether a key at a position is at or after a splitter; equal keys are if their position is at least `from`.
__device__ bool goes_behind(BITS key, int place, BITS splitter, int from) {
    return key > splitter || (key == splitter && place >= from);
}

// Idea: a warp counts its keys after each splitter in turn, with the keys in registers. `counts` has all sections'
// counts of the first bucket, then of the second, ...: their scan gives the output positions. Limit: a pass over
// memory.
extern "C" __global__ void sort_chunk_counts(const KEY *keys, int n, const KEY *splitters, const int *froms,
                                             int buckets, int *counts, int sections) {
    int section = blockIdx.x * WARPS + threadIdx.x / WARP;
    if (section >= sections) return;
    int lane = threadIdx.x % WARP;
    int first = section * SECTION + lane;
    BITS key[KEYS_A_LANE];
    // phase: load
#pragma unroll
    for (int k = 0; k < KEYS_A_LANE; ++k) key[k] = first + k * WARP < n ? ordered(keys[first + k * WARP]) : 0;
    // phase: count
    int behind = min(SECTION, n - section * SECTION);
    for (int bucket = 0; bucket < buckets; ++bucket) {
        int own = 0;
        if (bucket + 1 < buckets) {
            BITS splitter = ordered(splitters[bucket]);
            int from = froms[bucket];
#pragma unroll
            for (int k = 0; k < KEYS_A_LANE; ++k) {
                int place = first + k * WARP;
                own += place < n && goes_behind(key[k], place, splitter, from);
            }
            for (int distance = WARP / 2; distance > 0; distance /= 2) own += __shfl_xor_sync(ALL_LANES, own, distance);
        }
        if (lane == 0) counts[bucket * sections + section] = behind - own;
        behind = own;
    }
}

extern "C" __global__ void sort_chunk_bounds(const int *starts, int sections, int buckets, int *bounds) {
    int bucket = blockIdx.x * BLOCK_SIZE + threadIdx.x;
    if (bucket < buckets) bounds[bucket] = starts[bucket * sections];
}

// Idea: a warp ballot finds the keys of a bucket, which are written contiguously, each with its position in all chunks,
// of which `start` are before this chunk. Limit: memory bandwidth; few keys of a bucket are written at a time, and only
// writes close in time fill a sector.
extern "C" __global__ void __launch_bounds__(BLOCK_SIZE, BLOCKS_AT_ONCE)
    sort_chunk_share(const KEY *keys, int n, const KEY *splitters, const int *froms, int buckets, const int *starts,
                     int sections, int start, int bucket, KEY *keys_0, KEY *keys_1, KEY *keys_2, KEY *keys_3,
                     int *places_0, int *places_1, int *places_2, int *places_3) {
    int section = blockIdx.x * WARPS + threadIdx.x / WARP;
    if (section >= sections) return;
    int lane = threadIdx.x % WARP;
    int first = section * SECTION + lane;
    KEY key[KEYS_A_LANE];
    // phase: load
#pragma unroll
    for (int k = 0; k < KEYS_A_LANE; ++k) key[k] = first + k * WARP < n ? keys[first + k * WARP] : LAST_KEY;
    // phase: where each bucket's keys of this section go
    BITS splitter[AT_ONCE + 1];
    int from[AT_ONCE + 1];
    int next[AT_ONCE];
#pragma unroll
    for (int b = 0; b <= AT_ONCE; ++b) {
        int before = bucket + b - 1;
        bool there = before >= 0 && before < buckets - 1;
        // All keys are after the start of the first bucket, and none after the end of the last one.
        splitter[b] = there ? ordered(splitters[before]) : before < 0 ? 0 : ~(BITS)0;
        from[b] = there ? froms[before] : before < 0 ? 0 : n;
        if (b < AT_ONCE) {
            int one = min(bucket + b, buckets - 1) * sections;
            next[b] = starts[one + section] - starts[one];
        }
    }
    // phase: write
    unsigned int lanes_before = (1u << lane) - 1;
#pragma unroll
    for (int k = 0; k < KEYS_A_LANE; ++k) {
        int place = first + k * WARP;
        BITS bits = ordered(key[k]);
        int passed = 0;
#pragma unroll
        for (int b = 0; b <= AT_ONCE; ++b) passed += place < n && goes_behind(bits, place, splitter[b], from[b]);
#pragma unroll
        for (int b = 0; b < AT_ONCE; ++b) {
            bool own = passed == b + 1;
            unsigned int lanes = __ballot_sync(ALL_LANES, own);
            int to = next[b] + __popc(lanes & lanes_before);
            if (own) {
                (b == 0 ? keys_0 : b == 1 ? keys_1 : b == 2 ? keys_2 : keys_3)[to] = key[k];
                if (PAIRS) (b == 0 ? places_0 : b == 1 ? places_1 : b == 2 ? places_2 : places_3)[to] = start + place;
            }
            next[b] += __popc(lanes);
        }
    }
}

// Limit: memory bandwidth.
extern "C" __global__ void sort_chunk_join(const KEY *keys, const int *places, KEY *joined_keys, int *joined_places,
                                           int first, int count) {
    int stride = gridDim.x * BLOCK_SIZE;
#pragma unroll 4
    for (int i = blockIdx.x * BLOCK_SIZE + threadIdx.x; i < count; i += stride) {
        joined_keys[first + i] = keys[i];
        if (PAIRS) joined_places[first + i] = places[i];
    }
}
