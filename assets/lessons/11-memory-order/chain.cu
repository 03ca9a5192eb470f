// A scan of the blocks' sums in one launch: each part waits for the sum of all parts before it, and passes its own on.
__global__ void scan_sums(const int *x, int *next, int *sums, volatile int *flags, int n) {
    __shared__ int part;
    __shared__ int own;
    if (threadIdx.x == 0) {
        part = atomicAdd(next, 1);
        own = 0;
    }
    __syncthreads();
    int i = part * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(&own, x[i]);
    __syncthreads();
    if (threadIdx.x == 0) {
        // gap: wait for the part before; then sums[part] and flags[part]
        int before = 0;
        if (part > 0) {
            while (flags[part - 1] == 0) {
            }
            __threadfence();
            before = sums[part - 1];
        }
        sums[part] = before + own;
        __threadfence();
        flags[part] = 1;
        // end
    }
}
