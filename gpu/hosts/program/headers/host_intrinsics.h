// CUDA's functions on the host.
// `python -m tools.intrinsic_headers` writes this file from gpu/simulator/ir/intrinsics.py.
#pragma once
// clang-format off

#include "host_bits.h"

static inline float rsqrtf(float x) { return 1 / sqrt(x); }
static inline float rsqrt(float x) { return 1 / sqrt(x); }
static inline double rsqrt(double x) { return 1 / sqrt(x); }
#define __expf __lockstep_expf
static inline float __expf(float x) { return expf(x); }
#define __exp10f __lockstep_exp10f
static inline float __exp10f(float x) { return pow(10, x); }
#define __logf __lockstep_logf
static inline float __logf(float x) { return logf(x); }
#define __log2f __lockstep_log2f
static inline float __log2f(float x) { return log2f(x); }
#define __log10f __lockstep_log10f
static inline float __log10f(float x) { return log10f(x); }
#define __sinf __lockstep_sinf
static inline float __sinf(float x) { return sinf(x); }
#define __cosf __lockstep_cosf
static inline float __cosf(float x) { return cosf(x); }
#define __tanf __lockstep_tanf
static inline float __tanf(float x) { return tanf(x); }
#define __tanhf __lockstep_tanhf
static inline float __tanhf(float x) { return tanhf(x); }
#define __powf __lockstep_powf
static inline float __powf(float x, float y) { return powf(x, y); }
static inline float __fdividef(float x, float y) { return x / y; }
static inline float __fadd_rn(float x, float y) { return x + y; }
static inline float __fsub_rn(float x, float y) { return x - y; }
static inline float __fmul_rn(float x, float y) { return x * y; }
static inline float __fdiv_rn(float x, float y) { return x / y; }
static inline double __dadd_rn(double x, double y) { return x + y; }
static inline double __dsub_rn(double x, double y) { return x - y; }
static inline double __dmul_rn(double x, double y) { return x * y; }
static inline float __frcp_rn(float x) { return 1 / x; }
static inline float __fsqrt_rn(float x) { return sqrtf(x); }
static inline float __frsqrt_rn(float x) { return 1 / sqrtf(x); }
static inline float __fmaf_rn(float x, float y, float z) { return fmaf(x, y, z); }
static inline float __saturatef(float x) { return x > 0 ? (x < 1 ? x : 1) : 0; }
static inline int min(int x, int y) { return y < x ? y : x; }
static inline unsigned int min(unsigned int x, unsigned int y) { return y < x ? y : x; }
static inline long min(long x, long y) { return y < x ? y : x; }
static inline unsigned long min(unsigned long x, unsigned long y) { return y < x ? y : x; }
static inline long long min(long long x, long long y) { return y < x ? y : x; }
static inline unsigned long long min(unsigned long long x, unsigned long long y) { return y < x ? y : x; }
static inline float min(float x, float y) { return fmin(x, y); }
static inline double min(double x, double y) { return fmin(x, y); }
static inline int max(int x, int y) { return x < y ? y : x; }
static inline unsigned int max(unsigned int x, unsigned int y) { return x < y ? y : x; }
static inline long max(long x, long y) { return x < y ? y : x; }
static inline unsigned long max(unsigned long x, unsigned long y) { return x < y ? y : x; }
static inline long long max(long long x, long long y) { return x < y ? y : x; }
static inline unsigned long long max(unsigned long long x, unsigned long long y) { return x < y ? y : x; }
static inline float max(float x, float y) { return fmax(x, y); }
static inline double max(double x, double y) { return fmax(x, y); }
static inline int __popc(unsigned int x) { return __builtin_popcount(x); }
static inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
static inline int __clz(int x) { return x ? __builtin_clz(x) : 32; }
static inline int __clzll(long long x) { return x ? __builtin_clzll(x) : 64; }
static inline int __ffs(int x) { return __builtin_ffs(x); }
static inline int __ffsll(long long x) { return __builtin_ffsll(x); }
static inline unsigned int __brev(unsigned int x) { return __lockstep_reverse_bits(x); }
static inline int __mul24(int x, int y) { return (int)((long long)__lockstep_low_24(x) * __lockstep_low_24(y)); }
static inline unsigned int __umul24(unsigned int x, unsigned int y) { return (x & 0xffffff) * (y & 0xffffff); }
static inline int __mulhi(int x, int y) { return (int)((long long)x * y >> 32); }
static inline unsigned int __umulhi(unsigned int x, unsigned int y) { return (unsigned int)((unsigned long long)x * y >> 32); }
static inline unsigned int __byte_perm(unsigned int x, unsigned int y, unsigned int z) { return __lockstep_permute_bytes(x, y, z); }
static inline int __float_as_int(float x) { return __lockstep_bits<int>(x); }
static inline unsigned int __float_as_uint(float x) { return __lockstep_bits<unsigned int>(x); }
static inline float __int_as_float(int x) { return __lockstep_bits<float>(x); }
static inline float __uint_as_float(unsigned int x) { return __lockstep_bits<float>(x); }
static inline long long __double_as_longlong(double x) { return __lockstep_bits<long long>(x); }
static inline double __longlong_as_double(long long x) { return __lockstep_bits<double>(x); }
