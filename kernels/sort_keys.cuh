// What all sorts share: keys of type KEY, int, unsigned, float, int64, uint64 or double; DESCENDING says which end comes
// first. Floats are in the order of their bits: -infinity, ..., -0, 0, ..., infinity; NaN comes last, either way. Where
// PAIRS is 1, `places` holds a value for each key, the place where it was at first, and goes with it; otherwise `places`
// is not touched. BLOCK_SIZE is the number of threads in a block.

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

// Names of one word, as macros put KEY into others.
typedef long long int64;
typedef unsigned long long uint64;

// The macro that takes KEY for a part of a name.
#define JOINED(prefix, suffix) prefix##suffix
#define OF_KEY(prefix, type) JOINED(prefix, type)

#define WARP 32
#define ALL_LANES 0xffffffffu
#define WARPS ((BLOCK_SIZE + WARP - 1) / WARP)
#define KEY_BITS (8 * (int)sizeof(KEY))

// How many places a block keeps in shared memory where it keeps so many keys.
#define CARRIED(count) (PAIRS ? (count) : 1)

// A number that is in the same order as the keys are: the sign's bit is turned over, and all others of a negative float.
#define SIGN_32 0x80000000u
#define SIGN_64 0x8000000000000000ull
__device__ unsigned int rising(int key) { return (unsigned int)key ^ SIGN_32; }
__device__ unsigned int rising(unsigned int key) { return key; }
__device__ unsigned int rising(float key) {
    unsigned int bits = __float_as_uint(key);
    return bits & SIGN_32 ? ~bits : bits | SIGN_32;
}
__device__ uint64 rising(int64 key) { return (uint64)key ^ SIGN_64; }
__device__ uint64 rising(uint64 key) { return key; }
__device__ uint64 rising(double key) {
    uint64 bits = (uint64)__double_as_longlong(key);
    return bits & SIGN_64 ? ~bits : bits | SIGN_64;
}

// NaN alone is not equal to itself.
__device__ bool is_nan(float key) { return key != key; }
__device__ bool is_nan(double key) { return key != key; }
template <typename Whole>
__device__ bool is_nan(Whole key) {
    return false;
}

// Such a number's type: as many bits as a key has.
typedef decltype(rising(KEY())) BITS;

__device__ BITS ordered(KEY key) {
    if (is_nan(key)) return ~(BITS)0;
    BITS bits = rising(key);
    return DESCENDING ? ~bits : bits;
}

// No key goes behind this one.
#define LAST_int (DESCENDING ? (int)SIGN_32 : 0x7fffffff)
#define LAST_unsigned (DESCENDING ? 0u : 0xffffffffu)
#define LAST_float __uint_as_float(0x7fffffffu)
#define LAST_int64 (DESCENDING ? (int64)SIGN_64 : 0x7fffffffffffffffll)
#define LAST_uint64 (DESCENDING ? 0ull : 0xffffffffffffffffull)
#define LAST_double __longlong_as_double(0x7fffffffffffffffll)
#define LAST_KEY OF_KEY(LAST_, KEY)

__device__ bool before(KEY a, KEY b) { return ordered(a) < ordered(b); }
