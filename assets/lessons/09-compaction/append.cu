// Whoever has an odd number takes the next place: packed, but in whatever order the threads come.
__global__ void append(const int *x, int *y, int *count, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && x[i] % 2 != 0) y[atomicAdd(count, 1)] = x[i];
}
