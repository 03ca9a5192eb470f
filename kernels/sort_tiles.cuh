// Onesweep's decoupled look-back: the tiles of a pass publish their numbers of keys per digit. DIGITS is the number of
// digits.

// A tile's state for a digit is one word, so that kind and value are visible together: not published (0); the tile's
// number of keys with that digit, plus 1; or, with the highest bit, the end of these keys in the output.
#define COMPLETE 0x80000000u

// Number of tiles whose states are loaded at once.
#define ASKED 4

// Return the output position of a tile's first key of a digit: add the counts of the tiles before, back to the nearest
// one with a full prefix sum.
__device__ unsigned int look_back(const volatile unsigned int *states, int tile, int digit) {
    unsigned int before_tile = 0;
    unsigned int state = 0;
    for (int nearest = tile - 1; !(state & COMPLETE); nearest -= ASKED) {
        unsigned int asked[ASKED];
#pragma unroll
        for (int k = 0; k < ASKED; ++k) asked[k] = nearest >= k ? states[(nearest - k) * DIGITS + digit] : COMPLETE;
#pragma unroll
        for (int k = 0; k < ASKED; ++k) {
            if (state & COMPLETE) break;
            state = asked[k];
            if (state == 0)
                while ((state = states[(nearest - k) * DIGITS + digit]) == 0) {
                }
            before_tile += state & COMPLETE ? state & ~COMPLETE : state - 1;
        }
    }
    return before_tile;
}
