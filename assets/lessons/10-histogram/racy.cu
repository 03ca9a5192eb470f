// Read, add one, write back: two threads with the same letter may both read before either has written.
__global__ void histogram(const int *x, int *bins, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) bins[x[i]]++;
}
