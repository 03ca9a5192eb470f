// CSR, one warp per row: lanes read consecutive entries, and warp shuffles combine their sums.
__global__ void multiply(const int *offsets, const int *columns, const int *entries, const int *x, int *y, int n) {
    int row = (blockIdx.x * 64 + threadIdx.x) / 32;
    int lane = threadIdx.x % 32;
    int sum = 0;
    if (row < n)
        for (int k = offsets[row] + lane; k < offsets[row + 1]; k += 32) sum += entries[k] * x[columns[k]];
    for (int distance = 16; distance > 0; distance /= 2) sum += __shfl_down_sync(0xffffffffu, sum, distance);
    if (row < n && lane == 0) y[row] = sum;
}
