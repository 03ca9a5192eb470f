// Block 0 writes a number, then a flag; block 1 waits for the flag, then reads the number.
__global__ void message(int *data, volatile int *flag, int *result) {
    if (blockIdx.x == 0) {
        *data = 7;
        *flag = 1;
    } else {
        while (*flag == 0) {
        }
        *result = *data;
    }
}
