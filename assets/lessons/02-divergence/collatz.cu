// Each thread counts the steps until its number is 1; the number of steps differs between lanes.
__global__ void steps(const int *x, int *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int value = x[i];
    int count = 0;
    while (value != 1) {
        value = value % 2 == 0 ? value / 2 : 3 * value + 1;
        ++count;
    }
    y[i] = count;
}
