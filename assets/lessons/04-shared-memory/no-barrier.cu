// Each block reverses its 64 elements through shared memory.
__global__ void reverse(const int *x, int *y, int n) {
    __shared__ int s[64];
    int t = threadIdx.x;
    int i = blockIdx.x * 64 + t;
    s[t] = i < n ? x[i] : 0;
    if (i < n) y[i] = s[63 - t];
}
