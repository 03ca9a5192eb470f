// Stream compaction: keep the elements that satisfy a predicate, in consecutive positions (pack); and the inverse,
// which moves them back, with zeros between (split). Elements are of type VALUE, int or float. PREDICATE is GREATER or
// LESS (than `threshold`), ODD, EVEN or NONZERO. BLOCK_SIZE is the number of threads per block, a power of two and a
// multiple of 32. If PLACES is 1, `places` gets the original position of each packed element, for the inverse. `count`
// is the number of kept elements. Minimum traffic: 4 bytes read per element, 4 written per kept element.
//
// variant               idea                                           what still limits it
// compact_flag          1 for kept elements, 0 for others              (the first of the kernels around a scan)
// compact_scatter       the scan of the flags gives the positions      five passes over memory: flags, scan, elements
// compact_ballot        a warp ballot replaces flags and scan          not stable: blocks write in any order
// compact_look_back     one stable pass by decoupled look-back         memory bandwidth
//
// compact_split         the inverse: move packed elements back

#include "tiles.cuh"
#include "values.cuh"

#define GREATER 0
#define LESS 1
#define ODD 2
#define EVEN 3
#define NONZERO 4

#ifndef PREDICATE
#define PREDICATE GREATER
#endif
#ifndef BLOCK_SIZE
#define BLOCK_SIZE 256
#endif
#ifndef VECTORS
#define VECTORS 4
#endif
#ifndef PLACES
#define PLACES 0
#endif

// A float is odd or even only if it is a whole number.
#define PARITY_int(value) ((value) & 1)
#define PARITY_float(value) fmodf(fabsf(value), 2.0f)
#define PARITY OF_VALUE(PARITY_, VALUE)

#if PREDICATE == GREATER
#define KEPT(value) ((value) > threshold)
#elif PREDICATE == LESS
#define KEPT(value) ((value) < threshold)
#elif PREDICATE == ODD
#define KEPT(value) (PARITY(value) == 1)
#elif PREDICATE == EVEN
#define KEPT(value) (PARITY(value) == 0)
#else
#define KEPT(value) ((value) != 0)
#endif

#define WARP 32
#define ALL_LANES 0xffffffffu
#define WARPS ((BLOCK_SIZE + WARP - 1) / WARP)
// Resident blocks per multiprocessor of the look-back variant, which limits registers per thread: the loads of all of
// them keep memory busy while some wait.
#define BLOCKS_AT_ONCE ((VECTORS > 6 ? 1024 : 1280) / BLOCK_SIZE)

// Idea: the predicate of each element is independent; the exclusive scan of the flags (kernels/scan.cu) gives the
// position of each kept element. Limit: the flags are written to memory, and read again twice.
extern "C" __global__ void compact_flag(const VALUE *in, int *flags, int n, VALUE threshold) {
    int i = blockIdx.x * BLOCK_SIZE + threadIdx.x;
    if (i < n) flags[i] = KEPT(in[i]);
}

// Idea: after the scan every kept element has its position, in order and without communication (Blelloch, Prefix Sums
// and Their Applications, 1990). Limit: flags, three kernels of a scan and this one are five passes over memory.
extern "C" __global__ void compact_scatter(const VALUE *in, const int *flags, const int *positions, VALUE *out,
                                           [[maybe_unused]] int *places, int *count, int n) {
    int i = blockIdx.x * BLOCK_SIZE + threadIdx.x;
    if (i >= n) return;
    if (flags[i]) {
        out[positions[i]] = in[i];
#if PLACES
        places[positions[i]] = i;
#endif
    }
    if (i == n - 1) *count = positions[i] + flags[i];
}

// Idea: the ballot of a warp is its flags in one register, and the bits below a lane's own give its rank: no scan. A
// block reserves space for all its kept elements by one atomic. `count` starts as 0 (Adinets, CUDA Pro Tip: Optimized
// Filtering with Warp-Aggregated Atomics, for the warp). Limit: the order of blocks. Elements of a block stay in order,
// but blocks are written in the order of their atomics, so the result is only the same multiset.
extern "C" __global__ void compact_ballot(const VALUE *in, VALUE *out, [[maybe_unused]] int *places, int *count, int n,
                                          VALUE threshold) {
    __shared__ int start_of_warp[WARPS];
    int i = blockIdx.x * BLOCK_SIZE + threadIdx.x;
    int lane = threadIdx.x % WARP;
    int warp = threadIdx.x / WARP;
    // phase: vote
    VALUE value = i < n ? in[i] : 0;
    bool kept = i < n && KEPT(value);
    unsigned int votes = __ballot_sync(ALL_LANES, kept);
    if (lane == 0) start_of_warp[warp] = __popc(votes);
    __syncthreads();
    // phase: make room
    if (threadIdx.x == 0) {
        int total = 0;
        for (int w = 0; w < WARPS; ++w) total += start_of_warp[w];
        int start = atomicAdd(count, total);
        for (int w = 0; w < WARPS; ++w) {
            int of_warp = start_of_warp[w];
            start_of_warp[w] = start;
            start += of_warp;
        }
    }
    __syncthreads();
    // phase: write
    if (kept) {
        int place = start_of_warp[warp] + __popc(votes & ((1u << lane) - 1));
        out[place] = value;
#if PLACES
        places[place] = i;
#endif
    }
}

// Inclusive scan of the counts of a warp's lanes.
__device__ int scan_warp(int value) {
    int lane = threadIdx.x % WARP;
#pragma unroll
    for (int distance = 1; distance < WARP; distance *= 2) {
        int left = __shfl_up_sync(ALL_LANES, value, distance);
        if (lane >= distance) value += left;
    }
    return value;
}

// Return the number of kept elements before this tile. A warp reads the states of the 32 tiles before, waits until each
// has one, and adds from the nearest one with a full prefix sum; if there is none, it goes further back.
__device__ int look_back(const volatile unsigned long long *states, int tile, unsigned int launch) {
    int lane = threadIdx.x % WARP;
    int before = 0;
    for (int nearest = tile - 1; nearest >= 0; nearest -= WARP) {
        int other = nearest - lane;
        unsigned long long state = (unsigned long long)TILE_AND_BEFORE << 32;
        if (other >= 0)
            while (!is_of(state = states[other], launch)) {
            }
        unsigned int complete = __ballot_sync(ALL_LANES, knows_all_before(state));
        int last = complete != 0 ? __ffs(complete) - 1 : WARP - 1;
        before += __reduce_add_sync(ALL_LANES, lane <= last ? (int)state : 0);
        if (complete != 0) break;
    }
    return before;
}

// Four neighbors from element i on; elements beyond the end are 0. `in` is aligned to 16 bytes.
__device__ VECTOR load_vector(const VALUE *in, int i, int n) {
    if (i + 3 < n) return *(const VECTOR *)&in[i];
    VALUE x = i < n ? in[i] : 0;
    VALUE y = i + 1 < n ? in[i + 1] : 0;
    VALUE z = i + 2 < n ? in[i + 2] : 0;
    return MAKE_VECTOR(x, y, z, 0);
}

// Idea: each element is read once, by 16-byte loads, and the counts of earlier tiles are added up by decoupled
// look-back (tiles.cuh). Meanwhile the other warps pack the kept elements in shared memory, so that the block writes
// them contiguously and in order. Limit: memory bandwidth.
extern "C" __global__ void __launch_bounds__(BLOCK_SIZE, BLOCKS_AT_ONCE)
    compact_look_back(const VALUE *in, VALUE *out, [[maybe_unused]] int *places, int *count, unsigned long long *states,
                      int n, VALUE threshold) {
    const int tile_size = 4 * VECTORS * BLOCK_SIZE;
    __shared__ VALUE packed[tile_size];
#if PLACES
    __shared__ int packed_places[tile_size];
#endif
    __shared__ int tile_of_block;
    __shared__ unsigned int number_of_launch;
    __shared__ int of_warp[WARPS];
    __shared__ int before_tile;
    int lane = threadIdx.x % WARP;
    int warp = threadIdx.x / WARP;
    // phase: number of the tile
    if (threadIdx.x == 0) tile_of_block = draw_tile(states, gridDim.x, &number_of_launch);
    __syncthreads();
    int tile = tile_of_block;
    unsigned int launch = number_of_launch;
    int first = tile * tile_size + 4 * (warp * VECTORS * WARP + lane);

    VECTOR values[VECTORS];
    // phase: load
#pragma unroll
    for (int k = 0; k < VECTORS; ++k) values[k] = load_vector(in, first + k * 4 * WARP, n);
    // phase: rank
    unsigned int kept[VECTORS];
    int ranks[VECTORS];
    int sum = 0;
#pragma unroll
    for (int k = 0; k < VECTORS; k += 2) {
        int own = 0;  // counts of two vectors in 16 bits each, scanned together
#pragma unroll
        for (int j = 0; j < 2 && k + j < VECTORS; ++j) {
            int i = first + (k + j) * 4 * WARP;
            VECTOR four = values[k + j];
            kept[k + j] = (i < n && KEPT(four.x) ? 1 : 0) | (i + 1 < n && KEPT(four.y) ? 2 : 0) |
                          (i + 2 < n && KEPT(four.z) ? 4 : 0) | (i + 3 < n && KEPT(four.w) ? 8 : 0);
            own |= __popc(kept[k + j]) << 16 * j;
        }
        int lanes = scan_warp(own);
        int all = __shfl_sync(ALL_LANES, lanes, WARP - 1);
#pragma unroll
        for (int j = 0; j < 2 && k + j < VECTORS; ++j) {
            ranks[k + j] = sum + ((lanes - own) >> 16 * j & 0xffff);
            sum += all >> 16 * j & 0xffff;
        }
    }
    if (lane == 0) of_warp[warp] = sum;
    __syncthreads();
    int warps = scan_warp(lane < WARPS ? of_warp[lane] : 0);
    int total = __shfl_sync(ALL_LANES, warps, WARPS - 1);
    int start = __shfl_sync(ALL_LANES, warps, warp) - sum;

    // phase: look back
    if (warp == 0) {
        if (lane == 0 && tile > 0) publish(&states[1 + tile], launch, TILE_ALONE, total);
        int before = look_back(states + 1, tile, launch);
        if (lane == 0) {
            publish(&states[1 + tile], launch, TILE_AND_BEFORE, before + total);
            before_tile = before;
            if (tile == gridDim.x - 1) *count = before + total;
        }
    }
    // phase: pack
#pragma unroll
    for (int k = 0; k < VECTORS; ++k) {
        int place = start + ranks[k];
        VALUE four[4] = {values[k].x, values[k].y, values[k].z, values[k].w};
#pragma unroll
        for (int c = 0; c < 4; ++c) {
            if (kept[k] >> c & 1) {
                packed[place] = four[c];
#if PLACES
                packed_places[place] = first + k * 4 * WARP + c;
#endif
                ++place;
            }
        }
    }
    __syncthreads();
    // phase: write
    for (int j = threadIdx.x; j < total; j += BLOCK_SIZE) {
        out[before_tile + j] = packed[j];
#if PLACES
        places[before_tile + j] = packed_places[j];
#endif
    }
}

// The inverse: packed element k moves to its original position; `out` starts as zeros.
extern "C" __global__ void compact_split(const VALUE *packed, const int *places, const int *count, VALUE *out) {
    int k = blockIdx.x * BLOCK_SIZE + threadIdx.x;
    if (k < *count) out[places[k]] = packed[k];
}
