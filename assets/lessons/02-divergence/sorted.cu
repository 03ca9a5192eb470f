// The same, but in all warps except one the lanes take the same branch: first threads for even elements, then odd ones.
__global__ void parity(const int *x, int *y, int n) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    int evens = (n + 1) / 2;
    int i = t < evens ? 2 * t : 2 * (t - evens) + 1;
    if (t < n) {
        if (t < evens)
            y[i] = x[i] * x[i];
        else
            y[i] = x[i] + 1;
    }
}
