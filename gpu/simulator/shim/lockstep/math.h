// The math library, the bit functions and the conversions.
#pragma once

// The bodies are for constants: the executor knows both by name.
#define LOCKSTEP_MIN_MAX(T)                                                                                            \
    LOCKSTEP_API constexpr T min(T a, T b) { return b < a ? b : a; }                                                   \
    LOCKSTEP_API constexpr T max(T a, T b) { return a < b ? b : a; }
LOCKSTEP_FOR_NUMBERS(LOCKSTEP_MIN_MAX)
LOCKSTEP_API constexpr unsigned int min(unsigned int a, int b) { return min(a, (unsigned int)b); }
LOCKSTEP_API constexpr unsigned int min(int a, unsigned int b) { return min((unsigned int)a, b); }
LOCKSTEP_API constexpr unsigned int max(unsigned int a, int b) { return max(a, (unsigned int)b); }
LOCKSTEP_API constexpr double min(float a, double b) { return min((double)a, b); }
LOCKSTEP_API constexpr double min(double a, float b) { return min(a, (double)b); }
LOCKSTEP_API constexpr double max(float a, double b) { return max((double)a, b); }
LOCKSTEP_API constexpr double max(double a, float b) { return max(a, (double)b); }
LOCKSTEP_API constexpr unsigned int max(int a, unsigned int b) { return max((unsigned int)a, b); }

LOCKSTEP_API inline unsigned int umin(unsigned int a, unsigned int b) { return min(a, b); }
LOCKSTEP_API inline unsigned int umax(unsigned int a, unsigned int b) { return max(a, b); }

LOCKSTEP_API int abs(int x);
LOCKSTEP_API long abs(long x);
LOCKSTEP_API long long abs(long long x);
LOCKSTEP_API float abs(float x);
LOCKSTEP_API double abs(double x);
LOCKSTEP_API long long llabs(long long x);

#define LOCKSTEP_MATH_1(name)                                                                                          \
    LOCKSTEP_API float name##f(float x);                                                                               \
    LOCKSTEP_API float name(float x);                                                                                  \
    LOCKSTEP_API double name(double x);                                                                                \
    LOCKSTEP_API inline double name(int x) { return name((double)x); }                                                 \
    LOCKSTEP_API inline double name(unsigned int x) { return name((double)x); }                                        \
    LOCKSTEP_API inline double name(long x) { return name((double)x); }                                                \
    LOCKSTEP_API inline double name(unsigned long x) { return name((double)x); }                                       \
    LOCKSTEP_API inline double name(long long x) { return name((double)x); }                                           \
    LOCKSTEP_API inline double name(unsigned long long x) { return name((double)x); }
#define LOCKSTEP_MATH_2(name)                                                                                          \
    LOCKSTEP_API float name##f(float x, float y);                                                                      \
    LOCKSTEP_API float name(float x, float y);                                                                         \
    LOCKSTEP_API double name(double x, double y);
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
LOCKSTEP_API inline float pow(float x, int y) { return pow(x, (float)y); }
template <bool Condition, typename LockstepT>
struct __lockstep_if {};
template <typename LockstepT>
struct __lockstep_if<true, LockstepT> {
    using type = LockstepT;
};
// Of any other two numbers.
template <typename LockstepT, typename LockstepU>
LOCKSTEP_API inline typename __lockstep_if<__is_arithmetic(LockstepT) && __is_arithmetic(LockstepU), double>::type pow(
    LockstepT x, LockstepU y) {
    return pow((double)x, (double)y);
}
LOCKSTEP_API float fmaf(float x, float y, float z);
LOCKSTEP_API float fma(float x, float y, float z);
LOCKSTEP_API double fma(double x, double y, double z);
LOCKSTEP_API float __expf(float x);
LOCKSTEP_API float __exp10f(float x);
LOCKSTEP_API float __logf(float x);
LOCKSTEP_API float __log2f(float x);
LOCKSTEP_API float __log10f(float x);
LOCKSTEP_API float __sinf(float x);
LOCKSTEP_API float __cosf(float x);
LOCKSTEP_API float __tanf(float x);
LOCKSTEP_API float __powf(float x, float y);
LOCKSTEP_API float __fdividef(float x, float y);
LOCKSTEP_API float __frcp_rn(float x);
LOCKSTEP_API float __fsqrt_rn(float x);
LOCKSTEP_API float __frsqrt_rn(float x);
LOCKSTEP_API float __fadd_rn(float x, float y);
LOCKSTEP_API float __fsub_rn(float x, float y);
LOCKSTEP_API float __fmul_rn(float x, float y);
LOCKSTEP_API float __fdiv_rn(float x, float y);
LOCKSTEP_API float __fmaf_rn(float x, float y, float z);
LOCKSTEP_API float __saturatef(float x);
LOCKSTEP_API inline void sincosf(float x, float *s, float *c) {
    *s = sinf(x);
    *c = cosf(x);
}
LOCKSTEP_API inline void __sincosf(float x, float *s, float *c) { sincosf(x, s, c); }

LOCKSTEP_API float __lockstep_mantissa(float x);
LOCKSTEP_API double __lockstep_mantissa(double x);
LOCKSTEP_API int __lockstep_exponent(float x);
LOCKSTEP_API int __lockstep_exponent(double x);
LOCKSTEP_API float ldexpf(float x, int exponent);
LOCKSTEP_API float ldexp(float x, int exponent);
LOCKSTEP_API double ldexp(double x, int exponent);
#define LOCKSTEP_IN_PARTS(T, suffix)                                                                                   \
    LOCKSTEP_API inline T frexp##suffix(T x, int *exponent) {                                                          \
        *exponent = __lockstep_exponent(x);                                                                            \
        return __lockstep_mantissa(x);                                                                                 \
    }                                                                                                                  \
    LOCKSTEP_API inline T modf##suffix(T x, T *whole) {                                                                \
        *whole = trunc(x);                                                                                             \
        return isinf(x) ? copysign((T)0, x) : copysign(x - *whole, x);                                                 \
    }
LOCKSTEP_API bool isinf(float x);
LOCKSTEP_API bool isinf(double x);
LOCKSTEP_IN_PARTS(float, f)
LOCKSTEP_IN_PARTS(float, )
LOCKSTEP_IN_PARTS(double, )

LOCKSTEP_API bool isnan(float x);
LOCKSTEP_API bool isnan(double x);
LOCKSTEP_API bool isfinite(float x);
LOCKSTEP_API bool isfinite(double x);

LOCKSTEP_API int __popc(unsigned int x);
LOCKSTEP_API int __popcll(unsigned long long x);
LOCKSTEP_API int __clz(int x);
LOCKSTEP_API int __clzll(long long x);
LOCKSTEP_API int __ffs(int x);
LOCKSTEP_API int __ffsll(long long x);
LOCKSTEP_API unsigned int __brev(unsigned int x);
LOCKSTEP_API int __mul24(int x, int y);
LOCKSTEP_API unsigned int __umul24(unsigned int x, unsigned int y);
LOCKSTEP_API int __mulhi(int x, int y);
LOCKSTEP_API unsigned int __umulhi(unsigned int x, unsigned int y);
LOCKSTEP_API inline unsigned int __funnelshift_l(unsigned int low, unsigned int high, unsigned int shift) {
    return (shift & 31) == 0 ? high : (high << (shift & 31)) | (low >> (32 - (shift & 31)));
}
LOCKSTEP_API inline unsigned int __funnelshift_r(unsigned int low, unsigned int high, unsigned int shift) {
    return (shift & 31) == 0 ? low : (low >> (shift & 31)) | (high << (32 - (shift & 31)));
}

LOCKSTEP_API int __float_as_int(float x);
LOCKSTEP_API unsigned int __float_as_uint(float x);
LOCKSTEP_API float __int_as_float(int x);
LOCKSTEP_API float __uint_as_float(unsigned int x);
LOCKSTEP_API long long __double_as_longlong(double x);
LOCKSTEP_API double __longlong_as_double(long long x);
LOCKSTEP_API inline int __float2int_rz(float x) { return (int)x; }
LOCKSTEP_API inline int __float2int_rd(float x) { return (int)floorf(x); }
LOCKSTEP_API inline int __float2int_ru(float x) { return (int)ceilf(x); }
LOCKSTEP_API inline int __float2int_rn(float x) { return (int)rintf(x); }
LOCKSTEP_API inline unsigned int __float2uint_rz(float x) { return (unsigned int)x; }
LOCKSTEP_API inline unsigned int __float2uint_rn(float x) { return (unsigned int)rintf(x); }
LOCKSTEP_API inline float __int2float_rn(int x) { return (float)x; }
LOCKSTEP_API inline float __uint2float_rn(unsigned int x) { return (float)x; }
