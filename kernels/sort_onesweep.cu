// The onesweep sort: a radix sort that moves each key once per pass. Keys, order and positions are those of
// sort_keys.cuh. A pass sorts by DIGIT_BITS bits, the lowest first, and is stable. BLOCK_SIZE is a multiple of 32; a
// tile has KEYS_A_THREAD keys per thread. Minimum traffic of a pass: a key read and written, and the same for a
// position.
//
// variant              idea                                            what still limits it
// sort_onesweep        decoupled look-back per digit                   8 votes and 3 shared-memory trips per key
// sort_digit_counts    (first, the digits of all passes at once)       a pass over memory

#include "sort_keys.cuh"

#ifndef KEYS_A_THREAD
#define KEYS_A_THREAD 16
#endif
#ifndef DIGIT_BITS
#define DIGIT_BITS 8
#endif

#define DIGITS (1 << DIGIT_BITS)
#define PASSES (KEY_BITS / DIGIT_BITS)
// Resident blocks per multiprocessor, which leaves 64 registers per thread, or 80 if positions need some.
#define BLOCKS_AT_ONCE ((PAIRS ? 768 : 1024) / BLOCK_SIZE)
#define TILE (KEYS_A_THREAD * BLOCK_SIZE)

// Keys per 16-byte load.
#define VECTOR (16 / (int)sizeof(KEY))
struct alignas(16) Keys {
    KEY key[VECTOR];
};

__device__ unsigned int digit_of(KEY key, int shift) { return (unsigned int)(ordered(key) >> shift) & (DIGITS - 1); }

__device__ void count_digits(unsigned int (*bins)[DIGITS], KEY key) {
#pragma unroll
    for (int pass = 0; pass < PASSES; ++pass) atomicAdd(&bins[pass][digit_of(key, pass * DIGIT_BITS)], 1u);
}

// Count the keys of each digit for every pass: passes do not change the counts, so one read of the keys suffices.
// `counts` has DIGITS counts per pass, initially 0.
extern "C" __global__ void sort_digit_counts(const KEY *keys, unsigned int *counts, int n) {
    __shared__ unsigned int bins[PASSES][DIGITS];
    int first = blockIdx.x * BLOCK_SIZE + threadIdx.x;
    int step = gridDim.x * BLOCK_SIZE;
    for (int i = threadIdx.x; i < PASSES * DIGITS; i += BLOCK_SIZE) bins[i / DIGITS][i % DIGITS] = 0;
    __syncthreads();
    for (int i = first; i < n / VECTOR; i += step) {
        Keys several = ((const Keys *)keys)[i];
#pragma unroll
        for (int k = 0; k < VECTOR; ++k) count_digits(bins, several.key[k]);
    }
    for (int i = n / VECTOR * VECTOR + first; i < n; i += step) count_digits(bins, keys[i]);
    __syncthreads();
    for (int i = threadIdx.x; i < PASSES * DIGITS; i += BLOCK_SIZE) {
        unsigned int count = bins[i / DIGITS][i % DIGITS];
        if (count != 0) atomicAdd(&counts[i], count);
    }
}

// Rounds over digits: thread t has those that are t modulo BLOCK_SIZE.
#define ROUNDS ((DIGITS + BLOCK_SIZE - 1) / BLOCK_SIZE)

// Exclusive scan of the digits' counts: `own` has those of a thread's digits. All threads take part; `totals` is
// scratch memory.
__device__ void scan_digits(unsigned int *own, unsigned int *totals) {
    int lane = threadIdx.x % WARP;
    int warp = threadIdx.x / WARP;
#pragma unroll
    for (int round = 0; round < ROUNDS; ++round) {
        unsigned int sum = own[round];
        for (int distance = 1; distance < WARP; distance *= 2) {
            unsigned int other = __shfl_up_sync(ALL_LANES, sum, distance);
            if (lane >= distance) sum += other;
        }
        if (lane == WARP - 1) totals[round * WARPS + warp] = sum;
        own[round] = sum - own[round];
    }
    __syncthreads();
#pragma unroll
    for (int round = 0; round < ROUNDS; ++round) {
        for (int group = 0; group < round * WARPS + warp; ++group) own[round] += totals[group];
    }
    __syncthreads();
}

// Mask of the lanes with the same digit, which have the same vote on every bit.
__device__ unsigned int lanes_alike(unsigned int digit) {
    unsigned int alike = ALL_LANES;
#pragma unroll
    for (int bit = 0; bit < DIGIT_BITS; ++bit) {
        int highest = (int)(digit << (31 - bit));  // moves the bit to the sign, which the shift then replicates
        alike &= ~(__ballot_sync(ALL_LANES, highest < 0) ^ (unsigned int)(highest >> 31));
    }
    return alike;
}

#include "sort_tiles.cuh"  // uses DIGITS

// Idea: a pass reads and writes each key once. A tile's keys are ranked within each warp by votes, and counted; the
// counts are published immediately, before this tile knows its keys' positions: decoupled look-back for each digit
// (Adinets and Merrill, Onesweep: A Faster Least Significant Digit Radix Sort for GPUs, 2022). Within the tile the keys
// are first sorted in shared memory, so that writes are contiguous. Tiles are numbered in the order in which blocks
// start: states[0] counts them, DIGITS states per tile follow, then those of the next pass; all start as 0. Limit: the
// votes, and shared-memory traffic.
extern "C" __global__ void __launch_bounds__(BLOCK_SIZE, BLOCKS_AT_ONCE)
    sort_onesweep(const KEY *keys, const int *places, KEY *keys_out, int *places_out, const unsigned int *counts,
                  unsigned int *states, int n, int pass) {
    __shared__ KEY s[TILE];
    __shared__ unsigned int next[WARPS][DIGITS];
    __shared__ unsigned int first_of[DIGITS];
    __shared__ unsigned int totals[ROUNDS * WARPS];
    __shared__ int tile_of_block;
    int t = threadIdx.x;
    int lane = t % WARP;
    int warp = t / WARP;
    int shift = pass * DIGIT_BITS;
    counts += pass * DIGITS;
    states += pass * (1 + gridDim.x * DIGITS);
    // phase: number of the tile
    if (t == 0) tile_of_block = (int)atomicAdd(&states[0], 1u);
    for (int digit = lane; digit < DIGITS; digit += WARP) next[warp][digit] = 0;
    __syncthreads();
    int tile = tile_of_block;
    int size = min(TILE, n - tile * TILE);
    int first = warp * KEYS_A_THREAD * WARP + lane;

    // Keys beyond the end get the last digit, and stay after all keys that have it.
    // phase: load
    KEY key[KEYS_A_THREAD];
#pragma unroll
    for (int k = 0; k < KEYS_A_THREAD; ++k) {
        int i = first + k * WARP;
        key[k] = i < size ? keys[tile * TILE + i] : LAST_KEY;
    }
    // phase: rank in each warp
    unsigned int rank[KEYS_A_THREAD];
#pragma unroll
    for (int k = 0; k < KEYS_A_THREAD; ++k) {
        unsigned int digit = digit_of(key[k], shift);
        unsigned int alike = lanes_alike(digit);
        rank[k] = next[warp][digit] + __popc(alike & ((1u << lane) - 1));
        __syncwarp();
        if (alike >> lane == 1) next[warp][digit] = rank[k] + 1;
        __syncwarp();
    }
    __syncthreads();

    // phase: count
    unsigned int own[ROUNDS], start[ROUNDS];
#pragma unroll
    for (int round = 0; round < ROUNDS; ++round) {
        int d = round * BLOCK_SIZE + t;
        own[round] = 0;
        if (d < DIGITS) {
            for (int w = 0; w < WARPS; ++w) own[round] += next[w][d];
            if (tile > 0) atomicExch(&states[1 + tile * DIGITS + d], own[round] + 1);
        }
        start[round] = own[round];
    }
    scan_digits(start, totals);
#pragma unroll
    for (int round = 0; round < ROUNDS; ++round) {
        int d = round * BLOCK_SIZE + t;
        unsigned int sum = start[round];
        for (int w = 0; w < WARPS && d < DIGITS; ++w) {
            unsigned int count = next[w][d];
            next[w][d] = sum;
            sum += count;
        }
    }
    __syncthreads();
    // phase: place in the tile
#pragma unroll
    for (int k = 0; k < KEYS_A_THREAD; ++k) {
        rank[k] += next[warp][digit_of(key[k], shift)];
        s[rank[k]] = key[k];
    }

    // phase: look back
    unsigned int begin[ROUNDS];
    if (tile == 0) {
#pragma unroll
        for (int round = 0; round < ROUNDS; ++round) {
            int d = round * BLOCK_SIZE + t;
            begin[round] = d < DIGITS ? counts[d] : 0;
        }
        scan_digits(begin, totals);
    }
#pragma unroll
    for (int round = 0; round < ROUNDS; ++round) {
        int d = round * BLOCK_SIZE + t;
        if (d < DIGITS) {
            if (tile > 0) begin[round] = look_back(states + 1, tile, d);
            atomicExch(&states[1 + tile * DIGITS + d], COMPLETE | (begin[round] + own[round]));
            first_of[d] = begin[round] - start[round];
        }
    }
    __syncthreads();

    // phase: write
    unsigned int to[KEYS_A_THREAD];
#pragma unroll
    for (int k = 0; k < KEYS_A_THREAD; ++k) {
        int i = k * BLOCK_SIZE + t;
        if (i < size) {
            to[k] = first_of[digit_of(s[i], shift)] + i;
            keys_out[to[k]] = s[i];
        }
    }
    if (PAIRS) {
        // The positions move in the same way, through the same memory.
        int *p = (int *)s;
        __syncthreads();
#pragma unroll
        for (int k = 0; k < KEYS_A_THREAD; ++k) {
            int i = first + k * WARP;
            if (i < size) p[rank[k]] = places[tile * TILE + i];
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < KEYS_A_THREAD; ++k) {
            int i = k * BLOCK_SIZE + t;
            if (i < size) places_out[to[k]] = p[i];
        }
    }
}
