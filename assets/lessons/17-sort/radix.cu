// Radix sort, one bit per pass: keys with a 0 come first, in their order. One warp, 32 keys.
__global__ void sort(unsigned *keys, int bits) {
    __shared__ unsigned s[32];
    int t = threadIdx.x;
    unsigned key = keys[t];
    unsigned before = (1u << t) - 1;
    for (int bit = 0; bit < bits; ++bit) {
        unsigned ones = __ballot_sync(0xffffffffu, (key >> bit) & 1u);
        int zeros = 32 - __popc(ones);
        int place = (key >> bit) & 1u ? zeros + __popc(ones & before) : __popc(~ones & before);
        s[place] = key;
        __syncwarp();
        key = s[t];
        __syncwarp();
    }
    keys[t] = key;
}
