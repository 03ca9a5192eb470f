// Operations on the bits of values, in host code.
#pragma once

#include <string.h>

template <typename Target, typename Source>
static inline Target __lockstep_bits(Source x) {
    static_assert(sizeof(Target) == sizeof(Source), "the same bits");
    Target bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}
static inline unsigned int __lockstep_reverse_bits(unsigned int x) {
    unsigned int reversed = 0;
    for (int bit = 0; bit < 32; ++bit) reversed |= (x >> bit & 1) << (31 - bit);
    return reversed;
}
static inline int __lockstep_low_24(int x) { return (int)((unsigned int)x << 8) >> 8; }
static inline unsigned int __lockstep_permute_bytes(unsigned int x, unsigned int y, unsigned int selector) {
    unsigned long long both = (unsigned long long)y << 32 | x;
    unsigned int permuted = 0;
    for (int place = 0; place < 4; ++place) {
        signed char byte = (signed char)(both >> 8 * (selector >> 4 * place & 7));
        permuted |= (unsigned int)(unsigned char)(selector >> 4 * place & 8 ? byte >> 7 : byte) << 8 * place;
    }
    return permuted;
}
