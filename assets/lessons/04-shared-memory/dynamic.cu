// Each block reverses its part; the launch determines the size of the block and of its shared memory.
__global__ void reverse(const float *x, float *y, int n) {
    extern __shared__ float s[];
    int t = threadIdx.x;
    int first = blockIdx.x * blockDim.x;
    int count = min((int)blockDim.x, n - first);
    if (t < count) s[t] = x[first + t];
    __syncthreads();
    if (t < count) y[first + t] = s[count - 1 - t];
}
