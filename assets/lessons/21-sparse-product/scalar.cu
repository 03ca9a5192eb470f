// CSR, one thread per row: entry k is in column columns[k]; row r begins at offsets[r].
__global__ void multiply(const int *offsets, const int *columns, const int *entries, const int *x, int *y, int n) {
    int row = blockIdx.x * 32 + threadIdx.x;
    if (row < n) {
        int sum = 0;
        // gap: add up the row's entries, each times the element of x at its column
        for (int k = offsets[row]; k < offsets[row + 1]; ++k) sum += entries[k] * x[columns[k]];
        // end
        y[row] = sum;
    }
}
