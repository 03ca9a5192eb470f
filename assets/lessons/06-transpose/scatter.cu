// Reads along a row, writes along a column: b[c][r] = a[r][c].
__global__ void transpose(const float *a, float *b, int rows, int columns) {
    int row = blockIdx.y * 8 + threadIdx.y;
    int column = blockIdx.x * 32 + threadIdx.x;
    if (row < rows && column < columns) {
        // gap: write the element of this row and column to its position in b, whose rows have `rows` elements
        b[column * rows + row] = a[row * columns + column];
        // end
    }
}
