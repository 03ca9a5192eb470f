// Matrix product by tensor cores with float16 factors, as accurate as float32: sizes, alpha and beta as in matmul.cu.
// A float is nearly the sum of two float16: these have 22 bits, and the sign of the second adds one more. Three
// float16 products replace one of float32; the fourth would contribute less than a float's last bit (Ootomo and
// Yokota, Recovering single precision accuracy from Tensor Cores while surpassing the FP32 theoretical peak
// performance, 2022).
//
// variant                     idea                                               what still limits it
// matmul_largest_of_rows and
// matmul_largest_of_columns   the largest magnitudes, for scaling                A and B are read once more
// matmul_split                each factor becomes two float16, once              as many bytes written as read
// matmul_halves               three float16 products, asynchronous copies        three products, float16 read twice

#include <cuda_fp16.h>
#include <cuda_pipeline_primitives.h>

#include "matmul_finish.cuh"
#include "matmul_scale.cuh"

// A block computes ROWS x COLUMNS elements, a warp WARP_ROWS x WARP_COLUMNS of them. A step along k is the depth of a
// tensor core instruction; the block has STAGES pipeline stages of tiles in shared memory.
#ifndef ROWS
#define ROWS 64
#define COLUMNS 64
#define WARP_ROWS 32
#define WARP_COLUMNS 32
#define STAGES 4
#endif

#define DEPTH 16
#define THREADS (ROWS / WARP_ROWS * (COLUMNS / WARP_COLUMNS) * 32)
#define TILES_DOWN (WARP_ROWS / 16)
#define TILES_ACROSS (WARP_COLUMNS / 8)

// A step's tiles of A and B; there are two of each, for the first and second parts of the factors.
#define A_TILE (ROWS * DEPTH)
#define B_TILE (DEPTH * COLUMNS)

// The bits of a magnitude, whose integer order is the order of magnitudes.
__device__ unsigned int magnitude(float value) { return __float_as_uint(value) & 0x7fffffff; }

// Idea: one warp per row, whose lanes read neighbors and combine their largest values.
extern "C" __global__ void matmul_largest_of_rows(const float *matrix, unsigned int *largest, int rows, int columns) {
    int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    if (row >= rows) return;
    // phase: find the largest
    unsigned int found = 0;
#pragma unroll 8
    for (int i = threadIdx.x % 32; i < columns; i += 32) found = max(found, magnitude(matrix[row * columns + i]));
    found = __reduce_max_sync(0xffffffff, found);
    if (threadIdx.x % 32 == 0) largest[row] = found;
}

// Idea: one thread per column, so that lanes read neighbors; the grid divides its rows.
extern "C" __global__ void matmul_largest_of_columns(const float *matrix, unsigned int *largest, int rows,
                                                     int columns) {
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    if (column >= columns) return;
    // phase: find the largest
    unsigned int found = 0;
#pragma unroll 8
    for (int row = blockIdx.y; row < rows; row += gridDim.y)
        found = max(found, magnitude(matrix[row * columns + column]));
    atomicMax(&largest[column], found);
}

// Idea: a value's first part is the value rounded to float16, the second part the remainder; all first parts are stored
// before all second parts. Rows and columns are padded to whole tiles with zeros, so that the product kernel needs no
// bounds checks.
extern "C" __global__ void matmul_split(const float *matrix, const unsigned int *largest, __half *halves, int rows,
                                        int columns, int all_columns, int by_rows) {
    int column = (blockIdx.x * blockDim.x + threadIdx.x) * 2;
    int row = blockIdx.y;
    if (column >= all_columns) return;
    // phase: split
    __half first[2], second[2];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
        float value = 0.0f;
        if (row < rows && column + i < columns) {
            int scale = scale_of(largest[by_rows ? row : column + i]);
            value = scaled(matrix[row * columns + column + i], scale);
        }
        first[i] = __float2half_rn(value);
        second[i] = __float2half_rn(value - __half2float(first[i]));
    }
    __half2 *place = reinterpret_cast<__half2 *>(halves + row * all_columns + column);
    place[0] = __halves2half2(first[0], first[1]);
    place[gridDim.y * all_columns / 2] = __halves2half2(second[0], second[1]);
}

// Positions of elements in the tiles of A and B. Groups of eight elements, 16 bytes, are swizzled, so that the groups
// of eight consecutive rows, which ldmatrix reads at once, are in different banks.
__device__ int in_a(int row, int column) { return row * DEPTH + (column / 8 ^ row / 4 % 2) * 8; }

__device__ int in_b(int row, int column) {
    constexpr int PLACES = COLUMNS / 8 < 8 ? COLUMNS / 8 : 8;
    return row * COLUMNS + (column / 8 ^ row % PLACES) * 8;
}

// Start asynchronous copies of a step's tiles; `a` and `b` are this thread's first elements. Second parts follow first
// parts at the given distances.
__device__ void copy(__half *tiles, const __half *a, const __half *b, int a_pitch, int b_pitch, int a_behind,
                     int b_behind) {
    constexpr int A_STEP = (THREADS * 8 + DEPTH - 1) / DEPTH;
    constexpr int B_STEP = (THREADS * 8 + COLUMNS - 1) / COLUMNS;
    int column = threadIdx.x * 8 % DEPTH;
#pragma unroll
    for (int row = threadIdx.x * 8 / DEPTH, turn = 0; turn < (ROWS + A_STEP - 1) / A_STEP; row += A_STEP, ++turn) {
        if (ROWS % A_STEP != 0 && row >= ROWS) break;
        const __half *from = a + turn * A_STEP * a_pitch;
        __pipeline_memcpy_async(tiles + in_a(row, column), from, 16);
        __pipeline_memcpy_async(tiles + A_TILE + in_a(row, column), from + a_behind, 16);
    }
    tiles += 2 * A_TILE;
    column = threadIdx.x * 8 % COLUMNS;
#pragma unroll
    for (int row = threadIdx.x * 8 / COLUMNS, turn = 0; turn < (DEPTH + B_STEP - 1) / B_STEP; row += B_STEP, ++turn) {
        if (DEPTH % B_STEP != 0 && row >= DEPTH) break;
        const __half *from = b + turn * B_STEP * b_pitch;
        __pipeline_memcpy_async(tiles + in_b(row, column), from, 16);
        __pipeline_memcpy_async(tiles + B_TILE + in_b(row, column), from + b_behind, 16);
    }
}

// Load four 8 x 8 matrices into a register each; every lane passes the address of a row. The transposed variant
// exchanges rows and columns.
__device__ void load(unsigned int *matrices, const __half *row) {
    unsigned int place = static_cast<unsigned int>(__cvta_generic_to_shared(row));
    asm("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
        : "=r"(matrices[0]), "=r"(matrices[1]), "=r"(matrices[2]), "=r"(matrices[3])
        : "r"(place)
        : "memory");
}

__device__ void load_turned(unsigned int *matrices, const __half *row) {
    unsigned int place = static_cast<unsigned int>(__cvta_generic_to_shared(row));
    asm("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
        : "=r"(matrices[0]), "=r"(matrices[1]), "=r"(matrices[2]), "=r"(matrices[3])
        : "r"(place)
        : "memory");
}

// Add the product of 16 x 16 and 16 x 8 float16 elements.
__device__ void multiply_add(float *sums, const unsigned int *a, const unsigned int *b) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// Idea: the block copies the tiles of the next steps while its warps multiply those of this one. Tensor cores
// truncate sums where float32 arithmetic rounds; so they sum only one step, its small products first, and float32
// additions sum the steps. Limit: three products instead of one, and as many float16 bytes as float32 bytes,
// twice.
extern "C" __global__ void __launch_bounds__(THREADS, THREADS > 128 ? 1 : 2)
    matmul_halves(const __half *a, const __half *b, const unsigned int *a_largest, const unsigned int *b_largest,
                  float *c, int m, int n, int all_k, float alpha, float beta) {
    __shared__ __align__(128) __half stages[STAGES][2 * (A_TILE + B_TILE)];
    int all_n = gridDim.x * COLUMNS;
    int a_behind = gridDim.y * ROWS * all_k;
    int b_behind = all_k * all_n;
    int lane = threadIdx.x % 32;
    int warp = threadIdx.x / 32;
    int y = warp / (COLUMNS / WARP_COLUMNS) * WARP_ROWS;
    int x = warp % (COLUMNS / WARP_COLUMNS) * WARP_COLUMNS;
    a += (blockIdx.y * ROWS + threadIdx.x * 8 / DEPTH) * all_k + threadIdx.x * 8 % DEPTH;
    b += threadIdx.x * 8 / COLUMNS * all_n + blockIdx.x * COLUMNS + threadIdx.x * 8 % COLUMNS;

    // phase: copy the first tiles
    int copied = 0;
    for (; copied < (STAGES - 1) * DEPTH; copied += DEPTH) {
        if (copied < all_k)
            copy(stages[copied / DEPTH], a + copied, b + copied * all_n, all_k, all_n, a_behind, b_behind);
        __pipeline_commit();
    }
    float sums[TILES_DOWN][TILES_ACROSS][4] = {};
    int now = 0;
    int free = STAGES - 1;
    for (int first = 0; first < all_k; first += DEPTH) {
        // phase: multiply tiles at {first}
        __pipeline_wait_prior(STAGES - 2);
        __syncthreads();
        if (copied < all_k) copy(stages[free], a + copied, b + copied * all_n, all_k, all_n, a_behind, b_behind);
        copied += DEPTH;
        __pipeline_commit();
        const __half *a_tiles = stages[now];
        const __half *b_tiles = a_tiles + 2 * A_TILE;
        unsigned int of_b[2][TILES_ACROSS][2];
#pragma unroll
        for (int s = 0; s < TILES_ACROSS; s += 2) {
            int place = in_b(lane % 16, x + s * 8 + lane / 16 * 8);
            load_turned(of_b[0][s], b_tiles + place);
            load_turned(of_b[1][s], b_tiles + B_TILE + place);
        }
#pragma unroll
        for (int r = 0; r < TILES_DOWN; ++r) {
            int place = in_a(y + r * 16 + lane % 16, lane / 16 * 8);
            unsigned int of_a[2][4];
            load(of_a[0], a_tiles + place);
            load(of_a[1], a_tiles + A_TILE + place);
            float step[TILES_ACROSS][4] = {};
#pragma unroll
            for (int s = 0; s < TILES_ACROSS; ++s) multiply_add(step[s], of_a[1], of_b[0][s]);
#pragma unroll
            for (int s = 0; s < TILES_ACROSS; ++s) multiply_add(step[s], of_a[0], of_b[1][s]);
#pragma unroll
            for (int s = 0; s < TILES_ACROSS; ++s) multiply_add(step[s], of_a[0], of_b[0][s]);
#pragma unroll
            for (int s = 0; s < TILES_ACROSS; ++s)
                for (int i = 0; i < 4; ++i) sums[r][s][i] += step[s][i];
        }
        free = now;
        now = now + 1 == STAGES ? 0 : now + 1;
    }
    // phase: write
#pragma unroll
    for (int r = 0; r < TILES_DOWN; ++r) {
#pragma unroll
        for (int s = 0; s < TILES_ACROSS; ++s) {
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                int row = blockIdx.y * ROWS + y + r * 16 + i / 2 * 8 + lane / 4;
                int column = blockIdx.x * COLUMNS + x + s * 8 + lane % 4 * 2 + i % 2;
                if (row >= m || column >= n) continue;
                int scale = scale_of(a_largest[row]) + scale_of(b_largest[column]);
                finish(c, row * n + column, scaled(sums[r][s][i], -scale), alpha, beta);
            }
        }
    }
}
