// Convolution: each pixel becomes the weighted sum of the K x K pixels around it, K = 2 * RADIUS + 1. The filter is
// laid over the image as it is written (a correlation); a convolution in the mathematician's sense mirrors it first,
// which for symmetric filters is the same. Images are planes of float32, one plane a channel, blockIdx.z says which.
// Least traffic: 8 bytes a pixel and channel, read once and written once; 2 * K * K operations.
//
// rung                 idea                                       what still limits it
// convolve_naive       one thread a pixel, all from global memory  a filter load beside every pixel load
// convolve_constant    the filter in constant memory               every pixel is fetched K * K times, if from cache
// convolve_tiled       the block's pixels and halo in shared mem.  one shared load a tap; a thread makes one pixel only

#ifndef RADIUS
#define RADIUS 1
#endif

#define BORDER_CLAMP 0
#define BORDER_ZERO 1

#define DIAMETER (2 * RADIUS + 1)
#define TILE_WIDTH 32
#define TILE_HEIGHT 8
#define HALO_WIDTH (TILE_WIDTH + 2 * RADIUS)
#define HALO_HEIGHT (TILE_HEIGHT + 2 * RADIUS)

__constant__ float FILTER[DIAMETER * DIAMETER];

// The pixel at (x, y), which may lie outside: then the nearest pixel of the border, or zero.
__device__ float pixel(const float *plane, int x, int y, int width, int height, int border) {
    int inside_x = min(max(x, 0), width - 1);
    int inside_y = min(max(y, 0), height - 1);
    float value = plane[inside_y * width + inside_x];
    bool outside = inside_x != x || inside_y != y;
    return outside && border == BORDER_ZERO ? 0.0f : value;
}

// Idea: one thread a pixel, and nothing clever. Limit: half of all loads fetch the same few filter coefficients.
extern "C" __global__ void convolve_naive(const float *image, const float *filter, float *out, int width, int height,
                                          int radius, int border) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    const float *plane = image + blockIdx.z * width * height;
    float sum = 0.0f;
    for (int dy = -radius; dy <= radius; ++dy)
        for (int dx = -radius; dx <= radius; ++dx)
            sum += filter[(dy + radius) * (2 * radius + 1) + dx + radius] *
                   pixel(plane, x + dx, y + dy, width, height, border);
    out[blockIdx.z * width * height + y * width + x] = sum;
}

// Idea: all lanes of a warp want the same coefficient at once, which is what constant memory broadcasts; and a radius
// known to the compiler unrolls the loops. Limit: neighbouring threads fetch nearly the same pixels again and again,
// and every fetch checks the border.
extern "C" __global__ void convolve_constant(const float *image, float *out, int width, int height, int border) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    const float *plane = image + blockIdx.z * width * height;
    float sum = 0.0f;
    for (int dy = 0; dy < DIAMETER; ++dy)
        for (int dx = 0; dx < DIAMETER; ++dx)
            sum += FILTER[dy * DIAMETER + dx] * pixel(plane, x + dx - RADIUS, y + dy - RADIUS, width, height, border);
    out[blockIdx.z * width * height + y * width + x] = sum;
}

// Idea: the block fetches its tile and a halo of RADIUS pixels around it once, border included, and every tap then
// comes from shared memory (Kirk and Hwu, Programming Massively Parallel Processors, ch. 7). All threads help to load
// and reach the barrier, also those whose own pixel lies outside of the image. Limit: each tap is one shared load for
// one multiply-add.
extern "C" __global__ void convolve_tiled(const float *image, float *out, int width, int height, int border) {
    __shared__ float tile[HALO_HEIGHT][HALO_WIDTH];
    const float *plane = image + blockIdx.z * width * height;
    int left = blockIdx.x * TILE_WIDTH - RADIUS;
    int top = blockIdx.y * TILE_HEIGHT - RADIUS;
    for (int i = threadIdx.y * TILE_WIDTH + threadIdx.x; i < HALO_WIDTH * HALO_HEIGHT; i += TILE_WIDTH * TILE_HEIGHT) {
        int row = i / HALO_WIDTH;
        int column = i % HALO_WIDTH;
        tile[row][column] = pixel(plane, left + column, top + row, width, height, border);
    }
    __syncthreads();

    int x = blockIdx.x * TILE_WIDTH + threadIdx.x;
    int y = blockIdx.y * TILE_HEIGHT + threadIdx.y;
    if (x >= width || y >= height) return;
    float sum = 0.0f;
    for (int dy = 0; dy < DIAMETER; ++dy)
        for (int dx = 0; dx < DIAMETER; ++dx)
            sum += FILTER[dy * DIAMETER + dx] * tile[threadIdx.y + dy][threadIdx.x + dx];
    out[blockIdx.z * width * height + y * width + x] = sum;
}
