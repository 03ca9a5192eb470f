// Prefix sums, and the like, over a block's threads, of one value or of several side by side.
#pragma once
#include <cub/block/lockstep_block.cuh>

namespace cub {

enum BlockScanAlgorithm { BLOCK_SCAN_RAKING, BLOCK_SCAN_RAKING_MEMOIZE, BLOCK_SCAN_WARP_SCANS };

template <typename T, int X, BlockScanAlgorithm Algorithm = BLOCK_SCAN_RAKING, int Y = 1, int Z = 1, int Unused = 0>
class BlockScan {
  public:
    struct TempStorage {
        T values[X * Y * Z];
        T seed;
    };
    LOCKSTEP_COLLECTIVE(BlockScan)

  private:
    // Of each thread's values together an inclusive scan over the threads.
    template <int Items, typename Op>
    __device__ void across(T (&values)[Items], Op op) {
        T all = values[0];
        for (int i = 1; i < Items; ++i) all = op(all, values[i]);
        kept.values[rank] = all;
        __syncthreads();
        for (int reach = 1; reach < X * Y * Z; reach *= 2) {
            T before = all;
            if (rank >= reach) before = kept.values[rank - reach];
            __syncthreads();
            if (rank >= reach) all = op(before, all);
            kept.values[rank] = all;
            __syncthreads();
        }
    }
    // What is asked for, from a seed where there is one; without one nothing is before the first value.
    template <int Items, typename Op>
    __device__ void within(T (&values)[Items], T (&out)[Items], Op op, bool inclusive, bool has, T before) {
        if (rank > 0) {
            if (has) {
                before = op(before, kept.values[rank - 1]);
            } else {
                before = kept.values[rank - 1];
            }
            has = true;
        }
        for (int i = 0; i < Items; ++i) {
            T value = values[i];
            T next = value;
            if (has) next = op(before, value);
            if (inclusive) {
                out[i] = next;
            } else {
                out[i] = before;
            }
            before = next;
            has = true;
        }
    }
    __device__ T total() { return kept.values[X * Y * Z - 1]; }
    // The first warp asks for the seed, and its first thread's answer is taken.
    template <typename Callback>
    __device__ T asked(Callback &callback) {
        if (rank < 32) {
            T seed = callback(total());
            if (rank == 0) kept.seed = seed;
        }
        __syncthreads();
        return kept.seed;
    }

  public:
    template <int Items, typename Op>
    __device__ void InclusiveScan(T (&values)[Items], T (&out)[Items], Op op) {
        across(values, op);
        within(values, out, op, true, false, values[0]);
    }
    template <int Items, typename Op>
    __device__ void InclusiveScan(T (&values)[Items], T (&out)[Items], Op op, T &all) {
        InclusiveScan(values, out, op);
        all = total();
    }
    template <int Items, typename Op, typename Callback>
    __device__ void InclusiveScan(T (&values)[Items], T (&out)[Items], Op op, Callback &callback) {
        across(values, op);
        within(values, out, op, true, true, asked(callback));
    }
    template <int Items, typename Op>
    __device__ void InclusiveScan(T (&values)[Items], T (&out)[Items], T initial, Op op) {
        across(values, op);
        within(values, out, op, true, true, initial);
    }
    template <int Items, typename Op>
    __device__ void InclusiveScan(T (&values)[Items], T (&out)[Items], T initial, Op op, T &all) {
        InclusiveScan(values, out, initial, op);
        all = total();
    }
    template <int Items>
    __device__ void InclusiveSum(T (&values)[Items], T (&out)[Items]) {
        InclusiveScan(values, out, cub::Sum());
    }
    template <int Items>
    __device__ void InclusiveSum(T (&values)[Items], T (&out)[Items], T &all) {
        InclusiveScan(values, out, cub::Sum(), all);
    }
    template <int Items, typename Callback>
    __device__ void InclusiveSum(T (&values)[Items], T (&out)[Items], Callback &callback) {
        InclusiveScan(values, out, cub::Sum(), callback);
    }
    template <typename Op>
    __device__ void InclusiveScan(T value, T &out, Op op) {
        T values[1] = {value}, found[1];
        InclusiveScan(values, found, op);
        out = found[0];
    }
    template <typename Op>
    __device__ void InclusiveScan(T value, T &out, Op op, T &all) {
        T values[1] = {value}, found[1];
        InclusiveScan(values, found, op, all);
        out = found[0];
    }
    template <typename Op, typename Callback>
    __device__ void InclusiveScan(T value, T &out, Op op, Callback &callback) {
        T values[1] = {value}, found[1];
        InclusiveScan(values, found, op, callback);
        out = found[0];
    }
    template <typename Op>
    __device__ void InclusiveScan(T value, T &out, T initial, Op op) {
        T values[1] = {value}, found[1];
        InclusiveScan(values, found, initial, op);
        out = found[0];
    }
    template <typename Op>
    __device__ void InclusiveScan(T value, T &out, T initial, Op op, T &all) {
        T values[1] = {value}, found[1];
        InclusiveScan(values, found, initial, op, all);
        out = found[0];
    }
    __device__ void InclusiveSum(T value, T &out) {
        T values[1] = {value}, found[1];
        InclusiveSum(values, found);
        out = found[0];
    }
    __device__ void InclusiveSum(T value, T &out, T &all) {
        T values[1] = {value}, found[1];
        InclusiveSum(values, found, all);
        out = found[0];
    }
    template <typename Callback>
    __device__ void InclusiveSum(T value, T &out, Callback &callback) {
        T values[1] = {value}, found[1];
        InclusiveSum(values, found, callback);
        out = found[0];
    }
    template <int Items, typename Op>
    __device__ void ExclusiveScan(T (&values)[Items], T (&out)[Items], Op op) {
        across(values, op);
        within(values, out, op, false, false, values[0]);
    }
    template <int Items, typename Op>
    __device__ void ExclusiveScan(T (&values)[Items], T (&out)[Items], Op op, T &all) {
        ExclusiveScan(values, out, op);
        all = total();
    }
    template <int Items, typename Op, typename Callback>
    __device__ void ExclusiveScan(T (&values)[Items], T (&out)[Items], Op op, Callback &callback) {
        across(values, op);
        within(values, out, op, false, true, asked(callback));
    }
    template <int Items, typename Op>
    __device__ void ExclusiveScan(T (&values)[Items], T (&out)[Items], T initial, Op op) {
        across(values, op);
        within(values, out, op, false, true, initial);
    }
    template <int Items, typename Op>
    __device__ void ExclusiveScan(T (&values)[Items], T (&out)[Items], T initial, Op op, T &all) {
        ExclusiveScan(values, out, initial, op);
        all = total();
    }
    template <int Items>
    __device__ void ExclusiveSum(T (&values)[Items], T (&out)[Items]) {
        ExclusiveScan(values, out, T(), cub::Sum());
    }
    template <int Items>
    __device__ void ExclusiveSum(T (&values)[Items], T (&out)[Items], T &all) {
        ExclusiveScan(values, out, T(), cub::Sum(), all);
    }
    template <int Items, typename Callback>
    __device__ void ExclusiveSum(T (&values)[Items], T (&out)[Items], Callback &callback) {
        ExclusiveScan(values, out, cub::Sum(), callback);
    }
    template <typename Op>
    __device__ void ExclusiveScan(T value, T &out, Op op) {
        T values[1] = {value}, found[1];
        ExclusiveScan(values, found, op);
        out = found[0];
    }
    template <typename Op>
    __device__ void ExclusiveScan(T value, T &out, Op op, T &all) {
        T values[1] = {value}, found[1];
        ExclusiveScan(values, found, op, all);
        out = found[0];
    }
    template <typename Op, typename Callback>
    __device__ void ExclusiveScan(T value, T &out, Op op, Callback &callback) {
        T values[1] = {value}, found[1];
        ExclusiveScan(values, found, op, callback);
        out = found[0];
    }
    template <typename Op>
    __device__ void ExclusiveScan(T value, T &out, T initial, Op op) {
        T values[1] = {value}, found[1];
        ExclusiveScan(values, found, initial, op);
        out = found[0];
    }
    template <typename Op>
    __device__ void ExclusiveScan(T value, T &out, T initial, Op op, T &all) {
        T values[1] = {value}, found[1];
        ExclusiveScan(values, found, initial, op, all);
        out = found[0];
    }
    __device__ void ExclusiveSum(T value, T &out) {
        T values[1] = {value}, found[1];
        ExclusiveSum(values, found);
        out = found[0];
    }
    __device__ void ExclusiveSum(T value, T &out, T &all) {
        T values[1] = {value}, found[1];
        ExclusiveSum(values, found, all);
        out = found[0];
    }
    template <typename Callback>
    __device__ void ExclusiveSum(T value, T &out, Callback &callback) {
        T values[1] = {value}, found[1];
        ExclusiveSum(values, found, callback);
        out = found[0];
    }
};

} // namespace cub
