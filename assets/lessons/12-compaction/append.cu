// Threads with odd numbers take positions from an atomic counter: packed, but in no fixed order.
__global__ void append(const int *x, int *y, int *count, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && x[i] % 2 != 0) y[atomicAdd(count, 1)] = x[i];
}
