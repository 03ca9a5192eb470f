// Memory that a kernel asks for: pieces of one array, one after the other, with a gap behind each, so that checkers tell
// apart what runs over. What is freed is not given out again.
#pragma once

// 8 MB, as on a GPU, and room for the gaps.
__device__ unsigned char device_heap[(8 << 20) + (1 << 16)];
__device__ unsigned long long __lockstep_heap_used;

LOCKSTEP_API void __lockstep_allocated(void *pointer, size_t bytes);
LOCKSTEP_API void __lockstep_freed(void *pointer);

LOCKSTEP_API inline void *malloc(size_t bytes) {
    if (bytes > sizeof(device_heap)) return 0;
    unsigned long long whole = (bytes + 31) / 16 * 16, first = atomicAdd(&__lockstep_heap_used, whole);
    if (first + whole > sizeof(device_heap)) return 0;
    __lockstep_allocated(device_heap + first, bytes);
    return device_heap + first;
}
LOCKSTEP_API inline void *__lockstep_zeroed(size_t bytes) {
    unsigned char *made = (unsigned char *)malloc(bytes);
    for (size_t i = 0; made && i < bytes; ++i) made[i] = 0;
    return made;
}
LOCKSTEP_API inline void free(void *pointer) { __lockstep_freed(pointer); }
template <typename LockstepT>
LOCKSTEP_API inline cudaError_t cudaMalloc(LockstepT **pointer, size_t bytes) {
    *pointer = (LockstepT *)malloc(bytes);
    return *pointer ? cudaSuccess : cudaErrorInvalidValue;
}
LOCKSTEP_API inline cudaError_t cudaFree(void *pointer) {
    free(pointer);
    return cudaSuccess;
}

LOCKSTEP_API inline void *operator new(size_t, void *place) noexcept { return place; }
LOCKSTEP_API inline void *operator new[](size_t, void *place) noexcept { return place; }
