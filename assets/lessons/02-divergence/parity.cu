// Even elements are squared, odd ones grow by one. The lanes of a warp go both ways, one after the other.
__global__ void parity(const int *x, int *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        if (i % 2 == 0)
            y[i] = x[i] * x[i];
        else
            y[i] = x[i] + 1;
    }
}
