// A block adds up 64 elements in shared memory: each step halves the number of active threads.
__global__ void sum(const float *x, float *y, int n) {
    __shared__ float s[64];
    int t = threadIdx.x;
    int i = blockIdx.x * 64 + t;
    s[t] = i < n ? x[i] : 0.0f;
    __syncthreads();
    // gap: while more than one sum is left, the first half of the threads adds the other half's sums to its own
    for (int half = 32; half > 0; half /= 2) {
        if (t < half) s[t] += s[t + half];
        __syncthreads();
    }
    // end
    if (t == 0) y[blockIdx.x] = s[0];
}
