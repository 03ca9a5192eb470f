// What __half and __nv_bfloat16, and pairs of them, have in common: operators of two of them and the named functions
// round each result; with a float, operators compute in float.
#pragma once

template <typename LockstepT, typename Half>
struct __lockstep_only {};
template <typename Half>
struct __lockstep_only<Half, Half> {
    using type = Half;
};
// Templates, so that nothing is converted for their sake.
#define LOCKSTEP_SMALL_OPERATOR(Half, op)                                                                              \
    template <typename LockstepT>                                                                                      \
    LOCKSTEP_API inline typename __lockstep_only<LockstepT, Half>::type operator op(const LockstepT &a,                \
                                                                                    const LockstepT &b) {              \
        return LockstepT((float)a op(float) b);                                                                        \
    }                                                                                                                  \
    LOCKSTEP_API inline Half &operator op## = (Half & a, const Half &b) { return a = Half((float)a op(float) b); }
#define LOCKSTEP_SMALL_2(Half, name, expression)                                                                       \
    LOCKSTEP_API inline Half name(Half x, Half y) {                                                                    \
        float a = (float)x, b = (float)y;                                                                              \
        return Half(expression);                                                                                       \
    }
#define LOCKSTEP_SMALL_TEST(Half, name, expression)                                                                    \
    LOCKSTEP_API inline bool name(Half x, Half y) {                                                                    \
        float a = (float)x, b = (float)y;                                                                              \
        return expression;                                                                                             \
    }
#define LOCKSTEP_SMALL_1(Half, name, expression)                                                                       \
    LOCKSTEP_API inline Half name(Half x) {                                                                            \
        float a = (float)x;                                                                                            \
        return Half(expression);                                                                                       \
    }
LOCKSTEP_API inline float __lockstep_within_one(float a) { return a > 0.0f ? (a < 1.0f ? a : 1.0f) : 0.0f; }

#define LOCKSTEP_SMALL_FLOAT(Half)                                                                                     \
    LOCKSTEP_SMALL_OPERATOR(Half, +)                                                                                   \
    LOCKSTEP_SMALL_OPERATOR(Half, -)                                                                                   \
    LOCKSTEP_SMALL_OPERATOR(Half, *)                                                                                   \
    LOCKSTEP_SMALL_OPERATOR(Half, /)                                                                                   \
    LOCKSTEP_API inline Half operator-(const Half &a) { return Half(-(float)a); }                                      \
    LOCKSTEP_API inline Half &operator++(Half &a) { return a = Half((float)a + 1.0f); }                                \
    LOCKSTEP_API inline Half &operator--(Half &a) { return a = Half((float)a - 1.0f); }                                \
    LOCKSTEP_SMALL_2(Half, __hadd, a + b)                                                                              \
    LOCKSTEP_SMALL_2(Half, __hsub, a - b)                                                                              \
    LOCKSTEP_SMALL_2(Half, __hmul, a *b)                                                                               \
    LOCKSTEP_SMALL_2(Half, __hadd_rn, a + b)                                                                           \
    LOCKSTEP_SMALL_2(Half, __hsub_rn, a - b)                                                                           \
    LOCKSTEP_SMALL_2(Half, __hmul_rn, a *b)                                                                            \
    LOCKSTEP_SMALL_2(Half, __hdiv, a / b)                                                                              \
    LOCKSTEP_SMALL_2(Half, __hadd_sat, __lockstep_within_one(a + b))                                                   \
    LOCKSTEP_SMALL_2(Half, __hsub_sat, __lockstep_within_one(a - b))                                                   \
    LOCKSTEP_SMALL_2(Half, __hmul_sat, __lockstep_within_one(a *b))                                                    \
    LOCKSTEP_SMALL_2(Half, __hmax, fmaxf(a, b))                                                                        \
    LOCKSTEP_SMALL_2(Half, __hmin, fminf(a, b))                                                                        \
    LOCKSTEP_SMALL_2(Half, __hmax_nan, a != a || b != b ? a + b : fmaxf(a, b))                                         \
    LOCKSTEP_SMALL_2(Half, __hmin_nan, a != a || b != b ? a + b : fminf(a, b))                                         \
    LOCKSTEP_SMALL_TEST(Half, __hgt, a > b)                                                                            \
    LOCKSTEP_SMALL_TEST(Half, __hlt, a < b)                                                                            \
    LOCKSTEP_SMALL_TEST(Half, __hge, a >= b)                                                                           \
    LOCKSTEP_SMALL_TEST(Half, __hle, a <= b)                                                                           \
    LOCKSTEP_SMALL_TEST(Half, __heq, a == b)                                                                           \
    LOCKSTEP_SMALL_TEST(Half, __hne, a<b || a> b)                                                                      \
    LOCKSTEP_SMALL_TEST(Half, __hgtu, !(a <= b))                                                                       \
    LOCKSTEP_SMALL_TEST(Half, __hltu, !(a >= b))                                                                       \
    LOCKSTEP_SMALL_TEST(Half, __hgeu, !(a < b))                                                                        \
    LOCKSTEP_SMALL_TEST(Half, __hleu, !(a > b))                                                                        \
    LOCKSTEP_SMALL_TEST(Half, __hequ, !(a < b || a > b))                                                               \
    LOCKSTEP_SMALL_TEST(Half, __hneu, a != b)                                                                          \
    LOCKSTEP_API inline Half __hfma(Half a, Half b, Half c) { return Half(fmaf((float)a, (float)b, (float)c)); }       \
    LOCKSTEP_API inline Half __hfma_sat(Half a, Half b, Half c) {                                                      \
        return Half(__lockstep_within_one(fmaf((float)a, (float)b, (float)c)));                                        \
    }                                                                                                                  \
    LOCKSTEP_API inline Half __hfma_relu(Half a, Half b, Half c) {                                                     \
        float value = fmaf((float)a, (float)b, (float)c);                                                              \
        return Half(value < 0.0f ? 0.0f : value);                                                                      \
    }                                                                                                                  \
    LOCKSTEP_API inline bool __hisnan(Half a) { return (float)a != (float)a; }                                         \
    LOCKSTEP_API inline int __hisinf(Half a) {                                                                         \
        return fabsf((float)a) == __builtin_inff() ? ((float)a > 0.0f ? 1 : -1) : 0;                                   \
    }                                                                                                                  \
    LOCKSTEP_SMALL_1(Half, __hneg, -a)                                                                                 \
    LOCKSTEP_SMALL_1(Half, __habs, fabsf(a))                                                                           \
    LOCKSTEP_SMALL_1(Half, hsqrt, sqrtf(a))                                                                            \
    LOCKSTEP_SMALL_1(Half, hrsqrt, 1.0f / sqrtf(a))                                                                    \
    LOCKSTEP_SMALL_1(Half, hrcp, 1.0f / a)                                                                             \
    LOCKSTEP_SMALL_1(Half, hexp, expf(a))                                                                              \
    LOCKSTEP_SMALL_1(Half, hexp2, exp2f(a))                                                                            \
    LOCKSTEP_SMALL_1(Half, hexp10, exp10f(a))                                                                          \
    LOCKSTEP_SMALL_1(Half, hlog, logf(a))                                                                              \
    LOCKSTEP_SMALL_1(Half, hlog2, log2f(a))                                                                            \
    LOCKSTEP_SMALL_1(Half, hlog10, log10f(a))                                                                          \
    LOCKSTEP_SMALL_1(Half, hsin, sinf(a))                                                                              \
    LOCKSTEP_SMALL_1(Half, hcos, cosf(a))                                                                              \
    LOCKSTEP_SMALL_1(Half, htanh, tanhf(a))                                                                            \
    LOCKSTEP_SMALL_1(Half, htanh_approx, tanhf(a))                                                                     \
    LOCKSTEP_SMALL_1(Half, hfloor, floorf(a))                                                                          \
    LOCKSTEP_SMALL_1(Half, hceil, ceilf(a))                                                                            \
    LOCKSTEP_SMALL_1(Half, htrunc, truncf(a))                                                                          \
    LOCKSTEP_SMALL_1(Half, hrint, rintf(a))

// Of pairs each half by itself.
#define LOCKSTEP_PAIR_2(Pair, name, of_one)                                                                            \
    LOCKSTEP_API inline Pair name(Pair a, Pair b) { return Pair(of_one(a.x, b.x), of_one(a.y, b.y)); }
#define LOCKSTEP_PAIR_1(Pair, name, of_one)                                                                            \
    LOCKSTEP_API inline Pair name(Pair a) { return Pair(of_one(a.x), of_one(a.y)); }
#define LOCKSTEP_PAIR_TEST(Pair, name, both, of_one)                                                                   \
    LOCKSTEP_API inline Pair name(Pair a, Pair b) {                                                                    \
        return Pair(of_one(a.x, b.x) ? 1.0f : 0.0f, of_one(a.y, b.y) ? 1.0f : 0.0f);                                   \
    }                                                                                                                  \
    LOCKSTEP_API inline unsigned int name##_mask(Pair a, Pair b) {                                                     \
        return (of_one(a.x, b.x) ? 0xffffu : 0u) | (of_one(a.y, b.y) ? 0xffff0000u : 0u);                              \
    }                                                                                                                  \
    LOCKSTEP_API inline bool both(Pair a, Pair b) { return of_one(a.x, b.x) && of_one(a.y, b.y); }
#define LOCKSTEP_PAIR_OPERATOR(Pair, op, name)                                                                         \
    LOCKSTEP_API inline Pair operator op(const Pair &a, const Pair &b) { return name(a, b); }                          \
    LOCKSTEP_API inline Pair &operator op## = (Pair & a, const Pair &b) { return a = name(a, b); }
#define LOCKSTEP_PAIR_OF_SMALL_FLOATS(Pair)                                                                            \
    LOCKSTEP_PAIR_2(Pair, __hadd2, __hadd)                                                                             \
    LOCKSTEP_PAIR_2(Pair, __hsub2, __hsub)                                                                             \
    LOCKSTEP_PAIR_2(Pair, __hmul2, __hmul)                                                                             \
    LOCKSTEP_PAIR_2(Pair, __hadd2_rn, __hadd)                                                                          \
    LOCKSTEP_PAIR_2(Pair, __hsub2_rn, __hsub)                                                                          \
    LOCKSTEP_PAIR_2(Pair, __hmul2_rn, __hmul)                                                                          \
    LOCKSTEP_PAIR_2(Pair, __h2div, __hdiv)                                                                             \
    LOCKSTEP_PAIR_2(Pair, __hadd2_sat, __hadd_sat)                                                                     \
    LOCKSTEP_PAIR_2(Pair, __hsub2_sat, __hsub_sat)                                                                     \
    LOCKSTEP_PAIR_2(Pair, __hmul2_sat, __hmul_sat)                                                                     \
    LOCKSTEP_PAIR_2(Pair, __hmax2, __hmax)                                                                             \
    LOCKSTEP_PAIR_2(Pair, __hmin2, __hmin)                                                                             \
    LOCKSTEP_PAIR_2(Pair, __hmax2_nan, __hmax_nan)                                                                     \
    LOCKSTEP_PAIR_2(Pair, __hmin2_nan, __hmin_nan)                                                                     \
    LOCKSTEP_PAIR_1(Pair, __hneg2, __hneg)                                                                             \
    LOCKSTEP_PAIR_1(Pair, __habs2, __habs)                                                                             \
    LOCKSTEP_PAIR_1(Pair, h2sqrt, hsqrt)                                                                               \
    LOCKSTEP_PAIR_1(Pair, h2rsqrt, hrsqrt)                                                                             \
    LOCKSTEP_PAIR_1(Pair, h2rcp, hrcp)                                                                                 \
    LOCKSTEP_PAIR_1(Pair, h2exp, hexp)                                                                                 \
    LOCKSTEP_PAIR_1(Pair, h2exp2, hexp2)                                                                               \
    LOCKSTEP_PAIR_1(Pair, h2log, hlog)                                                                                 \
    LOCKSTEP_PAIR_1(Pair, h2log2, hlog2)                                                                               \
    LOCKSTEP_PAIR_1(Pair, h2sin, hsin)                                                                                 \
    LOCKSTEP_PAIR_1(Pair, h2cos, hcos)                                                                                 \
    LOCKSTEP_PAIR_1(Pair, h2tanh, htanh)                                                                               \
    LOCKSTEP_PAIR_1(Pair, h2floor, hfloor)                                                                             \
    LOCKSTEP_PAIR_1(Pair, h2ceil, hceil)                                                                               \
    LOCKSTEP_PAIR_1(Pair, h2trunc, htrunc)                                                                             \
    LOCKSTEP_PAIR_1(Pair, h2rint, hrint)                                                                               \
    LOCKSTEP_PAIR_TEST(Pair, __hgt2, __hbgt2, __hgt)                                                                   \
    LOCKSTEP_PAIR_TEST(Pair, __hlt2, __hblt2, __hlt)                                                                   \
    LOCKSTEP_PAIR_TEST(Pair, __hge2, __hbge2, __hge)                                                                   \
    LOCKSTEP_PAIR_TEST(Pair, __hle2, __hble2, __hle)                                                                   \
    LOCKSTEP_PAIR_TEST(Pair, __heq2, __hbeq2, __heq)                                                                   \
    LOCKSTEP_PAIR_TEST(Pair, __hne2, __hbne2, __hne)                                                                   \
    LOCKSTEP_PAIR_TEST(Pair, __hgtu2, __hbgtu2, __hgtu)                                                                \
    LOCKSTEP_PAIR_TEST(Pair, __hltu2, __hbltu2, __hltu)                                                                \
    LOCKSTEP_PAIR_TEST(Pair, __hgeu2, __hbgeu2, __hgeu)                                                                \
    LOCKSTEP_PAIR_TEST(Pair, __hleu2, __hbleu2, __hleu)                                                                \
    LOCKSTEP_PAIR_TEST(Pair, __hequ2, __hbequ2, __hequ)                                                                \
    LOCKSTEP_PAIR_TEST(Pair, __hneu2, __hbneu2, __hneu)                                                                \
    LOCKSTEP_API inline Pair __hfma2(Pair a, Pair b, Pair c) {                                                         \
        return Pair(__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y));                                                     \
    }                                                                                                                  \
    LOCKSTEP_API inline Pair __hfma2_sat(Pair a, Pair b, Pair c) {                                                     \
        return Pair(__hfma_sat(a.x, b.x, c.x), __hfma_sat(a.y, b.y, c.y));                                             \
    }                                                                                                                  \
    LOCKSTEP_API inline Pair __hfma2_relu(Pair a, Pair b, Pair c) {                                                    \
        return Pair(__hfma_relu(a.x, b.x, c.x), __hfma_relu(a.y, b.y, c.y));                                           \
    }                                                                                                                  \
    LOCKSTEP_API inline Pair operator-(const Pair &a) { return __hneg2(a); }                                           \
    LOCKSTEP_API inline bool operator==(const Pair &a, const Pair &b) { return __hbeq2(a, b); }                        \
    LOCKSTEP_API inline bool operator!=(const Pair &a, const Pair &b) { return __hbneu2(a, b); }                       \
    LOCKSTEP_API inline bool operator<(const Pair &a, const Pair &b) { return __hblt2(a, b); }                         \
    LOCKSTEP_API inline bool operator>(const Pair &a, const Pair &b) { return __hbgt2(a, b); }                         \
    LOCKSTEP_API inline bool operator<=(const Pair &a, const Pair &b) { return __hble2(a, b); }                        \
    LOCKSTEP_API inline bool operator>=(const Pair &a, const Pair &b) { return __hbge2(a, b); }                        \
    LOCKSTEP_API inline float __low2float(Pair a) { return (float)a.x; }                                               \
    LOCKSTEP_API inline float __high2float(Pair a) { return (float)a.y; }                                              \
    LOCKSTEP_API inline Pair __lowhigh2highlow(Pair a) { return Pair(a.y, a.x); }                                      \
    LOCKSTEP_PAIR_OPERATOR(Pair, +, __hadd2)                                                                           \
    LOCKSTEP_PAIR_OPERATOR(Pair, -, __hsub2)                                                                           \
    LOCKSTEP_PAIR_OPERATOR(Pair, *, __hmul2)                                                                           \
    LOCKSTEP_PAIR_OPERATOR(Pair, /, __h2div)

// What lanes exchange, and what is added atomically: the bits as a whole, of a pair each half.
#define LOCKSTEP_SMALL_SHUFFLE(Half, Pair, name, By)                                                                   \
    __device__ inline Half name(unsigned int mask, Half value, By by, int width = 32) {                                \
        value.bits = (unsigned short)name(mask, (unsigned int)value.bits, by, width);                                  \
        return value;                                                                                                  \
    }                                                                                                                  \
    __device__ inline Pair name(unsigned int mask, Pair value, By by, int width = 32) {                                \
        unsigned int both = name(mask, value.x.bits | ((unsigned int)value.y.bits << 16), by, width);                  \
        value.x.bits = (unsigned short)both;                                                                           \
        value.y.bits = (unsigned short)(both >> 16);                                                                   \
        return value;                                                                                                  \
    }
#define LOCKSTEP_SMALL_EXCHANGES(Half, Pair)                                                                           \
    LOCKSTEP_SMALL_SHUFFLE(Half, Pair, __shfl_sync, int)                                                               \
    LOCKSTEP_SMALL_SHUFFLE(Half, Pair, __shfl_up_sync, unsigned int)                                                   \
    LOCKSTEP_SMALL_SHUFFLE(Half, Pair, __shfl_down_sync, unsigned int)                                                 \
    LOCKSTEP_SMALL_SHUFFLE(Half, Pair, __shfl_xor_sync, int)                                                           \
    __device__ inline Half atomicAdd(Half *address, Half value) {                                                      \
        Half before, after;                                                                                            \
        unsigned short seen, found = atomicCAS(&address->bits, (unsigned short)0, (unsigned short)0);                  \
        do {                                                                                                           \
            before.bits = seen = found;                                                                                \
            after = __hadd(before, value);                                                                             \
            found = atomicCAS(&address->bits, seen, after.bits);                                                       \
        } while (found != seen);                                                                                       \
        return before;                                                                                                 \
    }                                                                                                                  \
    __device__ inline Pair atomicAdd(Pair *address, Pair value) {                                                      \
        Half low = atomicAdd(&address->x, value.x);                                                                    \
        return Pair(low, atomicAdd(&address->y, value.y));                                                             \
    }

// From and to integers, rounded as the name says.
#define LOCKSTEP_SMALL_INTEGER(Half, half, T, name)                                                                    \
    LOCKSTEP_API inline Half __##name##2##half##_rn(T value) { return Half((float)value); }                            \
    LOCKSTEP_API inline Half __##name##2##half##_rz(T value) { return __float2##half##_rz((float)value); }             \
    LOCKSTEP_API inline T __##half##2##name##_rn(Half value) { return (T)rintf((float)value); }                        \
    LOCKSTEP_API inline T __##half##2##name##_rz(Half value) { return (T)(float)value; }                               \
    LOCKSTEP_API inline T __##half##2##name##_rd(Half value) { return (T)floorf((float)value); }                       \
    LOCKSTEP_API inline T __##half##2##name##_ru(Half value) { return (T)ceilf((float)value); }
#define LOCKSTEP_SMALL_CONVERSIONS(Half, half)                                                                         \
    LOCKSTEP_API inline Half __float2##half(float value) { return Half(value); }                                       \
    LOCKSTEP_API inline Half __float2##half##_rn(float value) { return Half(value); }                                  \
    LOCKSTEP_API inline Half __double2##half(double value) { return Half((float)value); }                              \
    LOCKSTEP_API inline float __##half##2float(Half value) { return (float)value; }                                    \
    LOCKSTEP_API inline unsigned short __##half##_as_ushort(Half value) { return value.bits; }                         \
    LOCKSTEP_API inline short __##half##_as_short(Half value) { return (short)value.bits; }                            \
    LOCKSTEP_API inline Half __ushort_as_##half(unsigned short bits) {                                                 \
        Half value;                                                                                                    \
        value.bits = bits;                                                                                             \
        return value;                                                                                                  \
    }                                                                                                                  \
    LOCKSTEP_API inline Half __short_as_##half(short bits) { return __ushort_as_##half((unsigned short)bits); }        \
    LOCKSTEP_API inline Half __float2##half##_rz(float value) {                                                        \
        Half made(value);                                                                                              \
        return fabsf((float)made) > fabsf(value) ? __ushort_as_##half((unsigned short)(made.bits - 1)) : made;         \
    }                                                                                                                  \
    LOCKSTEP_API inline Half __float2##half##_rd(float value) {                                                        \
        Half made(value);                                                                                              \
        int away = value < 0.0f ? 1 : -1;                                                                              \
        return (float)made > value ? __ushort_as_##half((unsigned short)(made.bits + away)) : made;                    \
    }                                                                                                                  \
    LOCKSTEP_API inline Half __float2##half##_ru(float value) {                                                        \
        Half made(value);                                                                                              \
        int away = value < 0.0f ? -1 : 1;                                                                              \
        return (float)made < value ? __ushort_as_##half((unsigned short)(made.bits + away)) : made;                    \
    }                                                                                                                  \
    LOCKSTEP_SMALL_INTEGER(Half, half, int, int)                                                                       \
    LOCKSTEP_SMALL_INTEGER(Half, half, unsigned int, uint)                                                             \
    LOCKSTEP_SMALL_INTEGER(Half, half, short, short)                                                                   \
    LOCKSTEP_SMALL_INTEGER(Half, half, unsigned short, ushort)                                                         \
    LOCKSTEP_SMALL_INTEGER(Half, half, long long, ll)                                                                  \
    LOCKSTEP_SMALL_INTEGER(Half, half, unsigned long long, ull)                                                        \
    LOCKSTEP_API inline signed char __##half##2char_rz(Half value) { return (signed char)(float)value; }               \
    LOCKSTEP_API inline unsigned char __##half##2uchar_rz(Half value) { return (unsigned char)(float)value; }
