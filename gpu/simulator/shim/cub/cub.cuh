// CUB's collectives of a block and of a warp, in terms of shuffles and shared memory: reductions and scans.
#pragma once

namespace cub {

enum BlockReduceAlgorithm { BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY, BLOCK_REDUCE_RAKING, BLOCK_REDUCE_WARP_REDUCTIONS };
enum BlockScanAlgorithm { BLOCK_SCAN_RAKING, BLOCK_SCAN_RAKING_MEMOIZE, BLOCK_SCAN_WARP_SCANS };

struct Equality {
    template <typename T>
    LOCKSTEP_API bool operator()(const T &a, const T &b) const {
        return a == b;
    }
};
struct Sum {
    template <typename T>
    LOCKSTEP_API T operator()(const T &a, const T &b) const {
        return a + b;
    }
};
struct Max {
    template <typename T>
    LOCKSTEP_API T operator()(const T &a, const T &b) const {
        return b > a ? b : a;
    }
};
struct Min {
    template <typename T>
    LOCKSTEP_API T operator()(const T &a, const T &b) const {
        return b < a ? b : a;
    }
};
template <typename Key, typename Value>
struct KeyValuePair {
    typedef Key KeyType;
    typedef Value ValueType;
    Key key;
    Value value;
    KeyValuePair() = default;
    LOCKSTEP_API KeyValuePair(Key key, Value value) : key(key), value(value) {}
};

// Of two pairs the one with the larger, or the smaller, value; of equal ones the one with the smaller key.
struct ArgMax {
    template <typename Key, typename Value>
    LOCKSTEP_API KeyValuePair<Key, Value> operator()(const KeyValuePair<Key, Value> &a,
                                                     const KeyValuePair<Key, Value> &b) const {
        return b.value > a.value || (b.value == a.value && b.key < a.key) ? b : a;
    }
};
struct ArgMin {
    template <typename Key, typename Value>
    LOCKSTEP_API KeyValuePair<Key, Value> operator()(const KeyValuePair<Key, Value> &a,
                                                     const KeyValuePair<Key, Value> &b) const {
        return b.value < a.value || (b.value == a.value && b.key < a.key) ? b : a;
    }
};

__device__ inline unsigned int __lockstep_rank() {
    return (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
}

// Each thread leaves its value in shared memory, so that any type and any number of threads will do.
template <typename T, int Threads>
struct __lockstep_exchange {
    struct TempStorage {
        T values[Threads];
        T total;
    };
    template <typename Op>
    __device__ static T reduce(TempStorage &kept, T value, Op op, int valid, unsigned int rank) {
        kept.values[rank] = value;
        __syncthreads();
        int count = valid < Threads ? valid : Threads;
        for (int reach = 1; reach < count; reach *= 2) {
            if (rank % (2 * reach) == 0 && (int)rank + reach < count)
                kept.values[rank] = op(kept.values[rank], kept.values[rank + reach]);
            __syncthreads();
        }
        return kept.values[0];
    }
    template <typename Op>
    __device__ static T scan(TempStorage &kept, T value, Op op, unsigned int rank) {
        kept.values[rank] = value;
        __syncthreads();
        for (int reach = 1; reach < Threads; reach *= 2) {
            T before = value;
            if ((int)rank >= reach) before = kept.values[rank - reach];
            __syncthreads();
            if ((int)rank >= reach) value = op(before, value);
            kept.values[rank] = value;
            __syncthreads();
        }
        return value;
    }
};

template <typename T, int X, BlockReduceAlgorithm Algorithm = BLOCK_REDUCE_WARP_REDUCTIONS, int Y = 1, int Z = 1,
          int Unused = 0>
class BlockReduce {
    typedef __lockstep_exchange<T, X * Y * Z> Exchange;

  public:
    typedef typename Exchange::TempStorage TempStorage;
    __device__ BlockReduce(TempStorage &kept) : kept(kept) {}
    template <typename Op>
    __device__ T Reduce(T value, Op op) {
        return Exchange::reduce(kept, value, op, X * Y * Z, __lockstep_rank());
    }
    template <typename Op>
    __device__ T Reduce(T value, Op op, int valid) {
        return Exchange::reduce(kept, value, op, valid, __lockstep_rank());
    }
    template <int Items, typename Op>
    __device__ T Reduce(T (&values)[Items], Op op) {
        T all = values[0];
        for (int i = 1; i < Items; ++i) all = op(all, values[i]);
        return Reduce(all, op);
    }
    __device__ T Sum(T value) { return Reduce(value, cub::Sum()); }
    __device__ T Sum(T value, int valid) { return Reduce(value, cub::Sum(), valid); }
    template <int Items>
    __device__ T Sum(T (&values)[Items]) {
        return Reduce(values, cub::Sum());
    }

  private:
    TempStorage &kept;
};

template <typename T, int X, BlockScanAlgorithm Algorithm = BLOCK_SCAN_RAKING, int Y = 1, int Z = 1, int Unused = 0>
class BlockScan {
    typedef __lockstep_exchange<T, X * Y * Z> Exchange;

  public:
    typedef typename Exchange::TempStorage TempStorage;
    __device__ BlockScan(TempStorage &kept) : kept(kept) {}
    template <typename Op>
    __device__ void InclusiveScan(T value, T &out, Op op) {
        out = Exchange::scan(kept, value, op, __lockstep_rank());
    }
    template <typename Op>
    __device__ void InclusiveScan(T value, T &out, Op op, T &total) {
        out = Exchange::scan(kept, value, op, __lockstep_rank());
        total = kept.values[X * Y * Z - 1];
    }
    template <typename Op>
    __device__ void ExclusiveScan(T value, T &out, T initial, Op op) {
        Exchange::scan(kept, value, op, __lockstep_rank());
        unsigned int rank = __lockstep_rank();
        out = initial;
        if (rank > 0) out = op(initial, kept.values[rank - 1]);
    }
    template <typename Op>
    __device__ void ExclusiveScan(T value, T &out, T initial, Op op, T &total) {
        ExclusiveScan(value, out, initial, op);
        total = kept.values[X * Y * Z - 1];
    }
    __device__ void InclusiveSum(T value, T &out) { InclusiveScan(value, out, cub::Sum()); }
    __device__ void InclusiveSum(T value, T &out, T &total) { InclusiveScan(value, out, cub::Sum(), total); }
    __device__ void ExclusiveSum(T value, T &out) { ExclusiveScan(value, out, T(0), cub::Sum()); }
    __device__ void ExclusiveSum(T value, T &out, T &total) { ExclusiveScan(value, out, T(0), cub::Sum(), total); }
    // Several items a thread, which stand side by side.
    template <int Items, typename Op>
    __device__ void InclusiveScan(T (&values)[Items], T (&out)[Items], Op op) {
        T all = values[0];
        for (int i = 1; i < Items; ++i) all = op(all, values[i]);
        Exchange::scan(kept, all, op, __lockstep_rank());
        unsigned int rank = __lockstep_rank();
        T last = values[0];
        if (rank > 0) last = op(kept.values[rank - 1], last);
        out[0] = last;
        for (int i = 1; i < Items; ++i) out[i] = last = op(last, values[i]);
    }
    template <int Items, typename Op>
    __device__ void InclusiveScan(T (&values)[Items], T (&out)[Items], Op op, T &total) {
        InclusiveScan(values, out, op);
        total = kept.values[X * Y * Z - 1];
    }
    template <int Items, typename Op>
    __device__ void ExclusiveScan(T (&values)[Items], T (&out)[Items], T initial, Op op) {
        T all = values[0];
        for (int i = 1; i < Items; ++i) all = op(all, values[i]);
        T before;
        ExclusiveScan(all, before, initial, op);
        for (int i = 0; i < Items; ++i) {
            T value = values[i];
            out[i] = before;
            before = op(before, value);
        }
    }
    template <int Items, typename Op>
    __device__ void ExclusiveScan(T (&values)[Items], T (&out)[Items], T initial, Op op, T &total) {
        ExclusiveScan(values, out, initial, op);
        total = kept.values[X * Y * Z - 1];
    }
    template <int Items>
    __device__ void InclusiveSum(T (&values)[Items], T (&out)[Items]) {
        InclusiveScan(values, out, cub::Sum());
    }
    template <int Items>
    __device__ void InclusiveSum(T (&values)[Items], T (&out)[Items], T &total) {
        InclusiveScan(values, out, cub::Sum(), total);
    }
    template <int Items>
    __device__ void ExclusiveSum(T (&values)[Items], T (&out)[Items], T &total) {
        ExclusiveSum(values, out);
        total = kept.values[X * Y * Z - 1];
    }
    template <int Items>
    __device__ void ExclusiveSum(T (&values)[Items], T (&out)[Items]) {
        T sum = values[0];
        for (int i = 1; i < Items; ++i) sum = sum + values[i];
        T before;
        ExclusiveSum(sum, before);
        for (int i = 0; i < Items; ++i) {
            T value = values[i];
            out[i] = before;
            before = before + value;
        }
    }

  private:
    TempStorage &kept;
};

// Of neighbors, also those of two threads, a difference; the block's first, or last, item is left as it is.
template <typename T, int X, int Y = 1, int Z = 1, int Unused = 0>
class BlockAdjacentDifference {
  public:
    struct TempStorage {
        T edges[X * Y * Z];
    };
    __device__ BlockAdjacentDifference(TempStorage &kept) : kept(kept) {}
    template <int Items, typename Output, typename Op>
    __device__ void SubtractLeft(T (&values)[Items], Output (&out)[Items], Op op) {
        unsigned int rank = __lockstep_rank();
        kept.edges[rank] = values[Items - 1];
        __syncthreads();
        for (int i = Items - 1; i > 0; --i) out[i] = op(values[i], values[i - 1]);
        if (rank > 0) {
            out[0] = op(values[0], kept.edges[rank - 1]);
        } else {
            out[0] = values[0];
        }
    }
    template <int Items, typename Output, typename Op>
    __device__ void SubtractRight(T (&values)[Items], Output (&out)[Items], Op op) {
        unsigned int rank = __lockstep_rank();
        kept.edges[rank] = values[0];
        __syncthreads();
        for (int i = 0; i < Items - 1; ++i) out[i] = op(values[i], values[i + 1]);
        if (rank < X * Y * Z - 1) {
            out[Items - 1] = op(values[Items - 1], kept.edges[rank + 1]);
        } else {
            out[Items - 1] = values[Items - 1];
        }
    }

  private:
    TempStorage &kept;
};

template <typename T, int Lanes = 32, int Unused = 0>
class WarpReduce {
  public:
    struct TempStorage {
        T unused;
    };
    __device__ WarpReduce(TempStorage &) {}
    template <typename Op>
    __device__ T Reduce(T value, Op op) {
        for (int reach = 1; reach < Lanes; reach *= 2) {
            T other = __shfl_down_sync(__activemask(), value, reach, Lanes);
            if (__lockstep_rank() % Lanes + reach < Lanes) value = op(value, other);
        }
        return value;
    }
    template <typename Op>
    __device__ T Reduce(T value, Op op, int valid) {
        for (int reach = 1; reach < Lanes; reach *= 2) {
            T other = __shfl_down_sync(__activemask(), value, reach, Lanes);
            if (__lockstep_rank() % Lanes + reach < valid) value = op(value, other);
        }
        return value;
    }
    __device__ T Sum(T value) { return Reduce(value, cub::Sum()); }
    __device__ T Sum(T value, int valid) { return Reduce(value, cub::Sum(), valid); }
};

template <typename T, int Lanes = 32, int Unused = 0>
class WarpScan {
  public:
    struct TempStorage {
        T unused;
    };
    __device__ WarpScan(TempStorage &) {}
    template <typename Op>
    __device__ void InclusiveScan(T value, T &out, Op op) {
        for (int reach = 1; reach < Lanes; reach *= 2) {
            T before = __shfl_up_sync(__activemask(), value, reach, Lanes);
            if ((int)(__lockstep_rank() % Lanes) >= reach) value = op(before, value);
        }
        out = value;
    }
    __device__ void InclusiveSum(T value, T &out) { InclusiveScan(value, out, cub::Sum()); }
    __device__ void ExclusiveSum(T value, T &out) {
        T sum;
        InclusiveSum(value, sum);
        out = sum - value;
    }
};

} // namespace cub
