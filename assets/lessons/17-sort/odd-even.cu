// Odd-even transposition: pairs of neighbors start at even positions, then at odd ones, alternately.
__global__ void sort(int *keys, int n) {
    int t = threadIdx.x;
    for (int round = 0; round < n; ++round) {
        // gap: in even rounds pairs start at even positions, in odd rounds at odd ones; order each pair, and wait
        int first = 2 * t + round % 2;
        if (first + 1 < n && keys[first] > keys[first + 1]) {
            int key = keys[first];
            keys[first] = keys[first + 1];
            keys[first + 1] = key;
        }
        __syncthreads();
        // end
    }
}
