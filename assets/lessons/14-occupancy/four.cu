// A thread loads four elements before it stores the first: four loads are in flight at the same time.
__global__ void scale(const float *x, float *y, int n) {
    int threads = gridDim.x * blockDim.x;
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    for (; i + 3 * threads < n; i += 4 * threads) {
        float a = x[i];
        float b = x[i + threads];
        float c = x[i + 2 * threads];
        float d = x[i + 3 * threads];
        y[i] = 2.0f * a;
        y[i + threads] = 2.0f * b;
        y[i + 2 * threads] = 2.0f * c;
        y[i + 3 * threads] = 2.0f * d;
    }
    for (; i < n; i += threads) y[i] = 2.0f * x[i];
}
