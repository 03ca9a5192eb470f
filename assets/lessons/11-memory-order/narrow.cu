// The same with fences for the threads of a block.
__global__ void message(const int *x, int *data, volatile int *flag, int *result) {
    if (blockIdx.x == 0) {
        *data = 2 * *x;
        __threadfence_block();
        *flag = 1;
    } else {
        while (*flag == 0) {
        }
        __threadfence_block();
        *result = *data + 1;
    }
}
