// Double buffer: each step reads one array and writes the other, and needs one barrier.
__global__ void scan(const int *x, int *y, int n) {
    __shared__ int s[2][64];
    int t = threadIdx.x;
    int from = 0;
    s[0][t] = t < n ? x[t] : 0;
    __syncthreads();
    for (int stride = 1; stride < 64; stride *= 2) {
        int to = 1 - from;
        s[to][t] = s[from][t] + (t >= stride ? s[from][t - stride] : 0);
        __syncthreads();
        from = to;
    }
    if (t < n) y[t] = s[from][t];
}
