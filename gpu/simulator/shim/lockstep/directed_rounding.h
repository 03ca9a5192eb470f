// Intrinsics that round towards zero (_rz), down (_rd) or up (_ru): the rounded result and the sign of its error.
#pragma once

// Return `value`, the nearest number to an exact result, or its neighbor in the direction. `error` has the sign of the
// exact result minus `value`.
#define LOCKSTEP_DIRECTED(T, Word, as_word, as_value)                                                                  \
    LOCKSTEP_FUNCTION T __lockstep_step(T value, bool up) {                                                            \
        if (value == 0) return copysign(as_value((Word)1), up ? (T)1 : (T) - 1);                                       \
        return as_value(as_word(value) + ((value > 0) == up ? 1 : -1));                                                \
    }                                                                                                                  \
    LOCKSTEP_FUNCTION T __lockstep_round_up(T value, double error) {                                                   \
        return error > 0 ? __lockstep_step(value, true) : value;                                                       \
    }                                                                                                                  \
    LOCKSTEP_FUNCTION T __lockstep_round_down(T value, double error) {                                                 \
        return error < 0 ? __lockstep_step(value, false) : value;                                                      \
    }                                                                                                                  \
    LOCKSTEP_FUNCTION T __lockstep_round_to_zero(T value, double error) {                                              \
        bool is_too_far = (error < 0 && value > 0) || (error > 0 && value < 0);                                        \
        return is_too_far ? __lockstep_step(value, value < 0) : value;                                                 \
    }
LOCKSTEP_DIRECTED(float, int, __float_as_int, __int_as_float)
LOCKSTEP_DIRECTED(double, long long, __double_as_longlong, __longlong_as_double)

// The error of an overflowed result of finite numbers points towards zero.
LOCKSTEP_FUNCTION double __lockstep_overflow_error(double value) { return value > 0 ? -1.0 : 1.0; }

// Errors of operations on doubles.
LOCKSTEP_FUNCTION double __lockstep_add_error(double x, double y) {
    double sum = __dadd_rn(x, y);
    if (isinf(sum)) return isinf(x) || isinf(y) ? 0.0 : __lockstep_overflow_error(sum);
    double added = __dsub_rn(sum, x);
    return __dadd_rn(__dsub_rn(x, __dsub_rn(sum, added)), __dsub_rn(y, added));
}
LOCKSTEP_FUNCTION double __lockstep_mul_error(double x, double y) {
    double product = __dmul_rn(x, y);
    if (isinf(product)) return isinf(x) || isinf(y) ? 0.0 : __lockstep_overflow_error(product);
    if (x == 0 || y == 0) return 0.0;
    if (product == 0) return copysign(1.0, x) * copysign(1.0, y);
    if (fabs(product) > 1e-200) return fma(x, y, -product);
    const double scale = 0x1p600; // so that the error does not underflow
    return fabs(x) < fabs(y) ? fma(x * scale, y, -product * scale) : fma(x, y * scale, -product * scale);
}
LOCKSTEP_FUNCTION double __lockstep_div_error(double x, double y) {
    double quotient = x / y;
    if (isinf(quotient)) return isinf(x) || y == 0 ? 0.0 : __lockstep_overflow_error(quotient);
    if (x == 0 || isinf(y)) return 0.0;
    double sign = copysign(1.0, y);
    if (quotient == 0) return copysign(1.0, x) * sign;
    if (fabs(x) > 1e-200) return sign * fma(-quotient, y, x);
    const double scale = 0x1p600;
    return sign *
           (fabs(quotient) < fabs(y) ? fma(-quotient * scale, y, x * scale) : fma(-quotient, y * scale, x * scale));
}
// By Boldo and Muller: twice a sum and its error, of which all but the last addition is exact.
LOCKSTEP_FUNCTION double __lockstep_fma_error(double x, double y, double z) {
    double result = fma(x, y, z), product = __dmul_rn(x, y);
    if (isinf(result)) return isinf(x) || isinf(y) || isinf(z) ? 0.0 : __lockstep_overflow_error(result);
    if (fabs(product) < 1e-200 && x != 0 && y != 0) {
        const double scale = 0x1p600;
        (fabs(x) < fabs(y) ? x : y) *= scale;
        product = __dmul_rn(x, y);
        bool is_below_last_place = fabs(z) > 1e-100 || fabs(product) < 1e-150; // of z, or of the smallest number
        if (is_below_last_place) return copysign(1.0, x) * copysign(1.0, y);
        z *= scale, result *= scale;
    }
    double rest = fma(x, y, -product);
    double low = __dadd_rn(z, rest), high = __dadd_rn(product, low);
    double difference = __dadd_rn(__dsub_rn(high, result), __lockstep_add_error(product, low));
    return __dadd_rn(difference, __lockstep_add_error(z, rest));
}
LOCKSTEP_FUNCTION double __lockstep_sqrt_error(double x) {
    if (isinf(x) || x == 0) return 0.0;
    double scaled = x < 1e-200 ? x * 0x1p200 : x, root = sqrt(scaled); // 0x1p200 is a square
    return fma(-root, root, scaled);
}

// Operations on floats: products and quotients times divisors are exact as doubles, and sums have an exact error.
LOCKSTEP_FUNCTION double __lockstep_fma_error(float x, float y, float z) {
    float result = __fmaf_rn(x, y, z);
    if (isinf(result)) return isinf(x) || isinf(y) || isinf(z) ? 0.0 : __lockstep_overflow_error(result);
    double product = (double)x * (double)y, sum = __dadd_rn(product, (double)z);
    double difference = __dsub_rn(sum, (double)result);
    return difference != 0 ? difference : __lockstep_add_error(product, (double)z);
}
LOCKSTEP_FUNCTION double __lockstep_div_error(float x, float y) {
    float quotient = __fdiv_rn(x, y);
    if (isinf(quotient)) return isinf(x) || y == 0 ? 0.0 : __lockstep_overflow_error(quotient);
    if (isinf(y)) return 0.0;
    return copysign(1.0, (double)y) * __dsub_rn((double)x, __dmul_rn((double)quotient, (double)y));
}
LOCKSTEP_FUNCTION double __lockstep_sqrt_error(float x) {
    float root = __fsqrt_rn(x);
    return isinf(x) ? 0.0 : __dsub_rn((double)x, __dmul_rn((double)root, (double)root));
}

// A sum that cancels is -0 if rounded down, unless both are +0.
template <typename T>
LOCKSTEP_API inline T __lockstep_negative_zero(T sum, T x, T y) {
    return sum == 0 && (signbit(x) || signbit(y)) ? -(T)0 : sum;
}

#define LOCKSTEP_ROUNDED(suffix, round)                                                                                \
    LOCKSTEP_FUNCTION float __fmul_##suffix(float x, float y) {                                                        \
        return __lockstep_##round(__fmul_rn(x, y), __lockstep_fma_error(x, y, 0));                                     \
    }                                                                                                                  \
    LOCKSTEP_FUNCTION float __fdiv_##suffix(float x, float y) {                                                        \
        return __lockstep_##round(__fdiv_rn(x, y), __lockstep_div_error(x, y));                                        \
    }                                                                                                                  \
    LOCKSTEP_FUNCTION float __frcp_##suffix(float x) { return __fdiv_##suffix(1, x); }                                 \
    LOCKSTEP_FUNCTION float __fsqrt_##suffix(float x) {                                                                \
        return __lockstep_##round(__fsqrt_rn(x), __lockstep_sqrt_error(x));                                            \
    }                                                                                                                  \
    LOCKSTEP_FUNCTION double __dmul_##suffix(double x, double y) {                                                     \
        return __lockstep_##round(__dmul_rn(x, y), __lockstep_mul_error(x, y));                                        \
    }                                                                                                                  \
    LOCKSTEP_FUNCTION double __ddiv_##suffix(double x, double y) {                                                     \
        return __lockstep_##round(__ddiv_rn(x, y), __lockstep_div_error(x, y));                                        \
    }                                                                                                                  \
    LOCKSTEP_FUNCTION double __drcp_##suffix(double x) { return __ddiv_##suffix(1, x); }                               \
    LOCKSTEP_FUNCTION double __dsqrt_##suffix(double x) {                                                              \
        return __lockstep_##round(__dsqrt_rn(x), __lockstep_sqrt_error(x));                                            \
    }
#define LOCKSTEP_ROUNDED_SUM(suffix, round, zero)                                                                      \
    LOCKSTEP_ROUNDED(suffix, round)                                                                                    \
    LOCKSTEP_FUNCTION float __fmaf_##suffix(float x, float y, float z) {                                               \
        double error = __lockstep_fma_error(x, y, z);                                                                  \
        float result = __lockstep_##round(__fmaf_rn(x, y, z), error);                                                  \
        return error == 0 ? zero(result, x * y, z) : result;                                                           \
    }                                                                                                                  \
    LOCKSTEP_FUNCTION double __fma_##suffix(double x, double y, double z) {                                            \
        double error = __lockstep_fma_error(x, y, z);                                                                  \
        double result = __lockstep_##round(__fma_rn(x, y, z), error);                                                  \
        return error == 0 ? zero(result, x * y, z) : result;                                                           \
    }                                                                                                                  \
    LOCKSTEP_FUNCTION float __fadd_##suffix(float x, float y) {                                                        \
        return zero(__lockstep_##round(__fadd_rn(x, y), __lockstep_fma_error(x, 1, y)), x, y);                         \
    }                                                                                                                  \
    LOCKSTEP_FUNCTION float __fsub_##suffix(float x, float y) { return __fadd_##suffix(x, -y); }                       \
    LOCKSTEP_FUNCTION double __dadd_##suffix(double x, double y) {                                                     \
        return zero(__lockstep_##round(__dadd_rn(x, y), __lockstep_add_error(x, y)), x, y);                            \
    }                                                                                                                  \
    LOCKSTEP_FUNCTION double __dsub_##suffix(double x, double y) { return __dadd_##suffix(x, -y); }
#define LOCKSTEP_SAME_ZERO(sum, x, y) (sum)
LOCKSTEP_ROUNDED_SUM(ru, round_up, LOCKSTEP_SAME_ZERO)
LOCKSTEP_ROUNDED_SUM(rd, round_down, __lockstep_negative_zero)
LOCKSTEP_ROUNDED_SUM(rz, round_to_zero, LOCKSTEP_SAME_ZERO)

// Conversions to floating-point types. A number from 2^63, or of unsigned integers 2^64, exceeds the integer.
LOCKSTEP_FUNCTION double __lockstep_conversion_error(long long x, double value) {
    if (value >= 0x1p63) return -1.0;
    long long back = (long long)value;
    return x > back ? 1.0 : x < back ? -1.0 : 0.0;
}
LOCKSTEP_FUNCTION double __lockstep_conversion_error(unsigned long long x, double value) {
    if (value >= 0x1p64) return -1.0;
    unsigned long long back = (unsigned long long)value;
    return x > back ? 1.0 : x < back ? -1.0 : 0.0;
}
LOCKSTEP_FUNCTION double __lockstep_conversion_error(double x, double value) {
    return isinf(value) && !isinf(x) ? __lockstep_overflow_error(value) : x - value;
}

#define LOCKSTEP_CONVERTED(name, Source, Wide, T, suffix, round)                                                       \
    LOCKSTEP_FUNCTION T __##name##_##suffix(Source x) {                                                                \
        T value = (T)x;                                                                                                \
        return __lockstep_##round(value, __lockstep_conversion_error((Wide)x, (double)value));                         \
    }
#define LOCKSTEP_CONVERTED_IN_ALL_DIRECTIONS(name, Source, Wide, T)                                                    \
    LOCKSTEP_CONVERTED(name, Source, Wide, T, ru, round_up)                                                            \
    LOCKSTEP_CONVERTED(name, Source, Wide, T, rd, round_down)                                                          \
    LOCKSTEP_CONVERTED(name, Source, Wide, T, rz, round_to_zero)
LOCKSTEP_CONVERTED_IN_ALL_DIRECTIONS(int2float, int, long long, float)
LOCKSTEP_CONVERTED_IN_ALL_DIRECTIONS(uint2float, unsigned int, long long, float)
LOCKSTEP_CONVERTED_IN_ALL_DIRECTIONS(ll2float, long long, long long, float)
LOCKSTEP_CONVERTED_IN_ALL_DIRECTIONS(ull2float, unsigned long long, unsigned long long, float)
LOCKSTEP_CONVERTED_IN_ALL_DIRECTIONS(ll2double, long long, long long, double)
LOCKSTEP_CONVERTED_IN_ALL_DIRECTIONS(ull2double, unsigned long long, unsigned long long, double)
LOCKSTEP_CONVERTED_IN_ALL_DIRECTIONS(double2float, double, double, float)
