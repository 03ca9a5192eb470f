// Aggregation: a thread adds each run of equal values in its section with one atomic operation.
__global__ void histogram(const int *x, int *bins, int n) {
    int threads = gridDim.x * blockDim.x;
    int each = (n + threads - 1) / threads;
    int first = (blockIdx.x * blockDim.x + threadIdx.x) * each;
    int value = -1;
    int run = 0;
    for (int i = first; i < first + each && i < n; ++i) {
        if (x[i] == value) {
            ++run;
        } else {
            if (run > 0) atomicAdd(&bins[value], run);
            value = x[i];
            run = 1;
        }
    }
    if (run > 0) atomicAdd(&bins[value], run);
}
