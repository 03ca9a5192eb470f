// __half, half2 and __nv_bfloat16: operators of two of them and the named functions round each result; with a float,
// operators compute in float.
#pragma once

template <typename LockstepT, typename Half>
struct __lockstep_only {};
template <typename Half>
struct __lockstep_only<Half, Half> {
    using type = Half;
};
// Templates, so that nothing is converted for their sake.
#define LOCKSTEP_HALF_OPERATOR(Half, op)                                                                               \
    template <typename LockstepT>                                                                                      \
    LOCKSTEP_API inline typename __lockstep_only<LockstepT, Half>::type operator op(const LockstepT &a,                \
                                                                                    const LockstepT &b) {              \
        return LockstepT((float)a op(float) b);                                                                        \
    }                                                                                                                  \
    LOCKSTEP_API inline Half &operator op## = (Half & a, const Half &b) { return a = Half((float)a op(float) b); }
#define LOCKSTEP_HALF_OPERATORS(Half)                                                                                  \
    LOCKSTEP_HALF_OPERATOR(Half, +)                                                                                    \
    LOCKSTEP_HALF_OPERATOR(Half, -)                                                                                    \
    LOCKSTEP_HALF_OPERATOR(Half, *)                                                                                    \
    LOCKSTEP_HALF_OPERATOR(Half, /)                                                                                    \
    LOCKSTEP_API inline Half operator-(const Half &a) { return Half(-(float)a); }                                      \
    LOCKSTEP_API inline Half &operator++(Half &a) { return a = Half((float)a + 1.0f); }                                \
    LOCKSTEP_API inline Half &operator--(Half &a) { return a = Half((float)a - 1.0f); }

LOCKSTEP_API float __lockstep_from_half(unsigned short bits);
LOCKSTEP_API unsigned short __lockstep_to_half(float value);

struct __half {
    unsigned short bits;
    __half() = default;
    LOCKSTEP_API __half(float value) : bits(__lockstep_to_half(value)) {}
    LOCKSTEP_API operator float() const { return __lockstep_from_half(bits); }
};
typedef __half half;
LOCKSTEP_HALF_OPERATORS(__half)
LOCKSTEP_API inline __half __float2half(float value) { return __half(value); }
LOCKSTEP_API inline __half __float2half_rn(float value) { return __half(value); }
LOCKSTEP_API inline float __half2float(__half value) { return (float)value; }

LOCKSTEP_API inline __half __hadd(__half a, __half b) { return __half((float)a + (float)b); }
LOCKSTEP_API inline __half __hsub(__half a, __half b) { return __half((float)a - (float)b); }
LOCKSTEP_API inline __half __hmul(__half a, __half b) { return __half((float)a * (float)b); }
LOCKSTEP_API inline __half __hdiv(__half a, __half b) { return __half((float)a / (float)b); }
LOCKSTEP_API inline __half __hfma(__half a, __half b, __half c) { return __half((float)a * (float)b + (float)c); }
LOCKSTEP_API inline __half __hneg(__half a) { return __half(-(float)a); }
LOCKSTEP_API inline __half __hmax(__half a, __half b) { return (float)a > (float)b ? a : b; }
LOCKSTEP_API inline __half __hmin(__half a, __half b) { return (float)a < (float)b ? a : b; }
LOCKSTEP_API inline bool __hgt(__half a, __half b) { return (float)a > (float)b; }
LOCKSTEP_API inline bool __hlt(__half a, __half b) { return (float)a < (float)b; }
LOCKSTEP_API inline bool __hge(__half a, __half b) { return (float)a >= (float)b; }
LOCKSTEP_API inline bool __hle(__half a, __half b) { return (float)a <= (float)b; }
LOCKSTEP_API inline bool __hne(__half a, __half b) { return (float)a != (float)b; }
LOCKSTEP_API inline bool __hisnan(__half a) { return isnan((float)a); }
LOCKSTEP_API inline __half __habs(__half a) { return __half(fabsf((float)a)); }
#define LOCKSTEP_HALF_FUNCTION(name, function)                                                                         \
    LOCKSTEP_API inline __half name(__half a) { return __half(function((float)a)); }
LOCKSTEP_HALF_FUNCTION(hsqrt, sqrtf)
LOCKSTEP_HALF_FUNCTION(hrsqrt, rsqrtf)
LOCKSTEP_HALF_FUNCTION(hrcp, 1.0f /)
LOCKSTEP_HALF_FUNCTION(hexp, expf)
LOCKSTEP_HALF_FUNCTION(hexp2, exp2f)
LOCKSTEP_HALF_FUNCTION(hlog, logf)
LOCKSTEP_HALF_FUNCTION(hlog2, log2f)
LOCKSTEP_HALF_FUNCTION(hsin, sinf)
LOCKSTEP_HALF_FUNCTION(hcos, cosf)
LOCKSTEP_HALF_FUNCTION(hfloor, floorf)
LOCKSTEP_HALF_FUNCTION(hceil, ceilf)
LOCKSTEP_API inline __half __int2half_rn(int value) { return __half((float)value); }
LOCKSTEP_API inline int __half2int_rn(__half value) { return (int)rintf((float)value); }
LOCKSTEP_API inline int __half2int_rz(__half value) { return (int)(float)value; }
LOCKSTEP_API inline unsigned short __half_as_ushort(__half value) { return value.bits; }
LOCKSTEP_API inline __half __ushort_as_half(unsigned short bits) {
    __half value;
    value.bits = bits;
    return value;
}
LOCKSTEP_API inline bool __heq(__half a, __half b) { return (float)a == (float)b; }

struct __align__(4) __half2 {
    __half x, y;
    __half2() = default;
    LOCKSTEP_API __half2(__half low, __half high) : x(low), y(high) {}
};
typedef __half2 half2;
LOCKSTEP_API inline __half2 __halves2half2(__half low, __half high) { return __half2(low, high); }
LOCKSTEP_API inline __half2 make_half2(__half low, __half high) { return __half2(low, high); }
LOCKSTEP_API inline __half2 __half2half2(__half value) { return __half2(value, value); }
LOCKSTEP_API inline __half2 __float2half2_rn(float value) { return __half2(__half(value), __half(value)); }
LOCKSTEP_API inline __half2 __floats2half2_rn(float low, float high) { return __half2(__half(low), __half(high)); }
LOCKSTEP_API inline __half2 __float22half2_rn(float2 value) { return __floats2half2_rn(value.x, value.y); }
LOCKSTEP_API inline float2 __half22float2(__half2 value) { return make_float2((float)value.x, (float)value.y); }
LOCKSTEP_API inline __half __low2half(__half2 value) { return value.x; }
LOCKSTEP_API inline __half __high2half(__half2 value) { return value.y; }
LOCKSTEP_API inline float __low2float(__half2 value) { return (float)value.x; }
LOCKSTEP_API inline float __high2float(__half2 value) { return (float)value.y; }
LOCKSTEP_API inline __half2 __hadd2(__half2 a, __half2 b) { return __half2(__hadd(a.x, b.x), __hadd(a.y, b.y)); }
LOCKSTEP_API inline __half2 __hsub2(__half2 a, __half2 b) { return __half2(__hsub(a.x, b.x), __hsub(a.y, b.y)); }
LOCKSTEP_API inline __half2 __hmul2(__half2 a, __half2 b) { return __half2(__hmul(a.x, b.x), __hmul(a.y, b.y)); }
LOCKSTEP_API inline __half2 __hfma2(__half2 a, __half2 b, __half2 c) {
    return __half2(__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y));
}
LOCKSTEP_API inline __half2 operator+(const __half2 &a, const __half2 &b) { return __hadd2(a, b); }
LOCKSTEP_API inline __half2 operator-(const __half2 &a, const __half2 &b) { return __hsub2(a, b); }
LOCKSTEP_API inline __half2 operator*(const __half2 &a, const __half2 &b) { return __hmul2(a, b); }
LOCKSTEP_API inline __half2 &operator+=(__half2 &a, const __half2 &b) { return a = __hadd2(a, b); }
LOCKSTEP_API inline __half2 &operator-=(__half2 &a, const __half2 &b) { return a = __hsub2(a, b); }
LOCKSTEP_API inline __half2 &operator*=(__half2 &a, const __half2 &b) { return a = __hmul2(a, b); }

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
LOCKSTEP_HALF_OPERATORS(__nv_bfloat16)
LOCKSTEP_API inline __nv_bfloat16 __float2bfloat16(float value) { return __nv_bfloat16(value); }
LOCKSTEP_API inline __nv_bfloat16 __float2bfloat16_rn(float value) { return __nv_bfloat16(value); }
LOCKSTEP_API inline float __bfloat162float(__nv_bfloat16 value) { return (float)value; }
LOCKSTEP_API inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 value) { return value.bits; }
LOCKSTEP_API inline __nv_bfloat16 __ushort_as_bfloat16(unsigned short bits) {
    __nv_bfloat16 value;
    value.bits = bits;
    return value;
}

struct __align__(4) __nv_bfloat162 {
    __nv_bfloat16 x, y;
    __nv_bfloat162() = default;
    LOCKSTEP_API __nv_bfloat162(__nv_bfloat16 low, __nv_bfloat16 high) : x(low), y(high) {}
};
typedef __nv_bfloat16 nv_bfloat16;
typedef __nv_bfloat162 nv_bfloat162;
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
#define LOCKSTEP_PAIRWISE(name, op)                                                                                    \
    LOCKSTEP_API inline __nv_bfloat162 name(__nv_bfloat162 a, __nv_bfloat162 b) {                                      \
        return __floats2bfloat162_rn((float)a.x op(float) b.x, (float)a.y op(float) b.y);                              \
    }
LOCKSTEP_PAIRWISE(__hadd2, +)
LOCKSTEP_PAIRWISE(__hsub2, -)
LOCKSTEP_PAIRWISE(__hmul2, *)
#undef LOCKSTEP_PAIRWISE
LOCKSTEP_API inline __nv_bfloat162 __hfma2(__nv_bfloat162 a, __nv_bfloat162 b, __nv_bfloat162 c) {
    return __floats2bfloat162_rn((float)a.x * (float)b.x + (float)c.x, (float)a.y * (float)b.y + (float)c.y);
}
