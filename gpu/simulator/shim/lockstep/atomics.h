// Atomic operations, and those of a block or the whole system, which are the same here.
#pragma once

#define LOCKSTEP_ATOMIC(T)                                                                                             \
    __device__ T atomicAdd(T *address, T value);                                                                       \
    __device__ T atomicSub(T *address, T value);                                                                       \
    __device__ T atomicExch(T *address, T value);                                                                      \
    __device__ T atomicMin(T *address, T value);                                                                       \
    __device__ T atomicMax(T *address, T value);                                                                       \
    __device__ T atomicAnd(T *address, T value);                                                                       \
    __device__ T atomicOr(T *address, T value);                                                                        \
    __device__ T atomicXor(T *address, T value);                                                                       \
    __device__ T atomicCAS(T *address, T expected, T value);
LOCKSTEP_ATOMIC(int)
LOCKSTEP_ATOMIC(unsigned int)
LOCKSTEP_ATOMIC(unsigned long long)
__device__ long long atomicMin(long long *address, long long value);
__device__ long long atomicMax(long long *address, long long value);
__device__ unsigned short atomicCAS(unsigned short *address, unsigned short expected, unsigned short value);
__device__ unsigned int atomicInc(unsigned int *address, unsigned int limit);
__device__ unsigned int atomicDec(unsigned int *address, unsigned int limit);
__device__ float atomicAdd(float *address, float value);
__device__ double atomicAdd(double *address, double value);
__device__ float atomicExch(float *address, float value);

#define atomicAdd_block atomicAdd
#define atomicAdd_system atomicAdd
#define atomicMin_block atomicMin
#define atomicMax_block atomicMax
#define atomicCAS_block atomicCAS
#define atomicExch_block atomicExch
