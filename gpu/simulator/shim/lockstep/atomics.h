// Atomic operations of device scope, and those of block or system scope.
#pragma once

#define LOCKSTEP_SCOPED_ATOMIC(SUFFIX)                                                                                 \
    LOCKSTEP_ATOMIC(SUFFIX, int)                                                                                       \
    LOCKSTEP_ATOMIC(SUFFIX, unsigned int)                                                                              \
    LOCKSTEP_ATOMIC(SUFFIX, unsigned long long)                                                                        \
    LOCKSTEP_API long long atomicMin##SUFFIX(long long *address, long long value);                                     \
    LOCKSTEP_API long long atomicMax##SUFFIX(long long *address, long long value);                                     \
    LOCKSTEP_API unsigned short atomicCAS##SUFFIX(unsigned short *address, unsigned short expected,                    \
                                                  unsigned short value);                                               \
    LOCKSTEP_API unsigned int atomicInc##SUFFIX(unsigned int *address, unsigned int limit);                            \
    LOCKSTEP_API unsigned int atomicDec##SUFFIX(unsigned int *address, unsigned int limit);                            \
    LOCKSTEP_API float atomicAdd##SUFFIX(float *address, float value);                                                 \
    LOCKSTEP_API double atomicAdd##SUFFIX(double *address, double value);                                              \
    LOCKSTEP_API float atomicExch##SUFFIX(float *address, float value);
#define LOCKSTEP_ATOMIC(SUFFIX, T)                                                                                     \
    LOCKSTEP_API T atomicAdd##SUFFIX(T *address, T value);                                                             \
    LOCKSTEP_API T atomicSub##SUFFIX(T *address, T value);                                                             \
    LOCKSTEP_API T atomicExch##SUFFIX(T *address, T value);                                                            \
    LOCKSTEP_API T atomicMin##SUFFIX(T *address, T value);                                                             \
    LOCKSTEP_API T atomicMax##SUFFIX(T *address, T value);                                                             \
    LOCKSTEP_API T atomicAnd##SUFFIX(T *address, T value);                                                             \
    LOCKSTEP_API T atomicOr##SUFFIX(T *address, T value);                                                              \
    LOCKSTEP_API T atomicXor##SUFFIX(T *address, T value);                                                             \
    LOCKSTEP_API T atomicCAS##SUFFIX(T *address, T expected, T value);
LOCKSTEP_SCOPED_ATOMIC()
LOCKSTEP_SCOPED_ATOMIC(_block)
LOCKSTEP_SCOPED_ATOMIC(_system)
#undef LOCKSTEP_ATOMIC
#undef LOCKSTEP_SCOPED_ATOMIC
