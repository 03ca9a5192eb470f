// Values are held within bounds.
__global__ void clamp(const float *x, float *y, float low, float high, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    // lines: each value is held between low and high
    float value = x[i];
    if (value < low) value = low;
    if (value > high) value = high;
    y[i] = value;
    // end
}
