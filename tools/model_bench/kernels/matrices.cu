// Kernels from tutorials and samples, none of them ours: matrices.
#define SIDE 32
#define ROWS 8

extern "C" __global__ void transpose_naive(const float *from, float *to, int width) {
    int x = blockIdx.x * SIDE + threadIdx.x, y = blockIdx.y * SIDE + threadIdx.y;
    for (int j = 0; j < SIDE; j += ROWS) to[x * width + y + j] = from[(y + j) * width + x];
}

extern "C" __global__ void transpose_tiled(const float *from, float *to, int width) {
    __shared__ float tile[SIDE][SIDE];
    int x = blockIdx.x * SIDE + threadIdx.x, y = blockIdx.y * SIDE + threadIdx.y;
    for (int j = 0; j < SIDE; j += ROWS) tile[threadIdx.y + j][threadIdx.x] = from[(y + j) * width + x];
    __syncthreads();
    x = blockIdx.y * SIDE + threadIdx.x;
    y = blockIdx.x * SIDE + threadIdx.y;
    for (int j = 0; j < SIDE; j += ROWS) to[(y + j) * width + x] = tile[threadIdx.x][threadIdx.y + j];
}

extern "C" __global__ void transpose_padded(const float *from, float *to, int width) {
    __shared__ float tile[SIDE][SIDE + 1];
    int x = blockIdx.x * SIDE + threadIdx.x, y = blockIdx.y * SIDE + threadIdx.y;
    for (int j = 0; j < SIDE; j += ROWS) tile[threadIdx.y + j][threadIdx.x] = from[(y + j) * width + x];
    __syncthreads();
    x = blockIdx.y * SIDE + threadIdx.x;
    y = blockIdx.x * SIDE + threadIdx.y;
    for (int j = 0; j < SIDE; j += ROWS) to[(y + j) * width + x] = tile[threadIdx.x][threadIdx.y + j];
}

#define TILE 16

extern "C" __global__ void multiply_tiled(const float *a, const float *b, float *c, int width) {
    __shared__ float as[TILE][TILE], bs[TILE][TILE];
    int row = blockIdx.y * TILE + threadIdx.y, column = blockIdx.x * TILE + threadIdx.x;
    float sum = 0;
    for (int m = 0; m < width / TILE; ++m) {
        as[threadIdx.y][threadIdx.x] = a[row * width + m * TILE + threadIdx.x];
        bs[threadIdx.y][threadIdx.x] = b[(m * TILE + threadIdx.y) * width + column];
        __syncthreads();
        for (int k = 0; k < TILE; ++k) sum += as[threadIdx.y][k] * bs[k][threadIdx.x];
        __syncthreads();
    }
    c[row * width + column] = sum;
}

extern "C" __global__ void times_vector_thread(const float *matrix, const float *vector, float *result, int rows,
                                               int columns) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float sum = 0;
    for (int column = 0; column < columns; ++column) sum += matrix[(size_t)row * columns + column] * vector[column];
    result[row] = sum;
}

extern "C" __global__ void times_vector_warp(const float *matrix, const float *vector, float *result, int rows,
                                             int columns) {
    int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (row >= rows) return;
    float sum = 0;
    for (int column = lane; column < columns; column += 32)
        sum += matrix[(size_t)row * columns + column] * vector[column];
    for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(0xffffffff, sum, offset);
    if (lane == 0) result[row] = sum;
}

extern "C" __global__ void layer_norm(const float *from, float *to, int columns) {
    __shared__ float sums[32], squares[32];
    const float *row = from + (size_t)blockIdx.x * columns;
    float sum = 0, square = 0;
    for (int i = threadIdx.x; i < columns; i += blockDim.x) {
        sum += row[i];
        square += row[i] * row[i];
    }
    for (int offset = 16; offset > 0; offset /= 2) {
        sum += __shfl_xor_sync(0xffffffff, sum, offset);
        square += __shfl_xor_sync(0xffffffff, square, offset);
    }
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (lane == 0) sums[warp] = sum, squares[warp] = square;
    __syncthreads();
    sum = square = 0;
    for (int w = 0; w < blockDim.x / 32; ++w) {
        sum += sums[w];
        square += squares[w];
    }
    float mean = sum / columns, scale = rsqrtf(square / columns - mean * mean + 1e-5f);
    for (int i = threadIdx.x; i < columns; i += blockDim.x)
        to[(size_t)blockIdx.x * columns + i] = (row[i] - mean) * scale;
}

// One round of Floyd and Warshall's shortest paths.
extern "C" __global__ void shortest_paths_round(int *distance, int n, int k) {
    int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= n || j >= n) return;
    int through = distance[i * n + k] + distance[k * n + j];
    if (through < distance[i * n + j]) distance[i * n + j] = through;
}
