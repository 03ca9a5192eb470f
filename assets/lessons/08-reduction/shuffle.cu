// Warp shuffles exchange registers between lanes; shared memory has one value per warp.
__global__ void largest(const int *x, int *y, int n) {
    __shared__ int s[4];
    int t = threadIdx.x;
    int own = -2147483647 - 1;
    for (int i = t; i < n; i += 128) own = max(own, x[i]);
    // lines: each warp finds its maximum, then the first thread that of all warps
    for (int d = 16; d > 0; d /= 2) own = max(own, __shfl_down_sync(0xffffffffu, own, d));
    if (t % 32 == 0) s[t / 32] = own;
    __syncthreads();
    if (t == 0) *y = max(max(s[0], s[1]), max(s[2], s[3]));
    // end
}
