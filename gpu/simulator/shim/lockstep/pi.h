// Functions of multiples of pi, on the host and on devices. Their arguments are reduced exactly, to half a turn.
#pragma once

#define LOCKSTEP_OF_PI(T, f)                                                                                           \
    LOCKSTEP_API inline T sinpi##f(T x) {                                                                              \
        T rest = x - 2 * rint(x / 2), size = fabs(rest);                                                               \
        if (rest == 0) return x * 0;                                                                                   \
        return copysign(sin((size > (T)0.5 ? 1 - size : size) * (T)M_PI), rest);                                       \
    }                                                                                                                  \
    LOCKSTEP_API inline T cospi##f(T x) { return sinpi##f((T)0.5 - fabs(x - 2 * rint(x / 2))); }                       \
    LOCKSTEP_API inline void sincospi##f(T x, T *s, T *c) {                                                            \
        *s = sinpi##f(x);                                                                                              \
        *c = cospi##f(x);                                                                                              \
    }
LOCKSTEP_OF_PI(float, f)
LOCKSTEP_OF_PI(double, )
#undef LOCKSTEP_OF_PI
