// Matrix product over several devices: each has some rows of A, and takes B in blocks of rows from all of them. Such a
// block is multiplied by as many columns of A, which this cuts out of its rows.
// Least traffic: 8 bytes an element, read once and written once.
//
// kernel              idea
// matmul_cut_columns  a thread an element

// Limit: memory's bandwidth, which is little beside the product.
extern "C" __global__ void matmul_cut_columns(const float *rows, float *cut, int count, int columns, int first,
                                              int width) {
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    for (int row = blockIdx.y; row < count && column < width; row += gridDim.y)
        cut[(long long)row * width + column] = rows[(long long)row * columns + first + column];
}
