// Which items differ from the one before them, or from the one behind: heads and tails of segments.
#pragma once
#include <cub/block/lockstep_block.cuh>

namespace cub {

template <typename T, int X, int Y = 1, int Z = 1, int Unused = 0>
class BlockDiscontinuity {
  public:
    struct TempStorage {
        T firsts[X * Y * Z], lasts[X * Y * Z];
    };
    LOCKSTEP_COLLECTIVE(BlockDiscontinuity)

    template <int Items, typename Flag, typename Op>
    __device__ void FlagHeads(Flag (&heads)[Items], T (&values)[Items], Op op) {
        show(values);
        flag_heads(heads, values, op, true, values[0]);
    }
    template <int Items, typename Flag, typename Op>
    __device__ void FlagHeads(Flag (&heads)[Items], T (&values)[Items], Op op, T predecessor) {
        show(values);
        flag_heads(heads, values, op, false, predecessor);
    }
    template <int Items, typename Flag, typename Op>
    __device__ void FlagTails(Flag (&tails)[Items], T (&values)[Items], Op op) {
        show(values);
        flag_tails(tails, values, op, true, values[0]);
    }
    template <int Items, typename Flag, typename Op>
    __device__ void FlagTails(Flag (&tails)[Items], T (&values)[Items], Op op, T successor) {
        show(values);
        flag_tails(tails, values, op, false, successor);
    }
    template <int Items, typename Flag, typename Op>
    __device__ void FlagHeadsAndTails(Flag (&heads)[Items], Flag (&tails)[Items], T (&values)[Items], Op op) {
        show(values);
        flag_heads(heads, values, op, true, values[0]);
        flag_tails(tails, values, op, true, values[0]);
    }

  private:
    template <int Items>
    __device__ void show(T (&values)[Items]) {
        kept.firsts[rank] = values[0];
        kept.lasts[rank] = values[Items - 1];
        __syncthreads();
    }
    template <int Items, typename Flag, typename Op>
    __device__ void flag_heads(Flag (&heads)[Items], T (&values)[Items], Op op, bool alone, T before) {
        if (rank > 0) before = kept.lasts[rank - 1];
        for (int i = 0; i < Items; ++i) {
            heads[i] = (alone && rank == 0 && i == 0) || op(before, values[i]);
            before = values[i];
        }
    }
    template <int Items, typename Flag, typename Op>
    __device__ void flag_tails(Flag (&tails)[Items], T (&values)[Items], Op op, bool alone, T after) {
        if (rank < X * Y * Z - 1) after = kept.firsts[rank + 1];
        for (int i = Items - 1; i >= 0; --i) {
            tails[i] = (alone && rank == X * Y * Z - 1 && i == Items - 1) || op(values[i], after);
            after = values[i];
        }
    }
};

} // namespace cub
