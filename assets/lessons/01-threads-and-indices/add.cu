// Each thread adds one pair of elements.
__global__ void add(const float *a, const float *b, float *c, int n) {
    // gap: find this thread's element, and add the two there if there is one
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i] + b[i];
    // end
}
