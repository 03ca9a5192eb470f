// Each lane reads the register of the lane d before its own. The first d lanes get their own value.
__global__ void shift(const int *x, int *y, int d) {
    int t = threadIdx.x;
    int own = x[t];
    int before = __shfl_up_sync(0xffffffffu, own, d);
    y[t] = before;
}
