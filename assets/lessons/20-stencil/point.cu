// Six times the point minus its six neighbors, in a cube of n x n x n points; points outside are zero.
__global__ void stencil(const int *a, int *b, int n) {
    int x = threadIdx.x;
    int y = threadIdx.y;
    int z = blockIdx.x;
    if (x < n && y < n) {
        int place = (z * n + y) * n + x;
        int sum = 6 * a[place];
        // gap: subtract the six neighbors, each only if it is inside the cube
        if (x > 0) sum -= a[place - 1];
        if (x + 1 < n) sum -= a[place + 1];
        if (y > 0) sum -= a[place - n];
        if (y + 1 < n) sum -= a[place + n];
        if (z > 0) sum -= a[place - n * n];
        if (z + 1 < n) sum -= a[place + n * n];
        // end
        b[place] = sum;
    }
}
