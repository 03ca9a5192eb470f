// Each thread counts a contiguous section of the letters.
__global__ void histogram(const int *x, int *bins, int n) {
    int threads = gridDim.x * blockDim.x;
    int section = (n + threads - 1) / threads;
    int first = (blockIdx.x * blockDim.x + threadIdx.x) * section;
    for (int i = first; i < min(first + section, n); ++i)
        if (x[i] < 26) atomicAdd(&bins[x[i] / 4], 1);
}
