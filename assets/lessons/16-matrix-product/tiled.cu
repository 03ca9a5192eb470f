// Shared-memory tiling: a block loads each element of A and B once, not once per thread.
__global__ void product(const float *A, const float *B, float *C, int m, int n, int k) {
    __shared__ float a[8][8];
    __shared__ float b[8][8];
    int x = threadIdx.x;
    int y = threadIdx.y;
    int column = blockIdx.x * 8 + x;
    int row = blockIdx.y * 8 + y;
    float sum = 0.0f;
    for (int first = 0; first < k; first += 8) {
        // lines: load both tiles, wait, multiply, wait
        a[y][x] = row < m && first + x < k ? A[row * k + first + x] : 0.0f;
        b[y][x] = column < n && first + y < k ? B[(first + y) * n + column] : 0.0f;
        __syncthreads();
        for (int i = 0; i < 8; ++i) sum += a[y][i] * b[i][x];
        __syncthreads();
        // end
    }
    if (row < m && column < n) C[row * n + column] = sum;
}
