// Reverse, for any length: threads without an element return first.
__global__ void reverse(const int *x, int *y, int n) {
    __shared__ int s[64];
    int t = threadIdx.x;
    int i = blockIdx.x * 64 + t;
    if (i >= n) return;
    s[t] = x[i];
    __syncthreads();
    y[i] = s[63 - t];
}
