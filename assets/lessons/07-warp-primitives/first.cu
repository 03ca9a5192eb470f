// Each warp finds its first negative element: a ballot, and the position of its lowest bit.
__global__ void first_negative(const int *x, int *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    bool negative = i < n && x[i] < 0;
    unsigned votes = __ballot_sync(0xffffffffu, negative);
    if (i % 32 == 0 && i < n) y[i / 32] = __ffs(votes) - 1;
}
