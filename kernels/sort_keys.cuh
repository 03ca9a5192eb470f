// What all sorts share: keys of type KEY, int, unsigned or float; DESCENDING says which end comes first. Floats are in the
// order of their bits: -infinity, ..., -0, 0, ..., infinity; NaN comes last, either way. Where PAIRS is 1, `places` holds
// a value for each key, the place where it was at first, and goes with it; otherwise `places` is not touched. BLOCK_SIZE
// is the number of threads in a block.

#ifndef KEY
#define KEY int
#endif
#ifndef DESCENDING
#define DESCENDING 0
#endif
#ifndef PAIRS
#define PAIRS 0
#endif
#ifndef BLOCK_SIZE
#define BLOCK_SIZE 256
#endif

// The macro that takes KEY for a part of a name.
#define JOINED(prefix, suffix) prefix##suffix
#define OF_KEY(prefix, type) JOINED(prefix, type)

#define WARP 32
#define ALL_LANES 0xffffffffu
#define WARPS ((BLOCK_SIZE + WARP - 1) / WARP)
#define KEY_BITS 32

// How many places a block keeps in shared memory where it keeps so many keys.
#define CARRIED(count) (PAIRS ? (count) : 1)

// A number that is in the same order as the keys are: the sign's bit is turned over, and all others of a negative float.
__device__ unsigned int rising_int(int key) { return (unsigned int)key ^ 0x80000000u; }
__device__ unsigned int rising_unsigned(unsigned int key) { return key; }
__device__ unsigned int rising_float(float key) {
    unsigned int bits = __float_as_uint(key);
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}
__device__ bool is_nan_int(int key) { return false; }
__device__ bool is_nan_unsigned(unsigned int key) { return false; }
__device__ bool is_nan_float(float key) { return key != key; }

__device__ unsigned int ordered(KEY key) {
    if (OF_KEY(is_nan_, KEY)(key)) return 0xffffffffu;
    unsigned int rising = OF_KEY(rising_, KEY)(key);
    return DESCENDING ? ~rising : rising;
}

// No key goes behind this one.
#define LAST_int (DESCENDING ? (int)0x80000000u : 0x7fffffff)
#define LAST_unsigned (DESCENDING ? 0u : 0xffffffffu)
#define LAST_float __uint_as_float(0x7fffffffu)
#define LAST_KEY OF_KEY(LAST_, KEY)

__device__ bool before(KEY a, KEY b) { return ordered(a) < ordered(b); }
