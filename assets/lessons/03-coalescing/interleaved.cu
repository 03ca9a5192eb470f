// Grid stride: neighboring threads read neighboring elements, so accesses are coalesced.
__global__ void total(const int *x, int *sum, int n) {
    int threads = gridDim.x * blockDim.x;
    int own = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += threads) own += x[i];
    atomicAdd(sum, own);
}
