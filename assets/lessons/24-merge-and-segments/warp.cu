// Segmented scan of each warp. A ballot gives every lane the lane where its segment begins.
__global__ void scan(const int *x, const int *begins, int *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int lane = threadIdx.x % 32;
    int sum = i < n ? x[i] : 0;
    unsigned votes = __ballot_sync(0xffffffffu, lane == 0 || (i < n && begins[i] != 0));
    int first = 31 - __clz(votes & (0xffffffffu >> (31 - lane)));
    for (int d = 1; d < 32; d *= 2) {
        int before = __shfl_up_sync(0xffffffffu, sum, d);
        if (lane - d >= first) sum += before;
    }
    if (i < n) y[i] = sum;
}
