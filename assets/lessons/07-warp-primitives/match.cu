// Bit k of the result is 1 if lane k has the same value as this lane.
__global__ void count_equal(const int *x, int *y) {
    int t = threadIdx.x;
    unsigned equal = __match_any_sync(0xffffffffu, x[t]);
    y[t] = __popc(equal);
}
