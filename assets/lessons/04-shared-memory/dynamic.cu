// Each block turns its part around, of whatever size blocks are: the launch says how much shared memory there is.
__global__ void reverse(const float *x, float *y, int n) {
    extern __shared__ float s[];
    int t = threadIdx.x;
    int first = blockIdx.x * blockDim.x;
    int count = min((int)blockDim.x, n - first);
    if (t < count) s[t] = x[first + t];
    __syncthreads();
    if (t < count) y[first + t] = s[count - 1 - t];
}
