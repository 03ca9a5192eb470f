// Letters in bins of four: a to d, e to h and so on. A text has other characters too.
__global__ void histogram(const char *text, int *bins, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        int letter = text[i] - 'a';
        if (letter >= 0 && letter < 26) atomicAdd(&bins[letter / 4], 1);
    }
}
