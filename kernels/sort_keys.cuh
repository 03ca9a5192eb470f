// Shared code of all sorts: keys of type KEY: int, unsigned, float, int64, uint64 or double; DESCENDING selects the
// order. Floats have the order -infinity, ..., -0, 0, ..., infinity; NaN comes last in both orders. If PAIRS is 1,
// `places` has a value for each key, its original position, which is sorted with it; otherwise `places` is unused.
// BLOCK_SIZE is the number of threads per block.

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

// One-word names, as macros combine KEY with other names.
typedef long long int64;
typedef unsigned long long uint64;

// Macro that expands KEY before it becomes part of a name.
#define JOINED(prefix, suffix) prefix##suffix
#define OF_KEY(prefix, type) JOINED(prefix, type)

#define WARP 32
#define ALL_LANES 0xffffffffu
#define WARPS ((BLOCK_SIZE + WARP - 1) / WARP)
#define KEY_BITS (8 * (int)sizeof(KEY))

// Positions in shared memory for `count` keys.
#define CARRIED(count) (PAIRS ? (count) : 1)

// An unsigned number in the order of the keys: the sign bit is inverted, and all other bits of a negative float.
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

// Only NaN is not equal to itself.
__device__ bool is_nan(float key) { return key != key; }
__device__ bool is_nan(double key) { return key != key; }
template <typename Whole>
__device__ bool is_nan(Whole key) {
    return false;
}

// The type of that number: as wide as a key.
typedef decltype(rising(KEY())) BITS;

__device__ BITS ordered(KEY key) {
    if (is_nan(key)) return ~(BITS)0;
    BITS bits = rising(key);
    return DESCENDING ? ~bits : bits;
}

// The last key in sort order.
#define LAST_int (DESCENDING ? (int)SIGN_32 : 0x7fffffff)
#define LAST_unsigned (DESCENDING ? 0u : 0xffffffffu)
#define LAST_float __uint_as_float(0x7fffffffu)
#define LAST_int64 (DESCENDING ? (int64)SIGN_64 : 0x7fffffffffffffffll)
#define LAST_uint64 (DESCENDING ? 0ull : 0xffffffffffffffffull)
#define LAST_double __longlong_as_double(0x7fffffffffffffffll)
#define LAST_KEY OF_KEY(LAST_, KEY)

__device__ bool before(KEY a, KEY b) { return ordered(a) < ordered(b); }
