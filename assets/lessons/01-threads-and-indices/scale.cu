// Grid stride: a fixed number of threads processes an array of any length.
__global__ void scale(const float *x, float *y, int n) {
    int stride = gridDim.x * blockDim.x;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) {
        y[i] = 2.0f * x[i];
    }
}
