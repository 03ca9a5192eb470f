// Transposition: the rows of a matrix become the columns of another, out[c][r] = in[r][c]; float32, rows one after the
// other, any number of rows and columns. Nothing is computed. Least traffic: 8 bytes an element, read once and written
// once; a copy has the same, so a copy is the bound.
//
// rung                 idea                                         what still limits it
// transpose_scatter    read along rows, write down columns          each lane's write is a sector of its own
// transpose_gather     read down columns, write along rows          each lane's read is a sector of its own
// transpose_tiled      rows in and rows out, turned in shared       32 lanes read one bank
// transpose_padded     rows of the tile one word longer             a barrier for each element of a thread
// transpose_coarse     several elements a thread, fewer threads     the padding: shared memory that nobody uses
// transpose_swizzled   columns of the tile exchanged by row         loads and stores of one float
// transpose_vectors    16-byte loads and stores, quads swizzled     all of it goes through shared memory
// transpose_copy       nothing is turned: whoever reads goes down   the memory's bandwidth

// A block turns TILE x TILE elements; a power of two, 4 to 32.
#ifndef TILE
#define TILE 32
#endif

// Rows of the threads of a block where each has several elements, and of those where each has several quads.
#define THREAD_ROWS (TILE / 4)
#define QUAD_ROWS (TILE / 2)

// A warp has 32 / TILE columns of a tile: with rows so many words longer, no two lanes that read them meet in a bank.
#define PADDING (32 / TILE)

// Idea: one thread an element, lanes along a row: they read neighbors, and write them down a column. Limit: the writes
// of a warp are a row of the result apart from each other: 32 sectors are touched for 32 elements.
extern "C" __global__ void transpose_scatter(const float *in, float *out, int rows, int columns) {
    int row = blockIdx.y * TILE + threadIdx.y;
    int column = blockIdx.x * TILE + threadIdx.x;
    if (row >= rows || column >= columns) return;
    // phase: move
    out[column * rows + row] = in[row * columns + column];
}

// Idea: the other way round, lanes along a row of the result: they write neighbors, and read them down a column. What a
// read has brought in vain is in the cache when the next warp wants it; a write has no such luck. Limit: the reads of a
// warp are a row apart, 32 sectors for 32 elements, and wait for each other in the cache.
extern "C" __global__ void transpose_gather(const float *in, float *out, int rows, int columns) {
    int row = blockIdx.x * TILE + threadIdx.x;
    int column = blockIdx.y * TILE + threadIdx.y;
    if (row >= rows || column >= columns) return;
    // phase: move
    out[column * rows + row] = in[row * columns + column];
}

// Idea: a block brings a tile into shared memory along rows, and takes it out along columns, which are rows of the
// result: both sides of global memory are coalesced (Ruetsch and Micikevicius, Optimizing matrix transpose in CUDA,
// 2009). Limit: words below each other lie in the same bank, so that the lanes that read a column wait for each other.
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

// Idea: rows of the tile are longer than they have to be, so that words below each other lie in different banks. Limit:
// each thread fetches one element and then waits for the slowest of its block.
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

// Idea: a thread has four elements of the tile, a quarter of it apart: four reads are under way at once, and indices
// and the barrier are for all four. Limit: the words that make rows longer hold nothing.
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

// Idea: no padding. In row y of the tile, the element of column x stands at x ^ y: a row has the same words in another
// order, and those of a column lie in different banks. Limit: each load and each store moves one float.
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

// Four neighbors of a row. ALIGNED: rows are whole quads long, so that one load of 16 bytes brings them.
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

// Idea: four floats with each load and each store of global memory. The tile is turned on its way into shared memory:
// the four floats of a quad go below each other, and quads of a row are exchanged so that neither they nor the quads
// that are read meet in banks. Matrices whose rows or columns are not whole quads long are moved one float at a time.
// Limit: every element goes through shared memory, and waits there for a barrier.
extern "C" __global__ void transpose_vectors(const float *in, float *out, int rows, int columns) {
    __shared__ __align__(16) float tile[TILE][TILE];
    if (rows % 4 == 0 && columns % 4 == 0)
        transpose_quads<true>(tile, in, out, rows, columns);
    else
        transpose_quads<false>(tile, in, out, rows, columns);
}

// Idea: nothing is turned. What lies in memory by rows is the transposed matrix by columns: a copy, and a program that
// is told to read the copy so, as BLAS can be. Limit: the memory's bandwidth, and so it is what the others are measured
// by.
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
