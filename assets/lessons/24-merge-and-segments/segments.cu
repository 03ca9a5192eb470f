// Segmented Kogge-Stone scan of up to 64 elements: no sum passes the beginning of a segment.
__global__ void scan(const int *x, const int *begins, int *y, int n) {
    __shared__ int s[64];
    __shared__ int f[64];
    int t = threadIdx.x;
    s[t] = t < n ? x[t] : 0;
    f[t] = t < n ? begins[t] : 1;
    __syncthreads();
    for (int stride = 1; stride < 64; stride *= 2) {
        int sum = t >= stride && f[t] == 0 ? s[t - stride] : 0;
        int flag = t >= stride ? f[t - stride] : 0;
        __syncthreads();
        s[t] += sum;
        f[t] |= flag;
        __syncthreads();
    }
    if (t < n) y[t] = s[t];
}
