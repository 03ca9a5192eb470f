// Lanes t and t ^ d exchange their values, and both add them: one step of a butterfly.
__global__ void add_pairs(const int *x, int *y, int d) {
    int t = threadIdx.x;
    int sum = x[t];
    sum += __shfl_xor_sync(0xffffffffu, sum, d);
    y[t] = sum;
}
