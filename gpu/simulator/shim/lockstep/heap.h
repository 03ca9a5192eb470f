// Memory that a kernel asks for: pieces of one array, one after the other. What is freed is not given out again.
#pragma once

__device__ unsigned char device_heap[8 << 20];
__device__ unsigned long long __lockstep_heap_used;

LOCKSTEP_API inline void *malloc(size_t bytes) {
    unsigned long long whole = (bytes + 15) / 16 * 16, first = atomicAdd(&__lockstep_heap_used, whole);
    return first + whole <= sizeof(device_heap) ? device_heap + first : (unsigned char *)0;
}
LOCKSTEP_API inline void free(void *) {}
template <typename LockstepT>
LOCKSTEP_API inline cudaError_t cudaMalloc(LockstepT **pointer, size_t bytes) {
    *pointer = (LockstepT *)malloc(bytes);
    return *pointer ? cudaSuccess : cudaErrorInvalidValue;
}
LOCKSTEP_API inline cudaError_t cudaFree(void *) { return cudaSuccess; }

LOCKSTEP_API inline void *operator new(size_t, void *place) noexcept { return place; }
