// The math library and conversions: overloads and functions in terms of the intrinsics.
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

#define LOCKSTEP_MATH_1(name)                                                                                          \
    LOCKSTEP_API float name##f(float x);                                                                               \
    LOCKSTEP_API float name(float x);                                                                                  \
    LOCKSTEP_API double name(double x);                                                                                \
    LOCKSTEP_FUNCTION double name(int x) { return name((double)x); }                                                   \
    LOCKSTEP_FUNCTION double name(unsigned int x) { return name((double)x); }                                          \
    LOCKSTEP_FUNCTION double name(long x) { return name((double)x); }                                                  \
    LOCKSTEP_FUNCTION double name(unsigned long x) { return name((double)x); }                                         \
    LOCKSTEP_FUNCTION double name(long long x) { return name((double)x); }                                             \
    LOCKSTEP_FUNCTION double name(unsigned long long x) { return name((double)x); }
#define LOCKSTEP_MATH_2(name)                                                                                          \
    LOCKSTEP_API float name##f(float x, float y);                                                                      \
    LOCKSTEP_API float name(float x, float y);                                                                         \
    LOCKSTEP_API double name(double x, double y);
#include <lockstep/intrinsics.h>

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
LOCKSTEP_API inline void sincosf(float x, float *s, float *c) {
    *s = sinf(x);
    *c = cosf(x);
}
LOCKSTEP_API inline void __sincosf(float x, float *s, float *c) { sincosf(x, s, c); }

#define LOCKSTEP_IN_PARTS(T, suffix)                                                                                   \
    LOCKSTEP_API inline T frexp##suffix(T x, int *exponent) {                                                          \
        *exponent = __lockstep_exponent(x);                                                                            \
        return __lockstep_mantissa(x);                                                                                 \
    }                                                                                                                  \
    LOCKSTEP_API inline T modf##suffix(T x, T *whole) {                                                                \
        *whole = trunc(x);                                                                                             \
        return isinf(x) ? copysign((T)0, x) : copysign(x - *whole, x);                                                 \
    }
LOCKSTEP_IN_PARTS(float, f)
LOCKSTEP_IN_PARTS(float, )
LOCKSTEP_IN_PARTS(double, )

LOCKSTEP_API inline unsigned int __funnelshift_l(unsigned int low, unsigned int high, unsigned int shift) {
    return (shift & 31) == 0 ? high : (high << (shift & 31)) | (low >> (32 - (shift & 31)));
}
LOCKSTEP_API inline unsigned int __funnelshift_r(unsigned int low, unsigned int high, unsigned int shift) {
    return (shift & 31) == 0 ? low : (low >> (shift & 31)) | (high << (32 - (shift & 31)));
}

LOCKSTEP_API inline int __float2int_rz(float x) { return (int)x; }
LOCKSTEP_API inline int __float2int_rd(float x) { return (int)floorf(x); }
LOCKSTEP_API inline int __float2int_ru(float x) { return (int)ceilf(x); }
LOCKSTEP_API inline int __float2int_rn(float x) { return (int)rintf(x); }
LOCKSTEP_API inline unsigned int __float2uint_rz(float x) { return (unsigned int)x; }
LOCKSTEP_API inline unsigned int __float2uint_rn(float x) { return (unsigned int)rintf(x); }
LOCKSTEP_API inline float __int2float_rn(int x) { return (float)x; }
LOCKSTEP_API inline float __uint2float_rn(unsigned int x) { return (float)x; }
