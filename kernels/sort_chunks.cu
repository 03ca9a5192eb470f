// Sort over several devices: some keys of all chunks are sorted, and every so many-th of them is a splitter; the keys
// between two splitters are a bucket, which goes to one device and is sorted there by a rung of sort.cu. Between equal
// keys the chunk decides, and then the place in it, so that many equal keys are shared out too, and keep their order.
// Source: Frazer and McKellar, Samplesort: A Sampling Approach to Minimal Storage Tree Sorting, J. ACM 17 (1970). Least
// traffic: a key is read twice and written once to be shared out, and read and written once more where it arrives.
//
// kernel             idea
// sort_chunk_sample  some of a chunk's keys
// sort_chunk_counts  how many keys of each section go to each bucket
// sort_chunk_bounds  where a chunk's buckets begin
// sort_chunk_share   the keys of a few buckets, each to memory of its own
// sort_chunk_join    shares of a bucket side by side

#include "sort_keys.cuh"

// A warp has a section of a chunk: so many keys for each lane.
#define KEYS_A_LANE 16
#define SECTION (KEYS_A_LANE * WARP)

// So many blocks share a multiprocessor, which leaves 64 registers to each thread.
#define BLOCKS_AT_ONCE (1024 / BLOCK_SIZE)

// So many buckets are written at a time: each is memory of its own.
#define AT_ONCE 4

extern "C" __global__ void sort_chunk_sample(const KEY *keys, const int *places, KEY *sample, int count) {
    int k = blockIdx.x * BLOCK_SIZE + threadIdx.x;
    if (k < count) sample[k] = keys[places[k]];
}

// Whether a key at a place goes behind a splitter, or is it; of equal keys those do that stand at `from` or behind it.
__device__ bool goes_behind(BITS key, int place, BITS splitter, int from) {
    return key > splitter || (key == splitter && place >= from);
}

// Idea: a warp counts its keys behind each splitter in turn, and keeps the keys in registers meanwhile. `counts` has all
// sections' numbers of the first bucket, then of the second one, ...: scanned they are where each goes. Limit: a pass over
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

// Idea: the lanes of a warp vote who has a key of the bucket, and write these side by side. With a key goes its place among
// those of all chunks, of which `start` are before. Limit: memory's bandwidth; a few keys of a bucket are written at a
// time, and only neighbors in time fill a sector.
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
        // All keys go behind the first of all buckets' beginning, and none behind the last one's end.
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

// Limit: memory's bandwidth.
extern "C" __global__ void sort_chunk_join(const KEY *keys, const int *places, KEY *joined_keys, int *joined_places,
                                           int first, int count) {
    int stride = gridDim.x * BLOCK_SIZE;
#pragma unroll 4
    for (int i = blockIdx.x * BLOCK_SIZE + threadIdx.x; i < count; i += stride) {
        joined_keys[first + i] = keys[i];
        if (PAIRS) joined_places[first + i] = places[i];
    }
}
