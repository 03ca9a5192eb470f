// A cube of 4 x 4 x 4 points and its halo in shared memory, one point per thread.
__global__ void stencil(const int *a, int *b, int n) {
    __shared__ int s[6][6][6];
    int x = blockIdx.x * 4 + threadIdx.x - 1;
    int y = blockIdx.y * 4 + threadIdx.y - 1;
    int z = blockIdx.z * 4 + threadIdx.z - 1;
    bool inside = 0 <= x && x < n && 0 <= y && y < n && 0 <= z && z < n;
    int i = threadIdx.x, j = threadIdx.y, k = threadIdx.z;
    s[k][j][i] = inside ? a[(z * n + y) * n + x] : 0;
    __syncthreads();
    bool inner = 0 < i && i < 5 && 0 < j && j < 5 && 0 < k && k < 5;
    if (inner && inside) {
        int sides = s[k][j][i - 1] + s[k][j][i + 1] + s[k][j - 1][i] + s[k][j + 1][i];
        b[(z * n + y) * n + x] = 6 * s[k][j][i] - sides - s[k - 1][j][i] - s[k + 1][j][i];
    }
}
