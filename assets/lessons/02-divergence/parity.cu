// Even elements are squared, odd ones incremented. A warp with both executes both branches.
__global__ void parity(const int *x, int *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        if (i % 2 == 0)
            y[i] = x[i] * x[i];
        else
            y[i] = x[i] + 1;
    }
}
