// A block of 96 threads: half of 96 is 48, then 24, 12, 6 and 3, and half of 3 is not an integer.
__global__ void sum(const int *x, int *y, int n) {
    __shared__ int s[96];
    int t = threadIdx.x;
    int i = blockIdx.x * 96 + t;
    s[t] = i < n ? x[i] : 0;
    __syncthreads();
    for (int left = 96; left > 1; left = (left + 1) / 2) {
        if (t < left / 2) s[t] += s[t + (left + 1) / 2];
        __syncthreads();
    }
    if (t == 0) y[blockIdx.x] = s[0];
}
