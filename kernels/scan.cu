// Scan: each element becomes the combination of all up to it (inclusive) or before it (exclusive: the first becomes the
// identity). The operator is associative and commutative: OPERATOR is SUM, PRODUCT, MIN or MAX. Elements are of type
// VALUE, int or float; int wraps around. BLOCK_SIZE is the block size, a power of two, from scan_shuffle on a multiple
// of 32. Minimum traffic: 8 bytes per element, read once and written once; n - 1 operations.
//
// A block scans a section and writes the section's total to `totals`. If there is more than one section, the totals are
// scanned in the same way, and scan_add_back adds to each section the total of the sections before it.
//
// variant                   idea                                          what still limits it
// scan_one_thread           a loop over the array                         n - 1 operations, one after the other
// scan_naive                each thread combines all up to its own        about n * n / 2 operations in a section of n
// scan_kogge_stone          the distance doubles, all threads combine     n * log2(n) operations, two barriers per step
// scan_double_buffer        read one buffer, write the other              one barrier per step, still n * log2(n)
// scan_brent_kung           up-sweep and down-sweep, 2n operations        bank conflicts by strided access
// scan_brent_kung_padded    padding after every 32 elements               twice as many steps, few working threads
// scan_shuffle              warp shuffles exchange registers              one element per load and thread
// scan_sections             four elements per thread, 16-byte loads       three launches, each element moved twice
// scan_add_back             add the total of the sections before          (the last of the three launches)
// scan_look_back            one launch with decoupled look-back           memory bandwidth

#include "operators.cuh"
#include "tiles.cuh"

#ifndef BLOCK_SIZE
#define BLOCK_SIZE 256
#endif
#ifndef VECTORS
#define VECTORS 4
#endif

#define WARP 32
#define ALL_LANES 0xffffffffu
#define WARPS ((BLOCK_SIZE + WARP - 1) / WARP)

// An index into shared memory with padding after every 32 elements.
#define GAPPED(i) ((i) + (i) / 32)

// Idea: sequential, with the fewest operations of all scans: each result is the previous one combined with the next
// element. Limit: each operation depends on the one before.
extern "C" __global__ void scan_one_thread(const VALUE *in, VALUE *out, int n, int exclusive) {
    if (n > 0) out[0] = exclusive ? IDENTITY : in[0];
    for (int i = 1; i < n; ++i) out[i] = COMBINE(out[i - 1], in[exclusive ? i - 1 : i]);
}

// Idea: each thread computes its element independently. Limit: the last thread of a section combines as many elements
// as the section has, and all threads repeat their neighbors' operations.
extern "C" __global__ void scan_naive(const VALUE *in, VALUE *out, VALUE *totals, int n, int exclusive) {
    int start = blockIdx.x * BLOCK_SIZE;
    int i = start + threadIdx.x;
    if (i >= n) return;
    // phase: combine alone
    VALUE before = IDENTITY;
    VALUE sum = in[start];
    for (int j = start + 1; j <= i; ++j) {
        before = sum;
        sum = COMBINE(sum, in[j]);
    }
    // phase: write
    out[i] = exclusive ? before : sum;
    if (i == n - 1 || threadIdx.x == BLOCK_SIZE - 1) totals[blockIdx.x] = sum;
}

// Idea: after the step of distance d each element is the combination of 2 * d elements; log2(n) steps (Kogge and Stone,
// A Parallel Algorithm for the Efficient Solution of a General Class of Recurrence Equations, IEEE Trans. Computers,
// 1973; Hillis and Steele, Data Parallel Algorithms, CACM 1986). All threads stay in the loop, so all reach its
// barriers. Limit: an element must not be overwritten before its neighbor has read it, hence two barriers per step; and
// n * log2(n) - (n - 1) operations.
extern "C" __global__ void scan_kogge_stone(const VALUE *in, VALUE *out, VALUE *totals, int n, int exclusive) {
    __shared__ VALUE s[BLOCK_SIZE];
    int t = threadIdx.x;
    int start = blockIdx.x * BLOCK_SIZE;
    int count = min(BLOCK_SIZE, n - start);
    // phase: load
    if (t < count) s[t] = in[start + t];
    // phase: doubling distance
    for (int distance = 1; distance < count; distance *= 2) {
        __syncthreads();
        bool works = t >= distance && t < count;
        VALUE left = works ? s[t - distance] : IDENTITY;
        __syncthreads();
        if (works) s[t] = COMBINE(left, s[t]);
    }
    __syncthreads();
    // phase: write
    if (t < count) out[start + t] = !exclusive ? s[t] : t > 0 ? s[t - 1] : IDENTITY;
    if (t == 0) totals[blockIdx.x] = s[count - 1];
}

// Idea: double buffering: each step reads one buffer and writes the other, which saves a barrier. Limit: still n *
// log2(n) - (n - 1) operations.
extern "C" __global__ void scan_double_buffer(const VALUE *in, VALUE *out, VALUE *totals, int n, int exclusive) {
    __shared__ VALUE s[2][BLOCK_SIZE];
    int t = threadIdx.x;
    int start = blockIdx.x * BLOCK_SIZE;
    int count = min(BLOCK_SIZE, n - start);
    int from = 0;
    // phase: load
    if (t < count) s[from][t] = in[start + t];
    // phase: doubling distance
    for (int distance = 1; distance < count; distance *= 2) {
        __syncthreads();
        int to = 1 - from;
        if (t >= distance && t < count)
            s[to][t] = COMBINE(s[from][t - distance], s[from][t]);
        else if (t < count)
            s[to][t] = s[from][t];
        from = to;
    }
    __syncthreads();
    // phase: write
    if (t < count) out[start + t] = !exclusive ? s[from][t] : t > 0 ? s[from][t - 1] : IDENTITY;
    if (t == 0) totals[blockIdx.x] = s[from][count - 1];
}

// Idea: an up-sweep, in which the last of 2, 4, 8... elements becomes their total, and a down-sweep, in which a total
// is added to the middle of the elements after it: 2n - 2 - log2(n) operations (Brent and Kung, A Regular Layout for
// Parallel Adders, IEEE Trans. Computers, 1982; the two sweeps also in Blelloch, Prefix Sums and Their Applications,
// 1990). A thread has two elements. Elements beyond the end are left out, as no result depends on them. Limit: 2 *
// log2(n) - 1 steps; and at distance d the threads access every 2 * d-th element, which causes bank conflicts.
extern "C" __global__ void scan_brent_kung(const VALUE *in, VALUE *out, VALUE *totals, int n, int exclusive) {
    __shared__ VALUE s[2 * BLOCK_SIZE];
    int t = threadIdx.x;
    int start = blockIdx.x * 2 * BLOCK_SIZE;
    int count = min(2 * BLOCK_SIZE, n - start);
    // phase: load
    for (int i = t; i < count; i += BLOCK_SIZE) s[i] = in[start + i];
    // phase: up-sweep
    int distance = 1;
    for (; distance < count; distance *= 2) {
        __syncthreads();
        int right = 2 * distance * (t + 1) - 1;
        if (right < count) s[right] = COMBINE(s[right - distance], s[right]);
    }
    // phase: down-sweep
    for (distance /= 4; distance > 0; distance /= 2) {
        __syncthreads();
        int right = 2 * distance * (t + 1) - 1 + distance;
        if (right < count) s[right] = COMBINE(s[right - distance], s[right]);
    }
    __syncthreads();
    // phase: write
    for (int i = t; i < count; i += BLOCK_SIZE) out[start + i] = !exclusive ? s[i] : i > 0 ? s[i - 1] : IDENTITY;
    if (t == 0) totals[blockIdx.x] = s[count - 1];
}

// Idea: padding after every 32 elements changes the strides that are powers of two, so that they use all banks (Harris,
// Sengupta and Owens, Parallel Prefix Sum (Scan) with CUDA, GPU Gems 3, ch. 39). Limit: the top of the tree, where few
// threads work and all wait.
extern "C" __global__ void scan_brent_kung_padded(const VALUE *in, VALUE *out, VALUE *totals, int n, int exclusive) {
    __shared__ VALUE s[GAPPED(2 * BLOCK_SIZE)];
    int t = threadIdx.x;
    int start = blockIdx.x * 2 * BLOCK_SIZE;
    int count = min(2 * BLOCK_SIZE, n - start);
    // phase: load
    for (int i = t; i < count; i += BLOCK_SIZE) s[GAPPED(i)] = in[start + i];
    // phase: up-sweep
    int distance = 1;
    for (; distance < count; distance *= 2) {
        __syncthreads();
        int right = 2 * distance * (t + 1) - 1;
        if (right < count) s[GAPPED(right)] = COMBINE(s[GAPPED(right - distance)], s[GAPPED(right)]);
    }
    // phase: down-sweep
    for (distance /= 4; distance > 0; distance /= 2) {
        __syncthreads();
        int right = 2 * distance * (t + 1) - 1 + distance;
        if (right < count) s[GAPPED(right)] = COMBINE(s[GAPPED(right - distance)], s[GAPPED(right)]);
    }
    __syncthreads();
    // phase: write
    for (int i = t; i < count; i += BLOCK_SIZE)
        out[start + i] = !exclusive ? s[GAPPED(i)] : i > 0 ? s[GAPPED(i - 1)] : IDENTITY;
    if (t == 0) totals[blockIdx.x] = s[GAPPED(count - 1)];
}

// Inclusive scan of the values of a warp's lanes.
__device__ VALUE scan_warp(VALUE value) {
    int lane = threadIdx.x % WARP;
#pragma unroll
    for (int distance = 1; distance < WARP; distance *= 2) {
        VALUE left = __shfl_up_sync(ALL_LANES, value, distance);
        if (lane >= distance) value = COMBINE(left, value);
    }
    return value;
}

// The value of the previous lane; in lane 0 the identity.
__device__ VALUE lane_before(VALUE value) {
    VALUE left = __shfl_up_sync(ALL_LANES, value, 1);
    return threadIdx.x % WARP > 0 ? left : IDENTITY;
}

// Exclusive scan of one value per thread of a block; `total` becomes the combination of all.
__device__ VALUE scan_block(VALUE value, VALUE *total) {
    __shared__ VALUE of_warp[WARPS];
    int lane = threadIdx.x % WARP;
    int warp = threadIdx.x / WARP;
    // phase: scan in each warp
    VALUE sum = scan_warp(value);
    VALUE before = lane_before(sum);
    if (lane == WARP - 1) of_warp[warp] = sum;
    __syncthreads();
    // phase: scan the warps' totals
    if (warp == 0) {
        VALUE warps = scan_warp(lane < WARPS ? of_warp[lane] : IDENTITY);
        if (lane < WARPS) of_warp[lane] = warps;
    }
    __syncthreads();
    // phase: combine
    *total = of_warp[WARPS - 1];
    return warp > 0 ? COMBINE(of_warp[warp - 1], before) : before;
}

// Idea: warp shuffles pass values between registers, by Kogge and Stone's steps without memory or barriers; shared
// memory has one value per warp, which the first warp scans in the same way (Harris and Garland, Optimizing Parallel
// Prefix Operations for the Fermi Architecture, GPU Computing Gems, 2012). Limit: 4-byte loads, and a second pass over
// all elements for two or more sections.
extern "C" __global__ void scan_shuffle(const VALUE *in, VALUE *out, VALUE *totals, int n, int exclusive) {
    int i = blockIdx.x * BLOCK_SIZE + threadIdx.x;
    // phase: load
    VALUE value = i < n ? in[i] : IDENTITY;
    VALUE total;
    VALUE before = scan_block(value, &total);
    // phase: write
    if (i < n) out[i] = exclusive ? before : COMBINE(before, value);
    if (threadIdx.x == 0) totals[blockIdx.x] = total;
}

// Four neighbors from element i on; elements beyond the end are the identity. Arrays are 16-byte
// aligned.
__device__ VECTOR load_vector(const VALUE *in, int i, int n) {
    if (i + 3 < n) return *(const VECTOR *)&in[i];
    VALUE x = i < n ? in[i] : IDENTITY;
    VALUE y = i + 1 < n ? in[i + 1] : IDENTITY;
    VALUE z = i + 2 < n ? in[i + 2] : IDENTITY;
    return MAKE_VECTOR(x, y, z, IDENTITY);
}

__device__ void store_vector(VALUE *out, int i, int n, VECTOR value) {
    if (i + 3 < n) {
        *(VECTOR *)&out[i] = value;
        return;
    }
    if (i < n) out[i] = value.x;
    if (i + 1 < n) out[i + 1] = value.y;
    if (i + 2 < n) out[i + 2] = value.z;
}

// Inclusive scan of four neighbors.
__device__ VECTOR scan_vector(VECTOR value) {
    value.y = COMBINE(value.x, value.y);
    value.z = COMBINE(value.y, value.z);
    value.w = COMBINE(value.z, value.w);
    return value;
}

// Combine the value before with four scanned neighbors; shift them by one for an exclusive scan.
__device__ VECTOR after(VALUE before, VECTOR value, int exclusive) {
    VALUE x = COMBINE(before, value.x);
    VALUE y = COMBINE(before, value.y);
    VALUE z = COMBINE(before, value.z);
    if (exclusive) return MAKE_VECTOR(before, x, y, z);
    return MAKE_VECTOR(x, y, z, COMBINE(before, value.w));
}

// Idea: a thread scans four neighbors in registers, with 16-byte loads and stores; the block scans only the threads'
// totals. With the scan of the sections' totals and scan_add_back, this scans any length in three kernels. Limit: those
// three: every element is read and written twice.
extern "C" __global__ void scan_sections(const VALUE *in, VALUE *out, VALUE *totals, int n, int exclusive) {
    int i = 4 * (blockIdx.x * BLOCK_SIZE + threadIdx.x);
    // phase: load, four at a time
    VECTOR value = scan_vector(load_vector(in, i, n));
    VALUE total;
    VALUE before = scan_block(value.w, &total);
    // phase: write
    store_vector(out, i, n, after(before, value, exclusive));
    if (threadIdx.x == 0) totals[blockIdx.x] = total;
}

// Add to a section's elements the total of all sections before: `totals`, after their inclusive scan. Block 0 has the
// second section, since the first one needs nothing.
extern "C" __global__ void scan_add_back(VALUE *out, const VALUE *totals, int n, int section) {
    // phase: add what comes before
    VALUE before = totals[blockIdx.x];
    int start = (blockIdx.x + 1) * section;
    int end = min(start + section, n);
    for (int i = start + threadIdx.x; i < end; i += BLOCK_SIZE) out[i] = COMBINE(before, out[i]);
}

// Return the combination of all tiles before this one. A warp reads the states of the 32 tiles before, waits until each
// has one, and combines from the nearest one with a full prefix; if there is none, it goes further back.
__device__ VALUE look_back(const volatile unsigned long long *states, int tile, unsigned int launch) {
    int lane = threadIdx.x % WARP;
    VALUE before = IDENTITY;
    for (int nearest = tile - 1; nearest >= 0; nearest -= WARP) {
        int other = nearest - lane;
        unsigned long long state = (unsigned long long)TILE_AND_BEFORE << 32 | TO_BITS(IDENTITY);
        if (other >= 0)
            while (!is_of(state = states[other], launch)) {
            }
        unsigned int complete = __ballot_sync(ALL_LANES, knows_all_before(state));
        int last = complete != 0 ? __ffs(complete) - 1 : WARP - 1;
        VALUE window = lane <= last ? FROM_BITS((unsigned int)state) : IDENTITY;
        for (int distance = WARP / 2; distance > 0; distance /= 2) {
            VALUE partner = __shfl_xor_sync(ALL_LANES, window, distance);
            window = COMBINE(window, partner);
        }
        before = COMBINE(window, before);
        if (complete != 0) break;
    }
    return before;
}

// Idea: one launch moves each element once. A block scans a tile, publishes the tile's total immediately, and then
// combines the totals that the tiles before publish: decoupled look-back (tiles.cuh). A warp's lanes load VECTORS
// times 16 bytes each, coalesced, and scan each round of loads separately. `carry` is the value before the first
// element: the identity, or, for a chunk of a longer array, the total of the chunks before. Limit: memory
// bandwidth.
extern "C" __global__ void __launch_bounds__(BLOCK_SIZE)
    scan_look_back(const VALUE *in, VALUE *out, unsigned long long *states, int n, int exclusive, VALUE carry) {
    __shared__ int tile_of_block;
    __shared__ unsigned int number_of_launch;
    __shared__ VALUE of_warp[WARPS];
    __shared__ VALUE before_tile;
    int lane = threadIdx.x % WARP;
    int warp = threadIdx.x / WARP;
    // phase: number of the tile
    if (threadIdx.x == 0) tile_of_block = draw_tile(states, gridDim.x, &number_of_launch);
    __syncthreads();
    int tile = tile_of_block;
    unsigned int launch = number_of_launch;
    int first = 4 * (tile * VECTORS * BLOCK_SIZE + warp * VECTORS * WARP + lane);

    VECTOR values[VECTORS];
    // phase: load
#pragma unroll
    for (int k = 0; k < VECTORS; ++k) values[k] = load_vector(in, first + k * 4 * WARP, n);
    VALUE befores[VECTORS];
    // phase: scan in each warp
    VALUE sum = IDENTITY;
#pragma unroll
    for (int k = 0; k < VECTORS; ++k) {
        values[k] = scan_vector(values[k]);
        VALUE lanes = scan_warp(values[k].w);
        befores[k] = COMBINE(sum, lane_before(lanes));
        sum = COMBINE(sum, __shfl_sync(ALL_LANES, lanes, WARP - 1));
    }
    if (lane == 0) of_warp[warp] = sum;
    __syncthreads();

    // phase: look back
    if (warp == 0) {
        VALUE warps = scan_warp(lane < WARPS ? of_warp[lane] : IDENTITY);
        VALUE total = __shfl_sync(ALL_LANES, warps, WARPS - 1);
        if (lane == 0 && tile > 0) publish(&states[1 + tile], launch, TILE_ALONE, TO_BITS(total));
        VALUE before = carry;
        if (tile > 0) before = look_back(states + 1, tile, launch);
        if (lane == 0) publish(&states[1 + tile], launch, TILE_AND_BEFORE, TO_BITS(COMBINE(before, total)));
        if (lane == 0) before_tile = before;
        if (lane < WARPS) of_warp[lane] = warps;
    }
    __syncthreads();

    // phase: write
    VALUE before = warp > 0 ? COMBINE(before_tile, of_warp[warp - 1]) : before_tile;
#pragma unroll
    for (int k = 0; k < VECTORS; ++k)
        store_vector(out, first + k * 4 * WARP, n, after(COMBINE(before, befores[k]), values[k], exclusive));
}
