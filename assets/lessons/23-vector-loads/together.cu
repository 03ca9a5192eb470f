// Squared lengths of vectors with four components, x y z w, which are loaded together.
__global__ void lengths(const float4 *vectors, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float4 v = vectors[i];
    out[i] = v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w;
}
