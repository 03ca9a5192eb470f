// Functions without bodies, which the executors know by name.
// `python -m tools.intrinsic_headers` writes this file from gpu/simulator/ir/intrinsics.py.
#pragma once
// clang-format off

LOCKSTEP_MATH_1(sqrt)
LOCKSTEP_MATH_1(rsqrt)
LOCKSTEP_MATH_1(cbrt)
LOCKSTEP_MATH_1(exp)
LOCKSTEP_MATH_1(exp2)
LOCKSTEP_MATH_1(exp10)
LOCKSTEP_MATH_1(expm1)
LOCKSTEP_MATH_1(log)
LOCKSTEP_MATH_1(log2)
LOCKSTEP_MATH_1(log10)
LOCKSTEP_MATH_1(log1p)
LOCKSTEP_MATH_1(sin)
LOCKSTEP_MATH_1(cos)
LOCKSTEP_MATH_1(tan)
LOCKSTEP_MATH_1(asin)
LOCKSTEP_MATH_1(acos)
LOCKSTEP_MATH_1(atan)
LOCKSTEP_MATH_1(sinh)
LOCKSTEP_MATH_1(cosh)
LOCKSTEP_MATH_1(tanh)
LOCKSTEP_MATH_1(erf)
LOCKSTEP_MATH_1(erfc)
LOCKSTEP_MATH_1(erfinv)
LOCKSTEP_MATH_1(erfcinv)
LOCKSTEP_MATH_1(erfcx)
LOCKSTEP_MATH_1(normcdf)
LOCKSTEP_MATH_1(normcdfinv)
LOCKSTEP_MATH_1(j0)
LOCKSTEP_MATH_1(j1)
LOCKSTEP_MATH_1(y0)
LOCKSTEP_MATH_1(y1)
LOCKSTEP_MATH_1(cyl_bessel_i0)
LOCKSTEP_MATH_1(cyl_bessel_i1)
LOCKSTEP_MATH_1(lgamma)
LOCKSTEP_MATH_1(tgamma)
LOCKSTEP_MATH_1(asinh)
LOCKSTEP_MATH_1(acosh)
LOCKSTEP_MATH_1(atanh)
LOCKSTEP_MATH_1(fabs)
LOCKSTEP_MATH_1(floor)
LOCKSTEP_MATH_1(ceil)
LOCKSTEP_MATH_1(trunc)
LOCKSTEP_MATH_1(round)
LOCKSTEP_MATH_1(rint)
LOCKSTEP_MATH_1(nearbyint)
LOCKSTEP_MATH_2(fmin)
LOCKSTEP_MATH_2(fmax)
LOCKSTEP_MATH_2(copysign)
LOCKSTEP_MATH_2(pow)
LOCKSTEP_MATH_2(fmod)
LOCKSTEP_MATH_2(atan2)
LOCKSTEP_MATH_2(hypot)
LOCKSTEP_MATH_2(fdim)
LOCKSTEP_API float fmaf(float x, float y, float z);
LOCKSTEP_API float fma(float x, float y, float z);
LOCKSTEP_API double fma(double x, double y, double z);
LOCKSTEP_API float ldexpf(float x, int y);
LOCKSTEP_API float ldexp(float x, int y);
LOCKSTEP_API double ldexp(double x, int y);
LOCKSTEP_API float __expf(float x);
LOCKSTEP_API float __exp10f(float x);
LOCKSTEP_API float __logf(float x);
LOCKSTEP_API float __log2f(float x);
LOCKSTEP_API float __log10f(float x);
LOCKSTEP_API float __sinf(float x);
LOCKSTEP_API float __cosf(float x);
LOCKSTEP_API float __tanf(float x);
LOCKSTEP_API float __tanhf(float x);
LOCKSTEP_API float __powf(float x, float y);
LOCKSTEP_API float __fdividef(float x, float y);
LOCKSTEP_API float __fadd_rn(float x, float y);
LOCKSTEP_API float __fsub_rn(float x, float y);
LOCKSTEP_API float __fmul_rn(float x, float y);
LOCKSTEP_API float __fdiv_rn(float x, float y);
LOCKSTEP_API double __dadd_rn(double x, double y);
LOCKSTEP_API double __dsub_rn(double x, double y);
LOCKSTEP_API double __dmul_rn(double x, double y);
LOCKSTEP_API float __frcp_rn(float x);
LOCKSTEP_API float __fsqrt_rn(float x);
LOCKSTEP_API float __frsqrt_rn(float x);
LOCKSTEP_API float __fmaf_rn(float x, float y, float z);
LOCKSTEP_API float __saturatef(float x);
LOCKSTEP_API float __lockstep_between(float x, float y, float z);
LOCKSTEP_API bool isnan(float x);
LOCKSTEP_API bool isnan(double x);
LOCKSTEP_API bool isinf(float x);
LOCKSTEP_API bool isinf(double x);
LOCKSTEP_API bool isfinite(float x);
LOCKSTEP_API bool isfinite(double x);
LOCKSTEP_API int abs(int x);
LOCKSTEP_API long abs(long x);
LOCKSTEP_API long long abs(long long x);
LOCKSTEP_API float abs(float x);
LOCKSTEP_API double abs(double x);
LOCKSTEP_API long long llabs(long long x);
LOCKSTEP_API int __popc(unsigned int x);
LOCKSTEP_API int __popcll(unsigned long long x);
LOCKSTEP_API int __clz(int x);
LOCKSTEP_API int __clzll(long long x);
LOCKSTEP_API int __ffs(int x);
LOCKSTEP_API int __ffsll(long long x);
LOCKSTEP_API unsigned int __brev(unsigned int x);
LOCKSTEP_API int __mul24(int x, int y);
LOCKSTEP_API unsigned int __umul24(unsigned int x, unsigned int y);
LOCKSTEP_API int __mulhi(int x, int y);
LOCKSTEP_API unsigned int __umulhi(unsigned int x, unsigned int y);
LOCKSTEP_API unsigned int __byte_perm(unsigned int x, unsigned int y, unsigned int z);
LOCKSTEP_API int __float_as_int(float x);
LOCKSTEP_API unsigned int __float_as_uint(float x);
LOCKSTEP_API float __int_as_float(int x);
LOCKSTEP_API float __uint_as_float(unsigned int x);
LOCKSTEP_API long long __double_as_longlong(double x);
LOCKSTEP_API double __longlong_as_double(long long x);
LOCKSTEP_API float __lockstep_mantissa(float x);
LOCKSTEP_API double __lockstep_mantissa(double x);
LOCKSTEP_API int __lockstep_exponent(float x);
LOCKSTEP_API int __lockstep_exponent(double x);
LOCKSTEP_API float __lockstep_from_half(unsigned short x);
LOCKSTEP_API unsigned short __lockstep_to_half(float x);
