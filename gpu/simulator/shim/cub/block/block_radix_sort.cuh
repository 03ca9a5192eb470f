// A block's keys in order, with values or without, bit by bit: zeros go before ones, and else all stay as they were.
#pragma once
#include <cub/block/block_exchange.cuh>
#include <cub/block/block_scan.cuh>

namespace cub {

struct NullType {};

// Numbers without a sign that are ordered as the keys are.
template <typename T>
__device__ inline unsigned long long __lockstep_ordered(T key) {
    unsigned long long bits = (unsigned long long)key, top = 1ull << (8 * sizeof(T) - 1);
    bits &= top | (top - 1);
    return T(-1) < T(0) ? bits ^ top : bits;
}
__device__ inline unsigned long long __lockstep_ordered(float key) {
    unsigned int bits = __float_as_uint(key);
    return bits >> 31 ? ~bits : bits | 0x80000000u;
}
__device__ inline unsigned long long __lockstep_ordered(double key) {
    unsigned long long bits = __double_as_longlong(key);
    return bits >> 63 ? ~bits : bits | 0x8000000000000000ull;
}

template <typename Key, int X, int Items, typename Value = NullType, int Radix = 4, bool Memoize = true,
          BlockScanAlgorithm Scans = BLOCK_SCAN_WARP_SCANS, int Config = 0, int Y = 1, int Z = 1, int Unused = 0>
class BlockRadixSort {
    typedef BlockScan<int, X, Scans, Y, Z> Scan;
    typedef BlockExchange<Key, X, Items, false, Y, Z> Keys;
    typedef BlockExchange<Value, X, Items, false, Y, Z> Values;
    static constexpr int whole = 8 * sizeof(Key);

  public:
    struct TempStorage {
        typename Scan::TempStorage scan;
        typename Keys::TempStorage keys;
        typename Values::TempStorage values;
    };
    LOCKSTEP_COLLECTIVE(BlockRadixSort)

#define LOCKSTEP_SORT(name, descending, striped)                                                                       \
    __device__ void name(Key(&keys)[Items], int first = 0, int last = whole) {                                         \
        sort(keys, first, last, descending);                                                                           \
        if (striped) Keys(kept.keys).BlockedToStriped(keys);                                                           \
    }                                                                                                                  \
    __device__ void name(Key(&keys)[Items], Value(&values)[Items], int first = 0, int last = whole) {                  \
        sort(keys, values, first, last, descending);                                                                   \
        if (striped) {                                                                                                 \
            Keys(kept.keys).BlockedToStriped(keys);                                                                    \
            Values(kept.values).BlockedToStriped(values);                                                              \
        }                                                                                                              \
    }
    LOCKSTEP_SORT(Sort, false, false)
    LOCKSTEP_SORT(SortDescending, true, false)
    LOCKSTEP_SORT(SortBlockedToStriped, false, true)
    LOCKSTEP_SORT(SortDescendingBlockedToStriped, true, true)
#undef LOCKSTEP_SORT

  private:
    // Where each item goes by one bit.
    __device__ void places(Key (&keys)[Items], int bit, bool descending, int (&ranks)[Items]) {
        int zero[Items], before[Items], zeros;
        for (int i = 0; i < Items; ++i) zero[i] = (__lockstep_ordered(keys[i]) >> bit & 1) == descending;
        Scan(kept.scan).ExclusiveSum(zero, before, zeros);
        for (int i = 0; i < Items; ++i) ranks[i] = zero[i] ? before[i] : zeros + rank * Items + i - before[i];
        __syncthreads();
    }
    __device__ void sort(Key (&keys)[Items], int first, int last, bool descending) {
        int ranks[Items];
        for (int bit = first; bit < last; ++bit) {
            places(keys, bit, descending, ranks);
            Keys(kept.keys).ScatterToBlocked(keys, ranks);
        }
        __syncthreads();
    }
    __device__ void sort(Key (&keys)[Items], Value (&values)[Items], int first, int last, bool descending) {
        int ranks[Items];
        for (int bit = first; bit < last; ++bit) {
            places(keys, bit, descending, ranks);
            Keys(kept.keys).ScatterToBlocked(keys, ranks);
            Values(kept.values).ScatterToBlocked(values, ranks);
        }
        __syncthreads();
    }
};

} // namespace cub
