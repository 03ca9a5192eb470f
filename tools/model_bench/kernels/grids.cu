// Kernels from tutorials and samples, none of them ours: stencils on grids.
#define RADIUS 3
#define BLOCK 256

extern "C" __global__ void stencil_shared(const int *from, int *to, int n) {
    __shared__ int window[BLOCK + 2 * RADIUS];
    int g = blockIdx.x * blockDim.x + threadIdx.x + RADIUS, l = threadIdx.x + RADIUS;
    window[l] = from[g];
    if (threadIdx.x < RADIUS) {
        window[l - RADIUS] = from[g - RADIUS];
        window[l + BLOCK] = from[g + BLOCK];
    }
    __syncthreads();
    int sum = 0;
    for (int offset = -RADIUS; offset <= RADIUS; ++offset) sum += window[l + offset];
    to[g - RADIUS] = sum;
}

extern "C" __global__ void jacobi(const float *from, float *to, int width, int height) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < 1 || y < 1 || x >= width - 1 || y >= height - 1) return;
    int i = y * width + x;
    to[i] = 0.25f * (from[i - 1] + from[i + 1] + from[i - width] + from[i + width]);
}

extern "C" __global__ void heat_3d(const float *from, float *to, int nx, int ny, int nz) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < 1 || y < 1 || x >= nx - 1 || y >= ny - 1) return;
    int plane = nx * ny, i = plane + y * nx + x;
    float below = from[i - plane], here = from[i];
    for (int z = 1; z < nz - 1; ++z) {
        float above = from[i + plane];
        to[i] = here + 0.1f * (below + above + from[i - 1] + from[i + 1] + from[i - nx] + from[i + nx] - 6 * here);
        below = here;
        here = above;
        i += plane;
    }
}

extern "C" __global__ void sobel(const unsigned char *from, unsigned char *to, int width, int height) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < 1 || y < 1 || x >= width - 1 || y >= height - 1) return;
    const unsigned char *p = from + y * width + x;
    int dx = p[1 - width] + 2 * p[1] + p[1 + width] - p[-1 - width] - 2 * p[-1] - p[-1 + width];
    int dy = p[width - 1] + 2 * p[width] + p[width + 1] - p[-width - 1] - 2 * p[-width] - p[-width + 1];
    float size = sqrtf((float)(dx * dx + dy * dy));
    to[y * width + x] = size > 255 ? 255 : (unsigned char)size;
}

extern "C" __global__ void life(const unsigned char *from, unsigned char *to, int width, int height) {
    int cell = blockIdx.x * blockDim.x + threadIdx.x;
    if (cell >= width * height) return;
    int x = cell % width, y = cell / width;
    int left = (x + width - 1) % width, right = (x + 1) % width;
    int up = (y + height - 1) % height * width, down = (y + 1) % height * width, here = y * width;
    int alive = from[left + up] + from[x + up] + from[right + up] + from[left + here] + from[right + here] +
                from[left + down] + from[x + down] + from[right + down];
    to[cell] = alive == 3 || (alive == 2 && from[cell]);
}
