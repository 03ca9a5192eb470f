// Bitonic sort of 32 keys: each step compares pairs, and swaps keys in the wrong order.
__global__ void sort(int *keys) {
    __shared__ int s[32];
    int t = threadIdx.x;
    s[t] = keys[t];
    __syncthreads();
    for (int size = 2; size <= 32; size *= 2) {
        for (int distance = size / 2; distance > 0; distance /= 2) {
            int other = t ^ distance;
            if (other > t) {
                bool upward = (t & size) == 0;
                int low = min(s[t], s[other]);
                int high = max(s[t], s[other]);
                s[t] = upward ? low : high;
                s[other] = upward ? high : low;
            }
            __syncthreads();
        }
    }
    keys[t] = s[t];
}
