// The width 8 divides the warp into four segments, and no value crosses from one segment to another.
__global__ void shift(const int *x, int *y, int d) {
    int t = threadIdx.x;
    int own = x[t];
    int after = __shfl_down_sync(0xffffffffu, own, d, 8);
    y[t] = after;
}
