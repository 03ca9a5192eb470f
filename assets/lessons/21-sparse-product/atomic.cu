// COO, one thread per entry: each entry is stored with its row and column.
__global__ void multiply(const int *rows, const int *columns, const int *entries, const int *x, int *y, int count) {
    int k = blockIdx.x * 64 + threadIdx.x;
    if (k < count) atomicAdd(&y[rows[k]], entries[k] * x[columns[k]]);
}
