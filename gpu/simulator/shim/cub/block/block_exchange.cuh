// Items of a block's threads in another arrangement: those of a thread side by side, or as many threads apart.
#pragma once
#include <cub/block/lockstep_block.cuh>

namespace cub {

template <typename T, int X, int Items, bool Slicing = false, int Y = 1, int Z = 1, int Unused = 0>
class BlockExchange {
  public:
    struct TempStorage {
        T values[X * Y * Z * Items];
    };
    LOCKSTEP_COLLECTIVE(BlockExchange)

    template <typename Output>
    __device__ void StripedToBlocked(const T (&values)[Items], Output (&out)[Items]) {
        for (int i = 0; i < Items; ++i) kept.values[i * X * Y * Z + rank] = values[i];
        blocked(out);
    }
    template <typename Output>
    __device__ void BlockedToStriped(const T (&values)[Items], Output (&out)[Items]) {
        for (int i = 0; i < Items; ++i) kept.values[rank * Items + i] = values[i];
        striped(out);
    }
    // Each item to the place that its rank says.
    template <typename Output, typename Offset>
    __device__ void ScatterToBlocked(const T (&values)[Items], Output (&out)[Items], Offset (&ranks)[Items]) {
        for (int i = 0; i < Items; ++i) kept.values[ranks[i]] = values[i];
        blocked(out);
    }
    template <typename Output, typename Offset>
    __device__ void ScatterToStriped(const T (&values)[Items], Output (&out)[Items], Offset (&ranks)[Items]) {
        for (int i = 0; i < Items; ++i) kept.values[ranks[i]] = values[i];
        striped(out);
    }
    __device__ void StripedToBlocked(T (&values)[Items]) { StripedToBlocked(values, values); }
    __device__ void BlockedToStriped(T (&values)[Items]) { BlockedToStriped(values, values); }
    template <typename Offset>
    __device__ void ScatterToBlocked(T (&values)[Items], Offset (&ranks)[Items]) {
        ScatterToBlocked(values, values, ranks);
    }
    template <typename Offset>
    __device__ void ScatterToStriped(T (&values)[Items], Offset (&ranks)[Items]) {
        ScatterToStriped(values, values, ranks);
    }

  private:
    template <typename Output>
    __device__ void blocked(Output (&out)[Items]) {
        __syncthreads();
        for (int i = 0; i < Items; ++i) out[i] = kept.values[rank * Items + i];
    }
    template <typename Output>
    __device__ void striped(Output (&out)[Items]) {
        __syncthreads();
        for (int i = 0; i < Items; ++i) out[i] = kept.values[i * X * Y * Z + rank];
    }
};

} // namespace cub
