// The little of the standard library that kernels use.
#pragma once

namespace std {
using ::abs;
using ::acos;
using ::asin;
using ::atan;
using ::atan2;
using ::cbrt;
using ::ceil;
using ::copysign;
using ::cos;
using ::cosh;
using ::exp;
using ::exp2;
using ::fabs;
using ::floor;
using ::fma;
using ::fmax;
using ::fmin;
using ::fmod;
using ::hypot;
using ::isfinite;
using ::isinf;
using ::isnan;
using ::log;
using ::log10;
using ::log2;
using ::max;
using ::min;
using ::pow;
using ::ptrdiff_t;
using ::rint;
using ::round;
using ::sin;
using ::sinh;
using ::size_t;
using ::sqrt;
using ::tan;
using ::tanh;
using ::trunc;

template <typename T>
LOCKSTEP_API inline void swap(T &a, T &b) {
    T kept = a;
    a = b;
    b = kept;
}
template <typename T>
LOCKSTEP_API inline T move(T &value) {
    return value;
}

template <bool Condition, typename T = void>
struct enable_if {};
template <typename T>
struct enable_if<true, T> {
    using type = T;
};
template <bool Condition, typename T = void>
using enable_if_t = typename enable_if<Condition, T>::type;
template <bool Condition, typename T, typename F>
struct conditional {
    using type = T;
};
template <typename T, typename F>
struct conditional<false, T, F> {
    using type = F;
};
template <bool Condition, typename T, typename F>
using conditional_t = typename conditional<Condition, T, F>::type;
template <typename T, typename U>
struct is_same {
    static constexpr bool value = false;
};
template <typename T>
struct is_same<T, T> {
    static constexpr bool value = true;
};
template <typename T, typename U>
inline constexpr bool is_same_v = is_same<T, U>::value;

template <typename T>
struct numeric_limits;
#define LOCKSTEP_LIMITS(T, low, smallest, largest)                                                                     \
    template <>                                                                                                        \
    struct numeric_limits<T> {                                                                                         \
        LOCKSTEP_API static constexpr T lowest() { return low; }                                                       \
        LOCKSTEP_API static constexpr T min() { return smallest; }                                                     \
        LOCKSTEP_API static constexpr T max() { return largest; }                                                      \
        LOCKSTEP_API static constexpr T infinity() { return (T)__builtin_huge_val(); }                                 \
    };
LOCKSTEP_LIMITS(float, -FLT_MAX, FLT_MIN, FLT_MAX)
LOCKSTEP_LIMITS(double, -DBL_MAX, 2.2250738585072014e-308, DBL_MAX)
#define LOCKSTEP_INTEGER_LIMITS(T, low, largest)                                                                       \
    template <>                                                                                                        \
    struct numeric_limits<T> {                                                                                         \
        LOCKSTEP_API static constexpr T lowest() { return low; }                                                       \
        LOCKSTEP_API static constexpr T min() { return low; }                                                          \
        LOCKSTEP_API static constexpr T max() { return largest; }                                                      \
    };
LOCKSTEP_INTEGER_LIMITS(int, INT_MIN, INT_MAX)
LOCKSTEP_INTEGER_LIMITS(unsigned int, 0, UINT_MAX)
LOCKSTEP_INTEGER_LIMITS(long long, -LLONG_MAX - 1, LLONG_MAX)
LOCKSTEP_INTEGER_LIMITS(unsigned long long, 0, ULLONG_MAX)
} // namespace std
