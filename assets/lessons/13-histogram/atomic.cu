// An atomic operation reads, adds and writes without interruption.
__global__ void histogram(const int *x, int *bins, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    // gap: count element i in its bin
    if (i < n) atomicAdd(&bins[x[i]], 1);
    // end
}
