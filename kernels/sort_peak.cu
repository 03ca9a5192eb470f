// The fastest sorts: few keys in one launch, and many in one launch per byte of a key, the lowest first. Keys, order
// and positions are those of sort_keys.cuh. BLOCK_SIZE is a multiple of 32, at least 256; each thread has KEYS_A_THREAD
// keys, and a block at most 65,536 and as many as shared memory holds. Minimum traffic of a pass: a key read and
// written, and the same for a position.
//
// variant              idea                                            what still limits it
// sort_in_block        few keys: all passes in shared memory           one multiprocessor
// sort_in_cluster      more: in that of a cluster's blocks             the multiprocessors of one cluster
// sort_peak_counts     (first, for many: digits of all passes)         a pass over memory
// sort_peak_pass       onesweep in tiles as large as possible          tile size limits the runs of a digit

#include <cooperative_groups.h>

#include "sort_keys.cuh"

#ifndef KEYS_A_THREAD
#define KEYS_A_THREAD 8
#endif
// Resident blocks per multiprocessor, which determines the registers per thread.
#ifndef BLOCKS_AT_ONCE
#define BLOCKS_AT_ONCE 1
#endif

// Blocks that share the keys in sort_in_cluster; TILE * CLUSTER is at most 65,536.
#define CLUSTER 8

// Whether a launch may begin while the previous one ends; it then waits for it (Hopper and later).
#ifndef OVERLAPPED
#define OVERLAPPED 0
#endif

#define DIGITS 256
#define PASSES ((int)sizeof(KEY))
#define TILE (KEYS_A_THREAD * BLOCK_SIZE)

// One instruction extracts a byte of 32 bits, where a shift and a mask are two.
__device__ unsigned int digit_of(KEY key, int pass) {
    BITS bits = ordered(key);
    if (KEY_BITS == 32) return __byte_perm((unsigned int)bits, 0, 0x4440 + pass);
    return (unsigned int)(bits >> 8 * pass) & 255;
}

// Mask of the lanes that have the same bit of their digit as this one. In PTX: from a choice between a vote and its
// complement, the compiler generates twice as many instructions. (__match_any_sync handles all bits in one instruction,
// but made the whole sort 1.7 times as long on an H100.)
__device__ unsigned int lanes_with(unsigned int digit, int bit) {
    unsigned int same;
    asm("{ .reg .pred one;"
        "  .reg .b32 masked;"
        "  and.b32 masked, %1, %2;"
        "  setp.ne.u32 one, masked, 0;"
        "  vote.sync.ballot.b32 %0, one, 0xffffffff;"
        "  @!one not.b32 %0, %0; }"
        : "=r"(same)
        : "r"(digit), "r"(1u << bit));
    return same;
}

// Mask of the lanes with the same digit.
__device__ unsigned int lanes_alike(unsigned int digit) {
    unsigned int alike = ALL_LANES;
#pragma unroll
    for (int bit = 0; bit < 8; bit += 2)
        asm("lop3.b32 %0, %0, %1, %2, 0x80;"  // all three in one instruction
            : "+r"(alike)
            : "r"(lanes_with(digit, bit)), "r"(lanes_with(digit, bit + 1)));
    return alike;
}

// Ranks have 16 bits, two per register, to save registers.
#define RANKS ((KEYS_A_THREAD + 1) / 2)

__device__ unsigned int rank_of(const unsigned int *ranks, int k) {
    return k % 2 ? ranks[k / 2] >> 16 : ranks[k / 2] & 0xffff;
}

// Rank a warp's keys among those of the same digit, and count them: `next` has this warp's counts of digits. 16-bit
// counts halve the number of words, which increases conflicts.
__device__ __forceinline__ void rank_in_warp(const KEY *key, unsigned int *ranks, unsigned short *next, int pass) {
    int lane = threadIdx.x % WARP;
    for (int i = lane; i < DIGITS / 8; i += WARP) ((uint4 *)next)[i] = make_uint4(0, 0, 0, 0);
    __syncwarp();
#pragma unroll
    for (int k = 0; k < KEYS_A_THREAD; ++k) {
        unsigned int digit = digit_of(key[k], pass);
        unsigned int alike = lanes_alike(digit);
        unsigned int rank = next[digit] + __popc(alike & ((1u << lane) - 1));
        ranks[k / 2] = k % 2 ? ranks[k / 2] | rank << 16 : rank;
        __syncwarp();
        if ((alike & (ALL_LANES << lane << 1)) == 0) next[digit] = rank + 1;
        __syncwarp();
    }
}

// Convert ranks in the warp to ranks in the tile: `next` has the start of each digit's keys of this warp in the tile.
__device__ __forceinline__ void rank_in_tile(const KEY *key, unsigned int *ranks, const unsigned short *next,
                                             int pass) {
#pragma unroll
    for (int k = 0; k < KEYS_A_THREAD; ++k) ranks[k / 2] += (unsigned int)next[digit_of(key[k], pass)] << k % 2 * 16;
}

// Exclusive scan of digits' counts, one per thread: all threads take part.
__device__ unsigned int scan_digits(unsigned int count, unsigned int *totals) {
    int lane = threadIdx.x % WARP;
    int warp = threadIdx.x / WARP;
    unsigned int sum = count;
#pragma unroll
    for (int distance = 1; distance < WARP; distance *= 2) {
        unsigned int other = __shfl_up_sync(ALL_LANES, sum, distance);
        if (lane >= distance) sum += other;
    }
    if (warp < DIGITS / WARP && lane == WARP - 1) totals[warp] = sum;
    __syncthreads();
    sum -= count;
#pragma unroll
    for (int w = 0; w < DIGITS / WARP; ++w) {
        if (w < warp) sum += totals[w];
    }
    return sum;
}

__device__ unsigned int count_of(const unsigned short (*next)[DIGITS], int digit) {
    unsigned int count = 0;
#pragma unroll
    for (int w = 0; w < WARPS; ++w) count += next[w][digit];
    return count;
}

// Replace a digit's counts, warp by warp, by the start of each warp's keys in the tile.
__device__ void place_digit(unsigned short (*next)[DIGITS], int digit, unsigned int start) {
#pragma unroll
    for (int w = 0; w < WARPS; ++w) {
        unsigned int count = next[w][digit];
        next[w][digit] = start;
        start += count;
    }
}

// Keys beyond a tile's end are sorted after all others. A whole tile needs no checks.
__device__ __forceinline__ void load_keys(KEY *key, const KEY *tile, int first, int size, bool whole) {
#pragma unroll
    for (int k = 0; k < KEYS_A_THREAD; ++k) {
        int i = first + k * WARP;
        key[k] = whole || i < size ? tile[i] : LAST_KEY;
    }
}

__device__ __forceinline__ void load_places(int *place, const int *tile, int first, int size, bool whole) {
#pragma unroll
    for (int k = 0; k < KEYS_A_THREAD; ++k) {
        int i = first + k * WARP;
        place[k] = whole || i < size ? tile[i] : 0;
    }
}

// Contents of shared memory over time: the counts of each digit per warp, then the tile's keys, then their positions.
union Held {
    alignas(16) unsigned short next[WARPS][DIGITS];
    KEY keys[TILE];
    int places[TILE];
};

// Dynamic shared memory, which may be larger than static shared memory.
extern __shared__ Held held[];

// Before any access to memory: let the next launch begin, and wait until the previous one has ended and its results are
// visible (programmatic dependent launch). This hides the time to start a launch.
__device__ __forceinline__ void await_previous_launch() {
#if OVERLAPPED
    asm volatile("griddepcontrol.launch_dependents;");
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// Idea: keys that fit in one block are sorted by all passes in shared memory, in one launch. Limit: one
// multiprocessor.
extern "C" __global__ void __launch_bounds__(BLOCK_SIZE) sort_in_block(KEY *keys, int *places, int n, int passes) {
    Held &s = held[0];
    __shared__ unsigned int totals[DIGITS / WARP];
    int t = threadIdx.x;
    int warp = t / WARP;
    int first = warp * KEYS_A_THREAD * WARP + t % WARP;
    await_previous_launch();
    // phase: load
    KEY key[KEYS_A_THREAD];
    unsigned int ranks[RANKS];
    int place[KEYS_A_THREAD];
    load_keys(key, keys, first, n, false);
    if (PAIRS) load_places(place, places, first, n, false);
    for (int pass = 0; pass < passes; ++pass) {
        // phase: rank by byte {pass}
        rank_in_warp(key, ranks, s.next[warp], pass);
        __syncthreads();
        unsigned int start = scan_digits(t < DIGITS ? count_of(s.next, t) : 0, totals);
        if (t < DIGITS) place_digit(s.next, t, start);
        __syncthreads();
        rank_in_tile(key, ranks, s.next[warp], pass);
        __syncthreads();
        // phase: move by byte {pass}
#pragma unroll
        for (int k = 0; k < KEYS_A_THREAD; ++k) s.keys[rank_of(ranks, k)] = key[k];
        __syncthreads();
#pragma unroll
        for (int k = 0; k < KEYS_A_THREAD; ++k) key[k] = s.keys[first + k * WARP];
        __syncthreads();
        if (PAIRS) {
#pragma unroll
            for (int k = 0; k < KEYS_A_THREAD; ++k) s.places[rank_of(ranks, k)] = place[k];
            __syncthreads();
#pragma unroll
            for (int k = 0; k < KEYS_A_THREAD; ++k) place[k] = s.places[first + k * WARP];
            __syncthreads();
        }
    }
    // phase: write
#pragma unroll
    for (int k = 0; k < KEYS_A_THREAD; ++k) {
        int i = first + k * WARP;
        if (i < n) {
            keys[i] = key[k];
            if (PAIRS) places[i] = place[k];
        }
    }
}

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
// Idea: as sort_in_block, with the shared memory of a cluster's blocks. A block sends its counts to all blocks, so that
// each knows the position of its keys among all, and writes them to the block that has this position. No memory but
// shared memory takes part between the first load and the last write, and there is one launch. Limit: the
// multiprocessors of one cluster.
extern "C" __global__ void __cluster_dims__(CLUSTER, 1, 1) __launch_bounds__(BLOCK_SIZE)
    sort_in_cluster(KEY *keys, int *places, int n, int passes) {
    Held *s = held;  // keys, and positions behind them: other blocks write both while `next` is in use
    __shared__ alignas(16) unsigned short next[WARPS][DIGITS];
    __shared__ unsigned int counts[CLUSTER][DIGITS];
    __shared__ unsigned int totals[DIGITS / WARP];
    cooperative_groups::cluster_group cluster = cooperative_groups::this_cluster();
    int t = threadIdx.x;
    int warp = t / WARP;
    int rank = cluster.block_rank();
    int size = max(0, min(TILE, n - rank * TILE));
    int first = warp * KEYS_A_THREAD * WARP + t % WARP;
    await_previous_launch();
    // phase: load
    KEY key[KEYS_A_THREAD];
    unsigned int ranks[RANKS];
    int place[KEYS_A_THREAD];
    load_keys(key, keys + rank * TILE, first, size, false);
    if (PAIRS) load_places(place, places + rank * TILE, first, size, false);
    cluster.sync();  // all blocks have started
    for (int pass = 0; pass < passes; ++pass) {
        // phase: rank by byte {pass}
        rank_in_warp(key, ranks, next[warp], pass);
        __syncthreads();
        unsigned int own = t < DIGITS ? count_of(next, t) : 0;
        if (t < DIGITS)
            for (int block = 0; block < CLUSTER; ++block)
                cluster.map_shared_rank(&counts[0][0], block)[rank * DIGITS + t] = own;
        cluster.sync();  // all counts have arrived, and all keys of the pass before are in registers
        unsigned int before_block = 0;
        unsigned int total = 0;
        if (t < DIGITS)
            for (int block = 0; block < CLUSTER; ++block) {
                if (block == rank) before_block = total;
                total += counts[block][t];
            }
        unsigned int start = scan_digits(total, totals);
        if (t < DIGITS) place_digit(next, t, start + before_block);
        __syncthreads();
        rank_in_tile(key, ranks, next[warp], pass);
        // phase: move by byte {pass}
#pragma unroll
        for (int k = 0; k < KEYS_A_THREAD; ++k) {
            unsigned int to = rank_of(ranks, k);
            cluster.map_shared_rank(s[0].keys, to / TILE)[to % TILE] = key[k];
            if (PAIRS) cluster.map_shared_rank(s[1].places, to / TILE)[to % TILE] = place[k];
        }
        cluster.sync();
#pragma unroll
        for (int k = 0; k < KEYS_A_THREAD; ++k) {
            key[k] = s[0].keys[first + k * WARP];
            if (PAIRS) place[k] = s[1].places[first + k * WARP];
        }
    }
    // phase: write
#pragma unroll
    for (int k = 0; k < KEYS_A_THREAD; ++k) {
        int i = first + k * WARP;
        if (i < size) {
            keys[rank * TILE + i] = key[k];
            if (PAIRS) places[rank * TILE + i] = place[k];
        }
    }
}
#endif

// Keys per 16-byte load.
#define VECTOR (16 / (int)sizeof(KEY))
struct alignas(16) Keys {
    KEY key[VECTOR];
};

// Copies of the bins in 32 KB: neighboring lanes count in different copies, and in different banks.
#define COPIES (8192 / (PASSES * DIGITS))

__device__ void count_digits(unsigned int *bins, KEY key) {
#pragma unroll
    for (int pass = 0; pass < PASSES; ++pass)
        atomicAdd(&bins[(pass * DIGITS + digit_of(key, pass)) * COPIES + threadIdx.x % COPIES], 1u);
}

// Count the keys of each digit for every pass: passes do not change the counts, so one read of the keys suffices.
// `counts` starts as 0, which the passes restore; the first `cleared` states are set to 0. Any block size.
extern "C" __global__ void __launch_bounds__(1024)
    sort_peak_counts(const KEY *keys, unsigned int *counts, unsigned int *states, int cleared, int n) {
    __shared__ unsigned int bins[PASSES * DIGITS * COPIES];
    await_previous_launch();
    int first = blockIdx.x * blockDim.x + threadIdx.x;
    int step = gridDim.x * blockDim.x;
    for (int i = threadIdx.x; i < PASSES * DIGITS * COPIES; i += blockDim.x) bins[i] = 0;
    for (int i = first; i < cleared; i += step) states[i] = 0;
    __syncthreads();
#pragma unroll 2
    for (int i = first; i < n / VECTOR; i += step) {
        Keys several = ((const Keys *)keys)[i];
#pragma unroll
        for (int k = 0; k < VECTOR; ++k) count_digits(bins, several.key[k]);
    }
    for (int i = n / VECTOR * VECTOR + first; i < n; i += step) count_digits(bins, keys[i]);
    __syncthreads();
    for (int i = threadIdx.x; i < PASSES * DIGITS; i += blockDim.x) {
        unsigned int count = 0;
        for (int copy = 0; copy < COPIES; ++copy) count += bins[i * COPIES + (copy + threadIdx.x) % COPIES];
        if (count != 0) atomicAdd(&counts[i], count);
    }
}

#include "sort_tiles.cuh"  // uses DIGITS

// Write a tile's keys, which are sorted by digit in shared memory, contiguously. `digits` keeps the digit of each, by
// which the positions are written in the same way.
__device__ __forceinline__ void write_keys(const KEY *s, const unsigned int *first_of, KEY *keys_out,
                                           unsigned int *digits, int pass, int size, bool whole) {
#pragma unroll
    for (int k = 0; k < KEYS_A_THREAD; ++k) {
        int i = k * BLOCK_SIZE + threadIdx.x;
        if (k % 4 == 0) digits[k / 4] = 0;
        if (whole || i < size) {
            KEY key = s[i];
            unsigned int digit = digit_of(key, pass);
            keys_out[first_of[digit] + i] = key;
            if (PAIRS) digits[k / 4] |= digit << k % 4 * 8;
        }
    }
}

__device__ __forceinline__ void write_places(const int *p, const unsigned int *first_of, int *places_out,
                                             const unsigned int *digits, int size, bool whole) {
#pragma unroll
    for (int k = 0; k < KEYS_A_THREAD; ++k) {
        int i = k * BLOCK_SIZE + threadIdx.x;
        if (whole || i < size) places_out[first_of[digits[k / 4] >> k % 4 * 8 & 255] + i] = p[i];
    }
}

// Idea: onesweep, where shared memory is reused: for a tile's counts, then, once all ranks are known, for its keys, and
// then for the positions. So the tile fills shared memory, its runs of a digit are longer, and fewer tiles look back.
// The positions are loaded meanwhile. Tiles are numbered in the order in which blocks start, by a ticket per pass;
// tickets follow the counts. A pass resets its counts and tickets to 0 for the next sort. Passes alternate between two
// tables of states, and each clears the other one for the next pass. Limit: shared memory, as a run of a digit ends anywhere in a sector, so that short runs need
// more writes; and registers, which limit a tile.
extern "C" __global__ void __launch_bounds__(BLOCK_SIZE, BLOCKS_AT_ONCE)
    sort_peak_pass(const KEY *keys, const int *places, KEY *keys_out, int *places_out, unsigned int *counts,
                   unsigned int *states, int n, int pass) {
    Held &s = held[0];
    __shared__ unsigned int first_of[DIGITS];
    __shared__ unsigned int totals[DIGITS / WARP];
    __shared__ int tile_of_block;
    int t = threadIdx.x;
    int warp = t / WARP;
    unsigned int *next_states = states + (pass + 1) % 2 * (gridDim.x * DIGITS);
    states += pass % 2 * (gridDim.x * DIGITS);
    await_previous_launch();
    // phase: number of the tile
    if (t == 0) tile_of_block = (int)atomicInc(&counts[PASSES * DIGITS + pass], gridDim.x - 1);
    __syncthreads();
    int tile = tile_of_block;
    int size = min(TILE, n - tile * TILE);
    int first = warp * KEYS_A_THREAD * WARP + t % WARP;

    // phase: load
    KEY key[KEYS_A_THREAD];
    if (size == TILE)
        load_keys(key, keys + tile * TILE, first, size, true);
    else
        load_keys(key, keys + tile * TILE, first, size, false);
    // phase: rank in each warp
    unsigned int ranks[RANKS];
    rank_in_warp(key, ranks, s.next[warp], pass);
    __syncthreads();
    // phase: count
    unsigned int own = 0;
    if (t < DIGITS) {
        own = count_of(s.next, t);
        if (tile > 0) atomicExch(&states[tile * DIGITS + t], own + 1);
        next_states[tile * DIGITS + t] = 0;
    }
    unsigned int start = scan_digits(own, totals);
    if (t < DIGITS) place_digit(s.next, t, start);
    __syncthreads();
    // phase: place in the tile
    asm volatile("" : "+r"(pass));  // hides the value, so that digits are recomputed instead of kept in registers
    rank_in_tile(key, ranks, s.next[warp], pass);
    __syncthreads();
#pragma unroll
    for (int k = 0; k < KEYS_A_THREAD; ++k) s.keys[rank_of(ranks, k)] = key[k];
    int place[KEYS_A_THREAD];
    if (PAIRS) {
        if (size == TILE)
            load_places(place, places + tile * TILE, first, size, true);
        else
            load_places(place, places + tile * TILE, first, size, false);
    }

    // phase: look back
    unsigned int begin = 0;
    if (tile == 0) begin = scan_digits(t < DIGITS ? atomicExch(&counts[pass * DIGITS + t], 0u) : 0, totals);
    if (t < DIGITS) {
        if (tile > 0) begin = look_back(states, tile, t);
        atomicExch(&states[tile * DIGITS + t], COMPLETE | (begin + own));
        first_of[t] = begin - start;
    }
    __syncthreads();

    // phase: write
    unsigned int digits[(KEYS_A_THREAD + 3) / 4];
    if (size == TILE)
        write_keys(s.keys, first_of, keys_out, digits, pass, size, true);
    else
        write_keys(s.keys, first_of, keys_out, digits, pass, size, false);
    if (PAIRS) {
        __syncthreads();
#pragma unroll
        for (int k = 0; k < KEYS_A_THREAD; ++k) s.places[rank_of(ranks, k)] = place[k];
        __syncthreads();
        if (size == TILE)
            write_places(s.places, first_of, places_out, digits, size, true);
        else
            write_places(s.places, first_of, places_out, digits, size, false);
    }
}
