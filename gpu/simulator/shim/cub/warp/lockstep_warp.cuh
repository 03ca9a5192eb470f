// What CUB's collectives of a warp, or of a part of one, have in common: who takes part, and values of other lanes.
#pragma once
#include <cub/block/lockstep_block.cuh>

namespace cub {

template <int Lanes>
struct __lockstep_lanes {
    int physical, lane;
    unsigned int all;
    __device__ __lockstep_lanes() {
        physical = __lockstep_rank() % 32;
        lane = physical % Lanes;
        all = Lanes == 32 ? ~0u : ((1u << Lanes % 32) - 1) << (physical - lane);
    }
    __device__ unsigned int members() { return all & __activemask(); }
    // The lanes from this one on that a flag ends with: up to the next head, or including the next tail.
    __device__ int last(unsigned int flags, bool heads) {
        flags = flags >> (physical - lane) >> (heads ? 1 : 0);
        unsigned int after = flags >> lane << lane;
        if (!after) return Lanes - 1;
        int found = __ffs((int)after) - 1;
        return found < Lanes ? found : Lanes - 1;
    }
    template <typename T, typename Op>
    __device__ T reduced(T value, Op op, int last) {
        for (int reach = 1; reach < Lanes; reach *= 2) {
            T other = __shfl_down_sync(members(), value, reach);
            if (lane + reach <= last) value = op(value, other);
        }
        return value;
    }
    template <typename T, typename Op>
    __device__ T scanned(T value, Op op) {
        for (int reach = 1; reach < Lanes; reach *= 2) {
            T before = __shfl_up_sync(members(), value, reach);
            if (lane >= reach) value = op(before, value);
        }
        return value;
    }
};

} // namespace cub
