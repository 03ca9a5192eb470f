// A block stores its 8 x 8 pixels, and a halo of one, in shared memory.
__constant__ float weights[9];

__global__ void blur(const float *in, float *out, int width, int height) {
    __shared__ float tile[10][10];
    int left = blockIdx.x * 8 - 1;
    int top = blockIdx.y * 8 - 1;
    for (int k = threadIdx.y * 8 + threadIdx.x; k < 100; k += 64) {
        int x = left + k % 10;
        int y = top + k / 10;
        bool inside = x >= 0 && x < width && y >= 0 && y < height;
        tile[k / 10][k % 10] = inside ? in[y * width + x] : 0.0f;
    }
    __syncthreads();
    int column = blockIdx.x * 8 + threadIdx.x;
    int row = blockIdx.y * 8 + threadIdx.y;
    if (column >= width || row >= height) return;
    float sum = 0.0f;
    for (int dy = 0; dy < 3; ++dy)
        for (int dx = 0; dx < 3; ++dx) sum += tile[threadIdx.y + dy][threadIdx.x + dx] * weights[dy * 3 + dx];
    out[row * width + column] = sum;
}
