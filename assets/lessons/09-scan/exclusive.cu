// Exclusive scan: every element becomes the sum of the elements before it.
__global__ void scan(const int *x, int *y, int n) {
    __shared__ int s[64];
    int t = threadIdx.x;
    s[t] = t < n && t > 0 ? x[t - 1] : 0;
    __syncthreads();
    for (int stride = 1; stride < 64; stride *= 2) {
        int before = t >= stride ? s[t - stride] : 0;
        __syncthreads();
        s[t] += before;
        __syncthreads();
    }
    if (t < n) y[t] = s[t];
}
