// Threads without an element leave before the barrier, which then waits for them.
__global__ void reverse(const int *x, int *y, int n) {
    __shared__ int s[64];
    int t = threadIdx.x;
    int i = blockIdx.x * 64 + t;
    if (i >= n) return;
    s[t] = x[i];
    __syncthreads();
    y[i] = s[63 - t];
}
