// Matrix product by tensor cores: sizes, alpha and beta as in matmul.cu. Tensor cores multiply TF32, with 11
// significant bits instead of 24, so each factor is split into three such parts, whose sum is exact, and six of
// their nine products are added; the three omitted products are below 2^-32 of the total. Requires Ampere or
// later.
//
// variant        idea                                              what still limits it
// matmul_tensor  a warp multiplies 16x16 tiles, in TF32 parts      six products instead of one, global memory waits

#include <mma.h>

#include "matmul_finish.cuh"

using namespace nvcuda;

// A block computes ROWS x COLUMNS elements, a warp 16 x 16 of them, in steps of DEPTH along k.
#ifndef ROWS
#define ROWS 64
#define COLUMNS 64
#define DEPTH 16
#endif

#define SIDE 16
#define STEP 8
#define THREADS (ROWS / SIDE * (COLUMNS / SIDE) * 32)

// Padding of rows, so that a tile's rows begin in different banks; rows keep the alignment that fragments require.
#define PADDING 4

typedef wmma::fragment<wmma::matrix_a, SIDE, SIDE, STEP, wmma::precision::tf32, wmma::row_major> LeftTile;
typedef wmma::fragment<wmma::matrix_b, SIDE, SIDE, STEP, wmma::precision::tf32, wmma::row_major> RightTile;
typedef wmma::fragment<wmma::accumulator, SIDE, SIDE, STEP, float> SumTile;

// Split a tile into parts of 11 bits each.
template <typename Tile>
__device__ void split(const Tile &whole, Tile &high, Tile &middle, Tile &low) {
    for (int i = 0; i < whole.num_elements; ++i) {
        high.x[i] = wmma::__float_to_tf32(whole.x[i]);
        float rest = whole.x[i] - high.x[i];
        middle.x[i] = wmma::__float_to_tf32(rest);
        low.x[i] = wmma::__float_to_tf32(rest - middle.x[i]);
    }
}

// Idea: the block loads tiles into shared memory as matmul_tiled does; a warp loads 16 x 8 and 8 x 16 elements into
// fragments, and tensor cores sum their products, the small ones first. They truncate sums, so each sum covers one step
// only, and float32 additions sum the steps. Limit: six products instead of one; and the block waits for global memory
// in each step.
extern "C" __global__ void __launch_bounds__(THREADS)
    matmul_tensor(const float *a, const float *b, float *c, int m, int n, int k, float alpha, float beta) {
    __shared__ __align__(32) float a_tile[ROWS][DEPTH + PADDING];
    __shared__ __align__(32) float b_tile[DEPTH][COLUMNS + PADDING];
    __shared__ __align__(32) float c_tile[ROWS][COLUMNS + PADDING];
    int warp = threadIdx.x / 32;
    int y = warp / (COLUMNS / SIDE) * SIDE;
    int x = warp % (COLUMNS / SIDE) * SIDE;
    SumTile sum;
    wmma::fill_fragment(sum, 0.0f);
    for (int first = 0; first < k; first += DEPTH) {
        // phase: load tiles at {first}
        for (int i = threadIdx.x; i < ROWS * DEPTH; i += THREADS) {
            int row = blockIdx.y * ROWS + i / DEPTH;
            int column = first + i % DEPTH;
            a_tile[i / DEPTH][i % DEPTH] = row < m && column < k ? a[row * k + column] : 0.0f;
        }
        for (int i = threadIdx.x; i < DEPTH * COLUMNS; i += THREADS) {
            int row = first + i / COLUMNS;
            int column = blockIdx.x * COLUMNS + i % COLUMNS;
            b_tile[i / COLUMNS][i % COLUMNS] = row < k && column < n ? b[row * n + column] : 0.0f;
        }
        __syncthreads();
        // phase: multiply tiles at {first}
        for (int i = 0; i < DEPTH; i += STEP) {
            LeftTile left, left_high, left_middle, left_low;
            RightTile right, right_high, right_middle, right_low;
            wmma::load_matrix_sync(left, &a_tile[y][i], DEPTH + PADDING);
            wmma::load_matrix_sync(right, &b_tile[i][x], COLUMNS + PADDING);
            split(left, left_high, left_middle, left_low);
            split(right, right_high, right_middle, right_low);
            SumTile step;
            wmma::fill_fragment(step, 0.0f);
            wmma::mma_sync(step, left_low, right_high, step);
            wmma::mma_sync(step, left_middle, right_middle, step);
            wmma::mma_sync(step, left_high, right_low, step);
            wmma::mma_sync(step, left_middle, right_high, step);
            wmma::mma_sync(step, left_high, right_middle, step);
            wmma::mma_sync(step, left_high, right_high, step);
            for (int e = 0; e < step.num_elements; ++e) sum.x[e] += step.x[e];
        }
        __syncthreads();
    }
    // phase: write
    wmma::store_matrix_sync(&c_tile[y][x], sum, COLUMNS + PADDING, wmma::mem_row_major);
    __syncthreads();
    for (int i = threadIdx.x; i < ROWS * COLUMNS; i += THREADS) {
        int row = blockIdx.y * ROWS + i / COLUMNS;
        int column = blockIdx.x * COLUMNS + i % COLUMNS;
        if (row < m && column < n) finish(c, row * n + column, c_tile[i / COLUMNS][i % COLUMNS], alpha, beta);
    }
}
