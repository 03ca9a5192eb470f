// Each group of 8 lanes adds up its elements; every lane of the group gets the sum.
__global__ void add_groups(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = i < n ? x[i] : 0.0f;
    // gap: sum is that of the 8 lanes of the group, in each of them
    for (int d = 4; d > 0; d /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, d);
    // end
    if (i < n) y[i] = sum;
}
