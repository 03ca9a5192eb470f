// Scan: each element becomes the combination of all up to it (inclusive), or of all before it (exclusive: the first
// becomes the identity). The operator is associative and commutative. The elements are of type VALUE, int or float; int
// wraps around. OPERATOR is SUM, PRODUCT, MIN or MAX. BLOCK_SIZE is the number of threads in a block, a power of two, and from
// scan_shuffle on a multiple of 32. Least traffic: 8 bytes an element, read once and written once; n - 1 operations.
//
// A block scans a section by itself and leaves the section's total in `totals`. Where there is more than one section,
// the totals are scanned in the same way, and scan_add_back adds to each section what the sections before it come to.
//
// rung                      idea                                          what still limits it
// scan_one_thread           a loop over the array                        one operation after the other, n - 1 of them
// scan_naive                each thread combines all up to its own        about n * n / 2 operations in a section of n
// scan_kogge_stone          the distance doubles, all threads combine     n * log2(n) operations, two barriers a step
// scan_double_buffer        read one copy, write the other                one barrier a step, still n * log2(n)
// scan_brent_kung           a tree up and a tree down, 2n operations      strided access: banks conflict
// scan_brent_kung_padded    a gap after every 32 elements                 twice as many steps, few threads at work
// scan_shuffle              a warp's lanes exchange registers             a thread has one element in a load
// scan_sections             four elements a thread, in 16-byte loads      three launches, each element moved twice
// scan_add_back             the sections before, added to each element    (the last of the three launches)
// scan_look_back            one launch: a block asks those before it      memory's bandwidth

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

// A place in shared memory with a gap after every 32 elements.
#define GAPPED(i) ((i) + (i) / 32)

// Idea: what a program without threads does, and no scan does with fewer operations: each result is the one before it and
// one element more. Limit: each operation waits for the one before.
extern "C" __global__ void scan_one_thread(const VALUE *in, VALUE *out, int n, int exclusive) {
    if (n > 0) out[0] = exclusive ? IDENTITY : in[0];
    for (int i = 1; i < n; ++i) out[i] = COMBINE(out[i - 1], in[exclusive ? i - 1 : i]);
}

// Idea: every thread does what one alone would do for its element. Limit: the last thread of a section combines as many
// elements as the section has, and the others redo what their neighbors did.
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
// barriers. Limit: nobody may overwrite an element before its neighbor has read it, hence two barriers a step; and
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

// Idea: each step reads one copy of the section and writes the other, so nobody waits for the readers. Limit: still
// n * log2(n) - (n - 1) operations.
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

// Idea: a tree up, in which the last of 2, 4, 8... elements becomes their total, and a tree down, in which a total goes
// on to the middle of the elements after it: 2n - 2 - log2(n) operations (Brent and Kung, A Regular Layout for Parallel
// Adders, IEEE Trans. Computers, 1982; the two sweeps also in Blelloch, Prefix Sums and Their Applications, 1990). A
// thread has two elements. What lies beyond the end is simply left out: nobody before it needs it. Limit: 2 * log2(n) - 1
// steps; and at distance d the threads touch every 2 * d-th element, so that they queue at few of the 32 banks.
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

// Idea: a gap after every 32 elements turns each stride that is a power of two into an odd one, as far as banks go
// (Harris, Sengupta and Owens, Parallel Prefix Sum (Scan) with CUDA, GPU Gems 3, ch. 39). Limit: the trees' tops, where
// a few threads work and all wait.
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

// Scan the values of a warp's lanes, inclusive.
__device__ VALUE scan_warp(VALUE value) {
    int lane = threadIdx.x % WARP;
#pragma unroll
    for (int distance = 1; distance < WARP; distance *= 2) {
        VALUE left = __shfl_up_sync(ALL_LANES, value, distance);
        if (lane >= distance) value = COMBINE(left, value);
    }
    return value;
}

// The value of the lane before; in lane 0 the identity.
__device__ VALUE lane_before(VALUE value) {
    VALUE left = __shfl_up_sync(ALL_LANES, value, 1);
    return threadIdx.x % WARP > 0 ? left : IDENTITY;
}

// Scan one value of each thread of a block: return what the threads before come to, and in `total` what all do.
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

// Idea: lanes pass values on in registers, by steps of Kogge and Stone that need neither memory nor barrier; shared
// memory holds one value a warp, which the first warp scans in the same way (Harris and Garland, Optimizing Parallel
// Prefix Operations for the Fermi Architecture, GPU Computing Gems, 2012). Limit: a load of 4 bytes a thread, and
// another pass over all of it as soon as there are two sections.
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

// Four neighbors that start at element i; what lies beyond the end is the identity. Arrays begin at a multiple of 16
// bytes.
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

// Scan four neighbors in place, inclusive.
__device__ VECTOR scan_vector(VECTOR value) {
    value.y = COMBINE(value.x, value.y);
    value.z = COMBINE(value.y, value.z);
    value.w = COMBINE(value.z, value.w);
    return value;
}

// Combine what comes before with four neighbors that have been scanned; shift them by one to be exclusive.
__device__ VECTOR after(VALUE before, VECTOR value, int exclusive) {
    VALUE x = COMBINE(before, value.x);
    VALUE y = COMBINE(before, value.y);
    VALUE z = COMBINE(before, value.z);
    if (exclusive) return MAKE_VECTOR(before, x, y, z);
    return MAKE_VECTOR(x, y, z, COMBINE(before, value.w));
}

// Idea: a thread scans four neighbors by itself, in registers, and moves them by 16 bytes at a time; the block scans
// only what each thread has come to. With the scan of the totals and scan_add_back this is a scan of any length in three
// kernels. Limit: those three: every element is read and written twice.
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

// Add to a section's elements what all sections before it come to: `totals`, scanned, inclusive. Block 0 has the second
// section, since nothing comes before the first.
extern "C" __global__ void scan_add_back(VALUE *out, const VALUE *totals, int n, int section) {
    // phase: add what comes before
    VALUE before = totals[blockIdx.x];
    int start = (blockIdx.x + 1) * section;
    int end = min(start + section, n);
    for (int i = start + threadIdx.x; i < end; i += BLOCK_SIZE) out[i] = COMBINE(before, out[i]);
}

// Return what all tiles before this one come to. The lanes of a warp look at the 32 tiles before, wait until each has
// a state, and combine them from the nearest tile that knows all before it on; if none does, they look further back.
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

// Idea: one launch moves each element once. A block scans a tile, says at once what its elements come to, and then asks
// the tiles before, which have said theirs or soon will: decoupled look-back, as tiles.cuh has it. A warp's lanes load
// VECTORS times 16 bytes each, side by side, and scan every round of loads by itself. `carry` is what comes before the
// first element: the identity, or, of a chunk of a longer array, what the chunks before come to.
// Limit: memory's bandwidth.
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
