// A tile without padding: reading a column has bank conflicts.
__global__ void transpose(const float *a, float *b, int rows, int columns) {
    __shared__ float tile[32][32];
    int x = threadIdx.x;
    for (int y = threadIdx.y; y < 32; y += 8) {
        int row = blockIdx.y * 32 + y;
        int column = blockIdx.x * 32 + x;
        if (row < rows && column < columns) tile[y][x] = a[row * columns + column];
    }
    __syncthreads();
    for (int y = threadIdx.y; y < 32; y += 8) {
        int row = blockIdx.y * 32 + x;
        int column = blockIdx.x * 32 + y;
        if (row < rows && column < columns) b[column * rows + row] = tile[x][y];
    }
}
