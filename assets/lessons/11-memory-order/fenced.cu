// The same with fences: one between the two writes, and one between the two reads.
__global__ void message(const int *x, int *data, volatile int *flag, int *result) {
    if (blockIdx.x == 0) {
        *data = 2 * *x;
        __threadfence();
        *flag = 1;
    } else {
        while (*flag == 0) {
        }
        __threadfence();
        *result = *data + 1;
    }
}
