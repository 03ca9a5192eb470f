// memcpy and memset, in elements as far as the bytes are whole ones: a thread's own memory keeps elements, not bytes.
#pragma once

template <typename LockstepT, typename LockstepU>
LOCKSTEP_API inline void __lockstep_copy(LockstepT *to, const LockstepU *from, size_t bytes) {
    size_t whole = bytes / sizeof(LockstepT);
    for (size_t i = 0; i < whole; ++i) to[i] = ((const LockstepT *)from)[i];
    for (size_t i = whole * sizeof(LockstepT); i < bytes; ++i) ((char *)to)[i] = ((const char *)from)[i];
}
template <typename LockstepT, typename LockstepU>
LOCKSTEP_API inline LockstepT *memcpy(LockstepT *to, const LockstepU *from, size_t bytes) {
    if constexpr (sizeof(LockstepT) <= sizeof(LockstepU)) {
        __lockstep_copy(to, from, bytes);
    } else {
        __lockstep_copy((LockstepU *)to, from, bytes);
    }
    return to;
}
LOCKSTEP_FUNCTION void *memcpy(void *to, const void *from, size_t bytes) {
    __lockstep_copy((char *)to, (const char *)from, bytes);
    return to;
}
template <typename LockstepU>
LOCKSTEP_API inline void *memcpy(void *to, const LockstepU *from, size_t bytes) {
    __lockstep_copy((LockstepU *)to, from, bytes);
    return to;
}
template <typename LockstepT>
LOCKSTEP_API inline LockstepT *memcpy(LockstepT *to, const void *from, size_t bytes) {
    __lockstep_copy(to, (const LockstepT *)from, bytes);
    return to;
}
template <typename LockstepT, size_t Length, typename LockstepU>
LOCKSTEP_API inline LockstepT *memcpy(LockstepT (*to)[Length], const LockstepU *from, size_t bytes) {
    return memcpy((LockstepT *)to, from, bytes);
}
template <typename LockstepT, typename LockstepU, size_t Length>
LOCKSTEP_API inline LockstepT *memcpy(LockstepT *to, const LockstepU (*from)[Length], size_t bytes) {
    return memcpy(to, (const LockstepU *)from, bytes);
}
template <typename LockstepT, size_t Length, typename LockstepU, size_t Count>
LOCKSTEP_API inline LockstepT *memcpy(LockstepT (*to)[Length], const LockstepU (*from)[Count], size_t bytes) {
    return memcpy((LockstepT *)to, (const LockstepU *)from, bytes);
}

template <typename LockstepT>
LOCKSTEP_API inline void __lockstep_fill(LockstepT *to, LockstepT value, size_t bytes) {
    for (size_t i = 0; i < bytes / sizeof(LockstepT); ++i) to[i] = value;
    for (size_t i = bytes / sizeof(LockstepT) * sizeof(LockstepT); i < bytes; ++i) ((char *)to)[i] = (char)value;
}
template <typename LockstepT>
LOCKSTEP_API inline LockstepT *memset(LockstepT *to, int byte, size_t bytes) {
    unsigned long long value = (byte & 0xff) * 0x0101010101010101ull;
    if constexpr (alignof(LockstepT) >= 8) {
        __lockstep_fill((unsigned long long *)to, value, bytes);
    } else if constexpr (alignof(LockstepT) == 4) {
        __lockstep_fill((unsigned int *)to, (unsigned int)value, bytes);
    } else if constexpr (alignof(LockstepT) == 2) {
        __lockstep_fill((unsigned short *)to, (unsigned short)value, bytes);
    } else {
        __lockstep_fill((unsigned char *)to, (unsigned char)value, bytes);
    }
    return to;
}
LOCKSTEP_FUNCTION void *memset(void *to, int byte, size_t bytes) { return memset((char *)to, byte, bytes); }

// Copies to shared memory that a thread starts, in groups that it commits, and its wait for all but the last groups, or
// for all. Of the bytes only the first `given` are read, and zeros stand for the others.
LOCKSTEP_API void __lockstep_async_copy(void *to, const void *from, size_t bytes);
LOCKSTEP_API void __lockstep_async_copy(void *to, const void *from, size_t bytes, size_t given);
LOCKSTEP_API void __lockstep_async_commit();
LOCKSTEP_API void __lockstep_async_wait();
LOCKSTEP_API void __lockstep_async_wait(size_t groups);

// Barriers that are objects of 8 bytes in shared memory. To arrive returns the parity of the phase, which is asked for;
// bound, the thread's copies arrive at it, as one arrival, which may be one more than was expected. A bulk copy is bound.
__device__ void __lockstep_phase_init(void *barrier, unsigned int count);
__device__ unsigned long long __lockstep_phase_arrive(void *barrier, unsigned int count);
__device__ unsigned long long __lockstep_phase_drop(void *barrier, unsigned int count);
__device__ void __lockstep_phase_expect(void *barrier, unsigned int bytes);
__device__ void __lockstep_phase_complete(void *barrier, unsigned int bytes);
__device__ bool __lockstep_phase_test(void *barrier, unsigned long long parity);
__device__ void __lockstep_phase_bind(void *barrier, unsigned int more);
__device__ void __lockstep_bulk_copy(void *to, const void *from, unsigned int bytes, void *barrier);
// A copy of a box of a matrix; `line` is the number of the destination's line of 128 bytes.
LOCKSTEP_API void __lockstep_tensor_copy(void *to, const void *matrix, long long rows, long long row_bytes,
                                         long long pitch, long long x, long long y, long long box_rows, long long line,
                                         void *barrier);

// Asynchronous copies of the device runtime: where kernels launch kernels, such a copy is a launch of one thread, so that
// it follows earlier launches into its stream.
#ifdef LOCKSTEP_CHILD_LAUNCHES
#define LOCKSTEP_IN_ORDER(stream, name, ...) (name(__VA_ARGS__), __lockstep_launch(dim3(1), dim3(1), 0, stream))
#define LOCKSTEP_COPIES __global__
#else
#define LOCKSTEP_IN_ORDER(stream, name, ...) name(__VA_ARGS__)
#define LOCKSTEP_COPIES LOCKSTEP_API inline
#endif
template <typename LockstepT, typename LockstepU>
LOCKSTEP_COPIES void __lockstep_copy_in_order(LockstepT *to, const LockstepU *from, size_t bytes) {
    memcpy(to, from, bytes);
}
template <typename LockstepT>
LOCKSTEP_COPIES void __lockstep_fill_in_order(LockstepT *to, int byte, size_t bytes) {
    memset(to, byte, bytes);
}
template <typename LockstepT, typename LockstepU>
LOCKSTEP_API inline cudaError_t cudaMemcpyAsync(LockstepT *to, const LockstepU *from, size_t bytes, cudaMemcpyKind,
                                                cudaStream_t stream = 0) {
    LOCKSTEP_IN_ORDER(stream, __lockstep_copy_in_order, to, from, bytes);
    return cudaSuccess;
}
template <typename LockstepT>
LOCKSTEP_API inline cudaError_t cudaMemsetAsync(LockstepT *to, int byte, size_t bytes, cudaStream_t stream = 0) {
    LOCKSTEP_IN_ORDER(stream, __lockstep_fill_in_order, to, byte, bytes);
    return cudaSuccess;
}
#undef LOCKSTEP_COPIES
#undef LOCKSTEP_IN_ORDER
