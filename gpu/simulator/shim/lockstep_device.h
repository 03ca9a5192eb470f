// What nvcc knows by itself, declared so that clang can parse CUDA C++ without a toolkit. Nothing here has a body: the
// executor knows these functions by name.
#pragma once

#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __host__ __attribute__((host))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))

typedef decltype(sizeof(int)) size_t;
typedef decltype((char *)0 - (char *)0) ptrdiff_t;
typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long long int64_t;
typedef unsigned long long uint64_t;

#define INT_MAX 2147483647
#define INT_MIN (-INT_MAX - 1)
#define UINT_MAX 4294967295u
#define FLT_MAX 3.402823466e+38f
#define FLT_MIN 1.175494351e-38f
#define FLT_EPSILON 1.192092896e-7f
#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")
#define warpSize 32

struct uint3 {
    unsigned int x, y, z;
};
struct dim3 {
    unsigned int x, y, z;
};
extern const __device__ uint3 threadIdx;
extern const __device__ uint3 blockIdx;
extern const __device__ dim3 blockDim;
extern const __device__ dim3 gridDim;

__device__ void __syncthreads();
__device__ void __threadfence();
__device__ void __threadfence_block();
__device__ void __syncwarp(unsigned int mask = 0xffffffffu);

#define LOCKSTEP_FOR_NUMBERS(declare)                                                                                  \
    declare(int) declare(unsigned int) declare(long) declare(unsigned long) declare(long long)                         \
        declare(unsigned long long) declare(float) declare(double)

#define LOCKSTEP_MIN_MAX(T)                                                                                            \
    __device__ T min(T a, T b);                                                                                        \
    __device__ T max(T a, T b);
LOCKSTEP_FOR_NUMBERS(LOCKSTEP_MIN_MAX)

__device__ int abs(int x);
__device__ long long llabs(long long x);

#define LOCKSTEP_MATH_1(name)                                                                                          \
    __device__ float name##f(float x);                                                                                 \
    __device__ float name(float x);                                                                                    \
    __device__ double name(double x);
#define LOCKSTEP_MATH_2(name)                                                                                          \
    __device__ float name##f(float x, float y);                                                                        \
    __device__ float name(float x, float y);                                                                           \
    __device__ double name(double x, double y);
LOCKSTEP_MATH_1(sqrt)
LOCKSTEP_MATH_1(rsqrt)
LOCKSTEP_MATH_1(cbrt)
LOCKSTEP_MATH_1(exp)
LOCKSTEP_MATH_1(exp2)
LOCKSTEP_MATH_1(log)
LOCKSTEP_MATH_1(log2)
LOCKSTEP_MATH_1(log10)
LOCKSTEP_MATH_1(sin)
LOCKSTEP_MATH_1(cos)
LOCKSTEP_MATH_1(tan)
LOCKSTEP_MATH_1(tanh)
LOCKSTEP_MATH_1(fabs)
LOCKSTEP_MATH_1(floor)
LOCKSTEP_MATH_1(ceil)
LOCKSTEP_MATH_1(trunc)
LOCKSTEP_MATH_1(round)
LOCKSTEP_MATH_1(rint)
LOCKSTEP_MATH_2(pow)
LOCKSTEP_MATH_2(fmin)
LOCKSTEP_MATH_2(fmax)
LOCKSTEP_MATH_2(fmod)
LOCKSTEP_MATH_2(atan2)
LOCKSTEP_MATH_2(hypot)
__device__ float fmaf(float x, float y, float z);
__device__ float fma(float x, float y, float z);
__device__ double fma(double x, double y, double z);
__device__ float __expf(float x);
__device__ float __logf(float x);
__device__ float __sinf(float x);
__device__ float __cosf(float x);
__device__ float __powf(float x, float y);
__device__ float __fdividef(float x, float y);

__device__ int __popc(unsigned int x);
__device__ int __clz(int x);
__device__ int __ffs(int x);
__device__ unsigned int __brev(unsigned int x);

#define LOCKSTEP_ATOMIC(T)                                                                                             \
    __device__ T atomicAdd(T *address, T value);                                                                       \
    __device__ T atomicExch(T *address, T value);                                                                      \
    __device__ T atomicMin(T *address, T value);                                                                       \
    __device__ T atomicMax(T *address, T value);
LOCKSTEP_ATOMIC(int)
LOCKSTEP_ATOMIC(unsigned int)
LOCKSTEP_ATOMIC(unsigned long long)
__device__ float atomicAdd(float *address, float value);
__device__ double atomicAdd(double *address, double value);
__device__ float atomicExch(float *address, float value);

#define LOCKSTEP_ATOMIC_BITS(T)                                                                                        \
    __device__ T atomicSub(T *address, T value);                                                                       \
    __device__ T atomicAnd(T *address, T value);                                                                       \
    __device__ T atomicOr(T *address, T value);                                                                        \
    __device__ T atomicXor(T *address, T value);                                                                       \
    __device__ T atomicCAS(T *address, T expected, T value);
LOCKSTEP_ATOMIC_BITS(int)
LOCKSTEP_ATOMIC_BITS(unsigned int)
LOCKSTEP_ATOMIC_BITS(unsigned long long)
