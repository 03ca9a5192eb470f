// Functions and types that CUDA's headers provide to host code besides the runtime's routines.
#pragma once

// In C++ files these are macros, which the rest of the file needs.
#pragma push_macro("__host__")
#pragma push_macro("__device__")
#undef __host__
#undef __device__
#define __host__
#define __device__
#define LOCKSTEP_API
#include "../../../simulator/shim/lockstep/pi.h"
#include "../../../simulator/shim/lockstep/vectors.h"
#undef LOCKSTEP_API
#pragma pop_macro("__host__")
#pragma pop_macro("__device__")

// Names that may occur in default arguments of device functions; never accessed on the host.
extern const uint3 threadIdx, blockIdx;
extern const dim3 blockDim, gridDim;
static const int warpSize = 32;

typedef unsigned char uchar;
typedef unsigned int uint;
typedef unsigned short ushort;

#include "host_intrinsics.h"

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

static inline float rcbrtf(float x) { return 1.0f / cbrtf(x); }
static inline double rcbrt(double x) { return 1.0 / cbrt(x); }
static inline float saturate(float x) { return x < 0 ? 0 : x > 1 ? 1 : x; }
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
