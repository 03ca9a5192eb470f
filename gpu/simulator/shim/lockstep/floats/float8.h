// The floating-point numbers of 8 bits, E4M3 (no infinity, one NaN) and E5M2, in groups of one, two and four: they are
// kept and converted, to the nearest one, of two that are as near to the even one.
#pragma once
#include <lockstep/floats/bfloat16.h>
#include <lockstep/floats/half.h>

typedef unsigned char __nv_fp8_storage_t;
typedef unsigned short __nv_fp8x2_storage_t;
typedef unsigned int __nv_fp8x4_storage_t;
enum __nv_saturation_t { __NV_NOSAT, __NV_SATFINITE };
enum __nv_fp8_interpretation_t { __NV_E4M3, __NV_E5M2 };

LOCKSTEP_API inline __nv_fp8_storage_t __nv_cvt_float_to_fp8(float value, __nv_saturation_t saturation,
                                                             __nv_fp8_interpretation_t kind) {
    int fraction = kind == __NV_E4M3 ? 3 : 2, least = kind == __NV_E4M3 ? -6 : -14;
    int largest = kind == __NV_E4M3 ? 0x7e : 0x7b;
    unsigned int word = (unsigned int)__float_as_int(value), size = word & 0x7fffffffu;
    if (size > 0x7f800000u) return 0x7f;
    int exponent = (int)(size >> 23) - 127;
    if (exponent < least) exponent = least;
    // What is below the last place of the result becomes a fraction, by a power of two.
    float scaled = __int_as_float((int)size) * __int_as_float((fraction - exponent + 127) << 23);
    int bits = largest + 1;
    if (exponent < 17) bits = (int)rintf(scaled) + ((exponent - least) << fraction);
    if (bits > largest) bits = saturation == __NV_SATFINITE ? largest : kind == __NV_E4M3 ? 0x7f : 0x7c;
    return (__nv_fp8_storage_t)(bits | (int)(word >> 31 << 7));
}
LOCKSTEP_API inline __nv_fp8_storage_t __nv_cvt_double_to_fp8(double value, __nv_saturation_t saturation,
                                                              __nv_fp8_interpretation_t kind) {
    // Toward zero, the last bit telling that there was more, so that it is rounded once.
    float near = (float)value;
    int bits = __float_as_int(near);
    if (fabs((double)near) > fabs(value)) --bits;
    if ((double)__int_as_float(bits) != value && value == value) bits |= 1;
    return __nv_cvt_float_to_fp8(__int_as_float(bits), saturation, kind);
}
LOCKSTEP_API inline float __lockstep_from_float8(__nv_fp8_storage_t bits, __nv_fp8_interpretation_t kind) {
    if (kind == __NV_E5M2) return __lockstep_from_half((unsigned short)(bits << 8));
    int size = bits & 0x7f, exponent = size >> 3, fraction = size & 7;
    float value =
        exponent ? (float)(8 + fraction) * __int_as_float((exponent - 10 + 127) << 23) : (float)fraction * 0.001953125f;
    if (size == 0x7f) value = __int_as_float(0x7fffffff);
    return bits & 0x80 ? -value : value;
}
LOCKSTEP_API inline __half_raw __nv_cvt_fp8_to_halfraw(__nv_fp8_storage_t bits, __nv_fp8_interpretation_t kind) {
    return __half(__lockstep_from_float8(bits, kind));
}
LOCKSTEP_API inline __half2_raw __nv_cvt_fp8x2_to_halfraw2(__nv_fp8x2_storage_t bits, __nv_fp8_interpretation_t kind) {
    __half2_raw both;
    both.x = __nv_cvt_fp8_to_halfraw((__nv_fp8_storage_t)bits, kind).x;
    both.y = __nv_cvt_fp8_to_halfraw((__nv_fp8_storage_t)(bits >> 8), kind).x;
    return both;
}
LOCKSTEP_API inline __nv_fp8_storage_t __nv_cvt_halfraw_to_fp8(__half_raw value, __nv_saturation_t saturation,
                                                               __nv_fp8_interpretation_t kind) {
    return __nv_cvt_float_to_fp8((float)__half(value), saturation, kind);
}
LOCKSTEP_API inline __nv_fp8_storage_t __nv_cvt_bfloat16raw_to_fp8(__nv_bfloat16_raw value,
                                                                   __nv_saturation_t saturation,
                                                                   __nv_fp8_interpretation_t kind) {
    return __nv_cvt_float_to_fp8((float)__nv_bfloat16(value), saturation, kind);
}
LOCKSTEP_API inline __nv_fp8x2_storage_t __nv_cvt_float2_to_fp8x2(float2 value, __nv_saturation_t saturation,
                                                                  __nv_fp8_interpretation_t kind) {
    return (__nv_fp8x2_storage_t)(__nv_cvt_float_to_fp8(value.x, saturation, kind) |
                                  __nv_cvt_float_to_fp8(value.y, saturation, kind) << 8);
}
LOCKSTEP_API inline __nv_fp8x2_storage_t __nv_cvt_halfraw2_to_fp8x2(__half2_raw value, __nv_saturation_t saturation,
                                                                    __nv_fp8_interpretation_t kind) {
    return __nv_cvt_float2_to_fp8x2(make_float2(__lockstep_from_half(value.x), __lockstep_from_half(value.y)),
                                    saturation, kind);
}

LOCKSTEP_API inline __nv_fp8x2_storage_t __nv_cvt_double2_to_fp8x2(double2 value, __nv_saturation_t saturation,
                                                                   __nv_fp8_interpretation_t kind) {
    return (__nv_fp8x2_storage_t)(__nv_cvt_double_to_fp8(value.x, saturation, kind) |
                                  __nv_cvt_double_to_fp8(value.y, saturation, kind) << 8);
}

#define LOCKSTEP_FLOAT8(name, kind)                                                                                    \
    struct __nv_fp8_##name {                                                                                           \
        __nv_fp8_storage_t __x;                                                                                        \
        __nv_fp8_##name() = default;                                                                                   \
        LOCKSTEP_API explicit __nv_fp8_##name(float value)                                                             \
            : __x(__nv_cvt_float_to_fp8(value, __NV_SATFINITE, kind)) {}                                               \
        LOCKSTEP_API explicit __nv_fp8_##name(double value)                                                            \
            : __x(__nv_cvt_double_to_fp8(value, __NV_SATFINITE, kind)) {}                                              \
        LOCKSTEP_API explicit __nv_fp8_##name(int value)                                                               \
            : __x(__nv_cvt_double_to_fp8((double)value, __NV_SATFINITE, kind)) {}                                      \
        LOCKSTEP_API explicit __nv_fp8_##name(unsigned int value)                                                      \
            : __x(__nv_cvt_double_to_fp8((double)value, __NV_SATFINITE, kind)) {}                                      \
        LOCKSTEP_API explicit __nv_fp8_##name(short value) : __nv_fp8_##name((double)value) {}                         \
        LOCKSTEP_API explicit __nv_fp8_##name(unsigned short value) : __nv_fp8_##name((double)value) {}                \
        LOCKSTEP_API explicit __nv_fp8_##name(long value) : __nv_fp8_##name((double)value) {}                          \
        LOCKSTEP_API explicit __nv_fp8_##name(unsigned long value) : __nv_fp8_##name((double)value) {}                 \
        LOCKSTEP_API explicit __nv_fp8_##name(long long value) : __nv_fp8_##name((double)value) {}                     \
        LOCKSTEP_API explicit __nv_fp8_##name(unsigned long long value) : __nv_fp8_##name((double)value) {}            \
        LOCKSTEP_API explicit __nv_fp8_##name(__half value)                                                            \
            : __x(__nv_cvt_float_to_fp8((float)value, __NV_SATFINITE, kind)) {}                                        \
        LOCKSTEP_API explicit __nv_fp8_##name(__nv_bfloat16 value)                                                     \
            : __x(__nv_cvt_float_to_fp8((float)value, __NV_SATFINITE, kind)) {}                                        \
        LOCKSTEP_API explicit operator float() const { return __lockstep_from_float8(__x, kind); }                     \
        LOCKSTEP_API explicit operator double() const { return (double)__lockstep_from_float8(__x, kind); }            \
        LOCKSTEP_API explicit operator int() const { return (int)__lockstep_from_float8(__x, kind); }                  \
        LOCKSTEP_API explicit operator unsigned int() const {                                                          \
            return (unsigned int)__lockstep_from_float8(__x, kind);                                                    \
        }                                                                                                              \
        LOCKSTEP_API explicit operator long() const { return (long)__lockstep_from_float8(__x, kind); }                \
        LOCKSTEP_API explicit operator unsigned long() const {                                                         \
            return (unsigned long)__lockstep_from_float8(__x, kind);                                                   \
        }                                                                                                              \
        LOCKSTEP_API explicit operator long long() const { return (long long)__lockstep_from_float8(__x, kind); }      \
        LOCKSTEP_API explicit operator unsigned long long() const {                                                    \
            return (unsigned long long)__lockstep_from_float8(__x, kind);                                              \
        }                                                                                                              \
        LOCKSTEP_API explicit operator bool() const { return (__x & 0x7f) != 0; }                                      \
        LOCKSTEP_API explicit operator __half() const { return __half(__lockstep_from_float8(__x, kind)); }            \
        LOCKSTEP_API explicit operator __nv_bfloat16() const {                                                         \
            return __nv_bfloat16(__lockstep_from_float8(__x, kind));                                                   \
        }                                                                                                              \
    };                                                                                                                 \
    struct __align__(2) __nv_fp8x2_##name {                                                                            \
        __nv_fp8x2_storage_t __x;                                                                                      \
        __nv_fp8x2_##name() = default;                                                                                 \
        LOCKSTEP_API explicit __nv_fp8x2_##name(float2 value)                                                          \
            : __x(__nv_cvt_float2_to_fp8x2(value, __NV_SATFINITE, kind)) {}                                            \
        LOCKSTEP_API explicit __nv_fp8x2_##name(__half2 value) : __nv_fp8x2_##name(__half22float2(value)) {}           \
        LOCKSTEP_API explicit __nv_fp8x2_##name(__nv_bfloat162 value)                                                  \
            : __nv_fp8x2_##name(__bfloat1622float2(value)) {}                                                          \
        LOCKSTEP_API explicit operator float2() const {                                                                \
            return make_float2(__lockstep_from_float8((__nv_fp8_storage_t)__x, kind),                                  \
                               __lockstep_from_float8((__nv_fp8_storage_t)(__x >> 8), kind));                          \
        }                                                                                                              \
        LOCKSTEP_API explicit operator __half2() const { return __float22half2_rn((float2) * this); }                  \
    };                                                                                                                 \
    struct __align__(4) __nv_fp8x4_##name {                                                                            \
        __nv_fp8x4_storage_t __x;                                                                                      \
        __nv_fp8x4_##name() = default;                                                                                 \
        LOCKSTEP_API explicit __nv_fp8x4_##name(__half2 low, __half2 high)                                             \
            : __nv_fp8x4_##name(make_float4((float)low.x, (float)low.y, (float)high.x, (float)high.y)) {}              \
        LOCKSTEP_API explicit __nv_fp8x4_##name(__nv_bfloat162 low, __nv_bfloat162 high)                               \
            : __nv_fp8x4_##name(make_float4((float)low.x, (float)low.y, (float)high.x, (float)high.y)) {}              \
        LOCKSTEP_API explicit __nv_fp8x4_##name(float4 value) {                                                        \
            unsigned int low = __nv_cvt_float2_to_fp8x2(make_float2(value.x, value.y), __NV_SATFINITE, kind);          \
            __x = low | (unsigned int)__nv_cvt_float2_to_fp8x2(make_float2(value.z, value.w), __NV_SATFINITE, kind)    \
                            << 16;                                                                                     \
        }                                                                                                              \
        LOCKSTEP_API explicit operator float4() const {                                                                \
            return make_float4(__lockstep_from_float8((__nv_fp8_storage_t)__x, kind),                                  \
                               __lockstep_from_float8((__nv_fp8_storage_t)(__x >> 8), kind),                           \
                               __lockstep_from_float8((__nv_fp8_storage_t)(__x >> 16), kind),                          \
                               __lockstep_from_float8((__nv_fp8_storage_t)(__x >> 24), kind));                         \
        }                                                                                                              \
    };
LOCKSTEP_FLOAT8(e4m3, __NV_E4M3)
LOCKSTEP_FLOAT8(e5m2, __NV_E5M2)
#undef LOCKSTEP_FLOAT8
