// cuRAND's Sobol sequences in Gray code's order (Antonov and Saleev 1979): each number is the last one with one of the
// direction vectors in it or out of it. The first is 0, or, scrambled, what it is scrambled with.
#pragma once

typedef unsigned int curandDirectionVectors32_t[32];
typedef unsigned long long curandDirectionVectors64_t[64];

// Bits as uniform numbers, and, of the inverse of the distribution, as normal ones.
__device__ inline float __lockstep_uniform_of(unsigned int x) {
    return x * LOCKSTEP_2POW32_INV + LOCKSTEP_2POW32_INV / 2;
}
__device__ inline float __lockstep_uniform_of(unsigned long long x) {
    return __lockstep_uniform_of((unsigned int)(x >> 32));
}
__device__ inline double __lockstep_uniform_double_of(unsigned int x) {
    return x * (double)LOCKSTEP_2POW32_INV + (double)LOCKSTEP_2POW32_INV;
}
__device__ inline double __lockstep_uniform_double_of(unsigned long long x) {
    return (x >> 11) * LOCKSTEP_2POW53_INV + LOCKSTEP_2POW53_INV / 2;
}
__device__ inline float __lockstep_normal_of(unsigned int x) {
    bool above = x > 0x80000000u;
    float half = __lockstep_uniform_of(above ? ~x : x);
    return (above ? 1.4142135f : -1.4142135f) * erfcinvf(2 * half);
}
__device__ inline float __lockstep_normal_of(unsigned long long x) {
    return __lockstep_normal_of((unsigned int)(x >> 32));
}
__device__ inline double __lockstep_normal_double_of(unsigned int x) {
    bool above = x > 0x80000000u;
    double half = (above ? ~x : x) * (double)LOCKSTEP_2POW32_INV + (double)LOCKSTEP_2POW32_INV / 2;
    return (above ? 1.4142135623730951 : -1.4142135623730951) * erfcinv(2 * half);
}
__device__ inline double __lockstep_normal_double_of(unsigned long long x) {
    bool above = x > 0x8000000000000000ull;
    return (above ? 1.4142135623730951 : -1.4142135623730951) *
           erfcinv(2 * __lockstep_uniform_double_of(above ? ~x : x));
}

#define LOCKSTEP_SOBOL(name, word, bits, first_set)                                                                    \
    struct curandState##name {                                                                                         \
        word i, x, c, direction_vectors[bits];                                                                         \
    };                                                                                                                 \
    typedef struct curandState##name curandState##name##_t;                                                            \
    __device__ inline void skipahead(word n, curandState##name *state) {                                               \
        state->i += n;                                                                                                 \
        state->x = state->c;                                                                                           \
        word gray = state->i ^ state->i >> 1;                                                                          \
        for (int bit = 0; bit < bits && gray >> bit; ++bit)                                                            \
            if (gray >> bit & 1) state->x ^= state->direction_vectors[bit];                                            \
    }                                                                                                                  \
    __device__ inline void __lockstep_begin(const word *vectors, word scramble, word offset,                           \
                                            curandState##name *state) {                                                \
        for (int bit = 0; bit < bits; ++bit) state->direction_vectors[bit] = vectors[bit];                             \
        state->i = 0;                                                                                                  \
        state->c = scramble;                                                                                           \
        skipahead(offset, state);                                                                                      \
    }                                                                                                                  \
    __device__ inline word curand(curandState##name *state) {                                                          \
        word number = state->x;                                                                                        \
        state->x ^= state->direction_vectors[(first_set(~state->i) - 1) & (bits - 1)];                                 \
        ++state->i;                                                                                                    \
        return number;                                                                                                 \
    }                                                                                                                  \
    __device__ inline float curand_uniform(curandState##name *state) { return __lockstep_uniform_of(curand(state)); }  \
    __device__ inline double curand_uniform_double(curandState##name *state) {                                         \
        return __lockstep_uniform_double_of(curand(state));                                                            \
    }                                                                                                                  \
    __device__ inline float curand_normal(curandState##name *state) { return __lockstep_normal_of(curand(state)); }    \
    __device__ inline double curand_normal_double(curandState##name *state) {                                          \
        return __lockstep_normal_double_of(curand(state));                                                             \
    }                                                                                                                  \
    __device__ inline float curand_log_normal(curandState##name *state, float mean, float stddev) {                    \
        return expf(mean + stddev * curand_normal(state));                                                             \
    }                                                                                                                  \
    __device__ inline double curand_log_normal_double(curandState##name *state, double mean, double stddev) {          \
        return exp(mean + stddev * curand_normal_double(state));                                                       \
    }                                                                                                                  \
    __device__ inline unsigned int curand_poisson(curandState##name *state, double lambda) {                           \
        return __lockstep_poisson_of(curand(state), lambda);                                                           \
    }
// One number gives one: the inverse of the distribution, from 64 on of the normal one that is like it.
template <typename LockstepWord>
__device__ inline unsigned int __lockstep_poisson_of(LockstepWord x, double lambda) {
    if (lambda >= 64) {
        double found = rint(lambda + sqrt(lambda) * __lockstep_normal_double_of(x));
        return found > 0 ? (unsigned int)found : 0;
    }
    double place = __lockstep_uniform_double_of(x), share = exp(-lambda), sum = share;
    unsigned int count = 0;
    while (place > sum && count < 1000) {
        ++count;
        share *= lambda / count;
        sum += share;
    }
    return count;
}
LOCKSTEP_SOBOL(Sobol32, unsigned int, 32, __ffs)
LOCKSTEP_SOBOL(ScrambledSobol32, unsigned int, 32, __ffs)
LOCKSTEP_SOBOL(Sobol64, unsigned long long, 64, __ffsll)
LOCKSTEP_SOBOL(ScrambledSobol64, unsigned long long, 64, __ffsll)
#undef LOCKSTEP_SOBOL

__device__ inline void curand_init(const unsigned int *vectors, unsigned int offset, curandStateSobol32 *state) {
    __lockstep_begin(vectors, 0, offset, state);
}
__device__ inline void curand_init(const unsigned int *vectors, unsigned int scramble, unsigned int offset,
                                   curandStateScrambledSobol32 *state) {
    __lockstep_begin(vectors, scramble, offset, state);
}
__device__ inline void curand_init(const unsigned long long *vectors, unsigned long long offset,
                                   curandStateSobol64 *state) {
    __lockstep_begin(vectors, 0, offset, state);
}
__device__ inline void curand_init(const unsigned long long *vectors, unsigned long long scramble,
                                   unsigned long long offset, curandStateScrambledSobol64 *state) {
    __lockstep_begin(vectors, scramble, offset, state);
}
