// Register tiling: a thread computes four elements of a column of C, and reuses each element of B.
__global__ void product(const float *A, const float *B, float *C, int m, int n, int k) {
    int column = blockIdx.x * 32 + threadIdx.x;
    int first = blockIdx.y * 4;
    if (column >= n) return;
    float sums[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    for (int i = 0; i < k; ++i) {
        float b = B[i * n + column];
        for (int r = 0; r < 4; ++r)
            if (first + r < m) sums[r] += A[(first + r) * k + i] * b;
    }
    for (int r = 0; r < 4; ++r)
        if (first + r < m) C[(first + r) * n + column] = sums[r];
}
