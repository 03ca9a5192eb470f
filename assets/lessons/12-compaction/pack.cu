// Stream compaction of a warp's 32 numbers: a ballot finds odd numbers, a population count their positions.
__global__ void pack(const int *x, int *y, int *count, int n) {
    int t = threadIdx.x;
    int value = t < n ? x[t] : 0;
    bool odd = value % 2 != 0;
    unsigned votes = __ballot_sync(0xffffffffu, odd);
    // gap: write the odd values to y, packed and in order, and their number to *count
    int place = __popc(votes & ((1u << t) - 1));
    if (odd) y[place] = value;
    if (t == 0) *count = __popc(votes);
    // end
}
