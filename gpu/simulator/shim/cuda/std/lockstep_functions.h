// Functions and methods that are host functions in std, and for host and device in cuda::std: each namespace includes
// this file, with its execution space as LOCKSTEP_STD.

template <typename LockstepT>
LOCKSTEP_STD constexpr LockstepT max(LockstepT a, LockstepT b) {
    return a < b ? b : a;
}
template <typename LockstepT>
LOCKSTEP_STD constexpr LockstepT min(LockstepT a, LockstepT b) {
    return b < a ? b : a;
}
template <typename LockstepT>
LOCKSTEP_STD constexpr LockstepT clamp(LockstepT value, LockstepT low, LockstepT high) {
    return value < low ? low : high < value ? high : value;
}
template <typename LockstepT>
LOCKSTEP_STD inline void swap(LockstepT &a, LockstepT &b) {
    LockstepT kept = a;
    a = b;
    b = kept;
}

// An array that is a value.
template <typename LockstepT, size_t Length>
struct array {
    LockstepT elements[Length];
    LOCKSTEP_STD constexpr LockstepT &operator[](size_t i) { return elements[i]; }
    LOCKSTEP_STD constexpr const LockstepT &operator[](size_t i) const { return elements[i]; }
    LOCKSTEP_STD static constexpr size_t size() { return Length; }
    LOCKSTEP_STD constexpr LockstepT *data() { return elements; }
    LOCKSTEP_STD constexpr const LockstepT *data() const { return elements; }
    LOCKSTEP_STD constexpr LockstepT *begin() { return elements; }
    LOCKSTEP_STD constexpr LockstepT *end() { return elements + Length; }
};

// Two values. Copies are as the values': kernels have pairs as parameters.
template <typename LockstepT, typename LockstepU>
struct pair {
    LockstepT first;
    LockstepU second;
    LOCKSTEP_STD constexpr pair() : first(), second() {}
    LOCKSTEP_STD constexpr pair(const LockstepT &a, const LockstepU &b) : first(a), second(b) {}
};
template <typename LockstepT, typename LockstepU>
LOCKSTEP_STD constexpr pair<LockstepT, LockstepU> make_pair(LockstepT a, LockstepU b) {
    return pair<LockstepT, LockstepU>(a, b);
}

template <typename LockstepT>
struct numeric_limits;
#define LOCKSTEP_LIMITS(LockstepT, low, smallest, largest, tiny, mantissa)                                             \
    template <>                                                                                                        \
    struct numeric_limits<LockstepT> {                                                                                 \
        enum : bool { is_specialized = true, is_signed = true, is_integer = false };                                   \
        enum : bool { has_infinity = true };                                                                           \
        enum : int { digits = mantissa };                                                                              \
        LOCKSTEP_STD static constexpr LockstepT lowest() { return low; }                                               \
        LOCKSTEP_STD static constexpr LockstepT min() { return smallest; }                                             \
        LOCKSTEP_STD static constexpr LockstepT max() { return largest; }                                              \
        LOCKSTEP_STD static constexpr LockstepT epsilon() { return tiny; }                                             \
        LOCKSTEP_STD static constexpr LockstepT infinity() { return (LockstepT)__builtin_huge_val(); }                 \
        LOCKSTEP_STD static constexpr LockstepT quiet_NaN() { return (LockstepT)__builtin_nan(""); }                   \
    };
LOCKSTEP_LIMITS(float, -FLT_MAX, FLT_MIN, FLT_MAX, FLT_EPSILON, 24)
LOCKSTEP_LIMITS(double, -DBL_MAX, 2.2250738585072014e-308, DBL_MAX, DBL_EPSILON, 53)
#define LOCKSTEP_INTEGER_LIMITS(LockstepT, low, largest)                                                               \
    template <>                                                                                                        \
    struct numeric_limits<LockstepT> {                                                                                 \
        enum : bool { is_specialized = true, is_integer = true, has_infinity = false };                                \
        enum : bool { is_signed = (LockstepT) - 1 < (LockstepT)0 };                                                    \
        enum : int { digits = sizeof(LockstepT) * 8 - is_signed };                                                     \
        LOCKSTEP_STD static constexpr LockstepT lowest() { return low; }                                               \
        LOCKSTEP_STD static constexpr LockstepT min() { return low; }                                                  \
        LOCKSTEP_STD static constexpr LockstepT max() { return largest; }                                              \
    };
LOCKSTEP_INTEGER_LIMITS(char, -128, 127)
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
#undef LOCKSTEP_LIMITS
#undef LOCKSTEP_INTEGER_LIMITS
