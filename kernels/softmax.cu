// Softmax of each row: y[i] = exp(x[i] - m) / sum of exp(x[j] - m), where m is the row's greatest element: so nothing
// overflows, and it is what reductions are for. Rows stand one after the other, float32, of any length. Least traffic:
// 8 bytes an element, read once and written once. Infinities: -inf becomes 0; a row that holds inf, or nothing but
// -inf, becomes NaN throughout, since its exponents are inf - inf: as in SciPy and PyTorch.
//
// rung             idea                                           what still limits it
// softmax_naive    a thread a row, in three passes                lanes are a row apart; few rows, few threads
// softmax_shared   a block a row, trees in shared memory          the row is fetched three times
// softmax_online   greatest and sum in one pass                   a barrier for each step of the tree
// softmax_shuffle  lanes read each other's registers              the row is fetched twice, one float at a time
// softmax_peak     the row stays in registers, 16-byte loads      the memory's bandwidth

// Threads of a block: a power of two.
#ifndef BLOCK_SIZE
#define BLOCK_SIZE 256
#endif

// Quads of floats that a thread of softmax_peak keeps, and rows of its blocks, which are BLOCK_SIZE x ROWS threads.
#ifndef QUADS
#define QUADS 4
#endif
#ifndef ROWS
#define ROWS 1
#endif

#define WARP 32
#define LANES (BLOCK_SIZE < WARP ? BLOCK_SIZE : WARP)
#define WARPS (BLOCK_SIZE / LANES)
#define ALL_LANES (LANES == WARP ? 0xffffffffu : (1u << LANES % WARP) - 1)
#define KEPT (4 * QUADS)

// Idea: one thread a row, which it walks along three times: for its greatest element, for the sum, to write. Limit: the
// lanes of a warp are a row apart, and each wants a sector of its own; a few rows keep a few threads busy.
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

// Idea: one block a row. Each thread folds every BLOCK_SIZE-th element, then a tree in shared memory folds what the
// threads have: once for the greatest, once for the sum. Limit: the row is fetched three times.
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

// A part of a row is its greatest element and the sum of exp(x - greatest). As long as there is nothing but -inf the
// sum says nothing: the first other element scales it to 0. (Milakov and Gimelshein, Online normalizer calculation for
// softmax, 2018.)

// Add one element: either it is scaled to the greatest so far, or the sum so far is scaled to it.
__device__ void add(float &greatest, float &sum, float x) {
    float scale = x == greatest ? 1.0f : expf(-fabsf(x - greatest));
    sum = x > greatest ? sum * scale + 1.0f : sum + scale;
    greatest = fmaxf(greatest, x);
}

// Add another part: both are scaled to the greatest of both, which for inf makes the sum NaN.
__device__ void merge(float &greatest, float &sum, float other_greatest, float other_sum) {
    float both = fmaxf(greatest, other_greatest);
    float scaled = sum * expf(greatest - both) + other_sum * expf(other_greatest - both);
    sum = both == -INFINITY ? 1.0f : scaled;
    greatest = both;
}

// Idea: greatest element and sum in one pass over the row: where an element is greater than all before, what was summed
// up so far is scaled down; and in one tree. Limit: a barrier for each step of the tree.
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

// The greatest of a warp's values, for all lanes.
__device__ float greatest_of_warp(float value) {
    for (int distance = LANES / 2; distance > 0; distance /= 2)
        value = fmaxf(value, __shfl_xor_sync(ALL_LANES, value, distance));
    return value;
}

// The sum of a warp's values, likewise.
__device__ float sum_of_warp(float value) {
    for (int distance = LANES / 2; distance > 0; distance /= 2) value += __shfl_xor_sync(ALL_LANES, value, distance);
    return value;
}

// The greatest of a block's values, for all threads; `of_warp` may be used again after a barrier.
__device__ float greatest_of_block(float value, float *of_warp) {
    value = greatest_of_warp(value);
    if (threadIdx.x % WARP == 0) of_warp[threadIdx.x / WARP] = value;
    __syncthreads();
    for (int w = 0; w < WARPS; ++w) value = fmaxf(value, of_warp[w]);
    return value;
}

// The sum of a block's values, likewise.
__device__ float sum_of_block(float value, float *of_warp) {
    value = sum_of_warp(value);
    if (threadIdx.x % WARP == 0) of_warp[threadIdx.x / WARP] = value;
    __syncthreads();
    value = 0.0f;
    for (int w = 0; w < WARPS; ++w) value += of_warp[w];
    return value;
}

// Idea: lanes hand each other what they have, first their greatest elements and then, each scaled once, their sums;
// shared memory holds one value a warp. Limit: the row is fetched twice, one float at a time.
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

// ALIGNED: rows are whole quads long, so that one load of 16 bytes brings four elements.
template <bool ALIGNED>
__device__ void softmax_row(const float *x, float *y, int columns, float *greatests, float *sums) {
    int t = threadIdx.x;
    float kept[KEPT];
    float greatest = -INFINITY;
    // phase: load
#pragma unroll
    for (int q = 0; q < QUADS; ++q) {
        if constexpr (ALIGNED) {
            int i = 4 * (t + q * BLOCK_SIZE);
            float4 found = make_float4(-INFINITY, -INFINITY, -INFINITY, -INFINITY);
            if (i < columns) found = *reinterpret_cast<const float4 *>(x + i);
            kept[4 * q] = found.x;
            kept[4 * q + 1] = found.y;
            kept[4 * q + 2] = found.z;
            kept[4 * q + 3] = found.w;
        } else {
#pragma unroll
            for (int j = 4 * q; j < 4 * q + 4; ++j) {
                int i = t + j * BLOCK_SIZE;
                kept[j] = i < columns ? x[i] : -INFINITY;
            }
        }
    }
    // phase: greatest
#pragma unroll
    for (int j = 0; j < KEPT; ++j) greatest = fmaxf(greatest, kept[j]);
    // What no register has room for is fetched again each time.
    for (int i = t + KEPT * BLOCK_SIZE; i < columns; i += BLOCK_SIZE) greatest = fmaxf(greatest, x[i]);
    greatest = WARPS == 1 ? greatest_of_warp(greatest) : greatest_of_block(greatest, greatests);

    // phase: sum
    float sum = 0.0f;
#pragma unroll
    for (int j = 0; j < KEPT; ++j) {
        kept[j] = expf(kept[j] - greatest);
        sum += kept[j];
    }
    for (int i = t + KEPT * BLOCK_SIZE; i < columns; i += BLOCK_SIZE) sum += expf(x[i] - greatest);
    float share = 1.0f / (WARPS == 1 ? sum_of_warp(sum) : sum_of_block(sum, sums));

    // phase: write
#pragma unroll
    for (int q = 0; q < QUADS; ++q) {
        if constexpr (ALIGNED) {
            int i = 4 * (t + q * BLOCK_SIZE);
            if (i < columns)
                *reinterpret_cast<float4 *>(y + i) = make_float4(kept[4 * q] * share, kept[4 * q + 1] * share,
                                                                 kept[4 * q + 2] * share, kept[4 * q + 3] * share);
        } else {
#pragma unroll
            for (int j = 4 * q; j < 4 * q + 4; ++j) {
                int i = t + j * BLOCK_SIZE;
                if (i < columns) y[i] = kept[j] * share;
            }
        }
    }
    for (int i = t + KEPT * BLOCK_SIZE; i < columns; i += BLOCK_SIZE) y[i] = expf(x[i] - greatest) * share;
}

// Idea: each element is fetched once, with three others, and stays in a register until it is written. Rows longer than
// the registers have room for are fetched again from there on; short ones are several a block, so that a multiprocessor
// has enough threads. Limit: the memory's bandwidth.
extern "C" __global__ void softmax_peak(const float *in, float *out, int rows, int columns) {
    __shared__ float greatests[ROWS][WARPS];
    __shared__ float sums[ROWS][WARPS];
    int own = threadIdx.y;
    int row = blockIdx.x * ROWS + own;
    bool aligned = columns % 4 == 0;
    if (row >= rows) columns = 0;  // there is nothing to do, but barriers wait for all
    const float *x = in + row * columns;
    float *y = out + row * columns;
    if (aligned)
        softmax_row<true>(x, y, columns, greatests[own], sums[own]);
    else
        softmax_row<false>(x, y, columns, greatests[own], sums[own]);
}
