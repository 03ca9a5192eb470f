// Each thread writes and reads a word of shared memory; the stride between threads is in words.
__global__ void spread(const int *x, int *y, int stride, int n) {
    __shared__ int s[1024];
    int t = threadIdx.x;
    s[t * stride] = t < n ? x[t] : 0;
    __syncthreads();
    if (t < n) y[t] = s[t * stride] + 1;
}
