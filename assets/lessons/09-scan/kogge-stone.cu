// Kogge-Stone: every element adds the one a stride before it; the stride doubles. One block, up to 64 elements.
__global__ void scan(const int *x, int *y, int n) {
    __shared__ int s[64];
    int t = threadIdx.x;
    s[t] = t < n ? x[t] : 0;
    __syncthreads();
    for (int stride = 1; stride < 64; stride *= 2) {
        // lines: read, wait, write, wait
        int before = t >= stride ? s[t - stride] : 0;
        __syncthreads();
        s[t] += before;
        __syncthreads();
        // end
    }
    if (t < n) y[t] = s[t];
}
