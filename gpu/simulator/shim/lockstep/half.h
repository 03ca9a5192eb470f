// __half and __nv_bfloat16, for storage: arithmetic happens in float.
#pragma once

LOCKSTEP_API float __lockstep_from_half(unsigned short bits);
LOCKSTEP_API unsigned short __lockstep_to_half(float value);

struct __half {
    unsigned short bits;
    __half() = default;
    LOCKSTEP_API __half(float value) : bits(__lockstep_to_half(value)) {}
    LOCKSTEP_API operator float() const { return __lockstep_from_half(bits); }
};
typedef __half half;
LOCKSTEP_API inline __half __float2half(float value) { return __half(value); }
LOCKSTEP_API inline __half __float2half_rn(float value) { return __half(value); }
LOCKSTEP_API inline float __half2float(__half value) { return (float)value; }

LOCKSTEP_API int __float_as_int(float x);
LOCKSTEP_API float __int_as_float(int x);

struct __nv_bfloat16 {
    unsigned short bits;
    __nv_bfloat16() = default;
    LOCKSTEP_API __nv_bfloat16(float value) {
        unsigned int word = (unsigned int)__float_as_int(value);
        bits = (unsigned short)((word + 0x7fffu + ((word >> 16) & 1u)) >> 16);
    }
    LOCKSTEP_API operator float() const { return __int_as_float((int)((unsigned int)bits << 16)); }
};
LOCKSTEP_API inline __nv_bfloat16 __float2bfloat16(float value) { return __nv_bfloat16(value); }
LOCKSTEP_API inline float __bfloat162float(__nv_bfloat16 value) { return (float)value; }
