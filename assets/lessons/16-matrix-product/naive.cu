// One thread per element of C: a row of A times a column of B.
__global__ void product(const float *A, const float *B, float *C, int m, int n, int k) {
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= m || column >= n) return;
    float sum = 0.0f;
    // gap: add up the products of row `row` of A, which has k elements, and column `column` of B
    for (int i = 0; i < k; ++i) sum += A[row * k + i] * B[i * n + column];
    // end
    C[row * n + column] = sum;
}
