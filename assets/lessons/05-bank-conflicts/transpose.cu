// A tile of 32 x 32 in shared memory makes reads and writes of global memory coalesced.
__global__ void transpose(const float *x, float *y, int width, int height) {
    __shared__ float tile[32][32];
    int column = blockIdx.x * 32 + threadIdx.x;
    for (int k = threadIdx.y; k < 32; k += blockDim.y) {
        int row = blockIdx.y * 32 + k;
        if (row < height && column < width) tile[k][threadIdx.x] = x[row * width + column];
    }
    __syncthreads();
    int to = blockIdx.y * 32 + threadIdx.x;
    for (int k = threadIdx.y; k < 32; k += blockDim.y) {
        int row = blockIdx.x * 32 + k;
        if (row < width && to < height) y[row * height + to] = tile[threadIdx.x][k];
    }
}
