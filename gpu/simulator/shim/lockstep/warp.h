// What the lanes of a warp and the threads of a block do together.
#pragma once

__device__ void __syncthreads();
__device__ int __syncthreads_count(int predicate);
__device__ int __syncthreads_and(int predicate);
__device__ int __syncthreads_or(int predicate);
__device__ void __syncwarp(unsigned int mask = 0xffffffffu);
__device__ void __threadfence();
__device__ void __threadfence_block();
__device__ void __threadfence_system();

#define LOCKSTEP_SHUFFLES(T)                                                                                           \
    __device__ T __shfl_sync(unsigned int mask, T value, int lane, int width = 32);                                    \
    __device__ T __shfl_up_sync(unsigned int mask, T value, unsigned int delta, int width = 32);                       \
    __device__ T __shfl_down_sync(unsigned int mask, T value, unsigned int delta, int width = 32);                     \
    __device__ T __shfl_xor_sync(unsigned int mask, T value, int lane_mask, int width = 32);
LOCKSTEP_FOR_NUMBERS(LOCKSTEP_SHUFFLES)

#define LOCKSTEP_MATCH(T) __device__ unsigned int __match_any_sync(unsigned int mask, T value);
LOCKSTEP_FOR_NUMBERS(LOCKSTEP_MATCH)
template <typename LockstepT>
__device__ inline unsigned int __match_all_sync(unsigned int mask, LockstepT value, int *all) {
    *all = (__match_any_sync(mask, value) & mask) == mask;
    return *all ? mask : 0;
}

__device__ unsigned int __ballot_sync(unsigned int mask, int predicate);
__device__ int __any_sync(unsigned int mask, int predicate);
__device__ int __all_sync(unsigned int mask, int predicate);
__device__ unsigned int __activemask();

#define LOCKSTEP_REDUCE(T)                                                                                             \
    __device__ T __reduce_add_sync(unsigned int mask, T value);                                                        \
    __device__ T __reduce_min_sync(unsigned int mask, T value);                                                        \
    __device__ T __reduce_max_sync(unsigned int mask, T value);
LOCKSTEP_REDUCE(int)
LOCKSTEP_REDUCE(unsigned int)
__device__ unsigned int __reduce_and_sync(unsigned int mask, unsigned int value);
__device__ unsigned int __reduce_or_sync(unsigned int mask, unsigned int value);
__device__ unsigned int __reduce_xor_sync(unsigned int mask, unsigned int value);

// The forms from before Volta, which old kernels use: the lanes that are there take part. Templates, so that a function
// of that name which a program has of its own, for its own types, is taken.
#define LOCKSTEP_OLD_SHUFFLE(name)                                                                                     \
    template <typename LockstepT, int = sizeof(char[__is_arithmetic(LockstepT) ? 1 : -1])>                             \
    __device__ inline LockstepT name(LockstepT value, int by, int width = 32) {                                        \
        return name##_sync(__activemask(), value, by, width);                                                          \
    }
LOCKSTEP_OLD_SHUFFLE(__shfl)
LOCKSTEP_OLD_SHUFFLE(__shfl_up)
LOCKSTEP_OLD_SHUFFLE(__shfl_down)
LOCKSTEP_OLD_SHUFFLE(__shfl_xor)
#undef LOCKSTEP_OLD_SHUFFLE
template <typename LockstepT>
__device__ inline unsigned int __ballot(LockstepT predicate) {
    return __ballot_sync(__activemask(), predicate);
}
template <typename LockstepT>
__device__ inline int __any(LockstepT predicate) {
    return __any_sync(__activemask(), predicate);
}
template <typename LockstepT>
__device__ inline int __all(LockstepT predicate) {
    return __all_sync(__activemask(), predicate);
}
