// A scan of any length in three launches: within blocks of 64, of the blocks' sums, and the addition of these.
__global__ void scan_blocks(const int *x, int *y, int *sums, int n) {
    __shared__ int s[64];
    int t = threadIdx.x;
    int i = blockIdx.x * 64 + t;
    s[t] = i < n ? x[i] : 0;
    __syncthreads();
    for (int stride = 1; stride < 64; stride *= 2) {
        int before = t >= stride ? s[t - stride] : 0;
        __syncthreads();
        s[t] += before;
        __syncthreads();
    }
    if (i < n) y[i] = s[t];
    if (t == 63) sums[blockIdx.x] = s[t];
}

__global__ void scan_sums(int *sums, int blocks) {
    for (int b = 1; b < blocks; ++b) sums[b] += sums[b - 1];
}

__global__ void add_back(int *y, const int *sums, int n) {
    int i = blockIdx.x * 64 + threadIdx.x;
    // gap: add to this element the sum of all blocks before its own
    if (i < n && blockIdx.x > 0) y[i] += sums[blockIdx.x - 1];
    // end
}
