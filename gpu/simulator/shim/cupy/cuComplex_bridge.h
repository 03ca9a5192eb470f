// CUDA's complex types and functions on CuPy's complex numbers, for sources with `translate_cucomplex`.
#pragma once
#include <cupy/complex.cuh>

typedef complex<float> cuFloatComplex, cuComplex;
typedef complex<double> cuDoubleComplex;

LOCKSTEP_API inline cuFloatComplex make_cuFloatComplex(float x, float y) { return cuFloatComplex(x, y); }
LOCKSTEP_API inline cuFloatComplex make_cuComplex(float x, float y) { return cuFloatComplex(x, y); }
LOCKSTEP_API inline cuDoubleComplex make_cuDoubleComplex(double x, double y) { return cuDoubleComplex(x, y); }
LOCKSTEP_API inline cuDoubleComplex cuComplexFloatToDouble(cuFloatComplex z) { return cuDoubleComplex(z); }
LOCKSTEP_API inline cuFloatComplex cuComplexDoubleToFloat(cuDoubleComplex z) { return cuFloatComplex(z); }

#define LOCKSTEP_COMPLEX(suffix)                                                                                       \
    template <typename T>                                                                                              \
    LOCKSTEP_API T cuCreal##suffix(const complex<T> &z) {                                                              \
        return z.real();                                                                                               \
    }                                                                                                                  \
    template <typename T>                                                                                              \
    LOCKSTEP_API T cuCimag##suffix(const complex<T> &z) {                                                              \
        return z.imag();                                                                                               \
    }                                                                                                                  \
    template <typename T>                                                                                              \
    LOCKSTEP_API T cuCabs##suffix(const complex<T> &z) {                                                               \
        return abs(z);                                                                                                 \
    }                                                                                                                  \
    template <typename T>                                                                                              \
    LOCKSTEP_API complex<T> cuConj##suffix(const complex<T> &z) {                                                      \
        return conj(z);                                                                                                \
    }                                                                                                                  \
    template <typename T>                                                                                              \
    LOCKSTEP_API complex<T> cuCadd##suffix(const complex<T> &a, const complex<T> &b) {                                 \
        return a + b;                                                                                                  \
    }                                                                                                                  \
    template <typename T>                                                                                              \
    LOCKSTEP_API complex<T> cuCsub##suffix(const complex<T> &a, const complex<T> &b) {                                 \
        return a - b;                                                                                                  \
    }                                                                                                                  \
    template <typename T>                                                                                              \
    LOCKSTEP_API complex<T> cuCmul##suffix(const complex<T> &a, const complex<T> &b) {                                 \
        return a * b;                                                                                                  \
    }                                                                                                                  \
    template <typename T>                                                                                              \
    LOCKSTEP_API complex<T> cuCdiv##suffix(const complex<T> &a, const complex<T> &b) {                                 \
        return a / b;                                                                                                  \
    }                                                                                                                  \
    template <typename T>                                                                                              \
    LOCKSTEP_API complex<T> cuCfma##suffix(const complex<T> &a, const complex<T> &b, const complex<T> &c) {            \
        return a * b + c;                                                                                              \
    }
LOCKSTEP_COMPLEX()
LOCKSTEP_COMPLEX(f)
#undef LOCKSTEP_COMPLEX
