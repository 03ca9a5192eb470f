// Each block reverses its 64 elements through shared memory.
__global__ void reverse(const int *x, int *y, int n) {
    __shared__ int s[64];
    int t = threadIdx.x;
    int i = blockIdx.x * 64 + t;
    // lines: write the block's elements to shared memory, and read them in reverse order
    s[t] = i < n ? x[i] : 0;
    __syncthreads();
    if (i < n) y[i] = s[63 - t];
    // end
}
