// A ballot: bit k of the result is 1 if the predicate is true in lane k. Each lane counts the lanes before its own.
__global__ void count_before(const int *x, int *y) {
    int t = threadIdx.x;
    unsigned votes = __ballot_sync(0xffffffffu, x[t] > 5);
    y[t] = __popc(votes & ((1u << t) - 1));
}
