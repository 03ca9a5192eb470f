// Less common functions of the math library, in terms of the intrinsics.
#pragma once

LOCKSTEP_API inline bool signbit(float x) { return __float_as_int(x) < 0; }
LOCKSTEP_API inline bool signbit(double x) { return __double_as_longlong(x) < 0; }

#define LOCKSTEP_SPECIAL(T, f)                                                                                         \
    LOCKSTEP_API inline T rcbrt##f(T x) { return 1 / cbrt(x); }                                                        \
    LOCKSTEP_API inline T rhypot##f(T x, T y) { return 1 / hypot(x, y); }                                              \
    LOCKSTEP_API inline T norm3d##f(T x, T y, T z) { return sqrt(x * x + y * y + z * z); }                             \
    LOCKSTEP_API inline T norm4d##f(T x, T y, T z, T w) { return sqrt(x * x + y * y + z * z + w * w); }                \
    LOCKSTEP_API inline T rnorm3d##f(T x, T y, T z) { return 1 / sqrt(x * x + y * y + z * z); }                        \
    LOCKSTEP_API inline T rnorm4d##f(T x, T y, T z, T w) { return 1 / sqrt(x * x + y * y + z * z + w * w); }           \
    LOCKSTEP_API inline T norm##f(int count, const T *values) {                                                        \
        T sum = 0;                                                                                                     \
        for (int i = 0; i < count; ++i) sum += values[i] * values[i];                                                  \
        return sqrt(sum);                                                                                              \
    }                                                                                                                  \
    LOCKSTEP_API inline T rnorm##f(int count, const T *values) { return 1 / norm##f(count, values); }                  \
    LOCKSTEP_API inline long lrint##f(T x) { return (long)rint(x); }                                                   \
    LOCKSTEP_API inline long long llrint##f(T x) { return (long long)rint(x); }                                        \
    LOCKSTEP_API inline long lround##f(T x) { return (long)round(x); }                                                 \
    LOCKSTEP_API inline long long llround##f(T x) { return (long long)round(x); }                                      \
    LOCKSTEP_API inline T scalbn##f(T x, int exponent) { return ldexp(x, exponent); }                                  \
    LOCKSTEP_API inline T scalbln##f(T x, long exponent) { return ldexp(x, (int)exponent); }                           \
    LOCKSTEP_API inline int ilogb##f(T x) {                                                                            \
        return x == 0 || isnan(x) ? INT_MIN : isinf(x) ? INT_MAX : __lockstep_exponent(x) - 1;                         \
    }                                                                                                                  \
    LOCKSTEP_API inline T logb##f(T x) {                                                                               \
        return x == 0 ? -(T)INFINITY : isfinite(x) ? (T)(__lockstep_exponent(x) - 1) : x * x;                          \
    }                                                                                                                  \
    /* The remainder of the nearest multiple of y, of two the even one. */                                             \
    LOCKSTEP_API inline T remainder##f(T x, T y) {                                                                     \
        if (!isfinite(x) || isnan(y) || y == 0) return (T)NAN;                                                         \
        if (isinf(y)) return x;                                                                                        \
        T by = fabs(y), rest = fabs(fmod(x, 2 * by)), half = by / 2;                                                   \
        if (rest > half) {                                                                                             \
            rest -= by;                                                                                                \
            if (rest >= half) rest -= by;                                                                              \
        }                                                                                                              \
        return signbit(x) ? -rest : rest;                                                                              \
    }                                                                                                                  \
    /* The remainder, and the low three bits of the quotient with its sign. */                                         \
    LOCKSTEP_API inline T remquo##f(T x, T y, int *quotient) {                                                         \
        T rest = remainder##f(x, y), by = fabs(y);                                                                     \
        int multiples = (int)rint((fmod(fabs(x), 8 * by) - (signbit(x) ? -rest : rest)) / by) & 7;                     \
        *quotient = signbit(x) == signbit(y) ? multiples : -multiples;                                                 \
        return rest;                                                                                                   \
    }
LOCKSTEP_SPECIAL(float, f)
LOCKSTEP_SPECIAL(double, )

#include <lockstep/pi.h>

#define LOCKSTEP_NEXT(T, f, Word, as_word, as_value)                                                                   \
    LOCKSTEP_API inline T nextafter##f(T x, T towards) {                                                               \
        if (isnan(x) || isnan(towards)) return (T)NAN;                                                                 \
        if (x == towards) return towards;                                                                              \
        Word bits = as_word(x);                                                                                        \
        if (x == 0) return copysign(as_value((Word)1), towards);                                                       \
        return as_value((x < towards) == (x > 0) ? bits + 1 : bits - 1);                                               \
    }
LOCKSTEP_NEXT(float, f, int, __float_as_int, __int_as_float)
LOCKSTEP_NEXT(double, , long long, __double_as_longlong, __longlong_as_double)

LOCKSTEP_API inline void sincos(double x, double *s, double *c) {
    *s = sin(x);
    *c = cos(x);
}
LOCKSTEP_API inline void sincos(float x, float *s, float *c) { sincosf(x, s, c); }
LOCKSTEP_API inline float fdividef(float x, float y) { return x / y; }
LOCKSTEP_API inline float nanf(const char *) { return __int_as_float(0x7fffffff); }
LOCKSTEP_API inline double nan(const char *) { return __longlong_as_double(0x7fffffffffffffff); }

LOCKSTEP_API inline double __ddiv_rn(double x, double y) { return x / y; }
LOCKSTEP_API inline double __drcp_rn(double x) { return 1 / x; }
LOCKSTEP_API inline double __dsqrt_rn(double x) { return sqrt(x); }
LOCKSTEP_API inline double __fma_rn(double x, double y, double z) { return fma(x, y, z); }

#define LOCKSTEP_TO_INTEGER(from, T, to, Integer)                                                                      \
    LOCKSTEP_API inline Integer __##from##2##to##_rd(T x) { return (Integer)floor(x); }                                \
    LOCKSTEP_API inline Integer __##from##2##to##_ru(T x) { return (Integer)ceil(x); }
#define LOCKSTEP_TO_INTEGER_TOO(from, T, to, Integer)                                                                  \
    LOCKSTEP_API inline Integer __##from##2##to##_rz(T x) { return (Integer)x; }                                       \
    LOCKSTEP_API inline Integer __##from##2##to##_rn(T x) { return (Integer)rint(x); }
LOCKSTEP_TO_INTEGER(float, float, uint, unsigned int)
LOCKSTEP_TO_INTEGER(float, float, ll, long long)
LOCKSTEP_TO_INTEGER(float, float, ull, unsigned long long)
LOCKSTEP_TO_INTEGER(double, double, int, int)
LOCKSTEP_TO_INTEGER(double, double, uint, unsigned int)
LOCKSTEP_TO_INTEGER(double, double, ll, long long)
LOCKSTEP_TO_INTEGER(double, double, ull, unsigned long long)
LOCKSTEP_TO_INTEGER_TOO(float, float, ll, long long)
LOCKSTEP_TO_INTEGER_TOO(float, float, ull, unsigned long long)
LOCKSTEP_TO_INTEGER_TOO(double, double, int, int)
LOCKSTEP_TO_INTEGER_TOO(double, double, uint, unsigned int)
LOCKSTEP_TO_INTEGER_TOO(double, double, ll, long long)
LOCKSTEP_TO_INTEGER_TOO(double, double, ull, unsigned long long)
LOCKSTEP_API inline float __double2float_rn(double x) { return (float)x; }
LOCKSTEP_API inline double __int2double_rn(int x) { return x; }
LOCKSTEP_API inline double __uint2double_rn(unsigned int x) { return x; }
LOCKSTEP_API inline float __ll2float_rn(long long x) { return (float)x; }
LOCKSTEP_API inline float __ull2float_rn(unsigned long long x) { return (float)x; }
LOCKSTEP_API inline double __ll2double_rn(long long x) { return (double)x; }
LOCKSTEP_API inline double __ull2double_rn(unsigned long long x) { return (double)x; }
LOCKSTEP_API inline int __double2hiint(double x) { return (int)(__double_as_longlong(x) >> 32); }
LOCKSTEP_API inline int __double2loint(double x) { return (int)__double_as_longlong(x); }
LOCKSTEP_API inline double __hiloint2double(int high, int low) {
    return __longlong_as_double(((long long)high << 32) | (unsigned int)low);
}

LOCKSTEP_API inline unsigned long long __umul64hi(unsigned long long x, unsigned long long y) {
    unsigned long long low = (x & 0xffffffffu) * (y & 0xffffffffu);
    unsigned long long cross = (x >> 32) * (y & 0xffffffffu) + (low >> 32);
    unsigned long long other = (x & 0xffffffffu) * (y >> 32) + (cross & 0xffffffffu);
    return (x >> 32) * (y >> 32) + (cross >> 32) + (other >> 32);
}
LOCKSTEP_API inline long long __mul64hi(long long x, long long y) {
    long long high = (long long)__umul64hi((unsigned long long)x, (unsigned long long)y);
    return high - (x < 0 ? y : 0) - (y < 0 ? x : 0);
}
LOCKSTEP_API inline unsigned long long __brevll(unsigned long long x) {
    return ((unsigned long long)__brev((unsigned int)x) << 32) | __brev((unsigned int)(x >> 32));
}
// The position of the |offset|-th set bit, from `base` on upwards or, for a negative offset, downwards.
LOCKSTEP_API inline unsigned int __fns(unsigned int mask, unsigned int base, int offset) {
    int left = offset < 0 ? -offset : offset ? offset : 1, step = offset < 0 ? -1 : offset ? 1 : 32;
    for (int place = (int)base; place >= 0 && place < 32; place += step) {
        if (mask >> place & 1 && --left == 0) return (unsigned int)place;
    }
    return 0xffffffffu;
}
LOCKSTEP_API inline unsigned int __sad(int x, int y, unsigned int z) {
    return z + (x > y ? (unsigned int)x - (unsigned int)y : (unsigned int)y - (unsigned int)x);
}
LOCKSTEP_API inline unsigned int __usad(unsigned int x, unsigned int y, unsigned int z) {
    return z + (x > y ? x - y : y - x);
}
LOCKSTEP_API inline int __hadd(int x, int y) { return (int)(((long long)x + y) >> 1); }
LOCKSTEP_API inline int __rhadd(int x, int y) { return (int)(((long long)x + y + 1) >> 1); }
LOCKSTEP_API inline unsigned int __uhadd(unsigned int x, unsigned int y) {
    return (unsigned int)(((unsigned long long)x + y) >> 1);
}
LOCKSTEP_API inline unsigned int __urhadd(unsigned int x, unsigned int y) {
    return (unsigned int)(((unsigned long long)x + y + 1) >> 1);
}
LOCKSTEP_API inline int __dp4a(int x, int y, int sum) {
    for (int shift = 0; shift < 32; shift += 8) sum += (signed char)(x >> shift) * (signed char)(y >> shift);
    return sum;
}
LOCKSTEP_API inline unsigned int __dp4a(unsigned int x, unsigned int y, unsigned int sum) {
    for (int shift = 0; shift < 32; shift += 8) sum += ((x >> shift) & 0xffu) * ((y >> shift) & 0xffu);
    return sum;
}

LOCKSTEP_API inline int __dp4a(char4 x, char4 y, int sum) {
    return sum + x.x * y.x + x.y * y.y + x.z * y.z + x.w * y.w;
}
LOCKSTEP_API inline unsigned int __dp4a(uchar4 x, uchar4 y, unsigned int sum) {
    return sum + x.x * y.x + x.y * y.y + x.z * y.z + x.w * y.w;
}
// Two halves of one word times two bytes of another one: its lower, or its upper.
#define LOCKSTEP_DP2A(name, T, half, byte, first)                                                                      \
    LOCKSTEP_API inline T name(T x, T y, T sum) {                                                                      \
        return sum + (half)x * (byte)(y >> first) + (half)(x >> 16) * (byte)(y >> (first + 8));                        \
    }
LOCKSTEP_DP2A(__dp2a_lo, int, short, signed char, 0)
LOCKSTEP_DP2A(__dp2a_hi, int, short, signed char, 16)
LOCKSTEP_DP2A(__dp2a_lo, unsigned int, unsigned short, unsigned char, 0)
LOCKSTEP_DP2A(__dp2a_hi, unsigned int, unsigned short, unsigned char, 16)
#undef LOCKSTEP_DP2A
