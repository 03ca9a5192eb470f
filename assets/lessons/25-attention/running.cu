// The largest score so far, and the sum of powers so far: of 2, not of e.
__global__ void run(const float *scores, float *largest, float *sums, int n) {
    float most = -INFINITY;
    float sum = 0.0f;
    for (int k = 0; k < n; ++k) {
        float next = fmaxf(most, scores[k]);
        sum = sum * exp2f(most - next) + exp2f(scores[k] - next);
        most = next;
        largest[k] = most;
        sums[k] = sum;
    }
}
