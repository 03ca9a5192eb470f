// One block per row of up to 32: the row's maximum, the sum of the powers, and the quotients.
__global__ void softmax(const float *x, float *y, int n) {
    __shared__ float s[32];
    int t = threadIdx.x;
    float value = t < n ? x[blockIdx.x * n + t] : -INFINITY;
    s[t] = value;
    __syncthreads();
    // phase: largest
    for (int half = 16; half > 0; half /= 2) {
        if (t < half) s[t] = fmaxf(s[t], s[t + half]);
        __syncthreads();
    }
    float largest = s[0];
    __syncthreads();
    // phase: sum
    float power = t < n ? expf(value - largest) : 0.0f;
    s[t] = power;
    __syncthreads();
    for (int half = 16; half > 0; half /= 2) {
        if (t < half) s[t] += s[t + half];
        __syncthreads();
    }
    // phase: write
    if (t < n) y[blockIdx.x * n + t] = power / s[0];
}
