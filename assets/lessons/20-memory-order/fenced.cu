// The same with fences: one between the two writes, and one between the two reads.
__global__ void message(int *data, volatile int *flag, int *result) {
    if (blockIdx.x == 0) {
        *data = 7;
        __threadfence();
        *flag = 1;
    } else {
        while (*flag == 0) {
        }
        __threadfence();
        *result = *data;
    }
}
