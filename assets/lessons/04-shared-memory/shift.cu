// In each round, every element of the block moves by one position in shared memory.
__global__ void rotate(int *x, int rounds) {
    __shared__ int s[32];
    int t = threadIdx.x;
    s[t] = x[t];
    __syncthreads();
    for (int round = 0; round < rounds; ++round) {
        // gap: move each element by one position, the last one to the front; all threads read before one writes
        int moved = s[(t + 31) % 32];
        __syncthreads();
        s[t] = moved;
        __syncthreads();
        // end
    }
    x[t] = s[t];
}
