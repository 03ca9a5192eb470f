// __nv_bfloat16 and pairs of it: the upper half of a float.
#pragma once
#include <lockstep/floats/small_floats.h>

LOCKSTEP_API int __float_as_int(float x);
LOCKSTEP_API float __int_as_float(int x);

struct __nv_bfloat16_raw {
    unsigned short x;
};
struct __nv_bfloat16 {
    unsigned short bits;
    __nv_bfloat16() = default;
    LOCKSTEP_API __nv_bfloat16(float value) {
        unsigned int word = (unsigned int)__float_as_int(value);
        bits = value != value ? 0x7fff : (unsigned short)((word + 0x7fffu + ((word >> 16) & 1u)) >> 16);
    }
    LOCKSTEP_API __nv_bfloat16(__nv_bfloat16_raw raw) : bits(raw.x) {}
    LOCKSTEP_API operator float() const { return __int_as_float((int)((unsigned int)bits << 16)); }
    LOCKSTEP_API operator __nv_bfloat16_raw() const { return __nv_bfloat16_raw{bits}; }
};
typedef __nv_bfloat16 nv_bfloat16;
LOCKSTEP_SMALL_FLOAT(__nv_bfloat16)
LOCKSTEP_SMALL_CONVERSIONS(__nv_bfloat16, bfloat16)

struct __align__(4) __nv_bfloat162 {
    __nv_bfloat16 x, y;
    __nv_bfloat162() = default;
    LOCKSTEP_API __nv_bfloat162(__nv_bfloat16 low, __nv_bfloat16 high) : x(low), y(high) {}
};
typedef __nv_bfloat162 nv_bfloat162;
LOCKSTEP_PAIR_OF_SMALL_FLOATS(__nv_bfloat162)
LOCKSTEP_SMALL_EXCHANGES(__nv_bfloat16, __nv_bfloat162)
LOCKSTEP_API inline __nv_bfloat162 make_bfloat162(__nv_bfloat16 low, __nv_bfloat16 high) {
    return __nv_bfloat162(low, high);
}
LOCKSTEP_API inline __nv_bfloat162 __halves2bfloat162(__nv_bfloat16 low, __nv_bfloat16 high) {
    return __nv_bfloat162(low, high);
}
LOCKSTEP_API inline __nv_bfloat162 __bfloat162bfloat162(__nv_bfloat16 value) { return __nv_bfloat162(value, value); }
LOCKSTEP_API inline __nv_bfloat162 __floats2bfloat162_rn(float low, float high) {
    return __nv_bfloat162(__nv_bfloat16(low), __nv_bfloat16(high));
}
LOCKSTEP_API inline __nv_bfloat162 __float2bfloat162_rn(float value) { return __floats2bfloat162_rn(value, value); }
LOCKSTEP_API inline __nv_bfloat162 __float22bfloat162_rn(float2 value) {
    return __floats2bfloat162_rn(value.x, value.y);
}
LOCKSTEP_API inline float2 __bfloat1622float2(__nv_bfloat162 value) {
    return make_float2((float)value.x, (float)value.y);
}
LOCKSTEP_API inline __nv_bfloat16 __low2bfloat16(__nv_bfloat162 value) { return value.x; }
LOCKSTEP_API inline __nv_bfloat16 __high2bfloat16(__nv_bfloat162 value) { return value.y; }
LOCKSTEP_API inline __nv_bfloat162 __low2bfloat162(__nv_bfloat162 value) { return __nv_bfloat162(value.x, value.x); }
LOCKSTEP_API inline __nv_bfloat162 __high2bfloat162(__nv_bfloat162 value) { return __nv_bfloat162(value.y, value.y); }
LOCKSTEP_API inline __nv_bfloat162 __lows2bfloat162(__nv_bfloat162 a, __nv_bfloat162 b) {
    return __nv_bfloat162(a.x, b.x);
}
LOCKSTEP_API inline __nv_bfloat162 __highs2bfloat162(__nv_bfloat162 a, __nv_bfloat162 b) {
    return __nv_bfloat162(a.y, b.y);
}
