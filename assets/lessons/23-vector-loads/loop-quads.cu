// Four floats per load: as many loads are in flight, and each brings four times the bytes.
__global__ void scale(const float *x, float *y, int n) {
    int threads = gridDim.x * blockDim.x;
    int start = blockIdx.x * blockDim.x + threadIdx.x;
    int quads = n / 4;
    for (int i = start; i < quads; i += threads) {
        float4 v = reinterpret_cast<const float4 *>(x)[i];
        reinterpret_cast<float4 *>(y)[i] = make_float4(2.0f * v.x, 2.0f * v.y, 2.0f * v.z, 2.0f * v.w);
    }
    for (int i = 4 * quads + start; i < n; i += threads) y[i] = 2.0f * x[i];
}
