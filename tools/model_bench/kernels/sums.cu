// Kernels from tutorials and samples, none of them ours: reductions, scans and other cooperation of threads.
#define BLOCK 256

extern "C" __global__ void dot_product(const float *a, const float *b, float *result, int n) {
    __shared__ float cache[BLOCK];
    float sum = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) sum += a[i] * b[i];
    cache[threadIdx.x] = sum;
    __syncthreads();
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) cache[threadIdx.x] += cache[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) atomicAdd(result, cache[0]);
}

extern "C" __global__ void sum_atomically(const int *values, int *sum, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(sum, values[i]);
}

extern "C" __global__ void count_letters(const unsigned char *text, unsigned int *counts, int n) {
    __shared__ unsigned int own[64];
    if (threadIdx.x < 64) own[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x)
        atomicAdd(&own[text[i] & 63], 1);
    __syncthreads();
    if (threadIdx.x < 64) atomicAdd(&counts[threadIdx.x], own[threadIdx.x]);
}

extern "C" __global__ void count_globally(const unsigned int *keys, unsigned int *counts, int bins, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(&counts[keys[i] % bins], 1);
}

extern "C" __global__ void scan_block(const float *from, float *to) {
    __shared__ float buffer[2 * BLOCK];
    int t = threadIdx.x, out = 0, in = 1, i = blockIdx.x * BLOCK + t;
    buffer[t] = from[i];
    __syncthreads();
    for (int offset = 1; offset < BLOCK; offset *= 2) {
        out = 1 - out;
        in = 1 - out;
        buffer[out * BLOCK + t] = buffer[in * BLOCK + t] + (t >= offset ? buffer[in * BLOCK + t - offset] : 0);
        __syncthreads();
    }
    to[i] = buffer[out * BLOCK + t];
}

extern "C" __global__ void sort_block(unsigned int *keys) {
    __shared__ unsigned int own[BLOCK];
    int t = threadIdx.x;
    own[t] = keys[blockIdx.x * BLOCK + t];
    __syncthreads();
    for (int size = 2; size <= BLOCK; size *= 2) {
        for (int distance = size / 2; distance > 0; distance /= 2) {
            int other = t ^ distance;
            if (other > t && (own[t] > own[other]) == ((t & size) == 0)) {
                unsigned int kept = own[t];
                own[t] = own[other];
                own[other] = kept;
            }
            __syncthreads();
        }
    }
    keys[blockIdx.x * BLOCK + t] = own[t];
}

extern "C" __global__ void walsh_hadamard(float *values) {
    __shared__ float own[2 * BLOCK];
    float *mine = values + (size_t)blockIdx.x * 2 * BLOCK;
    int t = threadIdx.x;
    own[t] = mine[t];
    own[t + BLOCK] = mine[t + BLOCK];
    for (int stride = BLOCK; stride > 0; stride /= 2) {
        __syncthreads();
        int low = (t / stride) * 2 * stride + t % stride;
        float a = own[low], b = own[low + stride];
        own[low] = a + b;
        own[low + stride] = a - b;
    }
    __syncthreads();
    mine[t] = own[t];
    mine[t + BLOCK] = own[t + BLOCK];
}

extern "C" __global__ void sparse_rows(const int *starts, const int *columns, const float *values, const float *x,
                                       float *y, int rows) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float sum = 0;
    for (int k = starts[row]; k < starts[row + 1]; ++k) sum += values[k] * x[columns[k]];
    y[row] = sum;
}

extern "C" __global__ void sparse_rows_warp(const int *starts, const int *columns, const float *values, const float *x,
                                            float *y, int rows) {
    int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (row >= rows) return;
    float sum = 0;
    for (int k = starts[row] + lane; k < starts[row + 1]; k += 32) sum += values[k] * x[columns[k]];
    for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(0xffffffff, sum, offset);
    if (lane == 0) y[row] = sum;
}

// One level of a breadth-first search.
extern "C" __global__ void search_level(const int *starts, const int *columns, int *levels, int level, int *again,
                                        int nodes) {
    int node = blockIdx.x * blockDim.x + threadIdx.x;
    if (node >= nodes || levels[node] != level) return;
    for (int k = starts[node]; k < starts[node + 1]; ++k)
        if (atomicMin(&levels[columns[k]], level + 1) > level + 1) *again = 1;
}
