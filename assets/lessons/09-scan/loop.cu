// Each thread leaves the loop when no element is a stride before its own.
__global__ void scan(const int *x, int *y, int n) {
    __shared__ int s[64];
    int t = threadIdx.x;
    s[t] = t < n ? x[t] : 0;
    for (int stride = 1; stride <= t; stride *= 2) {
        __syncthreads();
        int before = s[t - stride];
        __syncthreads();
        s[t] += before;
    }
    __syncthreads();
    if (t < n) y[t] = s[t];
}
