// Squared lengths of points stored as an array of structures: x y z x y z ...
__global__ void lengths(const float *points, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float x = points[3 * i];
        float y = points[3 * i + 1];
        float z = points[3 * i + 2];
        out[i] = x * x + y * y + z * z;
    }
}
