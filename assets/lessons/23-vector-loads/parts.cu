// Squared lengths of vectors with four components, x y z w, which are loaded one by one.
__global__ void lengths(const float *vectors, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float x = vectors[4 * i];
    float y = vectors[4 * i + 1];
    float z = vectors[4 * i + 2];
    float w = vectors[4 * i + 3];
    out[i] = x * x + y * y + z * z + w * w;
}
