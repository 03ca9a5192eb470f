// No shared memory: reads are coalesced, writes are not.
__global__ void transpose(const float *x, float *y, int width, int height) {
    int column = blockIdx.x * 32 + threadIdx.x;
    for (int k = threadIdx.y; k < 32; k += blockDim.y) {
        int row = blockIdx.y * 32 + k;
        if (row < height && column < width) y[column * height + row] = x[row * width + column];
    }
}
