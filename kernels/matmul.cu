// Matrix product: C = alpha * A * B + beta * C, as in BLAS: if beta is 0, the initial C is ignored. A is m x k, B is k
// x n, C is m x n, float32, row-major; any m, n and k. Minimum traffic: A and B read once and C written once, 4 * (m *
// k + k * n + m * n) bytes; 2 * m * n * k operations. matmul_tiled also supports float16, with half the bytes, and sums
// products in float32.
//
// variant              idea                                           what still limits it
// matmul_one_thread    three loops                                    one multiply-add after the other
// matmul_naive         one thread per element, lanes in a column      uncoalesced: lanes are one row apart
// matmul_coalesced     lanes along a row                              two global loads for each multiply-add
// matmul_tiled         tiles of A and B in shared memory              two shared loads for each multiply-add
// matmul_registers_1d  a thread computes a column of elements         one of the two loads remains
// matmul_registers_2d  a thread computes a square of elements         loads of one float, and bank conflicts
// matmul_vectors       16-byte loads, A transposed on the way         the block waits for global memory in each step
// matmul_peak          asynchronous copies of the next tiles          the peak rate of multiply-adds
// matmul_add_parts     for few elements: sum over parts of k          a second launch
// matmul_whole_quads   pad B's rows for 16-byte copies                as many bytes written as read
//
// With tensor cores: matmul_tensor.cu, matmul_halves.cu.

#include <cuda_pipeline_primitives.h>

#include "matmul_finish.cuh"

// A block of matmul_naive, matmul_coalesced and matmul_tiled computes TILE x TILE elements, one per thread.
#ifndef TILE
#define TILE 32
#endif

// Element type of matmul_tiled: float, or __half if defined.
#ifdef ELEMENT
#include <cuda_fp16.h>
#else
#define ELEMENT float
#endif

// A block of the other variants computes ROWS x COLUMNS elements, in steps of DEPTH along k; a thread computes
// THREAD_ROWS x THREAD_COLUMNS of them.
#ifndef ROWS
#define ROWS 128
#define COLUMNS 128
#define DEPTH 8
#define THREAD_ROWS 8
#define THREAD_COLUMNS 8
#endif

#define COLUMN_THREADS (COLUMNS * ROWS / THREAD_ROWS)
#define THREADS (ROWS / THREAD_ROWS * (COLUMNS / THREAD_COLUMNS))

// Quads of floats that a thread loads in each step.
#define A_QUADS ((ROWS * DEPTH / 4 + THREADS - 1) / THREADS)
#define B_QUADS ((DEPTH * COLUMNS / 4 + THREADS - 1) / THREADS)

// Padding of the rows of A's transposed tile, so that the lanes of a warp, which write along its columns, have no bank
// conflicts; quads stay aligned.
#define PADDING 4

// Pipeline stages of matmul_peak in shared memory; blocks of a cluster (Hopper and later) that share the steps
// of the same elements; floats of B per copy, 4 if its rows are whole quads; and whether C's rows are whole
// quads.
#ifndef STAGES
#define STAGES 3
#define SPLITS 1
#define WIDTH 1
#define WHOLE_QUADS 0
#endif
#if SPLITS > 1
#include <cooperative_groups.h>
#define CLUSTER __cluster_dims__(1, 1, SPLITS)
#else
#define CLUSTER
#endif

// A row of its tiles: a column of A's tile, then a row of B's.
#define PITCH (ROWS + PADDING + COLUMNS)

// The lanes of a warp of matmul_peak form WARP_LANES_DOWN x WARP_LANES_ACROSS over its part of the block's elements.
#define WARP_LANES_DOWN 8
#define WARP_LANES_ACROSS 4
#define WARP_ROWS (WARP_LANES_DOWN * THREAD_ROWS)
#define WARP_COLUMNS (WARP_LANES_ACROSS * THREAD_COLUMNS)
#define WARPS_ACROSS (COLUMNS > WARP_COLUMNS ? COLUMNS / WARP_COLUMNS : 1)

// Idea: sequential: three loops over rows, columns, and the products of an element. Limit: one multiply-add after the
// other.
extern "C" __global__ void matmul_one_thread(const float *a, const float *b, float *c, int m, int n, int k, float alpha,
                                             float beta) {
    for (int row = 0; row < m; ++row) {
        for (int column = 0; column < n; ++column) {
            float sum = 0.0f;
            for (int i = 0; i < k; ++i) {
                float product = a[row * k + i] * b[i * n + column];
                sum += product;
            }
            float scaled = alpha * sum;
            if (beta != 0.0f) {
                float before = beta * c[row * n + column];
                scaled += before;
            }
            c[row * n + column] = scaled;
        }
    }
}

// Idea: one thread per element of C, without optimization: a warp's lanes have consecutive rows. Limit: uncoalesced: in
// each step the lanes read different rows of A, and finally write different rows of C, each in another sector.
extern "C" __global__ void matmul_naive(const float *a, const float *b, float *c, int m, int n, int k, float alpha,
                                        float beta) {
    int row = blockIdx.y * TILE + threadIdx.x;
    int column = blockIdx.x * TILE + threadIdx.y;
    if (row >= m || column >= n) return;
    // phase: multiply
    float sum = 0.0f;
    for (int i = 0; i < k; ++i) sum += a[row * k + i] * b[i * n + column];
    // phase: write
    finish(c, row * n + column, sum, alpha, beta);
}

// Idea: a warp's lanes have consecutive columns, so that they read neighbors in a row of B and the same element of A.
// Limit: each multiply-add loads two factors from global memory, or from its caches at best.
extern "C" __global__ void matmul_coalesced(const float *a, const float *b, float *c, int m, int n, int k, float alpha,
                                            float beta) {
    int row = blockIdx.y * TILE + threadIdx.y;
    int column = blockIdx.x * TILE + threadIdx.x;
    if (row >= m || column >= n) return;
    // phase: multiply
    float sum = 0.0f;
    for (int i = 0; i < k; ++i) sum += a[row * k + i] * b[i * n + column];
    // phase: write
    finish(c, row * n + column, sum, alpha, beta);
}

// Idea: shared-memory tiling. The block loops along k in steps of TILE; each thread loads one element of A and one of
// B, which TILE threads reuse (Kirk and Hwu, Programming Massively Parallel Processors, ch. 5). Elements outside are
// zero, and every thread reaches the barriers. Limit: two shared loads for each multiply-add.
extern "C" __global__ void matmul_tiled(const ELEMENT *a, const ELEMENT *b, ELEMENT *c, int m, int n, int k,
                                        float alpha, float beta) {
    __shared__ float a_tile[TILE][TILE];
    __shared__ float b_tile[TILE][TILE];
    int x = threadIdx.x;
    int y = threadIdx.y;
    int row = blockIdx.y * TILE + y;
    int column = blockIdx.x * TILE + x;
    float sum = 0.0f;
    for (int first = 0; first < k; first += TILE) {
        // phase: load tiles at {first}
        a_tile[y][x] = row < m && first + x < k ? static_cast<float>(a[row * k + first + x]) : 0.0f;
        b_tile[y][x] = first + y < k && column < n ? static_cast<float>(b[(first + y) * n + column]) : 0.0f;
        __syncthreads();
        // phase: multiply tiles at {first}
        for (int i = 0; i < TILE; ++i) sum += a_tile[y][i] * b_tile[i][x];
        __syncthreads();
    }
    // phase: write
    if (row < m && column < n) finish(c, row * n + column, sum, alpha, beta);
}

// Load the tiles of A and B from column `first` of A and row `first` of B: one float per thread and iteration.
__device__ void bring(float (*a_tile)[DEPTH], float (*b_tile)[COLUMNS], const float *a, const float *b, int m, int n,
                      int k, int first, int threads) {
    for (int i = threadIdx.x; i < ROWS * DEPTH; i += threads) {
        int row = blockIdx.y * ROWS + i / DEPTH;
        int column = first + i % DEPTH;
        a_tile[i / DEPTH][i % DEPTH] = row < m && column < k ? a[row * k + column] : 0.0f;
    }
    for (int i = threadIdx.x; i < DEPTH * COLUMNS; i += threads) {
        int row = first + i / COLUMNS;
        int column = blockIdx.x * COLUMNS + i % COLUMNS;
        b_tile[i / COLUMNS][i % COLUMNS] = row < k && column < n ? b[row * n + column] : 0.0f;
    }
}

// Idea: register tiling. A thread computes THREAD_ROWS elements of a column: a factor of B is loaded once for all of
// them into a register. Limit: each multiply-add still loads one factor of A.
extern "C" __global__ void matmul_registers_1d(const float *a, const float *b, float *c, int m, int n, int k,
                                               float alpha, float beta) {
    __shared__ float a_tile[ROWS][DEPTH];
    __shared__ float b_tile[DEPTH][COLUMNS];
    int x = threadIdx.x % COLUMNS;
    int y = threadIdx.x / COLUMNS * THREAD_ROWS;
    float sums[THREAD_ROWS] = {};
    for (int first = 0; first < k; first += DEPTH) {
        // phase: load tiles at {first}
        bring(a_tile, b_tile, a, b, m, n, k, first, COLUMN_THREADS);
        __syncthreads();
        // phase: multiply tiles at {first}
        for (int i = 0; i < DEPTH; ++i) {
            float factor = b_tile[i][x];
            for (int r = 0; r < THREAD_ROWS; ++r) sums[r] += a_tile[y + r][i] * factor;
        }
        __syncthreads();
    }
    // phase: write
    int column = blockIdx.x * COLUMNS + x;
    for (int r = 0; r < THREAD_ROWS; ++r) {
        int row = blockIdx.y * ROWS + y + r;
        if (row < m && column < n) finish(c, row * n + column, sums[r], alpha, beta);
    }
}

// Idea: register tiling in two dimensions. A thread multiplies every pair of THREAD_ROWS factors of A and
// THREAD_COLUMNS of B: 64 multiply-adds for 16 loads if both are 8. Limit: each load fetches one float, and lanes that
// are THREAD_COLUMNS floats apart have bank conflicts.
extern "C" __global__ void matmul_registers_2d(const float *a, const float *b, float *c, int m, int n, int k,
                                               float alpha, float beta) {
    __shared__ float a_tile[ROWS][DEPTH];
    __shared__ float b_tile[DEPTH][COLUMNS];
    int x = threadIdx.x % (COLUMNS / THREAD_COLUMNS) * THREAD_COLUMNS;
    int y = threadIdx.x / (COLUMNS / THREAD_COLUMNS) * THREAD_ROWS;
    float sums[THREAD_ROWS][THREAD_COLUMNS] = {};
    for (int first = 0; first < k; first += DEPTH) {
        // phase: load tiles at {first}
        bring(a_tile, b_tile, a, b, m, n, k, first, THREADS);
        __syncthreads();
        // phase: multiply tiles at {first}
        for (int i = 0; i < DEPTH; ++i) {
            float left[THREAD_ROWS];
            float right[THREAD_COLUMNS];
            for (int r = 0; r < THREAD_ROWS; ++r) left[r] = a_tile[y + r][i];
            for (int s = 0; s < THREAD_COLUMNS; ++s) right[s] = b_tile[i][x + s];
            for (int r = 0; r < THREAD_ROWS; ++r)
                for (int s = 0; s < THREAD_COLUMNS; ++s) sums[r][s] += left[r] * right[s];
        }
        __syncthreads();
    }
    // phase: write
    for (int r = 0; r < THREAD_ROWS; ++r) {
        for (int s = 0; s < THREAD_COLUMNS; ++s) {
            int row = blockIdx.y * ROWS + y + r;
            int column = blockIdx.x * COLUMNS + x + s;
            if (row < m && column < n) finish(c, row * n + column, sums[r][s], alpha, beta);
        }
    }
}

// Four neighbors of a row, zeros outside. ALIGNED: rows are whole quads, so that one 16-byte load fetches
// them.
template <bool ALIGNED>
__device__ float4 quad(const float *matrix, int row, int column, int rows, int columns) {
    float4 found = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    const float *place = matrix + row * columns + column;
    if constexpr (ALIGNED) {
        if (row < rows && column < columns) found = *reinterpret_cast<const float4 *>(place);
    } else {
        if (row < rows && column < columns) found.x = place[0];
        if (row < rows && column + 1 < columns) found.y = place[1];
        if (row < rows && column + 2 < columns) found.z = place[2];
        if (row < rows && column + 3 < columns) found.w = place[3];
    }
    return found;
}

// Store four neighbors of a row of C, likewise.
template <bool ALIGNED>
__device__ void finish_quad(float *c, int row, int column, int m, int n, const float *sums, float alpha, float beta) {
    if (row >= m) return;
    if constexpr (ALIGNED) {
        if (column >= n) return;
        float4 *place = reinterpret_cast<float4 *>(c + row * n + column);
        float4 done = make_float4(alpha * sums[0], alpha * sums[1], alpha * sums[2], alpha * sums[3]);
        if (beta != 0.0f) {
            float4 before = *place;
            done.x += beta * before.x;
            done.y += beta * before.y;
            done.z += beta * before.z;
            done.w += beta * before.w;
        }
        *place = done;
    } else {
        for (int s = 0; s < 4; ++s)
            if (column + s < n) finish(c, row * n + column + s, sums[s], alpha, beta);
    }
}

// Load this thread's quads of the tiles that begin at `first` into registers.
template <bool ALIGNED>
__device__ void fetch(float4 *a_quads, float4 *b_quads, const float *a, const float *b, int m, int n, int k,
                      int first) {
#pragma unroll
    for (int q = 0; q < A_QUADS; ++q) {
        int i = (threadIdx.x + q * THREADS) * 4;
        a_quads[q] = quad<ALIGNED>(a, blockIdx.y * ROWS + i / DEPTH, first + i % DEPTH, m, k);
    }
#pragma unroll
    for (int q = 0; q < B_QUADS; ++q) {
        int i = (threadIdx.x + q * THREADS) * 4;
        b_quads[q] = quad<ALIGNED>(b, first + i / COLUMNS, blockIdx.x * COLUMNS + i % COLUMNS, k, n);
    }
}

// Store the quads in the tiles, with A's tile transposed.
__device__ void put(float (*a_tile)[ROWS + PADDING], float (*b_tile)[COLUMNS], const float4 *a_quads,
                    const float4 *b_quads) {
#pragma unroll
    for (int q = 0; q < A_QUADS; ++q) {
        int i = (threadIdx.x + q * THREADS) * 4;
        if (i < ROWS * DEPTH) {
            a_tile[i % DEPTH][i / DEPTH] = a_quads[q].x;
            a_tile[i % DEPTH + 1][i / DEPTH] = a_quads[q].y;
            a_tile[i % DEPTH + 2][i / DEPTH] = a_quads[q].z;
            a_tile[i % DEPTH + 3][i / DEPTH] = a_quads[q].w;
        }
    }
#pragma unroll
    for (int q = 0; q < B_QUADS; ++q) {
        int i = (threadIdx.x + q * THREADS) * 4;
        if (i < DEPTH * COLUMNS) *reinterpret_cast<float4 *>(&b_tile[i / COLUMNS][i % COLUMNS]) = b_quads[q];
    }
}

__device__ void take(float *part, const float *tile) {
    float4 found = *reinterpret_cast<const float4 *>(tile);
    part[0] = found.x;
    part[1] = found.y;
    part[2] = found.z;
    part[3] = found.w;
}

template <bool ALIGNED>
__device__ void multiply_vectors(float (*a_tile)[ROWS + PADDING], float (*b_tile)[COLUMNS], const float *a,
                                 const float *b, float *c, int m, int n, int k, float alpha, float beta) {
    int x = threadIdx.x % (COLUMNS / THREAD_COLUMNS) * THREAD_COLUMNS;
    int y = threadIdx.x / (COLUMNS / THREAD_COLUMNS) * THREAD_ROWS;
    float sums[THREAD_ROWS][THREAD_COLUMNS] = {};
    for (int first = 0; first < k; first += DEPTH) {
        // phase: load tiles at {first}
        float4 a_quads[A_QUADS], b_quads[B_QUADS];
        fetch<ALIGNED>(a_quads, b_quads, a, b, m, n, k, first);
        put(a_tile, b_tile, a_quads, b_quads);
        __syncthreads();
        // phase: multiply tiles at {first}
#pragma unroll
        for (int i = 0; i < DEPTH; ++i) {
            float left[THREAD_ROWS], right[THREAD_COLUMNS];
            for (int r = 0; r < THREAD_ROWS; r += 4) take(left + r, &a_tile[i][y + r]);
            for (int s = 0; s < THREAD_COLUMNS; s += 4) take(right + s, &b_tile[i][x + s]);
            for (int r = 0; r < THREAD_ROWS; ++r)
                for (int s = 0; s < THREAD_COLUMNS; ++s) sums[r][s] += left[r] * right[s];
        }
        __syncthreads();
    }
    // phase: write
    for (int r = 0; r < THREAD_ROWS; ++r)
        for (int s = 0; s < THREAD_COLUMNS; s += 4)
            finish_quad<ALIGNED>(c, blockIdx.y * ROWS + y + r, blockIdx.x * COLUMNS + x + s, m, n, sums[r] + s, alpha,
                                 beta);
}

// Idea: each global and shared load fetches four floats, for which A's tile is transposed on the way. Matrices whose
// rows are not whole quads are loaded one float at a time. Limit: quads of neighboring lanes are two quads apart and
// have bank conflicts; and in each step the whole block waits for its next tiles.
extern "C" __global__ void __launch_bounds__(THREADS)
    matmul_vectors(const float *a, const float *b, float *c, int m, int n, int k, float alpha, float beta) {
    __shared__ __align__(16) float a_tile[DEPTH][ROWS + PADDING];
    __shared__ __align__(16) float b_tile[DEPTH][COLUMNS];
    if (n % 4 == 0 && k % 4 == 0)
        multiply_vectors<true>(a_tile, b_tile, a, b, c, m, n, k, alpha, beta);
    else
        multiply_vectors<false>(a_tile, b_tile, a, b, c, m, n, k, alpha, beta);
}

// Start asynchronous copies of a step's tiles; `a` and `b` are this thread's first elements. Floats of A are copied one
// by one, as the tile is transposed. Elements outside, or beyond the `left` remaining ones of k, are zero.
__device__ void copy(float (*tiles)[PITCH], const float *a, const float *b, int m, int n, int k, int pitch, int left) {
    constexpr int A_STEP = (THREADS + DEPTH - 1) / DEPTH;
    constexpr int B_STEP = (THREADS * WIDTH + COLUMNS - 1) / COLUMNS;
    int i = threadIdx.x % DEPTH;
#pragma unroll
    for (int row = threadIdx.x / DEPTH, turn = 0; turn < ROWS / A_STEP; row += A_STEP, ++turn) {
        int zeros = blockIdx.y * ROWS + row < m && i < left ? 0 : 4;
        __pipeline_memcpy_async(&tiles[i][row], a + turn * A_STEP * k, 4, zeros);
    }
    int x = threadIdx.x * WIDTH % COLUMNS;
#pragma unroll
    for (int row = threadIdx.x * WIDTH / COLUMNS, turn = 0; turn < DEPTH / B_STEP; row += B_STEP, ++turn) {
        int zeros = blockIdx.x * COLUMNS + x < n && row < left ? 0 : 4 * WIDTH;
        __pipeline_memcpy_async(&tiles[row][ROWS + PADDING + x], b + turn * B_STEP * pitch, 4 * WIDTH, zeros);
    }
    __pipeline_commit();
}

#if SPLITS > 1
// Sum the partial results of a cluster's blocks, each block a share of the rows, and write the sums.
__device__ void finish_cluster(float (*parts)[COLUMNS + PADDING], float *c, int m, int n, float alpha, float beta) {
    constexpr int SHARE = ROWS / SPLITS;
    cooperative_groups::cluster_group cluster = cooperative_groups::this_cluster();
    cluster.sync();
    // phase: add up
    for (int i = threadIdx.x * 4; i < SHARE * COLUMNS; i += THREADS * 4) {
        int row = cluster.block_rank() * SHARE + i / COLUMNS;
        int column = i % COLUMNS;
        float found[SPLITS][4];
#pragma unroll
        for (int part = 0; part < SPLITS; ++part) take(found[part], cluster.map_shared_rank(&parts[row][column], part));
#pragma unroll
        for (int part = 1; part < SPLITS; ++part)
            for (int s = 0; s < 4; ++s) found[0][s] += found[part][s];
        finish_quad<WHOLE_QUADS>(c, blockIdx.y * ROWS + row, blockIdx.x * COLUMNS + column, m, n, found[0], alpha,
                                 beta);
    }
    // A block must not exit while others read its shared memory.
    cluster.sync();
}
#endif

// Load a thread's factors of one step from a column of A's tile and a row of B's tile.
__device__ void take_factors(float *of_a, float *of_b, const float *column, const float *row) {
#pragma unroll
    for (int r = 0; r < THREAD_ROWS; r += 4) take(of_a + r, column + r * WARP_LANES_DOWN);
#pragma unroll
    for (int s = 0; s < THREAD_COLUMNS; s += 4) take(of_b + s, row + s * WARP_LANES_ACROSS);
}

// Idea: asynchronous copies load the tiles of the next steps to shared memory during the products of one step, without
// registers; the next factors are loaded meanwhile; one barrier per step remains. A warp's lanes read neighboring quads
// (Kerr and others, CUTLASS: fast linear algebra in CUDA C++, 2017). If there are too few elements for all
// multiprocessors, the blocks of a cluster share the steps and sum in each other's shared memory; if that is still too
// little, k is divided into parts, each of which writes a separate matrix. A row of B has `pitch` floats. Limit: the
// peak rate of multiply-adds.
extern "C" __global__ void CLUSTER __launch_bounds__(THREADS, THREADS == 128 ? 3 : 1)
    matmul_peak(const float *a, const float *b, float *c, int m, int n, int k, int pitch, float alpha, float beta) {
    __shared__ __align__(16) float tiles[STAGES][DEPTH][PITCH];
    int lane = threadIdx.x % 32;
    int warp = threadIdx.x / 32;
    // Of neighboring lanes, two share rows and two share columns, so that a warp's quads of either tile need only one
    // or two wavefronts.
    int y = warp / WARPS_ACROSS * WARP_ROWS + (lane / 8 * 2 + lane % 2) * 4;
    int x = warp % WARPS_ACROSS * WARP_COLUMNS + lane / 2 % 4 * 4;

    // phase: copy the first tiles
    int shares = DEPTH * gridDim.z;
    int share = (k + shares - 1) / shares * DEPTH;
    int first = min(blockIdx.z * share, k);
    int left = min(share, k - first);
    c += (size_t)(blockIdx.z / SPLITS) * m * n;
    a += (blockIdx.y * ROWS + threadIdx.x / DEPTH) * k + first + threadIdx.x % DEPTH;
    b += (first + threadIdx.x * WIDTH / COLUMNS) * pitch + blockIdx.x * COLUMNS + threadIdx.x * WIDTH % COLUMNS;
#pragma unroll
    for (int stage = 0; stage < STAGES - 1; ++stage) {
        copy(tiles[stage], a, b, m, n, k, pitch, left - stage * DEPTH);
        a += DEPTH;
        b += DEPTH * pitch;
    }
    __pipeline_wait_prior(STAGES - 2);
    __syncthreads();

    float sums[THREAD_ROWS][THREAD_COLUMNS] = {};
    float of_a[2][THREAD_ROWS], of_b[2][THREAD_COLUMNS];
    take_factors(of_a[0], of_b[0], &tiles[0][0][y], &tiles[0][0][ROWS + PADDING + x]);
    int now = 0;
    int free = STAGES - 1;
    for (; left > 0; left -= DEPTH) {
        // phase: multiply, {left} of k left
        int next = now + 1 == STAGES ? 0 : now + 1;
#pragma unroll
        for (int i = 0; i < DEPTH; ++i) {
            if (i == DEPTH - 1) {
                __pipeline_wait_prior(STAGES - 2);
                __syncthreads();
            }
            const float *row = i == DEPTH - 1 ? tiles[next][0] : tiles[now][i + 1];
            take_factors(of_a[(i + 1) % 2], of_b[(i + 1) % 2], row + y, row + ROWS + PADDING + x);
            if (i == 0) {
                copy(tiles[free], a, b, m, n, k, pitch, left - (STAGES - 1) * DEPTH);
                a += DEPTH;
                b += DEPTH * pitch;
            }
            // Alternate directions, so that consecutive products share a factor: registers have two banks, and an
            // operand that was just read is reused by the next instruction.
#pragma unroll
            for (int s = 0; s < THREAD_COLUMNS; ++s) {
#pragma unroll
                for (int j = 0; j < THREAD_ROWS; ++j) {
                    int r = s % 2 == 0 ? j : THREAD_ROWS - 1 - j;
                    sums[r][s] += of_a[i % 2][r] * of_b[i % 2][s];
                }
            }
        }
        free = now;
        now = next;
    }
#if SPLITS > 1
    // phase: share the sums
    float (*parts)[COLUMNS + PADDING] = reinterpret_cast<float (*)[COLUMNS + PADDING]>(tiles);
    static_assert(ROWS * (COLUMNS + PADDING) <= STAGES * DEPTH * PITCH, "sums have their place where tiles were");
    __pipeline_wait_prior(0);
    __syncthreads();
#pragma unroll
    for (int r = 0; r < THREAD_ROWS; ++r) {
#pragma unroll
        for (int s = 0; s < THREAD_COLUMNS; s += 4) {
            float *place = &parts[y + r / 4 * 4 * WARP_LANES_DOWN + r % 4][x + s * WARP_LANES_ACROSS];
            *reinterpret_cast<float4 *>(place) =
                make_float4(sums[r][s], sums[r][s + 1], sums[r][s + 2], sums[r][s + 3]);
        }
    }
    finish_cluster(parts, c, m, n, alpha, beta);
#else
    // phase: write
#pragma unroll
    for (int r = 0; r < THREAD_ROWS; ++r) {
        int row = blockIdx.y * ROWS + y + r / 4 * 4 * WARP_LANES_DOWN + r % 4;
#pragma unroll
        for (int s = 0; s < THREAD_COLUMNS; s += 4)
            finish_quad<WHOLE_QUADS>(c, row, blockIdx.x * COLUMNS + x + s * WARP_LANES_ACROSS, m, n, sums[r] + s, alpha,
                                     beta);
    }
#endif
}

// Copy rows to a pitch of whole quads, padded with zeros: one quad per thread.
extern "C" __global__ void matmul_whole_quads(const float *matrix, float *whole, int rows, int columns, int quads) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= rows * quads) return;
    reinterpret_cast<float4 *>(whole)[i] = quad<false>(matrix, i / quads, i % quads * 4, rows, columns);
}

// Sum the parts of k, one element per thread.
extern "C" __global__ void matmul_add_parts(const float *sums, float *c, int elements, int parts, float alpha,
                                            float beta) {
    finish_parts(sums, c, elements, parts, alpha, beta);
}
