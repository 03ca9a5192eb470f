// One warp per row of up to 32: warp shuffles combine values of lanes, and all lanes get the result.
__global__ void softmax(const float *x, float *y, int n) {
    int t = threadIdx.x;
    float value = t < n ? x[blockIdx.x * n + t] : -INFINITY;
    // lines: the maximum of all lanes, the powers, their sum, the quotient
    float largest = value;
    for (int d = 16; d > 0; d /= 2) largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, d));
    float power = t < n ? expf(value - largest) : 0.0f;
    float sum = power;
    for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, d);
    if (t < n) y[blockIdx.x * n + t] = power / sum;
    // end
}
