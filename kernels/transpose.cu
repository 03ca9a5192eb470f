// Transposition: the rows of a matrix become the columns of another, out[c][r] = in[r][c]; float32, row-major, any
// number of rows and columns. No arithmetic. Minimum traffic: 8 bytes per element, read once and written once, the same
// as a copy, so a copy is the bound.
//
// variant              idea                                         what still limits it
// transpose_scatter    read along rows, write along columns         uncoalesced writes, a sector per lane
// transpose_gather     read along columns, write along rows         uncoalesced reads, a sector per lane
// transpose_tiled      rows in and rows out, by shared memory       32-way bank conflicts
// transpose_padded     padding: tile rows one word longer           a barrier for each element per thread
// transpose_coarse     several elements per thread                  padding wastes shared memory
// transpose_swizzled   the tile's columns permuted by row           loads and stores of one float
// transpose_vectors    16-byte loads and stores, swizzled quads     all data passes shared memory
// transpose_copy       a copy, to be read in column-major order     memory bandwidth

// A block transposes TILE x TILE elements; a power of two, 4 to 32.
#ifndef TILE
#define TILE 32
#endif

// Rows of threads per block for several elements per thread, and for several quads per thread.
#define THREAD_ROWS (TILE / 4)
#define QUAD_ROWS (TILE / 2)

// A warp reads 32 / TILE columns of a tile: with this padding per row, its lanes have no bank conflicts.
#define PADDING (32 / TILE)

// Idea: one thread per element, lanes along a row: they read neighbors, and write along a column. Limit: uncoalesced
// writes: a warp's writes are one row of the result apart, 32 sectors for 32 elements.
extern "C" __global__ void transpose_scatter(const float *in, float *out, int rows, int columns) {
    int row = blockIdx.y * TILE + threadIdx.y;
    int column = blockIdx.x * TILE + threadIdx.x;
    if (row >= rows || column >= columns) return;
    // phase: move
    out[column * rows + row] = in[row * columns + column];
}

// Idea: the other way round, lanes along a row of the result: they write neighbors, and read along a column. The unused
// part of each read sector is still in the cache when the next warp needs it, unlike for writes. Limit: uncoalesced
// reads: a warp's reads are one row apart, 32 sectors for 32 elements, which the cache serves one after the other.
extern "C" __global__ void transpose_gather(const float *in, float *out, int rows, int columns) {
    int row = blockIdx.x * TILE + threadIdx.x;
    int column = blockIdx.y * TILE + threadIdx.y;
    if (row >= rows || column >= columns) return;
    // phase: move
    out[column * rows + row] = in[row * columns + column];
}

// Idea: a block loads a tile into shared memory along rows, and reads it along columns, which are rows of the result:
// all global accesses are coalesced (Ruetsch and Micikevicius, Optimizing matrix transpose in CUDA, 2009). Limit: words
// of a column are in the same bank, so that reading a column has 32-way bank conflicts.
extern "C" __global__ void transpose_tiled(const float *in, float *out, int rows, int columns) {
    __shared__ float tile[TILE][TILE];
    int x = threadIdx.x;
    int y = threadIdx.y;
    int row = blockIdx.y * TILE + y;
    int column = blockIdx.x * TILE + x;
    // phase: load the tile
    if (row < rows && column < columns) tile[y][x] = in[row * columns + column];
    __syncthreads();
    // phase: write the tile's columns
    row = blockIdx.y * TILE + x;
    column = blockIdx.x * TILE + y;
    if (row < rows && column < columns) out[column * rows + row] = tile[x][y];
}

// Idea: padding of the tile's rows puts the words of a column into different banks. Limit: each thread loads one
// element and then waits for the slowest thread of its block.
extern "C" __global__ void transpose_padded(const float *in, float *out, int rows, int columns) {
    __shared__ float tile[TILE][TILE + PADDING];
    int x = threadIdx.x;
    int y = threadIdx.y;
    int row = blockIdx.y * TILE + y;
    int column = blockIdx.x * TILE + x;
    // phase: load the tile
    if (row < rows && column < columns) tile[y][x] = in[row * columns + column];
    __syncthreads();
    // phase: write the tile's columns
    row = blockIdx.y * TILE + x;
    column = blockIdx.x * TILE + y;
    if (row < rows && column < columns) out[column * rows + row] = tile[x][y];
}

// Idea: thread coarsening. A thread has four elements of the tile, a quarter of it apart: four loads are in flight, and
// share indices and the barrier. Limit: padding wastes shared memory.
extern "C" __global__ void transpose_coarse(const float *in, float *out, int rows, int columns) {
    __shared__ float tile[TILE][TILE + PADDING];
    int x = threadIdx.x;
    // phase: load the tile
    int column = blockIdx.x * TILE + x;
#pragma unroll
    for (int y = threadIdx.y; y < TILE; y += THREAD_ROWS) {
        int row = blockIdx.y * TILE + y;
        if (row < rows && column < columns) tile[y][x] = in[row * columns + column];
    }
    __syncthreads();
    // phase: write the tile's columns
    int row = blockIdx.y * TILE + x;
#pragma unroll
    for (int y = threadIdx.y; y < TILE; y += THREAD_ROWS) {
        int column = blockIdx.x * TILE + y;
        if (row < rows && column < columns) out[column * rows + row] = tile[x][y];
    }
}

// Idea: swizzling instead of padding. In row y of the tile, the element of column x is stored at x ^ y: a permutation
// of the row, with the words of a column in different banks. Limit: each load and each store moves one float.
extern "C" __global__ void transpose_swizzled(const float *in, float *out, int rows, int columns) {
    __shared__ float tile[TILE][TILE];
    int x = threadIdx.x;
    // phase: load the tile
    int column = blockIdx.x * TILE + x;
#pragma unroll
    for (int y = threadIdx.y; y < TILE; y += THREAD_ROWS) {
        int row = blockIdx.y * TILE + y;
        if (row < rows && column < columns) tile[y][x ^ y] = in[row * columns + column];
    }
    __syncthreads();
    // phase: write the tile's columns
    int row = blockIdx.y * TILE + x;
#pragma unroll
    for (int y = threadIdx.y; y < TILE; y += THREAD_ROWS) {
        int column = blockIdx.x * TILE + y;
        if (row < rows && column < columns) out[column * rows + row] = tile[x][y ^ x];
    }
}

// Four neighbors of a row. ALIGNED: rows are whole quads, so that one 16-byte load fetches them.
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

// Write four neighbors of a row, likewise.
template <bool ALIGNED>
__device__ void write_quad(float *matrix, float4 quad, int row, int column, int rows, int columns) {
    float *place = matrix + row * columns + column;
    if constexpr (ALIGNED) {
        if (row < rows && column < columns) *reinterpret_cast<float4 *>(place) = quad;
    } else {
        if (row < rows && column < columns) place[0] = quad.x;
        if (row < rows && column + 1 < columns) place[1] = quad.y;
        if (row < rows && column + 2 < columns) place[2] = quad.z;
        if (row < rows && column + 3 < columns) place[3] = quad.w;
    }
}

template <bool ALIGNED>
__device__ void transpose_quads(float (*tile)[TILE], const float *in, float *out, int rows, int columns) {
    int x = threadIdx.x;
    // phase: load the tile
    int column = blockIdx.x * TILE + 4 * x;
    float4 found[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
        found[i] = quad<ALIGNED>(in, blockIdx.y * TILE + threadIdx.y + i * QUAD_ROWS, column, rows, columns);
    // phase: turn the quads
#pragma unroll
    for (int i = 0; i < 2; ++i) {
        int y = threadIdx.y + i * QUAD_ROWS;
        int to = 4 * (y / 4 ^ x) + y % 4;
        tile[4 * x][to] = found[i].x;
        tile[4 * x + 1][to] = found[i].y;
        tile[4 * x + 2][to] = found[i].z;
        tile[4 * x + 3][to] = found[i].w;
    }
    __syncthreads();
    // phase: write the tile's columns
    int row = blockIdx.y * TILE + 4 * x;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
        int y = threadIdx.y + i * QUAD_ROWS;
        float4 turned = *reinterpret_cast<const float4 *>(&tile[y][4 * (x ^ y / 4)]);
        write_quad<ALIGNED>(out, turned, blockIdx.x * TILE + y, row, columns, rows);
    }
}

// Idea: each global load and store moves four floats. The tile is transposed on the way into shared memory: the four
// floats of a quad are stored in a column, and quads of a row are swizzled so that neither writes nor reads of quads
// have bank conflicts. Matrices whose rows or columns are not whole quads are moved one float at a time. Limit: every
// element passes through shared memory and waits for a barrier.
extern "C" __global__ void transpose_vectors(const float *in, float *out, int rows, int columns) {
    __shared__ __align__(16) float tile[TILE][TILE];
    if (rows % 4 == 0 && columns % 4 == 0)
        transpose_quads<true>(tile, in, out, rows, columns);
    else
        transpose_quads<false>(tile, in, out, rows, columns);
}

// Idea: no transposition. A row-major matrix is its transpose in column-major order: a copy, and a program that
// reads the copy in that order, as BLAS can. Limit: memory bandwidth, so this is the bound for all other
// variants.
extern "C" __global__ void transpose_copy(const float *in, float *out, int rows, int columns) {
    int x = threadIdx.x;
    // phase: copy
    int column = blockIdx.x * TILE + 4 * x;
    bool aligned = columns % 4 == 0;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
        int row = blockIdx.y * TILE + threadIdx.y + i * QUAD_ROWS;
        if (aligned)
            write_quad<true>(out, quad<true>(in, row, column, rows, columns), row, column, rows, columns);
        else
            write_quad<false>(out, quad<false>(in, row, column, rows, columns), row, column, rows, columns);
    }
}
