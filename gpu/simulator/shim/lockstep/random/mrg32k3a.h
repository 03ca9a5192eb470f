// cuRAND's MRG32k3a (L'Ecuyer 1999): two recurrences of three numbers. Subsequences are 2^76 numbers apart, sequences 2^127.
#pragma once

struct curandStateMRG32k3a {
    unsigned int s1[3], s2[3];
    int boxmuller_flag, boxmuller_flag_double;
    float boxmuller_extra;
    double boxmuller_extra_double;
};
typedef struct curandStateMRG32k3a curandStateMRG32k3a_t;

#define LOCKSTEP_MRG_1 4294967087ull
#define LOCKSTEP_MRG_2 4294944443ull

// A step of each recurrence as a matrix, row by row; 2^76 and 2^127 of them.
static const unsigned int __lockstep_mrg_jumps[6 * 9] = {
    0u,          1u,          0u,          0u,          0u,          1u,          4294156359u, 1403580u,    0u,
    0u,          1u,          0u,          0u,          0u,          1u,          4293573854u, 0u,          527612u,
    82758667u,   1871391091u, 4127413238u, 3672831523u, 69195019u,   1871391091u, 3672091415u, 3528743235u, 69195019u,
    1511326704u, 3759209742u, 1610795712u, 4292754251u, 1511326704u, 3889917532u, 3859662829u, 4292754251u, 3708466080u,
    2427906178u, 3580155704u, 949770784u,  226153695u,  1230515664u, 3580155704u, 1988835001u, 986791581u,  1230515664u,
    1464411153u, 277697599u,  1610723613u, 32183930u,   1464411153u, 1022607788u, 2824425944u, 32183930u,   2093834863u,
};

// A number of 1 to 2^32 - 209.
__device__ inline unsigned int __lockstep_mrg(curandStateMRG32k3a *state) {
    unsigned long long first = 1403580ull * state->s1[1] + 810728ull * (LOCKSTEP_MRG_1 - state->s1[0]);
    unsigned long long second = 527612ull * state->s2[2] + 1370589ull * (LOCKSTEP_MRG_2 - state->s2[0]);
    state->s1[0] = state->s1[1];
    state->s1[1] = state->s1[2];
    state->s1[2] = (unsigned int)(first % LOCKSTEP_MRG_1);
    state->s2[0] = state->s2[1];
    state->s2[1] = state->s2[2];
    state->s2[2] = (unsigned int)(second % LOCKSTEP_MRG_2);
    unsigned int p = state->s1[2], q = state->s2[2];
    return p > q ? p - q : p - q + (unsigned int)LOCKSTEP_MRG_1;
}
__device__ inline void __lockstep_mrg_jump(unsigned long long times, const unsigned int *step,
                                           unsigned long long modulus, unsigned int *numbers) {
    unsigned long long matrix[9], squared[9];
    for (int i = 0; i < 9; ++i) matrix[i] = step[i];
    for (; times; times >>= 1) {
        if (times & 1) {
            unsigned int moved[3];
            for (int row = 0; row < 3; ++row) {
                unsigned long long sum = 0;
                for (int i = 0; i < 3; ++i) sum = (sum + matrix[3 * row + i] * numbers[i] % modulus) % modulus;
                moved[row] = (unsigned int)sum;
            }
            for (int row = 0; row < 3; ++row) numbers[row] = moved[row];
        }
        for (int place = 0; place < 9; ++place) {
            squared[place] = 0;
            for (int i = 0; i < 3; ++i) {
                unsigned long long product = matrix[place / 3 * 3 + i] * matrix[3 * i + place % 3] % modulus;
                squared[place] = (squared[place] + product) % modulus;
            }
        }
        for (int place = 0; place < 9; ++place) matrix[place] = squared[place];
    }
}
__device__ inline void __lockstep_mrg_jumps_of(unsigned long long times, int which, curandStateMRG32k3a *state) {
    __lockstep_mrg_jump(times, __lockstep_mrg_jumps + 18 * which, LOCKSTEP_MRG_1, state->s1);
    __lockstep_mrg_jump(times, __lockstep_mrg_jumps + 18 * which + 9, LOCKSTEP_MRG_2, state->s2);
}
__device__ inline void skipahead(unsigned long long n, curandStateMRG32k3a *state) {
    __lockstep_mrg_jumps_of(n, 0, state);
}
__device__ inline void skipahead_subsequence(unsigned long long n, curandStateMRG32k3a *state) {
    __lockstep_mrg_jumps_of(n, 1, state);
}
__device__ inline void skipahead_sequence(unsigned long long n, curandStateMRG32k3a *state) {
    __lockstep_mrg_jumps_of(n, 2, state);
}
__device__ inline void curand_init(unsigned long long seed, unsigned long long subsequence, unsigned long long offset,
                                   curandStateMRG32k3a *state) {
    unsigned long long low = (unsigned int)seed ^ 0x55555555u, high = (unsigned int)(seed >> 32) ^ 0xAAAAAAAAu;
    for (int i = 0; i < 3; ++i) {
        state->s1[i] = seed ? (unsigned int)((i == 1 ? high : low) * 12345 % LOCKSTEP_MRG_1) : 12345;
        state->s2[i] = seed ? (unsigned int)((i == 1 ? low : high) * 12345 % LOCKSTEP_MRG_2) : 12345;
    }
    state->boxmuller_flag = state->boxmuller_flag_double = 0;
    state->boxmuller_extra = 0;
    state->boxmuller_extra_double = 0;
    skipahead_subsequence(subsequence, state);
    skipahead(offset, state);
}
// Spread over 32 bits.
__device__ inline unsigned int curand(curandStateMRG32k3a *state) {
    return (unsigned int)(__lockstep_mrg(state) * 1.000000048662);
}
__device__ inline double curand_uniform_double(curandStateMRG32k3a *state) {
    return __lockstep_mrg(state) * 2.3283065498378288e-10;
}
__device__ inline float curand_uniform(curandStateMRG32k3a *state) { return (float)curand_uniform_double(state); }
__device__ inline float2 curand_normal2(curandStateMRG32k3a *state) {
    float length = sqrtf(-2 * logf(curand_uniform(state))), s, c;
    sincosf(curand_uniform(state) * 6.2831855f, &s, &c);
    return make_float2(s * length, c * length);
}
__device__ inline double2 curand_normal2_double(curandStateMRG32k3a *state) {
    double length = sqrt(-2 * log(curand_uniform_double(state))), s, c;
    sincos(curand_uniform_double(state) * 6.283185307179586, &s, &c);
    return make_double2(s * length, c * length);
}
