// Squared lengths of points stored as a structure of arrays: all x, all y, all z.
__global__ void lengths(const float *points, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        // gap: read x, y and z of point i; all x come first, then all y, all z. Write the squared length to out[i]
        float x = points[i];
        float y = points[n + i];
        float z = points[2 * n + i];
        out[i] = x * x + y * y + z * z;
        // end
    }
}
