// Bodies on a line, all of mass 1: each is attracted by all others.
__global__ void pull(const float *x, float *force, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float own = x[i];
    float sum = 0.0f;
    // gap: add the pull of every body j: d / (d * d + 1)^2, where d is the distance from this body to j
    for (int j = 0; j < n; ++j) {
        float d = x[j] - own;
        float near = d * d + 1.0f;
        sum += d / (near * near);
    }
    // end
    force[i] = sum;
}
