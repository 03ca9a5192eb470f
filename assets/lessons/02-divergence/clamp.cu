// Each value is clamped to a range.
__global__ void clamp(const float *x, float *y, float low, float high, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    // lines: clamp each value to the range from low to high
    float value = x[i];
    if (value < low) value = low;
    if (value > high) value = high;
    y[i] = value;
    // end
}
