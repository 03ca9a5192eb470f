// Brent-Kung: up-sweep and down-sweep; fewer additions, more steps. 32 threads, up to 64 elements.
__global__ void scan(const int *x, int *y, int n) {
    __shared__ int s[64];
    int t = threadIdx.x;
    for (int i = t; i < 64; i += 32) s[i] = i < n ? x[i] : 0;
    __syncthreads();
    // phase: up-sweep
    for (int stride = 1; stride < 64; stride *= 2) {
        int i = 2 * stride * (t + 1) - 1;
        if (i < 64) s[i] += s[i - stride];
        __syncthreads();
    }
    // phase: down-sweep
    // gap: with strides 16, 8, 4, 2 and 1, add each finished sum to the element one stride after it
    for (int stride = 16; stride > 0; stride /= 2) {
        int i = 2 * stride * (t + 1) - 1;
        if (i + stride < 64) s[i + stride] += s[i];
        __syncthreads();
    }
    // end
    // phase: write
    for (int i = t; i < n; i += 32) y[i] = s[i];
}
