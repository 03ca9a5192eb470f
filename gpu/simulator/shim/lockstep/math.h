// The math library, the bit functions and the conversions.
#pragma once

#define LOCKSTEP_MIN_MAX(T)                                                                                            \
    __device__ T min(T a, T b);                                                                                        \
    __device__ T max(T a, T b);
LOCKSTEP_FOR_NUMBERS(LOCKSTEP_MIN_MAX)
__device__ inline unsigned int min(unsigned int a, int b) { return min(a, (unsigned int)b); }
__device__ inline unsigned int min(int a, unsigned int b) { return min((unsigned int)a, b); }
__device__ inline unsigned int max(unsigned int a, int b) { return max(a, (unsigned int)b); }
__device__ inline unsigned int max(int a, unsigned int b) { return max((unsigned int)a, b); }

__device__ int abs(int x);
__device__ long abs(long x);
__device__ long long abs(long long x);
__device__ float abs(float x);
__device__ double abs(double x);
__device__ long long llabs(long long x);

#define LOCKSTEP_MATH_1(name)                                                                                          \
    __device__ float name##f(float x);                                                                                 \
    __device__ float name(float x);                                                                                    \
    __device__ double name(double x);                                                                                  \
    __device__ inline double name(int x) { return name((double)x); }
#define LOCKSTEP_MATH_2(name)                                                                                          \
    __device__ float name##f(float x, float y);                                                                        \
    __device__ float name(float x, float y);                                                                           \
    __device__ double name(double x, double y);
LOCKSTEP_MATH_1(sqrt)
LOCKSTEP_MATH_1(rsqrt)
LOCKSTEP_MATH_1(cbrt)
LOCKSTEP_MATH_1(exp)
LOCKSTEP_MATH_1(exp2)
LOCKSTEP_MATH_1(exp10)
LOCKSTEP_MATH_1(expm1)
LOCKSTEP_MATH_1(log)
LOCKSTEP_MATH_1(log2)
LOCKSTEP_MATH_1(log10)
LOCKSTEP_MATH_1(log1p)
LOCKSTEP_MATH_1(sin)
LOCKSTEP_MATH_1(cos)
LOCKSTEP_MATH_1(tan)
LOCKSTEP_MATH_1(asin)
LOCKSTEP_MATH_1(acos)
LOCKSTEP_MATH_1(atan)
LOCKSTEP_MATH_1(sinh)
LOCKSTEP_MATH_1(cosh)
LOCKSTEP_MATH_1(tanh)
LOCKSTEP_MATH_1(erf)
LOCKSTEP_MATH_1(erfc)
LOCKSTEP_MATH_1(fabs)
LOCKSTEP_MATH_1(floor)
LOCKSTEP_MATH_1(ceil)
LOCKSTEP_MATH_1(trunc)
LOCKSTEP_MATH_1(round)
LOCKSTEP_MATH_1(rint)
LOCKSTEP_MATH_1(nearbyint)
LOCKSTEP_MATH_2(pow)
LOCKSTEP_MATH_2(fmin)
LOCKSTEP_MATH_2(fmax)
LOCKSTEP_MATH_2(fmod)
LOCKSTEP_MATH_2(atan2)
LOCKSTEP_MATH_2(hypot)
LOCKSTEP_MATH_2(copysign)
LOCKSTEP_MATH_2(fdim)
__device__ inline float pow(float x, int y) { return pow(x, (float)y); }
__device__ inline double pow(double x, int y) { return pow(x, (double)y); }
__device__ inline double pow(int x, int y) { return pow((double)x, (double)y); }
__device__ float fmaf(float x, float y, float z);
__device__ float fma(float x, float y, float z);
__device__ double fma(double x, double y, double z);
__device__ float __expf(float x);
__device__ float __exp10f(float x);
__device__ float __logf(float x);
__device__ float __log2f(float x);
__device__ float __log10f(float x);
__device__ float __sinf(float x);
__device__ float __cosf(float x);
__device__ float __tanf(float x);
__device__ float __powf(float x, float y);
__device__ float __fdividef(float x, float y);
__device__ float __frcp_rn(float x);
__device__ float __fsqrt_rn(float x);
__device__ float __frsqrt_rn(float x);
__device__ float __fadd_rn(float x, float y);
__device__ float __fsub_rn(float x, float y);
__device__ float __fmul_rn(float x, float y);
__device__ float __fdiv_rn(float x, float y);
__device__ float __fmaf_rn(float x, float y, float z);
__device__ float __saturatef(float x);
__device__ inline void sincosf(float x, float *s, float *c) {
    *s = sinf(x);
    *c = cosf(x);
}
__device__ inline void __sincosf(float x, float *s, float *c) { sincosf(x, s, c); }

__device__ bool isnan(float x);
__device__ bool isnan(double x);
__device__ bool isinf(float x);
__device__ bool isinf(double x);
__device__ bool isfinite(float x);
__device__ bool isfinite(double x);

__device__ int __popc(unsigned int x);
__device__ int __popcll(unsigned long long x);
__device__ int __clz(int x);
__device__ int __clzll(long long x);
__device__ int __ffs(int x);
__device__ int __ffsll(long long x);
__device__ unsigned int __brev(unsigned int x);
__device__ int __mul24(int x, int y);
__device__ unsigned int __umul24(unsigned int x, unsigned int y);
__device__ int __mulhi(int x, int y);
__device__ unsigned int __umulhi(unsigned int x, unsigned int y);
__device__ inline unsigned int __funnelshift_l(unsigned int low, unsigned int high, unsigned int shift) {
    return (shift & 31) == 0 ? high : (high << (shift & 31)) | (low >> (32 - (shift & 31)));
}
__device__ inline unsigned int __funnelshift_r(unsigned int low, unsigned int high, unsigned int shift) {
    return (shift & 31) == 0 ? low : (low >> (shift & 31)) | (high << (32 - (shift & 31)));
}

__device__ int __float_as_int(float x);
__device__ unsigned int __float_as_uint(float x);
__device__ float __int_as_float(int x);
__device__ float __uint_as_float(unsigned int x);
__device__ long long __double_as_longlong(double x);
__device__ double __longlong_as_double(long long x);
__device__ inline int __float2int_rz(float x) { return (int)x; }
__device__ inline int __float2int_rd(float x) { return (int)floorf(x); }
__device__ inline int __float2int_ru(float x) { return (int)ceilf(x); }
__device__ inline int __float2int_rn(float x) { return (int)rintf(x); }
__device__ inline unsigned int __float2uint_rz(float x) { return (unsigned int)x; }
__device__ inline unsigned int __float2uint_rn(float x) { return (unsigned int)rintf(x); }
__device__ inline float __int2float_rn(int x) { return (float)x; }
__device__ inline float __uint2float_rn(unsigned int x) { return (float)x; }
