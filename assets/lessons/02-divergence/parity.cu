// Even elements are squared, odd ones incremented. A warp executes both branches, one after the other.
__global__ void parity(const int *x, int *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        if (i % 2 == 0)
            y[i] = x[i] * x[i];
        else
            y[i] = x[i] + 1;
    }
}
