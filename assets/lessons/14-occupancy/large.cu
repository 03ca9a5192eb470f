// Each block reverses its part. It reserves 32 KB of shared memory, of which it uses one float per thread.
__global__ void reverse(const float *x, float *y, int n) {
    __shared__ float s[8192];
    int t = threadIdx.x;
    int i = blockIdx.x * blockDim.x + t;
    s[t] = i < n ? x[i] : 0.0f;
    __syncthreads();
    if (i < n) y[i] = s[blockDim.x - 1 - t];
}
