// The inverse of packing: packed values return to the positions of the odd numbers; the others become zero.
__global__ void unpack(const int *x, const int *packed, int *y, int n) {
    int t = threadIdx.x;
    bool odd = t < n && x[t] % 2 != 0;
    unsigned votes = __ballot_sync(0xffffffffu, odd);
    int place = __popc(votes & ((1u << t) - 1));
    // gap: write the packed value if x was odd at this position, else zero
    if (t < n) y[t] = odd ? packed[place] : 0;
    // end
}
