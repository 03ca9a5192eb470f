// A block loads tiles of 32 bodies into shared memory, and every thread loops over them.
__global__ void pull(const float *x, float *force, int n) {
    __shared__ float tile[32];
    int i = blockIdx.x * 32 + threadIdx.x;
    float own = i < n ? x[i] : 0.0f;
    float sum = 0.0f;
    for (int first = 0; first < n; first += 32) {
        if (first + threadIdx.x < n) tile[threadIdx.x] = x[first + threadIdx.x];
        __syncthreads();
        for (int j = 0; j < 32 && first + j < n; ++j) {
            float d = tile[j] - own;
            float near = d * d + 1.0f;
            sum += d / (near * near);
        }
        __syncthreads();
    }
    if (i < n) force[i] = sum;
}
