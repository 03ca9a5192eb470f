// cuRAND's generators on the device: XORWOW (Marsaglia 2003), the default, Philox4_32_10 (Salmon et al. 2011), MRG32k3a
// and Sobol sequences. Sequences of the first are 2^67 numbers apart, as cuRAND's are.
#pragma once
#include "lockstep/random/xorwow.h"

extern "C++" {
struct curandStateXORWOW {
    unsigned int d, v[5];
    int boxmuller_flag, boxmuller_flag_double;
    float boxmuller_extra;
    double boxmuller_extra_double;
};
typedef struct curandStateXORWOW curandStateXORWOW_t, curandState, curandState_t;

struct curandStatePhilox4_32_10 {
    unsigned int ctr[4], output[4], key[2], STATE;
    int boxmuller_flag, boxmuller_flag_double;
    float boxmuller_extra;
    double boxmuller_extra_double;
};
typedef struct curandStatePhilox4_32_10 curandStatePhilox4_32_10_t;

__device__ inline unsigned int curand(curandStateXORWOW *state) {
    unsigned int t = state->v[0] ^ (state->v[0] >> 2), last = state->v[4];
    state->v[0] = state->v[1];
    state->v[1] = state->v[2];
    state->v[2] = state->v[3];
    state->v[3] = last;
    last = (last ^ (last << 4)) ^ (t ^ (t << 1));
    state->v[4] = last;
    state->d += 362437;
    return last + state->d;
}

__device__ inline void __lockstep_jump(unsigned long long times, int first, curandStateXORWOW *state) {
    curandStateXORWOW now = *state;
    for (int bit = 0; times >> bit; ++bit) {
        if (!(times >> bit & 1)) continue;
        unsigned int sum[5] = {0, 0, 0, 0, 0};
        for (int place = 0; place < 160; ++place) {
            if (__lockstep_xorwow_jumps[(first + bit) * 5 + place / 32] >> (place % 32) & 1)
                for (int word = 0; word < 5; ++word) sum[word] ^= now.v[word];
            curand(&now);
        }
        for (int word = 0; word < 5; ++word) now.v[word] = sum[word];
        if (bit == 63) break;
    }
    for (int word = 0; word < 5; ++word) state->v[word] = now.v[word];
}
__device__ inline void skipahead(unsigned long long n, curandStateXORWOW *state) {
    __lockstep_jump(n, 0, state);
    state->d += 362437u * (unsigned int)n;
}
__device__ inline void skipahead_sequence(unsigned long long n, curandStateXORWOW *state) {
    __lockstep_jump(n, 64, state);
}
__device__ inline void curand_init(unsigned long long seed, unsigned long long subsequence, unsigned long long offset,
                                   curandStateXORWOW *state) {
    unsigned int t0 = 1099087573u * ((unsigned int)seed ^ 0xaad26b49u);
    unsigned int t1 = 2591861531u * ((unsigned int)(seed >> 32) ^ 0xf7dcefddu);
    state->d = 6615241u + t1 + t0;
    state->v[0] = 123456789u + t0;
    state->v[1] = 362436069u ^ t0;
    state->v[2] = 521288629u + t1;
    state->v[3] = 88675123u ^ t1;
    state->v[4] = 5783321u + t0;
    state->boxmuller_flag = state->boxmuller_flag_double = 0;
    state->boxmuller_extra = 0;
    state->boxmuller_extra_double = 0;
    skipahead_sequence(subsequence, state);
    skipahead(offset, state);
}

__device__ inline void __lockstep_philox(curandStatePhilox4_32_10 *state) {
    unsigned int a = state->ctr[0], b = state->ctr[1], c = state->ctr[2], d = state->ctr[3];
    unsigned int k0 = state->key[0], k1 = state->key[1];
    for (int round = 0; round < 10; ++round) {
        unsigned int high0 = __umulhi(0xD2511F53u, a), low0 = 0xD2511F53u * a;
        unsigned int high1 = __umulhi(0xCD9E8D57u, c), low1 = 0xCD9E8D57u * c;
        a = high1 ^ b ^ k0;
        b = low1;
        c = high0 ^ d ^ k1;
        d = low0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    state->output[0] = a;
    state->output[1] = b;
    state->output[2] = c;
    state->output[3] = d;
}
__device__ inline void __lockstep_add(unsigned int *low, unsigned int *high, unsigned long long n) {
    unsigned long long sum = ((unsigned long long)*high << 32 | *low) + n;
    *low = (unsigned int)sum;
    *high = (unsigned int)(sum >> 32);
}
__device__ inline void skipahead(unsigned long long n, curandStatePhilox4_32_10 *state) {
    state->STATE += n & 3;
    n /= 4;
    if (state->STATE > 3) {
        n += 1;
        state->STATE -= 4;
    }
    unsigned long long before = (unsigned long long)state->ctr[1] << 32 | state->ctr[0];
    __lockstep_add(&state->ctr[0], &state->ctr[1], n);
    if (before + n < before) __lockstep_add(&state->ctr[2], &state->ctr[3], 1);
    __lockstep_philox(state);
}
__device__ inline void skipahead_sequence(unsigned long long n, curandStatePhilox4_32_10 *state) {
    __lockstep_add(&state->ctr[2], &state->ctr[3], n);
    __lockstep_philox(state);
}
__device__ inline void curand_init(unsigned long long seed, unsigned long long subsequence, unsigned long long offset,
                                   curandStatePhilox4_32_10 *state) {
    state->ctr[0] = state->ctr[1] = state->ctr[2] = state->ctr[3] = 0;
    state->key[0] = (unsigned int)seed;
    state->key[1] = (unsigned int)(seed >> 32);
    state->STATE = 0;
    state->boxmuller_flag = state->boxmuller_flag_double = 0;
    state->boxmuller_extra = 0;
    state->boxmuller_extra_double = 0;
    skipahead_sequence(subsequence, state);
    skipahead(offset, state);
}
__device__ inline unsigned int curand(curandStatePhilox4_32_10 *state) {
    unsigned int number = state->output[state->STATE++];
    if (state->STATE == 4) {
        state->STATE = 0;
        __lockstep_add(&state->ctr[0], &state->ctr[1], 1);
        if (state->ctr[0] == 0 && state->ctr[1] == 0) __lockstep_add(&state->ctr[2], &state->ctr[3], 1);
        __lockstep_philox(state);
    }
    return number;
}

#define LOCKSTEP_2POW32_INV 2.3283064365386963e-10f
#define LOCKSTEP_2POW53_INV 1.1102230246251565e-16
#include "lockstep/random/mrg32k3a.h"
#include "lockstep/random/sobol.h"

// The same of every generator's 32 bits.
template <typename LockstepState>
__device__ inline float curand_uniform(LockstepState *state) {
    return curand(state) * LOCKSTEP_2POW32_INV + LOCKSTEP_2POW32_INV / 2;
}
template <typename LockstepState>
__device__ inline unsigned long long __lockstep_53_bits(LockstepState *state) {
    unsigned long long low = curand(state);
    return low ^ ((unsigned long long)curand(state) << 21);
}
template <typename LockstepState>
__device__ inline double __lockstep_uniform_of_53_bits(LockstepState *state) {
    return __lockstep_53_bits(state) * LOCKSTEP_2POW53_INV + LOCKSTEP_2POW53_INV / 2;
}
template <typename LockstepState>
__device__ inline double curand_uniform_double(LockstepState *state) {
    return __lockstep_uniform_of_53_bits(state);
}
// Philox makes one of 32 bits; two and four at once have 53.
__device__ inline double curand_uniform_double(curandStatePhilox4_32_10 *state) {
    return __lockstep_uniform_double_of(curand(state));
}
// Two normal numbers of two uniform ones (Box and Muller 1958).
template <typename LockstepState>
__device__ inline float2 curand_normal2(LockstepState *state) {
    float u = curand_uniform(state), s, c;
    float angle = curand(state) * (LOCKSTEP_2POW32_INV * 6.2831855f) + LOCKSTEP_2POW32_INV * 6.2831855f / 2;
    float length = sqrtf(-2 * logf(u));
    sincosf(angle, &s, &c);
    return make_float2(s * length, c * length);
}
template <typename LockstepState>
__device__ inline double2 curand_normal2_double(LockstepState *state) {
    double u = __lockstep_uniform_of_53_bits(state), s, c;
    double angle = __lockstep_53_bits(state) * (LOCKSTEP_2POW53_INV * 2) + LOCKSTEP_2POW53_INV;
    double length = sqrt(-2 * log(u));
    sincospi(angle, &s, &c);
    return make_double2(s * length, c * length);
}
template <typename LockstepState>
__device__ inline float2 curand_log_normal2(LockstepState *state, float mean, float stddev) {
    float2 both = curand_normal2(state);
    return make_float2(expf(mean + stddev * both.x), expf(mean + stddev * both.y));
}
template <typename LockstepState>
__device__ inline double2 curand_log_normal2_double(LockstepState *state, double mean, double stddev) {
    double2 both = curand_normal2_double(state);
    return make_double2(exp(mean + stddev * both.x), exp(mean + stddev * both.y));
}
// The second of two is kept for who asks next for the same kind; one of the other kind takes its place.
#define LOCKSTEP_KEPT(flag, extra, mark, pair)                                                                         \
    if (state->flag == mark) {                                                                                         \
        state->flag = 0;                                                                                               \
        return state->extra;                                                                                           \
    }                                                                                                                  \
    auto both = pair;                                                                                                  \
    state->extra = both.y;                                                                                             \
    state->flag = mark;                                                                                                \
    return both.x;
template <typename LockstepState>
__device__ inline float curand_normal(LockstepState *state) {
    LOCKSTEP_KEPT(boxmuller_flag, boxmuller_extra, 1, curand_normal2(state))
}
template <typename LockstepState>
__device__ inline double curand_normal_double(LockstepState *state) {
    LOCKSTEP_KEPT(boxmuller_flag_double, boxmuller_extra_double, 1, curand_normal2_double(state))
}
template <typename LockstepState>
__device__ inline float curand_log_normal(LockstepState *state, float mean, float stddev) {
    LOCKSTEP_KEPT(boxmuller_flag, boxmuller_extra, 2, curand_log_normal2(state, mean, stddev))
}
template <typename LockstepState>
__device__ inline double curand_log_normal_double(LockstepState *state, double mean, double stddev){
    LOCKSTEP_KEPT(boxmuller_flag_double, boxmuller_extra_double, 2, curand_log_normal2_double(state, mean, stddev))}
#undef LOCKSTEP_KEPT
// Four numbers of Philox, as if asked for one by one.
__device__ inline uint4 curand4(curandStatePhilox4_32_10 *state) {
    uint4 four;
    four.x = curand(state);
    four.y = curand(state);
    four.z = curand(state);
    four.w = curand(state);
    return four;
}
__device__ inline float4 curand_uniform4(curandStatePhilox4_32_10 *state) {
    uint4 four = curand4(state);
    return make_float4(__lockstep_uniform_of(four.x), __lockstep_uniform_of(four.y), __lockstep_uniform_of(four.z),
                       __lockstep_uniform_of(four.w));
}
__device__ inline double2 curand_uniform2_double(curandStatePhilox4_32_10 *state) {
    double first = __lockstep_uniform_of_53_bits(state);
    return make_double2(first, __lockstep_uniform_of_53_bits(state));
}
__device__ inline double4 curand_uniform4_double(curandStatePhilox4_32_10 *state) {
    double2 first = curand_uniform2_double(state), second = curand_uniform2_double(state);
    return make_double4(first.x, first.y, second.x, second.y);
}
__device__ inline float4 curand_normal4(curandStatePhilox4_32_10 *state) {
    float2 first = curand_normal2(state), second = curand_normal2(state);
    return make_float4(first.x, first.y, second.x, second.y);
}
__device__ inline double4 curand_normal4_double(curandStatePhilox4_32_10 *state) {
    double2 first = curand_normal2_double(state), second = curand_normal2_double(state);
    return make_double4(first.x, first.y, second.x, second.y);
}
__device__ inline float4 curand_log_normal4(curandStatePhilox4_32_10 *state, float mean, float stddev) {
    float2 first = curand_log_normal2(state, mean, stddev), second = curand_log_normal2(state, mean, stddev);
    return make_float4(first.x, first.y, second.x, second.y);
}
__device__ inline double4 curand_log_normal4_double(curandStatePhilox4_32_10 *state, double mean, double stddev) {
    double2 first = curand_log_normal2_double(state, mean, stddev);
    double2 second = curand_log_normal2_double(state, mean, stddev);
    return make_double4(first.x, first.y, second.x, second.y);
}
// Knuth's product of uniform numbers; above 4000 a rounded normal number. Between, from 64 on, that too: cuRAND's are
// found there by a rejection, and differ.
template <typename LockstepState>
__device__ inline unsigned int curand_poisson(LockstepState *state, double lambda) {
    if (lambda >= 64) {
        double found = sqrt(lambda) * curand_normal_double(state) + lambda + 0.5;
        return found > 0 ? (unsigned int)found : 0;
    }
    unsigned int count = 0;
    float product = expf((float)lambda);
    do {
        ++count;
        product *= curand_uniform(state);
    } while (product > 1);
    return count - 1;
}
__device__ inline uint4 curand_poisson4(curandStatePhilox4_32_10 *state, double lambda) {
    uint4 four;
    four.x = curand_poisson(state, lambda);
    four.y = curand_poisson(state, lambda);
    four.z = curand_poisson(state, lambda);
    four.w = curand_poisson(state, lambda);
    return four;
}
}
