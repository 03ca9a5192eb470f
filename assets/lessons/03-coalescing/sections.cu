// Each thread adds up a contiguous section: neighboring threads read elements one section apart.
__global__ void total(const int *x, int *sum, int n) {
    int threads = gridDim.x * blockDim.x;
    int each = (n + threads - 1) / threads;
    int first = (blockIdx.x * blockDim.x + threadIdx.x) * each;
    int own = 0;
    for (int i = first; i < first + each && i < n; ++i) own += x[i];
    atomicAdd(sum, own);
}
