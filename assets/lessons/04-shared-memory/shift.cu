// Each element of the block's part moves one place on, in shared memory, so many times.
__global__ void rotate(int *x, int rounds) {
    __shared__ int s[32];
    int t = threadIdx.x;
    s[t] = x[t];
    __syncthreads();
    for (int round = 0; round < rounds; ++round) {
        // gap: move each element one place on, the last one to the front; no thread reads what another wrote this round
        int moved = s[(t + 31) % 32];
        __syncthreads();
        s[t] = moved;
        __syncthreads();
        // end
    }
    x[t] = s[t];
}
