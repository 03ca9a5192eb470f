// A 3 x 3 filter with weights in constant memory; pixels outside the image are zero.
__constant__ float weights[9];

__global__ void blur(const float *in, float *out, int width, int height) {
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (column >= width || row >= height) return;
    float sum = 0.0f;
    for (int dy = -1; dy <= 1; ++dy) {
        for (int dx = -1; dx <= 1; ++dx) {
            int x = column + dx;
            int y = row + dy;
            // gap: add the neighbor at (y, x), times its weight, if it is inside the image
            if (x >= 0 && x < width && y >= 0 && y < height) sum += in[y * width + x] * weights[(dy + 1) * 3 + dx + 1];
            // end
        }
    }
    out[row * width + column] = sum;
}
