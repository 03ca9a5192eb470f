// Interleaved: neighboring threads count neighboring letters.
__global__ void histogram(const int *x, int *bins, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        if (x[i] < 26) atomicAdd(&bins[x[i] / 4], 1);
}
