// Threads without an element return before the shuffle.
__global__ void shift(const int *x, int *y, int n) {
    int i = blockIdx.x * 32 + threadIdx.x;
    if (i >= n) return;
    y[i] = __shfl_down_sync(0xffffffffu, x[i], 1);
}
