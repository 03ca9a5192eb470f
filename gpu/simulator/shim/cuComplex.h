// Complex numbers as CUDA has them.
#pragma once

typedef float2 cuFloatComplex;
typedef double2 cuDoubleComplex;
typedef cuFloatComplex cuComplex;

#define LOCKSTEP_COMPLEX(Complex, Real, suffix, root)                                                                  \
    LOCKSTEP_API inline Complex make_##Complex(Real x, Real y) {                                                       \
        Complex made;                                                                                                  \
        made.x = x;                                                                                                    \
        made.y = y;                                                                                                    \
        return made;                                                                                                   \
    }                                                                                                                  \
    LOCKSTEP_API inline Real cuCreal##suffix(Complex z) { return z.x; }                                                \
    LOCKSTEP_API inline Real cuCimag##suffix(Complex z) { return z.y; }                                                \
    LOCKSTEP_API inline Complex cuConj##suffix(Complex z) { return make_##Complex(z.x, -z.y); }                        \
    LOCKSTEP_API inline Complex cuCadd##suffix(Complex a, Complex b) { return make_##Complex(a.x + b.x, a.y + b.y); }  \
    LOCKSTEP_API inline Complex cuCsub##suffix(Complex a, Complex b) { return make_##Complex(a.x - b.x, a.y - b.y); }  \
    LOCKSTEP_API inline Complex cuCmul##suffix(Complex a, Complex b) {                                                 \
        return make_##Complex(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);                                           \
    }                                                                                                                  \
    LOCKSTEP_API inline Complex cuCfma##suffix(Complex a, Complex b, Complex c) {                                      \
        return cuCadd##suffix(cuCmul##suffix(a, b), c);                                                                \
    }                                                                                                                  \
    LOCKSTEP_API inline Real cuCabs##suffix(Complex z) {                                                               \
        Real a = z.x < 0 ? -z.x : z.x, b = z.y < 0 ? -z.y : z.y;                                                       \
        Real large = a > b ? a : b, small = a > b ? b : a;                                                             \
        if (large == 0) return small;                                                                                  \
        Real share = small / large;                                                                                    \
        return large * root(1 + share * share);                                                                        \
    }                                                                                                                  \
    LOCKSTEP_API inline Complex cuCdiv##suffix(Complex a, Complex b) {                                                 \
        Real size = (b.x < 0 ? -b.x : b.x) + (b.y < 0 ? -b.y : b.y), once = 1 / size;                                  \
        Real ax = a.x * once, ay = a.y * once, bx = b.x * once, by = b.y * once;                                       \
        Real below = 1 / (bx * bx + by * by);                                                                          \
        return make_##Complex((ax * bx + ay * by) * below, (ay * bx - ax * by) * below);                               \
    }
LOCKSTEP_COMPLEX(cuFloatComplex, float, f, sqrtf)
LOCKSTEP_COMPLEX(cuDoubleComplex, double, , sqrt)
#undef LOCKSTEP_COMPLEX
LOCKSTEP_API inline cuComplex make_cuComplex(float x, float y) { return make_cuFloatComplex(x, y); }
LOCKSTEP_API inline cuDoubleComplex cuComplexFloatToDouble(cuFloatComplex z) { return make_cuDoubleComplex(z.x, z.y); }
LOCKSTEP_API inline cuFloatComplex cuComplexDoubleToFloat(cuDoubleComplex z) {
    return make_cuFloatComplex((float)z.x, (float)z.y);
}
