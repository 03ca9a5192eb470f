// Quicksort with child launches. Keys, order and positions are those of sort_keys.cuh; it is stable. BLOCK_SIZE is a
// multiple of 32; parts of fewer than SMALL keys are sorted by selection. Work: about n * log2(n) comparisons, and n *
// n at worst.
//
// variant      idea                                                what still limits it
// sort_quick   each part launches a child grid per half            one block partitions the first parts

#include "sort_keys.cuh"

#ifndef SMALL
#define SMALL 32
#endif
// With this depth there are at most 2047 grids: a device queues 2048, and with more some runs never ended (an H200).
#define MAX_DEPTH 10

struct Section {
    KEY *keys;
    int *places;
};

__device__ void move(Section to, int there, Section from, int here) {
    to.keys[there] = from.keys[here];
    if (PAIRS) to.places[there] = from.places[here];
}

// Sort keys `begin` to `end` by one block: a key's position is the number of keys before it, which each thread counts
// for its own keys. They are in `result`, where they are sorted, or in `spare` if `in_spare`.
__device__ void select_places(Section result, Section spare, int begin, int end, bool in_spare) {
    // phase: select
    if (!in_spare) {
        for (int i = begin + threadIdx.x; i < end; i += BLOCK_SIZE) move(spare, i, result, i);
        __syncthreads();
    }
    for (int i = begin + threadIdx.x; i < end; i += BLOCK_SIZE) {
        BITS own = ordered(spare.keys[i]);
        int place = begin;
        for (int other = begin; other < end; ++other) {
            BITS met = ordered(spare.keys[other]);
            if (met < own || (met == own && other < i)) ++place;
        }
        move(result, place, spare, i);
    }
    __syncthreads();
}

__device__ BITS median(BITS a, BITS b, BITS c) { return max(min(a, b), min(max(a, b), c)); }

// Keys `begin` to `end`, in `spare` or in `result`.
struct Part {
    int begin, end, in_spare;
};

// The range of keys equal to the pivot after partitioning, between the smaller and the larger ones.
struct Middle {
    int begin, end;
};

// Partition the keys into those before a pivot, those equal to it and those after it, in stable order. They move from
// one of the two arrays to the other; those equal to the pivot go to the result, as their positions are final.
__device__ Middle part_keys(Section result, Section spare, Part part) {
    __shared__ int smaller[WARPS];
    __shared__ int same[WARPS];
    int t = threadIdx.x;
    int warp = t / WARP;
    unsigned int below = (1u << t % WARP) - 1;
    int begin = part.begin;
    int end = part.end;
    Section from = part.in_spare ? spare : result;
    Section to = part.in_spare ? result : spare;
    // phase: pivot
    BITS pivot =
        median(ordered(from.keys[begin]), ordered(from.keys[begin + (end - begin) / 2]), ordered(from.keys[end - 1]));

    // Numbers of keys before the pivot, and equal to it.
    // phase: count
    if (t < WARPS) smaller[t] = same[t] = 0;
    __syncthreads();
    int less = 0;
    int equal = 0;
    for (int i = begin + t; i < end; i += BLOCK_SIZE) {
        BITS met = ordered(from.keys[i]);
        if (met < pivot) ++less;
        if (met == pivot) ++equal;
    }
    atomicAdd(&smaller[0], less);
    atomicAdd(&same[0], equal);
    __syncthreads();
    int middle = begin + smaller[0];
    int after = middle + same[0];
    __syncthreads();

    // Positions of the next key before the pivot, equal to it, and after it.
    // phase: part
    int next_less = begin;
    int next_equal = middle;
    int next_greater = after;
    for (int start = begin; start < end; start += BLOCK_SIZE) {
        int i = start + t;
        BITS met = i < end ? ordered(from.keys[i]) : 0;
        bool is_less = i < end && met < pivot;
        bool is_equal = i < end && met == pivot;
        unsigned int lesser = __ballot_sync(ALL_LANES, is_less);
        unsigned int equals = __ballot_sync(ALL_LANES, is_equal);
        if (t % WARP == 0) smaller[warp] = __popc(lesser);
        if (t % WARP == 0) same[warp] = __popc(equals);
        __syncthreads();
        int less_before = __popc(lesser & below);
        int equal_before = __popc(equals & below);
        int all_less = 0;
        int all_equal = 0;
        for (int w = 0; w < WARPS; ++w) {
            if (w < warp) less_before += smaller[w];
            if (w < warp) equal_before += same[w];
            all_less += smaller[w];
            all_equal += same[w];
        }
        int greater_before = t - less_before - equal_before;
        if (i < end) {
            int place = is_less    ? next_less + less_before
                        : is_equal ? next_equal + equal_before
                                   : next_greater + greater_before;
            move(to, place, from, i);
        }
        next_less += all_less;
        next_equal += all_equal;
        next_greater += BLOCK_SIZE - all_less - all_equal;
        __syncthreads();
    }
    if (!part.in_spare) {
        for (int i = middle + t; i < after; i += BLOCK_SIZE) move(result, i, to, i);
    }
    __syncthreads();
    return {middle, after};
}

// Sort a part by one block without child launches. The shorter of its two parts is sorted first, so that at most
// log2(n) parts are pending.
__device__ void sort_alone(Section result, Section spare, Part whole) {
    __shared__ Part waiting[32];
    int t = threadIdx.x;
    int count = 1;
    if (t == 0) waiting[0] = whole;
    while (count > 0) {
        __syncthreads();
        Part part = waiting[--count];
        __syncthreads();
        if (part.end - part.begin < SMALL) {
            select_places(result, spare, part.begin, part.end, part.in_spare);
            continue;
        }
        Middle middle = part_keys(result, spare, part);
        Part lower = {part.begin, middle.begin, !part.in_spare};
        Part upper = {middle.end, part.end, !part.in_spare};
        bool lower_first = middle.begin - part.begin < part.end - middle.end;
        if (t == 0) {
            waiting[count] = lower_first ? upper : lower;
            waiting[count + 1] = lower_first ? lower : upper;
        }
        count += 2;
    }
}

// Idea: the keys from begin to end are partitioned by a pivot; then a child grid is launched for those before it and
// another for those after it, each in its own stream, so that they run concurrently (Hoare, Quicksort, The Computer
// Journal, 1962). The keys alternate between `keys`, the result, and `spare`: `in_spare` tells in which they are. Few
// keys are sorted by selection. If launches are nested too deeply, or the device accepts no more, the block continues
// alone. Limit: one block partitions n keys, two n / 2 each: log2(n) levels, the first of which have only a few blocks.
extern "C" __global__ void sort_quick(KEY *keys, int *places, KEY *spare, int *spare_places, int begin, int end,
                                      int depth, int in_spare) {
    __shared__ int refused[2];
    int t = threadIdx.x;
    Section result = {keys, places};
    Section other = {spare, spare_places};
    Part whole = {begin, end, in_spare};
    if (end - begin < SMALL) {
        select_places(result, other, begin, end, in_spare);
        return;
    }
    if (depth >= MAX_DEPTH) {
        sort_alone(result, other, whole);
        return;
    }
    Middle middle = part_keys(result, other, whole);
    if (t < 2) {
        int first = t == 0 ? begin : middle.end;
        int last = t == 0 ? middle.begin : end;
        cudaStream_t stream;
        refused[t] = 0;
        if (first < last) {
            refused[t] = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess;
            if (!refused[t]) {
                sort_quick<<<1, BLOCK_SIZE, 0, stream>>>(keys, places, spare, spare_places, first, last, depth + 1,
                                                         !in_spare);
                refused[t] = cudaGetLastError() != cudaSuccess;
                cudaStreamDestroy(stream);
            }
        }
    }
    __syncthreads();
    if (refused[0]) sort_alone(result, other, {begin, middle.begin, !in_spare});
    if (refused[1]) sort_alone(result, other, {middle.end, end, !in_spare});
}
