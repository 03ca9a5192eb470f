// Doubles the elements from `first` to n - 1: single floats up to an aligned address, then four
// floats per thread, then the rest.
__global__ void scale(float *x, int first, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int aligned = min((first + 3) / 4 * 4, n);
    int quads = (n - aligned) / 4;
    int rest = aligned + 4 * quads;
    if (first + i < aligned) x[first + i] *= 2.0f;
    if (i < quads) {
        float4 *four = reinterpret_cast<float4 *>(x + aligned) + i;
        float4 v = *four;
        *four = make_float4(2.0f * v.x, 2.0f * v.y, 2.0f * v.z, 2.0f * v.w);
    }
    if (rest + i < n) x[rest + i] *= 2.0f;
}
