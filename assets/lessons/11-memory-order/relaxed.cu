// The same with an atomic flag. Its operations are relaxed: they order no other access.
#include <cuda/atomic>

__global__ void message(const int *x, int *data, int *flag, int *result) {
    cuda::atomic_ref<int, cuda::thread_scope_device> ready(*flag);
    if (blockIdx.x == 0) {
        *data = 2 * *x;
        ready.store(1, cuda::memory_order_relaxed);
    } else {
        while (ready.load(cuda::memory_order_relaxed) == 0) {
        }
        *result = *data + 1;
    }
}
