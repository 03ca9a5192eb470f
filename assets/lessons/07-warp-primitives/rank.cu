// Each lane counts the lanes before its own, in its warp, that have the same key.
__global__ void rank_equal(const int *x, int *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int lane = threadIdx.x % 32;
    // gap: y[i] is the number of earlier lanes with the key of this lane
    unsigned members = __ballot_sync(0xffffffffu, i < n);
    if (i < n) {
        unsigned equal = __match_any_sync(members, x[i]);
        y[i] = __popc(equal & ((1u << lane) - 1));
    }
    // end
}
