// Neighboring threads read neighboring elements, but the first one is not at the start of a sector.
__global__ void copy(const float *x, float *y, int shift, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i + shift];
}
