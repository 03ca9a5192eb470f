// Matrix product on several devices: each has some rows of A, and receives blocks of rows of B from all others. This
// kernel copies the columns of A that such a block is multiplied by. Minimum traffic: 8 bytes per element, read once
// and written once.
//
// kernel              idea
// matmul_cut_columns  one thread per element

// Limit: memory bandwidth; the time is short relative to the product's.
extern "C" __global__ void matmul_cut_columns(const float *rows, float *cut, int count, int columns, int first,
                                              int width) {
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    for (int row = blockIdx.y; row < count && column < width; row += gridDim.y)
        cut[(long long)row * width + column] = rows[(long long)row * columns + first + column];
}
