// Softmax of each row: y[i] = exp(x[i] - m) / sum of exp(x[j] - m), where m is the row's maximum, so that nothing
// overflows; it needs two reductions per row. Rows are contiguous, float32, of any length. Minimum traffic: 8 bytes per
// element, read once and written once. Infinities: -inf becomes 0; a row that contains inf, or only -inf, becomes NaN,
// since its exponents are inf - inf, as in SciPy and PyTorch.
//
// variant          idea                                           what still limits it
// softmax_naive    one thread per row, in three passes            uncoalesced; few threads for few rows
// softmax_shared   one block per row, trees in shared memory      the row is read three times
// softmax_online   maximum and sum in one pass                    a barrier for each step of the tree
// softmax_shuffle  warp shuffles                                  the row is read twice, one float at a time
// softmax_peak     the row in registers, 16-byte loads            short rows leave lanes idle; long ones do not fit
// softmax_short    a few lanes per row                            memory bandwidth
// softmax_cluster  a cluster of blocks per row                    memory bandwidth

#include <cooperative_groups.h>

// Threads per block: a power of two.
#ifndef BLOCK_SIZE
#define BLOCK_SIZE 256
#endif

// Quads of floats per thread in softmax_peak and softmax_cluster.
#ifndef QUADS
#define QUADS 4
#endif

// Lanes of softmax_short that share a row, and elements per lane.
#ifndef TEAM
#define TEAM 8
#endif
#ifndef EACH
#define EACH 4
#endif

// Blocks per row in softmax_cluster: up to 8.
#ifndef CLUSTER
#define CLUSTER 8
#endif

#define WARP 32
#define LANES (BLOCK_SIZE < WARP ? BLOCK_SIZE : WARP)
#define WARPS (BLOCK_SIZE / LANES)
#define ALL_LANES (LANES == WARP ? 0xffffffffu : (1u << LANES % WARP) - 1)
#define KEPT (4 * QUADS)

// Idea: one thread per row, which it reads three times: for the maximum, for the sum, and to write. Limit: uncoalesced,
// as lanes read one row apart, each in a different sector; few rows keep few threads busy.
extern "C" __global__ void softmax_naive(const float *in, float *out, int rows, int columns) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    const float *x = in + row * columns;
    float *y = out + row * columns;
    // phase: greatest
    float greatest = -INFINITY;
    for (int i = 0; i < columns; ++i) greatest = fmaxf(greatest, x[i]);
    // phase: sum
    float sum = 0.0f;
    for (int i = 0; i < columns; ++i) sum += expf(x[i] - greatest);
    // phase: write
    for (int i = 0; i < columns; ++i) y[i] = expf(x[i] - greatest) / sum;
}

// Idea: one block per row. Each thread reduces every BLOCK_SIZE-th element, then a tree in shared memory reduces the
// threads' values: once for the maximum, once for the sum. Limit: the row is read three times.
extern "C" __global__ void softmax_shared(const float *in, float *out, [[maybe_unused]] int rows, int columns) {
    __shared__ float s[BLOCK_SIZE];
    int t = threadIdx.x;
    const float *x = in + blockIdx.x * columns;
    float *y = out + blockIdx.x * columns;
    // phase: greatest
    float greatest = -INFINITY;
    for (int i = t; i < columns; i += BLOCK_SIZE) greatest = fmaxf(greatest, x[i]);
    s[t] = greatest;
    __syncthreads();
    for (int stride = BLOCK_SIZE / 2; stride > 0; stride /= 2) {
        if (t < stride) s[t] = fmaxf(s[t], s[t + stride]);
        __syncthreads();
    }
    greatest = s[0];
    __syncthreads();

    // phase: sum
    float sum = 0.0f;
    for (int i = t; i < columns; i += BLOCK_SIZE) sum += expf(x[i] - greatest);
    s[t] = sum;
    __syncthreads();
    for (int stride = BLOCK_SIZE / 2; stride > 0; stride /= 2) {
        if (t < stride) s[t] += s[t + stride];
        __syncthreads();
    }
    sum = s[0];
    // phase: write
    for (int i = t; i < columns; i += BLOCK_SIZE) y[i] = expf(x[i] - greatest) / sum;
}

// A part of a row is its maximum and the sum of exp(x - maximum). While there are only -inf, the sum is undefined:
// the first other element scales it to 0. (Milakov and Gimelshein, Online normalizer calculation for softmax,
// 2018.)

// Add one element: scale either it to the maximum so far, or the sum so far to it.
__device__ void add(float &greatest, float &sum, float x) {
    float scale = x == greatest ? 1.0f : expf(-fabsf(x - greatest));
    sum = x > greatest ? sum * scale + 1.0f : sum + scale;
    greatest = fmaxf(greatest, x);
}

// Add another part: both are scaled to their common maximum, which for inf makes the sum NaN.
__device__ void merge(float &greatest, float &sum, float other_greatest, float other_sum) {
    float both = fmaxf(greatest, other_greatest);
    float scaled = sum * expf(greatest - both) + other_sum * expf(other_greatest - both);
    sum = both == -INFINITY ? 1.0f : scaled;
    greatest = both;
}

// Idea: maximum and sum in one pass over the row, where an element above the maximum rescales the partial sum; and in
// one tree. Limit: a barrier for each step of the tree.
extern "C" __global__ void softmax_online(const float *in, float *out, [[maybe_unused]] int rows, int columns) {
    __shared__ float greatests[BLOCK_SIZE];
    __shared__ float sums[BLOCK_SIZE];
    int t = threadIdx.x;
    const float *x = in + blockIdx.x * columns;
    float *y = out + blockIdx.x * columns;
    // phase: greatest and sum
    float greatest = -INFINITY;
    float sum = 0.0f;
    for (int i = t; i < columns; i += BLOCK_SIZE) add(greatest, sum, x[i]);
    greatests[t] = greatest;
    sums[t] = sum;
    __syncthreads();
    // phase: tree
    for (int stride = BLOCK_SIZE / 2; stride > 0; stride /= 2) {
        if (t < stride) {
            merge(greatest, sum, greatests[t + stride], sums[t + stride]);
            greatests[t] = greatest;
            sums[t] = sum;
        }
        __syncthreads();
    }
    // phase: write
    for (int i = t; i < columns; i += BLOCK_SIZE) y[i] = expf(x[i] - greatests[0]) / sums[0];
}

// The maximum over each COUNT neighboring lanes, for all of them.
template <int COUNT>
__device__ float greatest_of_lanes(float value) {
    for (int distance = COUNT / 2; distance > 0; distance /= 2)
        value = fmaxf(value, __shfl_xor_sync(ALL_LANES, value, distance));
    return value;
}

// The sum over each COUNT neighboring lanes, likewise.
template <int COUNT>
__device__ float sum_of_lanes(float value) {
    for (int distance = COUNT / 2; distance > 0; distance /= 2) value += __shfl_xor_sync(ALL_LANES, value, distance);
    return value;
}

// The maximum of a block's values, for all threads; `of_warp` may be reused after a barrier.
__device__ float greatest_of_block(float value, float *of_warp) {
    value = greatest_of_lanes<LANES>(value);
    if (threadIdx.x % WARP == 0) of_warp[threadIdx.x / WARP] = value;
    __syncthreads();
    for (int w = 0; w < WARPS; ++w) value = fmaxf(value, of_warp[w]);
    return value;
}

// The sum of a block's values, likewise.
__device__ float sum_of_block(float value, float *of_warp) {
    value = sum_of_lanes<LANES>(value);
    if (threadIdx.x % WARP == 0) of_warp[threadIdx.x / WARP] = value;
    __syncthreads();
    value = 0.0f;
    for (int w = 0; w < WARPS; ++w) value += of_warp[w];
    return value;
}

// Idea: warp shuffles combine the lanes' maxima and then, each scaled once, their sums; shared memory has one value per
// warp. Limit: the row is read twice, one float at a time.
extern "C" __global__ void softmax_shuffle(const float *in, float *out, [[maybe_unused]] int rows, int columns) {
    __shared__ float greatests[WARPS];
    __shared__ float sums[WARPS];
    const float *x = in + blockIdx.x * columns;
    float *y = out + blockIdx.x * columns;
    // phase: greatest and sum
    float own = -INFINITY;
    float sum = 0.0f;
    for (int i = threadIdx.x; i < columns; i += BLOCK_SIZE) add(own, sum, x[i]);
    // phase: greatest of the row
    float greatest = greatest_of_block(own, greatests);
    // phase: sum of the row
    sum = sum_of_block(sum * expf(own - greatest), sums);
    // phase: write
    for (int i = threadIdx.x; i < columns; i += BLOCK_SIZE) y[i] = expf(x[i] - greatest) / sum;
}

// Number of elements from the last 16-byte boundary to the row's start; arrays are aligned.
__device__ int shift_of(int row, int columns) { return row * columns % 4; }

// Load a thread's share of `count` elements, by quads that begin at 16-byte boundaries, the first one `shift` elements
// before them; elements outside are -infinity. ALIGNED: whole quads, and no shift.
template <bool ALIGNED>
__device__ void load_quads(float *kept, const float *x, int count, int shift) {
#pragma unroll
    for (int q = 0; q < QUADS; ++q) {
        int i = 4 * (threadIdx.x + q * BLOCK_SIZE) - (ALIGNED ? 0 : shift);
        float4 found = make_float4(-INFINITY, -INFINITY, -INFINITY, -INFINITY);
        if (ALIGNED ? i < count : i >= 0 && i + 4 <= count) found = *reinterpret_cast<const float4 *>(x + i);
        kept[4 * q] = found.x;
        kept[4 * q + 1] = found.y;
        kept[4 * q + 2] = found.z;
        kept[4 * q + 3] = found.w;
        if (!ALIGNED && (i < 0 || i + 4 > count) && i < count) {
#pragma unroll
            for (int j = 0; j < 4; ++j)
                if (i + j >= 0 && i + j < count) kept[4 * q + j] = x[i + j];
        }
    }
}

// Write a thread's share.
template <bool ALIGNED>
__device__ void store_quads(const float *kept, float *y, int count, int shift) {
#pragma unroll
    for (int q = 0; q < QUADS; ++q) {
        int i = 4 * (threadIdx.x + q * BLOCK_SIZE) - (ALIGNED ? 0 : shift);
        if (ALIGNED ? i < count : i >= 0 && i + 4 <= count)
            *reinterpret_cast<float4 *>(y + i) =
                make_float4(kept[4 * q], kept[4 * q + 1], kept[4 * q + 2], kept[4 * q + 3]);
        else if (!ALIGNED && i < count) {
#pragma unroll
            for (int j = 0; j < 4; ++j)
                if (i + j >= 0 && i + j < count) y[i + j] = kept[4 * q + j];
        }
    }
}

template <bool ALIGNED>
__device__ void softmax_row(const float *x, float *y, int columns, int shift, float *greatests, float *sums) {
    int behind = KEPT * BLOCK_SIZE - (ALIGNED ? 0 : shift) + threadIdx.x;
    float kept[KEPT];
    float greatest = -INFINITY;
    // phase: load
    load_quads<ALIGNED>(kept, x, columns, shift);
    // phase: greatest
#pragma unroll
    for (int j = 0; j < KEPT; ++j) greatest = fmaxf(greatest, kept[j]);
    // Elements that do not fit in registers are read again each time.
    for (int i = behind; i < columns; i += BLOCK_SIZE) greatest = fmaxf(greatest, x[i]);
    greatest = WARPS == 1 ? greatest_of_lanes<LANES>(greatest) : greatest_of_block(greatest, greatests);

    // phase: sum
    float sum = 0.0f;
#pragma unroll
    for (int j = 0; j < KEPT; ++j) {
        kept[j] = expf(kept[j] - greatest);
        sum += kept[j];
    }
    for (int i = behind; i < columns; i += BLOCK_SIZE) sum += expf(x[i] - greatest);
    float share = 1.0f / (WARPS == 1 ? sum_of_lanes<LANES>(sum) : sum_of_block(sum, sums));

    // phase: write
#pragma unroll
    for (int j = 0; j < KEPT; ++j) kept[j] *= share;
    store_quads<ALIGNED>(kept, y, columns, shift);
    for (int i = behind; i < columns; i += BLOCK_SIZE) y[i] = expf(x[i] - greatest) * share;
}

// Idea: each element is read once, by 16-byte loads, and stays in a register until it is written. Elements that do not
// fit in registers are read again. Limit: in a row of 32 elements a warp's load would need only 128 bytes, and three of
// four lanes idle; beyond the registers, a block is alone with its row.
extern "C" __global__ void softmax_peak(const float *in, float *out, [[maybe_unused]] int rows, int columns) {
    __shared__ float greatests[WARPS];
    __shared__ float sums[WARPS];
    const float *x = in + blockIdx.x * columns;
    float *y = out + blockIdx.x * columns;
    if (columns % 4 == 0)
        softmax_row<true>(x, y, columns, 0, greatests, sums);
    else
        softmax_row<false>(x, y, columns, shift_of(blockIdx.x, columns), greatests, sums);
}

// Idea: a row shorter than a warp's load is processed by a team of a few lanes, so that none is idle. The teams of a
// warp have neighboring rows, which are contiguous. (Teams that load several rows at once were no faster, as there are
// enough threads.) Limit: memory bandwidth.
template <bool ALIGNED>
__device__ void softmax_of_team(const float *x, float *y, int columns) {
    int lane = threadIdx.x % TEAM;
    // phase: load
    float kept[(EACH + 3) / 4 * 4];
#pragma unroll
    for (int j = 0; j < EACH; j += ALIGNED ? 4 : 1) {
        if constexpr (ALIGNED) {
            int i = 4 * lane + j * TEAM;
            float4 found = make_float4(-INFINITY, -INFINITY, -INFINITY, -INFINITY);
            if (i < columns) found = *reinterpret_cast<const float4 *>(x + i);
            kept[j] = found.x;
            kept[j + 1] = found.y;
            kept[j + 2] = found.z;
            kept[j + 3] = found.w;
        } else {
            int i = lane + j * TEAM;
            kept[j] = i < columns ? x[i] : -INFINITY;
        }
    }
    // phase: greatest
    float greatest = -INFINITY;
#pragma unroll
    for (int j = 0; j < EACH; ++j) greatest = fmaxf(greatest, kept[j]);
    greatest = greatest_of_lanes<TEAM>(greatest);
    // phase: sum
    float sum = 0.0f;
#pragma unroll
    for (int j = 0; j < EACH; ++j) {
        kept[j] = expf(kept[j] - greatest);
        sum += kept[j];
    }
    float share = 1.0f / sum_of_lanes<TEAM>(sum);
    // phase: write
#pragma unroll
    for (int j = 0; j < EACH; j += ALIGNED ? 4 : 1) {
        if constexpr (ALIGNED) {
            int i = 4 * lane + j * TEAM;
            if (i < columns)
                *reinterpret_cast<float4 *>(y + i) =
                    make_float4(kept[j] * share, kept[j + 1] * share, kept[j + 2] * share, kept[j + 3] * share);
        } else {
            int i = lane + j * TEAM;
            if (i < columns) y[i] = kept[j] * share;
        }
    }
}

// EACH is a multiple of 4 if the row length is.
extern "C" __global__ void softmax_short(const float *in, float *out, int rows, int columns) {
    int row = (blockIdx.x * BLOCK_SIZE + threadIdx.x) / TEAM;
    const float *x = in + row * columns;
    float *y = out + row * columns;
    int own = row < rows ? columns : 0;  // lanes without a row load nothing, but take part in shuffles
    if (columns % 4 == 0)
        softmax_of_team<true>(x, y, own);
    else
        softmax_of_team<false>(x, y, own);
}

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900

// A part of a row in one vector: its maximum and the sum of exp(x - maximum).
__device__ float2 merged(float2 a, float2 b) {
    merge(a.x, a.y, b.x, b.y);
    return a;
}

// The combined parts of all lanes, for all lanes.
__device__ float2 merged_in_warp(float2 part) {
    for (int distance = WARP / 2; distance > 0; distance /= 2)
        part = merged(part, make_float2(__shfl_xor_sync(0xffffffffu, part.x, distance),
                                        __shfl_xor_sync(0xffffffffu, part.y, distance)));
    return part;
}

__device__ float greatest_of(float4 four) { return fmaxf(fmaxf(four.x, four.y), fmaxf(four.z, four.w)); }

__device__ float sum_of(float4 four) { return (four.x + four.y) + (four.z + four.w); }

__device__ float4 exponentials(float4 four, float base) {
    return make_float4(expf(four.x - base), expf(four.y - base), expf(four.z - base), expf(four.w - base));
}

__device__ float4 scaled(float4 four, float by) {
    return make_float4(four.x * by, four.y * by, four.z * by, four.w * by);
}

// The value to subtract from exponents; for only -inf it is 0, as exp(-inf - 0) is 0.
__device__ float base_of(float greatest) { return greatest == -INFINITY ? 0.0f : greatest; }

// Idea: a row longer than a block's registers is processed by a cluster of blocks, which run at the same time and
// access each other's shared memory. Each keeps its stretch of the row in registers, and `pooled` quads in shared
// memory, so that each element is again read once. A warp writes its maximum and sum to every block of the cluster;
// after one barrier each warp merges all of them. Elements that do not fit are read again, while they are still in the
// cache. Limit: memory bandwidth; with one cluster per row, few rows leave most multiprocessors idle.
extern "C" __global__ void __cluster_dims__(CLUSTER, 1, 1) __launch_bounds__(BLOCK_SIZE)
    softmax_cluster(const float *in, float *out, [[maybe_unused]] int rows, int columns, int pooled) {
    extern __shared__ float4 pool[];
    __shared__ float2 parts[CLUSTER * WARPS];
    cooperative_groups::cluster_group cluster = cooperative_groups::this_cluster();
    cluster.barrier_arrive();
    int t = threadIdx.x;
    int rank = blockIdx.x % CLUSTER;
    int row = blockIdx.x / CLUSTER;
    int stretch = (columns + 4 * CLUSTER - 1) / (4 * CLUSTER) * 4;
    int begin = min(rank * stretch, columns);
    int count = min(stretch, columns - begin);
    const float *x = in + row * columns + begin;
    float *y = out + row * columns + begin;
    int shift = shift_of(row, columns);
    // After the elements in registers: whole quads, the first of which are kept in shared memory; then, if rows are not
    // whole quads, single elements.
    int behind = min(KEPT * BLOCK_SIZE - shift, count);
    const float4 *quads = reinterpret_cast<const float4 *>(x + behind);
    float4 *quads_out = reinterpret_cast<float4 *>(y + behind);
    int whole = (count - behind) / 4;
    int kept_quads = min(whole, pooled);
    // phase: load
    float kept[KEPT];
    if (columns % 4 == 0)
        load_quads<true>(kept, x, count, 0);
    else
        load_quads<false>(kept, x, count, shift);
    float own = -INFINITY;
#pragma unroll 4
    for (int i = t; i < kept_quads; i += BLOCK_SIZE) {
        float4 four = quads[i];
        pool[i] = four;
        own = fmaxf(own, greatest_of(four));
    }
    // phase: sum of what is kept
#pragma unroll
    for (int j = 0; j < KEPT; ++j) own = fmaxf(own, kept[j]);
    float base = base_of(own);
    float2 part = make_float2(own, 0.0f);
#pragma unroll
    for (int j = 0; j < KEPT; ++j) {
        kept[j] = expf(kept[j] - base);
        part.y += kept[j];
    }
    for (int i = t; i < kept_quads; i += BLOCK_SIZE) {
        pool[i] = exponentials(pool[i], base);
        part.y += sum_of(pool[i]);
    }
    // phase: sum of the rest
#pragma unroll 4
    for (int i = kept_quads + t; i < whole; i += BLOCK_SIZE) {
        float4 four = quads[i];
        float greatest = greatest_of(four);
        part = merged(part, make_float2(greatest, sum_of(exponentials(four, base_of(greatest)))));
    }
    for (int i = behind + 4 * whole + t; i < count; i += BLOCK_SIZE) add(part.x, part.y, x[i]);
    // phase: merge
    part = merged_in_warp(part);
    cluster.barrier_wait();  // all blocks have started
    if (t % WARP < CLUSTER) cluster.map_shared_rank(parts, t % WARP)[rank * WARPS + t / WARP] = part;
    cluster.sync();
    part = make_float2(-INFINITY, 0.0f);
    for (int i = t % WARP; i < CLUSTER * WARPS; i += WARP) part = merged(part, parts[i]);
    part = merged_in_warp(part);
    // phase: write
    float share = 1.0f / part.y;
    float scale = expf(own - part.x) * share;
#pragma unroll
    for (int j = 0; j < KEPT; ++j) kept[j] *= scale;
    if (columns % 4 == 0)
        store_quads<true>(kept, y, count, 0);
    else
        store_quads<false>(kept, y, count, shift);
    for (int i = t; i < kept_quads; i += BLOCK_SIZE) quads_out[i] = scaled(pool[i], scale);
#pragma unroll 4
    for (int i = kept_quads + t; i < whole; i += BLOCK_SIZE)
        quads_out[i] = scaled(exponentials(quads[i], part.x), share);
    for (int i = behind + 4 * whole + t; i < count; i += BLOCK_SIZE) y[i] = expf(x[i] - part.x) * share;
}

#endif
