// A matrix is stored row after row. Threads and blocks have two-dimensional numbers here.
__global__ void mirror(const int *x, int *y, int width, int height) {
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (column < width && row < height) {
        // gap: write the element at (row, column) to its mirrored position, with left and right swapped
        y[row * width + (width - 1 - column)] = x[row * width + column];
        // end
    }
}
