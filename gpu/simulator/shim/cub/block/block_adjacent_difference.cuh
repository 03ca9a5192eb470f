// Of neighbors, also those of two threads, a difference; the block's first, or last, item is left as it is, unless what
// stands beside it is given.
#pragma once
#include <cub/block/lockstep_block.cuh>

namespace cub {

template <typename T, int X, int Y = 1, int Z = 1, int Unused = 0>
class BlockAdjacentDifference {
  public:
    struct TempStorage {
        T edges[X * Y * Z];
    };
    LOCKSTEP_COLLECTIVE(BlockAdjacentDifference)

    template <int Items, typename Output, typename Op>
    __device__ void SubtractLeft(T (&values)[Items], Output (&out)[Items], Op op) {
        left(values, out, op, X * Y * Z * Items);
        if (rank == 0) out[0] = values[0];
    }
    template <int Items, typename Output, typename Op>
    __device__ void SubtractLeft(T (&values)[Items], Output (&out)[Items], Op op, T predecessor) {
        left(values, out, op, X * Y * Z * Items);
        if (rank == 0) out[0] = op(values[0], predecessor);
    }
    template <int Items, typename Output, typename Op>
    __device__ void SubtractLeftPartialTile(T (&values)[Items], Output (&out)[Items], Op op, int valid) {
        left(values, out, op, valid);
        if (rank == 0) out[0] = values[0];
    }
    template <int Items, typename Output, typename Op>
    __device__ void SubtractRight(T (&values)[Items], Output (&out)[Items], Op op) {
        right(values, out, op, X * Y * Z * Items);
        if (rank == X * Y * Z - 1) out[Items - 1] = values[Items - 1];
    }
    template <int Items, typename Output, typename Op>
    __device__ void SubtractRight(T (&values)[Items], Output (&out)[Items], Op op, T successor) {
        right(values, out, op, X * Y * Z * Items);
        if (rank == X * Y * Z - 1) out[Items - 1] = op(values[Items - 1], successor);
    }
    template <int Items, typename Output, typename Op>
    __device__ void SubtractRightPartialTile(T (&values)[Items], Output (&out)[Items], Op op, int valid) {
        right(values, out, op, valid);
    }

  private:
    template <int Items, typename Output, typename Op>
    __device__ void left(T (&values)[Items], Output (&out)[Items], Op op, int valid) {
        kept.edges[rank] = values[Items - 1];
        __syncthreads();
        for (int i = Items - 1; i >= 0; --i) {
            T value = values[i], before = value;
            if (i > 0) {
                before = values[i - 1];
            } else if (rank > 0) {
                before = kept.edges[rank - 1];
            }
            if (rank * Items + i < valid) {
                out[i] = op(value, before);
            } else {
                out[i] = value;
            }
        }
    }
    template <int Items, typename Output, typename Op>
    __device__ void right(T (&values)[Items], Output (&out)[Items], Op op, int valid) {
        kept.edges[rank] = values[0];
        __syncthreads();
        for (int i = 0; i < Items; ++i) {
            T value = values[i], after = value;
            if (i < Items - 1) {
                after = values[i + 1];
            } else if (rank < X * Y * Z - 1) {
                after = kept.edges[rank + 1];
            }
            if (rank * Items + i + 1 < valid) {
                out[i] = op(value, after);
            } else {
                out[i] = value;
            }
        }
    }
};

}  // namespace cub
