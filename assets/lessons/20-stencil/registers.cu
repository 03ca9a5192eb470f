// A block loops along z: a thread's neighbors along z are in registers, the current plane in shared memory.
__global__ void stencil(const int *a, int *b, int n) {
    __shared__ int here[10][10];
    int x = threadIdx.x - 1;
    int y = threadIdx.y - 1;
    bool inside = 0 <= x && x < n && 0 <= y && y < n;
    int below = 0;
    int own = inside ? a[y * n + x] : 0;
    for (int z = 0; z < n; ++z) {
        // lines: the work for each plane
        here[threadIdx.y][threadIdx.x] = own;
        int above = inside && z + 1 < n ? a[((z + 1) * n + y) * n + x] : 0;
        __syncthreads();
        int sum = 6 * own - below - above;
        if (inside) sum -= here[threadIdx.y][threadIdx.x - 1] + here[threadIdx.y][threadIdx.x + 1];
        if (inside) sum -= here[threadIdx.y - 1][threadIdx.x] + here[threadIdx.y + 1][threadIdx.x];
        if (inside) b[(z * n + y) * n + x] = sum;
        __syncthreads();
        below = own;
        own = above;
        // end
    }
}
