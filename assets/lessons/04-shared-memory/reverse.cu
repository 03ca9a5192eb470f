// Each block turns its own 64 elements around: they meet in shared memory.
__global__ void reverse(const int *x, int *y, int n) {
    __shared__ int s[64];
    int t = threadIdx.x;
    int i = blockIdx.x * 64 + t;
    // lines: the block's elements go into shared memory and come out the other way round
    s[t] = i < n ? x[i] : 0;
    __syncthreads();
    if (i < n) y[i] = s[63 - t];
    // end
}
