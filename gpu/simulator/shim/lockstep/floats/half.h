// __half and half2.
#pragma once
#include <lockstep/floats/small_floats.h>

LOCKSTEP_API float __lockstep_from_half(unsigned short bits);
LOCKSTEP_API unsigned short __lockstep_to_half(float value);

struct __half_raw {
    unsigned short x;
};
struct __half {
    unsigned short bits;
    __half() = default;
    LOCKSTEP_API __half(float value) : bits(__lockstep_to_half(value)) {}
    LOCKSTEP_API __half(__half_raw raw) : bits(raw.x) {}
    LOCKSTEP_API operator float() const { return __lockstep_from_half(bits); }
    LOCKSTEP_API operator __half_raw() const { return __half_raw{bits}; }
};
typedef __half half;
typedef __half __nv_half;
typedef __half nv_half;
LOCKSTEP_SMALL_FLOAT(__half)
LOCKSTEP_SMALL_CONVERSIONS(__half, half)

struct __half2_raw {
    unsigned short x, y;
};
struct __align__(4) __half2 {
    __half x, y;
    __half2() = default;
    LOCKSTEP_API __half2(__half low, __half high) : x(low), y(high) {}
    LOCKSTEP_API __half2(__half2_raw raw) : x(__ushort_as_half(raw.x)), y(__ushort_as_half(raw.y)) {}
};
typedef __half2 half2;
typedef __half2 __nv_half2;
LOCKSTEP_PAIR_OF_SMALL_FLOATS(__half2)
LOCKSTEP_SMALL_EXCHANGES(__half, __half2)
LOCKSTEP_API inline __half2 __halves2half2(__half low, __half high) { return __half2(low, high); }
LOCKSTEP_API inline __half2 make_half2(__half low, __half high) { return __half2(low, high); }
LOCKSTEP_API inline __half2 __half2half2(__half value) { return __half2(value, value); }
LOCKSTEP_API inline __half2 __float2half2_rn(float value) { return __half2(__half(value), __half(value)); }
LOCKSTEP_API inline __half2 __floats2half2_rn(float low, float high) { return __half2(__half(low), __half(high)); }
LOCKSTEP_API inline __half2 __float22half2_rn(float2 value) { return __floats2half2_rn(value.x, value.y); }
LOCKSTEP_API inline float2 __half22float2(__half2 value) { return make_float2((float)value.x, (float)value.y); }
LOCKSTEP_API inline __half __low2half(__half2 value) { return value.x; }
LOCKSTEP_API inline __half __high2half(__half2 value) { return value.y; }
LOCKSTEP_API inline __half2 __low2half2(__half2 value) { return __half2(value.x, value.x); }
LOCKSTEP_API inline __half2 __high2half2(__half2 value) { return __half2(value.y, value.y); }
LOCKSTEP_API inline __half2 __lows2half2(__half2 a, __half2 b) { return __half2(a.x, b.x); }
LOCKSTEP_API inline __half2 __highs2half2(__half2 a, __half2 b) { return __half2(a.y, b.y); }
