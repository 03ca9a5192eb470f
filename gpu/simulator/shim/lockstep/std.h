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
using ::frexp;
using ::hypot;
using ::isfinite;
using ::isinf;
using ::isnan;
using ::ldexp;
using ::log;
using ::log10;
using ::log2;
using ::max;
using ::memcpy;
using ::memset;
using ::min;
using ::modf;
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

template <typename LockstepT>
LOCKSTEP_API inline void swap(LockstepT &a, LockstepT &b) {
    LockstepT kept = a;
    a = b;
    b = kept;
}
template <typename LockstepT>
LOCKSTEP_API inline LockstepT move(LockstepT &value) {
    return value;
}

template <bool Condition, typename LockstepT = void>
struct enable_if {};
template <typename LockstepT>
struct enable_if<true, LockstepT> {
    using type = LockstepT;
};
template <bool Condition, typename LockstepT = void>
using enable_if_t = typename enable_if<Condition, LockstepT>::type;
template <bool Condition, typename LockstepT, typename LockstepF>
struct conditional {
    using type = LockstepT;
};
template <typename LockstepT, typename LockstepF>
struct conditional<false, LockstepT, LockstepF> {
    using type = LockstepF;
};
template <bool Condition, typename LockstepT, typename LockstepF>
using conditional_t = typename conditional<Condition, LockstepT, LockstepF>::type;
template <typename LockstepT, typename LockstepU>
struct is_same {
    static constexpr bool value = false;
};
template <typename LockstepT>
struct is_same<LockstepT, LockstepT> {
    static constexpr bool value = true;
};
template <typename LockstepT, typename LockstepU>
inline constexpr bool is_same_v = is_same<LockstepT, LockstepU>::value;

template <typename LockstepT>
struct numeric_limits;
#define LOCKSTEP_LIMITS(LockstepT, low, smallest, largest)                                                             \
    template <>                                                                                                        \
    struct numeric_limits<LockstepT> {                                                                                 \
        LOCKSTEP_API static constexpr LockstepT lowest() { return low; }                                               \
        LOCKSTEP_API static constexpr LockstepT min() { return smallest; }                                             \
        LOCKSTEP_API static constexpr LockstepT max() { return largest; }                                              \
        LOCKSTEP_API static constexpr LockstepT infinity() { return (LockstepT)__builtin_huge_val(); }                 \
    };
LOCKSTEP_LIMITS(float, -FLT_MAX, FLT_MIN, FLT_MAX)
LOCKSTEP_LIMITS(double, -DBL_MAX, 2.2250738585072014e-308, DBL_MAX)
#define LOCKSTEP_INTEGER_LIMITS(LockstepT, low, largest)                                                               \
    template <>                                                                                                        \
    struct numeric_limits<LockstepT> {                                                                                 \
        LOCKSTEP_API static constexpr LockstepT lowest() { return low; }                                               \
        LOCKSTEP_API static constexpr LockstepT min() { return low; }                                                  \
        LOCKSTEP_API static constexpr LockstepT max() { return largest; }                                              \
    };
LOCKSTEP_INTEGER_LIMITS(int, INT_MIN, INT_MAX)
LOCKSTEP_INTEGER_LIMITS(unsigned int, 0, UINT_MAX)
LOCKSTEP_INTEGER_LIMITS(long long, -LLONG_MAX - 1, LLONG_MAX)
LOCKSTEP_INTEGER_LIMITS(unsigned long long, 0, ULLONG_MAX)
} // namespace std
