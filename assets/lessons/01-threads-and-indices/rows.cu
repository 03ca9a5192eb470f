// A matrix lies in memory row after row. A thread has two numbers here, and so has a block.
__global__ void mirror(const int *x, int *y, int width, int height) {
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (column < width && row < height) {
        // gap: write the element at (row, column) of the picture to its mirror image, left and right swapped
        y[row * width + (width - 1 - column)] = x[row * width + column];
        // end
    }
}
