// One value of all that a block's threads have. Only the first thread's is the result; others are left with a part.
#pragma once
#include <cub/block/lockstep_block.cuh>

namespace cub {

enum BlockReduceAlgorithm { BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY, BLOCK_REDUCE_RAKING, BLOCK_REDUCE_WARP_REDUCTIONS };

template <typename T, int X, BlockReduceAlgorithm Algorithm = BLOCK_REDUCE_WARP_REDUCTIONS, int Y = 1, int Z = 1,
          int Unused = 0>
class BlockReduce {
  public:
    struct TempStorage {
        T values[X * Y * Z];
    };
    LOCKSTEP_COLLECTIVE(BlockReduce)

    template <typename Op>
    __device__ T Reduce(T value, Op op) {
        return Reduce(value, op, X * Y * Z);
    }
    // No barrier stands behind the last step: memory that is used again needs one, as CUB says.
    template <typename Op>
    __device__ T Reduce(T value, Op op, int valid) {
        int count = valid < X * Y * Z ? valid : X * Y * Z;
        kept.values[rank] = value;
        for (int reach = 1; reach < count; reach *= 2) {
            __syncthreads();
            if (rank % (2 * reach) == 0 && rank + reach < count) {
                value = op(value, kept.values[rank + reach]);
                kept.values[rank] = value;
            }
        }
        return value;
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
};

} // namespace cub
