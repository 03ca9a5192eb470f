// Atomic operations, and those of a block or the whole system, which are the same here.
#pragma once

#define LOCKSTEP_ATOMIC(T)                                                                                             \
    LOCKSTEP_API T atomicAdd(T *address, T value);                                                                     \
    LOCKSTEP_API T atomicSub(T *address, T value);                                                                     \
    LOCKSTEP_API T atomicExch(T *address, T value);                                                                    \
    LOCKSTEP_API T atomicMin(T *address, T value);                                                                     \
    LOCKSTEP_API T atomicMax(T *address, T value);                                                                     \
    LOCKSTEP_API T atomicAnd(T *address, T value);                                                                     \
    LOCKSTEP_API T atomicOr(T *address, T value);                                                                      \
    LOCKSTEP_API T atomicXor(T *address, T value);                                                                     \
    LOCKSTEP_API T atomicCAS(T *address, T expected, T value);
LOCKSTEP_ATOMIC(int)
LOCKSTEP_ATOMIC(unsigned int)
LOCKSTEP_ATOMIC(unsigned long long)
LOCKSTEP_API long long atomicMin(long long *address, long long value);
LOCKSTEP_API long long atomicMax(long long *address, long long value);
LOCKSTEP_API unsigned short atomicCAS(unsigned short *address, unsigned short expected, unsigned short value);
LOCKSTEP_API unsigned int atomicInc(unsigned int *address, unsigned int limit);
LOCKSTEP_API unsigned int atomicDec(unsigned int *address, unsigned int limit);
LOCKSTEP_API float atomicAdd(float *address, float value);
LOCKSTEP_API double atomicAdd(double *address, double value);
LOCKSTEP_API float atomicExch(float *address, float value);

#define atomicAdd_block atomicAdd
#define atomicAdd_system atomicAdd
#define atomicMin_block atomicMin
#define atomicMax_block atomicMax
#define atomicCAS_block atomicCAS
#define atomicExch_block atomicExch
#define atomicExch_system atomicExch
#define atomicCAS_system atomicCAS
#define atomicMin_system atomicMin
#define atomicMax_system atomicMax
#define atomicInc_system atomicInc
#define atomicDec_system atomicDec
#define atomicAnd_system atomicAnd
#define atomicOr_system atomicOr
#define atomicXor_system atomicXor
