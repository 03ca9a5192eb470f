// Each thread writes and reads a word of shared memory; apart is the stride between threads, in words.
__global__ void spread(const int *x, int *y, int apart, int n) {
    __shared__ int s[1024];
    int t = threadIdx.x;
    s[t * apart] = t < n ? x[t] : 0;
    __syncthreads();
    if (t < n) y[t] = s[t * apart] + 1;
}
