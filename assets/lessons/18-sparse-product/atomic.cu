// A thread an entry, which has its row and its column: coordinates.
__global__ void multiply(const int *rows, const int *columns, const int *entries, const int *x, int *y, int count) {
    int k = blockIdx.x * 64 + threadIdx.x;
    if (k < count) atomicAdd(&y[rows[k]], entries[k] * x[columns[k]]);
}
