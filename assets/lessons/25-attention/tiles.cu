// The online form with tiles: all queries of a block use 16 rows of K and V in shared memory.
__global__ void attend(const float *Q, const float *K, const float *V, float *O, int n, int m) {
    __shared__ float keys[64];
    __shared__ float values[64];
    int query = blockIdx.x * blockDim.x + threadIdx.x;
    float own[4];
    float out[4];
    for (int c = 0; c < 4; ++c) {
        own[c] = query < n ? Q[4 * query + c] : 0.0f;
        out[c] = 0.0f;
    }
    float sum = 0.0f;
    float largest = -INFINITY;
    for (int first = 0; first < m; first += 16) {
        int count = min(16, m - first);
        for (int i = threadIdx.x; i < 4 * count; i += blockDim.x) {
            keys[i] = K[4 * first + i];
            values[i] = V[4 * first + i];
        }
        __syncthreads();
        for (int k = 0; k < count; ++k) {
            float score = 0.0f;
            for (int c = 0; c < 4; ++c) score += own[c] * keys[4 * k + c];
            score /= 2.0f;
            float next = fmaxf(largest, score);
            float old = expf(largest - next);
            float power = expf(score - next);
            sum = sum * old + power;
            for (int c = 0; c < 4; ++c) out[c] = out[c] * old + power * values[4 * k + c];
            largest = next;
        }
        __syncthreads();
    }
    if (query < n)
        for (int c = 0; c < 4; ++c) O[4 * query + c] = out[c] / sum;
}
