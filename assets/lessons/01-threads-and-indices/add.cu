// Each thread adds one pair of elements.
__global__ void add(const float *a, const float *b, float *c, int n) {
    // gap: compute this thread's index, and add the elements at it if it is within the arrays
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i] + b[i];
    // end
}
