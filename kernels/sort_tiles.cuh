// Onesweep's look-back: the tiles of a pass over the keys tell each other how many of theirs have each digit. DIGITS is how
// many digits there are.

// A tile's state for a digit is one word, so that whoever sees that it is there also sees its value: nothing yet (0), how
// many keys of the tile have the digit, plus 1, or, with the highest bit, where keys of the digit go after the tile's.
#define COMPLETE 0x80000000u

// So many tiles are asked at once: their answers are under way together.
#define ASKED 4

// Return where a tile's first key of a digit goes: the tiles before say how many of theirs come first, up to the nearest
// that knows of all before it.
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
