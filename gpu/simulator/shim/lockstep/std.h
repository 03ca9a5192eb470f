// The little of the standard library that kernels use.
#pragma once

namespace std {
using ::abs;
using ::acos;
using ::acosh;
using ::asin;
using ::asinh;
using ::atan;
using ::atan2;
using ::atanh;
using ::cbrt;
using ::ceil;
using ::copysign;
using ::cos;
using ::cosh;
using ::erf;
using ::erfc;
using ::exp;
using ::exp2;
using ::expm1;
using ::fabs;
using ::fdim;
using ::floor;
using ::fma;
using ::fmax;
using ::fmin;
using ::fmod;
using ::frexp;
using ::hypot;
using ::int16_t;
using ::int32_t;
using ::int64_t;
using ::int8_t;
using ::intptr_t;
using ::isfinite;
using ::isinf;
using ::isnan;
using ::ldexp;
using ::lgamma;
using ::llround;
using ::log;
using ::log10;
using ::log1p;
using ::log2;
using ::lrint;
using ::lround;
using ::max;
using ::memcpy;
using ::memset;
using ::min;
using ::modf;
using ::nearbyint;
using ::nextafter;
using ::pow;
using ::ptrdiff_t;
using ::remainder;
using ::rint;
using ::round;
using ::signbit;
using ::sin;
using ::sinh;
using ::size_t;
using ::sqrt;
using ::tan;
using ::tanh;
using ::tgamma;
using ::trunc;
using ::uint16_t;
using ::uint32_t;
using ::uint64_t;
using ::uint8_t;
using ::uintptr_t;

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

template <typename LockstepT>
LOCKSTEP_API inline LockstepT clamp(LockstepT value, LockstepT low, LockstepT high) {
    return value < low ? low : high < value ? high : value;
}

template <typename LockstepT, LockstepT Value>
struct integral_constant {
    static constexpr LockstepT value = Value;
    using type = integral_constant;
};
using true_type = integral_constant<bool, true>;
using false_type = integral_constant<bool, false>;
template <typename LockstepT>
struct remove_const {
    using type = LockstepT;
};
template <typename LockstepT>
struct remove_const<const LockstepT> {
    using type = LockstepT;
};
template <typename LockstepT>
struct remove_reference {
    using type = LockstepT;
};
template <typename LockstepT>
struct remove_reference<LockstepT &> {
    using type = LockstepT;
};
template <typename LockstepT>
struct remove_reference<LockstepT &&> {
    using type = LockstepT;
};
template <typename LockstepT>
struct remove_pointer {
    using type = LockstepT;
};
template <typename LockstepT>
struct remove_pointer<LockstepT *> {
    using type = LockstepT;
};
template <typename LockstepT>
struct remove_cv {
    using type = __remove_cv(LockstepT);
};
template <typename LockstepT>
struct decay {
    using type = __decay(LockstepT);
};
template <typename LockstepT>
using remove_const_t = typename remove_const<LockstepT>::type;
template <typename LockstepT>
using remove_cv_t = typename remove_cv<LockstepT>::type;
template <typename LockstepT>
using remove_reference_t = typename remove_reference<LockstepT>::type;
template <typename LockstepT>
using remove_pointer_t = typename remove_pointer<LockstepT>::type;
template <typename LockstepT>
using decay_t = typename decay<LockstepT>::type;
template <typename LockstepT>
LOCKSTEP_API inline LockstepT &&forward(remove_reference_t<LockstepT> &value) {
    return static_cast<LockstepT &&>(value);
}
template <typename LockstepT>
LOCKSTEP_API LockstepT &&declval() noexcept;
template <typename LockstepT, typename LockstepU>
struct common_type {
    using type = decay_t<decltype(true ? declval<LockstepT>() : declval<LockstepU>())>;
};
template <typename LockstepT, typename LockstepU>
using common_type_t = typename common_type<LockstepT, LockstepU>::type;
template <typename LockstepT>
LOCKSTEP_API inline LockstepT &&forward(remove_reference_t<LockstepT> &&value) {
    return static_cast<LockstepT &&>(value);
}
template <typename LockstepT>
struct make_unsigned {
    using type = __make_unsigned(LockstepT);
};
template <typename LockstepT>
struct make_signed {
    using type = __make_signed(LockstepT);
};
template <typename LockstepT>
using make_unsigned_t = typename make_unsigned<LockstepT>::type;
template <typename LockstepT>
using make_signed_t = typename make_signed<LockstepT>::type;
#define LOCKSTEP_TRAIT(name, found)                                                                                    \
    template <typename LockstepT>                                                                                      \
    struct name : integral_constant<bool, found(LockstepT)> {};                                                        \
    template <typename LockstepT>                                                                                      \
    inline constexpr bool name##_v = found(LockstepT);
LOCKSTEP_TRAIT(is_floating_point, __is_floating_point)
LOCKSTEP_TRAIT(is_integral, __is_integral)
LOCKSTEP_TRAIT(is_arithmetic, __is_arithmetic)
LOCKSTEP_TRAIT(is_signed, __is_signed)
LOCKSTEP_TRAIT(is_unsigned, __is_unsigned)
LOCKSTEP_TRAIT(is_pointer, __is_pointer)
LOCKSTEP_TRAIT(is_class, __is_class)
LOCKSTEP_TRAIT(is_enum, __is_enum)
LOCKSTEP_TRAIT(is_void, __is_void)
LOCKSTEP_TRAIT(is_const, __is_const)

// An array that is a value.
template <typename LockstepT, size_t Length>
struct array {
    LockstepT elements[Length];
    LOCKSTEP_API constexpr LockstepT &operator[](size_t i) { return elements[i]; }
    LOCKSTEP_API constexpr const LockstepT &operator[](size_t i) const { return elements[i]; }
    LOCKSTEP_API static constexpr size_t size() { return Length; }
    LOCKSTEP_API constexpr LockstepT *data() { return elements; }
    LOCKSTEP_API constexpr const LockstepT *data() const { return elements; }
    LOCKSTEP_API constexpr LockstepT *begin() { return elements; }
    LOCKSTEP_API constexpr LockstepT *end() { return elements + Length; }
};

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
#define LOCKSTEP_LIMITS(LockstepT, low, smallest, largest, tiny)                                                       \
    template <>                                                                                                        \
    struct numeric_limits<LockstepT> {                                                                                 \
        LOCKSTEP_API static constexpr LockstepT lowest() { return low; }                                               \
        LOCKSTEP_API static constexpr LockstepT min() { return smallest; }                                             \
        LOCKSTEP_API static constexpr LockstepT max() { return largest; }                                              \
        LOCKSTEP_API static constexpr LockstepT epsilon() { return tiny; }                                             \
        LOCKSTEP_API static constexpr LockstepT infinity() { return (LockstepT)__builtin_huge_val(); }                 \
    };
LOCKSTEP_LIMITS(float, -FLT_MAX, FLT_MIN, FLT_MAX, FLT_EPSILON)
LOCKSTEP_LIMITS(double, -DBL_MAX, 2.2250738585072014e-308, DBL_MAX, DBL_EPSILON)
#define LOCKSTEP_INTEGER_LIMITS(LockstepT, low, largest)                                                               \
    template <>                                                                                                        \
    struct numeric_limits<LockstepT> {                                                                                 \
        LOCKSTEP_API static constexpr LockstepT lowest() { return low; }                                               \
        LOCKSTEP_API static constexpr LockstepT min() { return low; }                                                  \
        LOCKSTEP_API static constexpr LockstepT max() { return largest; }                                              \
    };
LOCKSTEP_INTEGER_LIMITS(signed char, -128, 127)
LOCKSTEP_INTEGER_LIMITS(unsigned char, 0, 255)
LOCKSTEP_INTEGER_LIMITS(short, -32768, 32767)
LOCKSTEP_INTEGER_LIMITS(unsigned short, 0, 65535)
LOCKSTEP_INTEGER_LIMITS(int, INT_MIN, INT_MAX)
LOCKSTEP_INTEGER_LIMITS(unsigned int, 0, UINT_MAX)
LOCKSTEP_INTEGER_LIMITS(long, LONG_MIN, LONG_MAX)
LOCKSTEP_INTEGER_LIMITS(unsigned long, 0, ULONG_MAX)
LOCKSTEP_INTEGER_LIMITS(long long, -LLONG_MAX - 1, LLONG_MAX)
LOCKSTEP_INTEGER_LIMITS(unsigned long long, 0, ULLONG_MAX)
} // namespace std
