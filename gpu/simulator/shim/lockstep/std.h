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
using ::memcpy;
using ::memset;
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
LOCKSTEP_API inline LockstepT move(LockstepT &value) {
    return value;
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

// nvcc's device code cannot call these.
#define LOCKSTEP_STD
#include "../cuda/std/lockstep_functions.h"
#undef LOCKSTEP_STD
} // namespace std
