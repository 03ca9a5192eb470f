// One thread per query and one loop over the keys; scores are not stored. d is 4, its root 2.
__global__ void attend(const float *Q, const float *K, const float *V, float *O, int n, int m) {
    int query = blockIdx.x * blockDim.x + threadIdx.x;
    if (query >= n) return;
    float out[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    float sum = 0.0f;
    float largest = -INFINITY;
    for (int k = 0; k < m; ++k) {
        float score = 0.0f;
        for (int c = 0; c < 4; ++c) score += Q[4 * query + c] * K[4 * k + c];
        score /= 2.0f;
        // gap: update largest, sum and out by this key, whose row of V is V[4 * k + c]
        float next = fmaxf(largest, score);
        float old = expf(largest - next);
        float power = expf(score - next);
        sum = sum * old + power;
        for (int c = 0; c < 4; ++c) out[c] = out[c] * old + power * V[4 * k + c];
        largest = next;
        // end
    }
    for (int c = 0; c < 4; ++c) O[4 * query + c] = out[c] / sum;
}
