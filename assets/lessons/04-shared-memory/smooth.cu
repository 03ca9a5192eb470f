// The mean of each element and its two neighbors; a block stores 64 elements and a halo of one on each side.
__global__ void smooth(const float *x, float *y, int n) {
    __shared__ float s[66];
    int t = threadIdx.x;
    int i = blockIdx.x * 64 + t;
    s[t + 1] = i < n ? x[i] : 0.0f;
    if (t == 0) s[0] = i > 0 ? x[i - 1] : 0.0f;
    if (t == 63) s[65] = i + 1 < n ? x[i + 1] : 0.0f;
    __syncthreads();
    if (i < n) y[i] = (s[t] + s[t + 1] + s[t + 2]) / 3.0f;
}
