// Compaction: the elements that a predicate is true of, side by side (pack); and back to the places where they were, with
// zeros between them (split). The elements are of type VALUE, int or float. PREDICATE is GREATER or LESS (than
// `threshold`), ODD, EVEN or NONZERO. BLOCK_SIZE is the number of threads in a block, a power of two and a multiple of 32.
// Where PLACES is 1, the place of each packed element is left in `places`, for the way back; otherwise `places` is not
// touched. `count` is how many elements are kept. Least traffic: 4 bytes read for each element, 4 written for each kept.
//
// rung                  idea                                           what still limits it
// compact_flag          1 for what is kept, 0 for what is not          (the first of the kernels around a scan)
// compact_scatter       the scan of the flags says where each goes     five passes over memory: flags, scan, elements
// compact_ballot        a warp's vote is its flags and its scan        blocks come in any order, and so do elements
// compact_look_back     one pass in order: look-back sums the counts   memory's bandwidth
//
// compact_split         the way back: each packed element to its place

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

// A float is odd or even if it is whole and so.
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
// So many blocks of the last rung share a multiprocessor, which leaves each thread no more registers than it needs: what
// they load together is what keeps memory busy while some wait.
#define BLOCKS_AT_ONCE ((VECTORS > 6 ? 1024 : 1280) / BLOCK_SIZE)

// Idea: whether to keep an element is asked of each by itself; the exclusive scan of the answers (kernels/scan.cu) is the
// place of each kept one. Limit: the flags are written to memory, to be read again twice.
extern "C" __global__ void compact_flag(const VALUE *in, int *flags, int n, VALUE threshold) {
    int i = blockIdx.x * BLOCK_SIZE + threadIdx.x;
    if (i < n) flags[i] = KEPT(in[i]);
}

// Idea: after the scan every kept element knows its place, in order and without asking others (Blelloch, Prefix Sums and
// Their Applications, 1990). Limit: flags, three kernels of a scan and this one are five passes over memory.
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

// Idea: the votes of a warp are its flags in one register, and the ones below a lane's own are its rank: no scan. A block
// makes room for all it keeps by one atomic. `count` starts as 0 (Adinets, CUDA Pro Tip: Optimized Filtering with
// Warp-Aggregated Atomics, for the warp). Limit: the blocks' order. Elements of a block stay in order, but a block's lie
// where the atomic says, so the result is the same as a multiset only.
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

// Scan the counts of a warp's lanes, inclusive.
__device__ int scan_warp(int value) {
    int lane = threadIdx.x % WARP;
#pragma unroll
    for (int distance = 1; distance < WARP; distance *= 2) {
        int left = __shfl_up_sync(ALL_LANES, value, distance);
        if (lane >= distance) value += left;
    }
    return value;
}

// Return how many all tiles before this one keep. The lanes of a warp look at the 32 tiles before, wait until each has a
// state, and add from the nearest tile that knows all before it on; if none does, they look further back.
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

// Four neighbors that start at element i; what lies beyond the end is 0. `in` begins at a multiple of 16 bytes.
__device__ VECTOR load_vector(const VALUE *in, int i, int n) {
    if (i + 3 < n) return *(const VECTOR *)&in[i];
    VALUE x = i < n ? in[i] : 0;
    VALUE y = i + 1 < n ? in[i + 1] : 0;
    VALUE z = i + 2 < n ? in[i + 2] : 0;
    return MAKE_VECTOR(x, y, z, 0);
}

// Idea: each element is read once, by 16 bytes at a time, and how many earlier tiles keep is asked by decoupled look-back,
// as tiles.cuh has it. Meanwhile the other warps put what is kept side by side in shared memory, so that the block writes
// it in one piece and in order. Limit: memory's bandwidth.
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
        int own = 0;  // of two vectors, 16 bits each: they are scanned at once
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

// The way back: element k of the packed ones goes to its place; `out` starts as zeros.
extern "C" __global__ void compact_split(const VALUE *packed, const int *places, const int *count, VALUE *out) {
    int k = blockIdx.x * BLOCK_SIZE + threadIdx.x;
    if (k < *count) out[places[k]] = packed[k];
}
