// Neighbored pairs, in global memory: the partial sum of a block ends in its first element.
__global__ void sum(int *x, int *y, int n) {
    int t = threadIdx.x;
    int i = blockIdx.x * blockDim.x + t;
    for (int stride = 1; stride < blockDim.x; stride *= 2) {
        if (t % (2 * stride) == 0 && i + stride < n) x[i] += x[i + stride];
        __syncthreads();
    }
    if (t == 0 && i < n) y[blockIdx.x] = x[i];
}
