// Block 0 writes a number, then a flag; block 1 waits for the flag, then reads the number.
__global__ void message(const int *x, int *data, volatile int *flag, int *result) {
    if (blockIdx.x == 0) {
        *data = 2 * *x;
        *flag = 1;
    } else {
        while (*flag == 0) {
        }
        *result = *data + 1;
    }
}
