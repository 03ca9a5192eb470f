// What nvcc knows by itself, declared so that clang can parse CUDA C++ without a toolkit. What has no body here the
// executor knows by name.
#pragma once

#ifdef LOCKSTEP_CHILD_LAUNCHES
// Where kernels launch kernels: clang lets device code call no __attribute__((global)).
#define __global__ __attribute__((host)) __attribute__((device)) __attribute__((annotate("lockstep kernel")))
#else
#define __global__ __attribute__((global))
#endif
#define __device__ __attribute__((device))
#define __host__ __attribute__((host))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __managed__ __attribute__((device))
#define __grid_constant__
#define LOCKSTEP_CLUSTER_DIMS(...) __attribute__((annotate("lockstep cluster", __VA_ARGS__)))
#define __cluster_dims__(...) LOCKSTEP_CLUSTER_DIMS(__VA_ARGS__)
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
#define __align__(bytes) __attribute__((aligned(bytes)))
#define alignaS _Alignas // the parser replaces alignas by it where clang allows no alignas
#define __restrict __restrict__
#define __CUDACC__ 1
#define __NVCC__ 1
#define __CUDA_ARCH__ 900
#define CUDART_VERSION 13000
#define __CUDACC_VER_MAJOR__ 13
#define __CUDACC_VER_MINOR__ 0

typedef decltype(sizeof(int)) size_t;
typedef long clock_t;
typedef decltype((char *)0 - (char *)0) ptrdiff_t;
typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long int64_t;
typedef unsigned long uint64_t;
typedef unsigned long uintptr_t;
typedef long intptr_t;
typedef long ssize_t;
typedef long intmax_t;
typedef unsigned long uintmax_t;
typedef signed char int_least8_t, int_fast8_t;
typedef unsigned char uint_least8_t, uint_fast8_t;
typedef short int_least16_t;
typedef unsigned short uint_least16_t;
typedef int int_least32_t;
typedef unsigned int uint_least32_t;
typedef long int_least64_t, int_fast16_t, int_fast32_t, int_fast64_t;
typedef unsigned long uint_least64_t, uint_fast16_t, uint_fast32_t, uint_fast64_t;
typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;

#define NULL 0
#define CHAR_BIT 8
#define INT_MAX 2147483647
#define INT_MIN (-INT_MAX - 1)
#define UINT_MAX 4294967295u
#define LLONG_MAX 9223372036854775807ll
#define ULLONG_MAX 18446744073709551615ull
#define SCHAR_MAX 127
#define SCHAR_MIN (-128)
#define UCHAR_MAX 255
#define CHAR_MAX 127
#define CHAR_MIN (-128)
#define SHRT_MAX 32767
#define SHRT_MIN (-32768)
#define USHRT_MAX 65535
#define LONG_MAX 9223372036854775807l
#define LONG_MIN (-LONG_MAX - 1)
#define ULONG_MAX 18446744073709551615ul
#define LLONG_MIN (-LLONG_MAX - 1)
#define INT8_MAX 127
#define INT8_MIN (-128)
#define INT16_MAX 32767
#define INT16_MIN (-32768)
#define INT32_MAX INT_MAX
#define INT32_MIN INT_MIN
#define INT64_MAX LONG_MAX
#define INT64_MIN LONG_MIN
#define UINT8_MAX 255
#define UINT16_MAX 65535
#define UINT32_MAX UINT_MAX
#define UINT64_MAX ULONG_MAX
#define SIZE_MAX ULONG_MAX
#define PTRDIFF_MAX LONG_MAX
#define PTRDIFF_MIN LONG_MIN
#define INTPTR_MAX LONG_MAX
#define UINTPTR_MAX ULONG_MAX
#define INT8_C(value) value
#define INT16_C(value) value
#define INT32_C(value) value
#define INT64_C(value) value##l
#define UINT8_C(value) value
#define UINT16_C(value) value
#define UINT32_C(value) value##u
#define UINT64_C(value) value##ul
#define INTMAX_C(value) value##l
#define UINTMAX_C(value) value##ul
#define INTMAX_MAX LONG_MAX
#define INTMAX_MIN LONG_MIN
#define UINTMAX_MAX ULONG_MAX
#define FLT_MAX 3.402823466e+38f
#define FLT_MIN 1.175494351e-38f
#define FLT_EPSILON 1.192092896e-7f
#define DBL_MAX 1.7976931348623157e+308
#define DBL_MIN 2.2250738585072014e-308
#define DBL_EPSILON 2.2204460492503131e-16
#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")
#define CUDART_INF_F INFINITY
#define CUDART_NAN_F NAN
#define CUDART_PI_F 3.141592654f
#define M_PI 3.14159265358979323846
#define M_PI_2 1.57079632679489661923
#define M_PI_4 0.78539816339744830962
#define M_1_PI 0.31830988618379067154
#define M_2_PI 0.63661977236758134308
#define M_2_SQRTPI 1.12837916709551257390
#define M_SQRT2 1.41421356237309504880
#define M_SQRT1_2 0.70710678118654752440
#define M_E 2.7182818284590452354
#define M_LN2 0.69314718055994530942
#define M_LN10 2.30258509299404568402
#define M_LOG2E 1.44269504088896340736
#define M_LOG10E 0.43429448190325182765
#define warpSize 32

#define LOCKSTEP_FOR_NUMBERS(declare)                                                                                  \
    declare(int) declare(unsigned int) declare(long) declare(unsigned long) declare(long long)                         \
        declare(unsigned long long) declare(float) declare(double)

// Host code may call these too; it is parsed, though never run.
#define LOCKSTEP_API __host__ __device__
// A function as a template: of the precompiled header, clang loads templates when a file uses them, and all other
// functions of devices that have bodies for each file. That took half of the time of parsing a small file. Functions
// that programs pass to others by name, such as make_float4, are not templates: a template has no type of its own.
#define LOCKSTEP_FUNCTION                                                                                              \
    template <int = 0>                                                                                                 \
    LOCKSTEP_API inline

#include "lockstep/vectors.h"

extern const __device__ uint3 threadIdx;
extern const __device__ uint3 blockIdx;
extern const __device__ dim3 blockDim;
extern const __device__ dim3 gridDim;
extern const __device__ dim3 __lockstep_clusterDim;

#include "lockstep/atomics.h"
#include "lockstep/math.h"
#include "lockstep/special.h"
#include "lockstep/directed_rounding.h"
#include "lockstep/simd.h"
#include "lockstep/warp.h"

// A load through the read-only cache.
template <typename LockstepT>
LOCKSTEP_API LockstepT __ldg(const LockstepT *address);

// Loads and stores that hint at the cache are loads and stores.
#define LOCKSTEP_LOAD(name)                                                                                            \
    template <typename LockstepT>                                                                                      \
    LOCKSTEP_API inline LockstepT name(const LockstepT *address) {                                                     \
        return *address;                                                                                               \
    }
#define LOCKSTEP_STORE(name)                                                                                           \
    template <typename LockstepT>                                                                                      \
    LOCKSTEP_API inline void name(LockstepT *address, LockstepT value) {                                               \
        *address = value;                                                                                              \
    }
LOCKSTEP_LOAD(__ldcs)
LOCKSTEP_LOAD(__ldcg)
LOCKSTEP_LOAD(__ldca)
LOCKSTEP_LOAD(__ldlu)
LOCKSTEP_LOAD(__ldcv)
LOCKSTEP_STORE(__stwb)
LOCKSTEP_STORE(__stwt)
LOCKSTEP_STORE(__stcs)
LOCKSTEP_STORE(__stcg)
#undef LOCKSTEP_LOAD
#undef LOCKSTEP_STORE

// A texture over linear memory is that memory: fetches by element are loads.
typedef const unsigned char *cudaTextureObject_t, *CUtexObject;
template <typename LockstepT>
LOCKSTEP_API inline LockstepT tex1Dfetch(cudaTextureObject_t texture, int element) {
    return ((const LockstepT *)texture)[element];
}

LOCKSTEP_API int printf(const char *format, ...);
LOCKSTEP_API void __lockstep_assert(bool condition, const char *text);
#define assert(condition) __lockstep_assert((condition), #condition)
// They count the rounds of loops and their own calls.
__device__ long long clock64();
__device__ clock_t clock();
__device__ void __nanosleep(unsigned int nanoseconds);
__device__ inline void __trap() { __lockstep_assert(false, "__trap() is not reached"); }

#include "lockstep/launches.h"
#include "lockstep/bytes.h"
#include "lockstep/std.h"
// The front end finds the functions of this block by their names.
extern "C++" {
#include "lockstep/heap.h"
#include "lockstep/textures/textures.h"
#include "lockstep/textures/surfaces.h"
#include "lockstep/tensor.h"
#include "lockstep/ptx.h"
}
