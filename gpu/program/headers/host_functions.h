// Functions and types that CUDA's headers provide to host code besides the runtime's routines.
#pragma once

#define __host__
#define __device__
#include "../../simulator/shim/lockstep/vectors.h"
#undef __host__
#undef __device__

// Names that may occur in default arguments of device functions; never accessed on the host.
extern const uint3 threadIdx, blockIdx;
extern const dim3 blockDim, gridDim;
static const int warpSize = 32;

typedef unsigned char uchar;
typedef unsigned int uint;
typedef unsigned short ushort;

#define LOCKSTEP_EXTREMES(type)                                                                                        \
    static inline type max(type a, type b) { return a < b ? b : a; }                                                   \
    static inline type min(type a, type b) { return b < a ? b : a; }
LOCKSTEP_EXTREMES(int)
LOCKSTEP_EXTREMES(unsigned int)
LOCKSTEP_EXTREMES(long)
LOCKSTEP_EXTREMES(unsigned long)
LOCKSTEP_EXTREMES(long long)
LOCKSTEP_EXTREMES(unsigned long long)
LOCKSTEP_EXTREMES(float)
LOCKSTEP_EXTREMES(double)
#undef LOCKSTEP_EXTREMES
#define LOCKSTEP_MIXED(first, second, result)                                                                          \
    static inline result max(first a, second b) { return a < b ? (result)b : (result)a; }                              \
    static inline result min(first a, second b) { return b < a ? (result)b : (result)a; }                              \
    static inline result max(second a, first b) { return a < b ? (result)b : (result)a; }                              \
    static inline result min(second a, first b) { return b < a ? (result)b : (result)a; }
LOCKSTEP_MIXED(int, unsigned int, unsigned int)
LOCKSTEP_MIXED(long, unsigned long, unsigned long)
LOCKSTEP_MIXED(long long, unsigned long long, unsigned long long)
LOCKSTEP_MIXED(float, double, double)
#undef LOCKSTEP_MIXED

static inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
static inline double rsqrt(double x) { return 1.0 / sqrt(x); }
static inline float rsqrt(float x) { return rsqrtf(x); }
static inline float rcbrtf(float x) { return 1.0f / cbrtf(x); }
static inline double rcbrt(double x) { return 1.0 / cbrt(x); }
static inline double sinpi(double x) { return sin(M_PI * x); }
static inline double cospi(double x) { return cos(M_PI * x); }
static inline float sinpif(float x) { return (float)sin(M_PI * x); }
static inline float cospif(float x) { return (float)cos(M_PI * x); }
static inline void sincospi(double x, double *s, double *c) { *s = sinpi(x), *c = cospi(x); }
static inline float __fdividef(float a, float b) { return a / b; }
#define __expf(x) expf(x)
#define __logf(x) logf(x)
#define __sinf(x) sinf(x)
#define __cosf(x) cosf(x)
#define __powf(x, y) powf(x, y)
static inline float saturate(float x) { return x < 0 ? 0 : x > 1 ? 1 : x; }
static inline float __int_as_float(int bits) {
    float x;
    memcpy(&x, &bits, 4);
    return x;
}
static inline int __float_as_int(float x) {
    int bits;
    memcpy(&bits, &x, 4);
    return bits;
}
static inline float __uint_as_float(unsigned bits) {
    float x;
    memcpy(&x, &bits, 4);
    return x;
}
static inline unsigned __float_as_uint(float x) {
    unsigned bits;
    memcpy(&bits, &x, 4);
    return bits;
}
static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __clz(int x) { return x ? __builtin_clz(x) : 32; }
template <typename T>
static inline T __ldg(const T *address) {
    return *address;
}

// Helpers of the headers that host and device share.
#define LOCKSTEP_API __host__ __device__
template <bool Condition, typename T>
struct __lockstep_if {};
template <typename T>
struct __lockstep_if<true, T> {
    typedef T type;
};
static inline float __lockstep_from_half(unsigned short bits) {
    int exponent = bits >> 10 & 31, fraction = bits & 1023;
    float size = exponent == 31 ? (fraction ? __builtin_nanf("") : __builtin_inff())
                 : exponent     ? ldexpf((float)(1024 + fraction), exponent - 25)
                                : ldexpf((float)fraction, -24);
    return bits & 0x8000 ? -size : size;
}
static inline unsigned short __lockstep_to_half(float value) {
    unsigned short sign = __float_as_uint(value) >> 31 ? 0x8000 : 0;
    float size = fabsf(value);
    if (value != value) return sign | 0x7fff;
    if (size >= 65520.0f) return sign | 0x7c00;
    if (size == 0) return sign;
    int exponent;
    frexpf(size, &exponent);
    int shift = exponent - 11 < -24 ? -24 : exponent - 11;
    // nearbyintf rounds ties to even, like all rounding of this CPU.
    int fraction = (int)nearbyintf(ldexpf(size, -shift));
    return sign | (unsigned short)(fraction + ((shift + 24) << 10));
}

#define CUDART_INF_F __builtin_inff()
#define CUDART_INF __builtin_inf()
#define CUDART_NAN_F __builtin_nanf("")
#define CUDART_NAN __builtin_nan("")
#define CUDART_PI_F 3.141592654f
#define CUDART_PI 3.1415926535897931e+0
#define CUDART_MIN_DENORM_F 1.401298464e-45f
#define CUDART_MAX_NORMAL_F 3.402823466e+38f
#define CUDART_ZERO_F 0.0f
#define CUDART_ONE_F 1.0f
