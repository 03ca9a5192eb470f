// Attention in three launches: scores, softmax of each row, product with V.
__global__ void score(const float *Q, const float *K, float *S, int n, int m, int d) {
    int key = blockIdx.x * blockDim.x + threadIdx.x;
    int query = blockIdx.y * blockDim.y + threadIdx.y;
    if (query >= n || key >= m) return;
    // gap: S[query * m + key] is the product of two rows, divided by the root of d
    float sum = 0.0f;
    for (int c = 0; c < d; ++c) sum += Q[query * d + c] * K[key * d + c];
    S[query * m + key] = sum / sqrtf(d);
    // end
}

__global__ void softmax(float *S, int m) {
    float *row = S + blockIdx.x * m;
    float largest = -INFINITY;
    for (int k = threadIdx.x; k < m; k += 32) largest = fmaxf(largest, row[k]);
    for (int s = 16; s > 0; s /= 2) largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, s));
    float sum = 0.0f;
    for (int k = threadIdx.x; k < m; k += 32) {
        row[k] = expf(row[k] - largest);
        sum += row[k];
    }
    for (int s = 16; s > 0; s /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, s);
    for (int k = threadIdx.x; k < m; k += 32) row[k] /= sum;
}

__global__ void combine(const float *S, const float *V, float *O, int n, int m, int d) {
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    int query = blockIdx.y * blockDim.y + threadIdx.y;
    if (query >= n || c >= d) return;
    float sum = 0.0f;
    for (int k = 0; k < m; ++k) sum += S[query * m + k] * V[k * d + c];
    O[query * d + c] = sum;
}
