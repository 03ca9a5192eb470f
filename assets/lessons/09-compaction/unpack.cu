// The way back: what was packed goes to where the odd numbers were, and zeros to the other places.
__global__ void unpack(const int *x, const int *packed, int *y, int n) {
    int t = threadIdx.x;
    bool odd = t < n && x[t] % 2 != 0;
    unsigned votes = __ballot_sync(0xffffffffu, odd);
    int place = __popc(votes & ((1u << t) - 1));
    // gap: write the packed value of this place where x was odd, and zero where it was not
    if (t < n) y[t] = odd ? packed[place] : 0;
    // end
}
