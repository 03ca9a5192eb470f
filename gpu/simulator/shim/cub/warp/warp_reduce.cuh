// One value of all that the lanes of a warp, or of a part of one, have: the first lane's, or that of each segment.
#pragma once
#include <cub/warp/lockstep_warp.cuh>

namespace cub {

template <typename T, int Lanes = 32, int Unused = 0>
class WarpReduce {
    __lockstep_lanes<Lanes> lanes;

  public:
    struct TempStorage {
        T unused;
    };
    __device__ WarpReduce(TempStorage &) : lanes() {}
    template <typename Op>
    __device__ T Reduce(T value, Op op) {
        return lanes.reduced(value, op, Lanes - 1);
    }
    template <typename Op>
    __device__ T Reduce(T value, Op op, int valid) {
        return lanes.reduced(value, op, valid - 1);
    }
    template <typename Flag, typename Op>
    __device__ T HeadSegmentedReduce(T value, Flag flag, Op op) {
        return lanes.reduced(value, op, lanes.last(__ballot_sync(lanes.members(), flag != 0), true));
    }
    template <typename Flag, typename Op>
    __device__ T TailSegmentedReduce(T value, Flag flag, Op op) {
        return lanes.reduced(value, op, lanes.last(__ballot_sync(lanes.members(), flag != 0), false));
    }
    __device__ T Sum(T value) { return Reduce(value, cub::Sum()); }
    __device__ T Sum(T value, int valid) { return Reduce(value, cub::Sum(), valid); }
    template <typename Flag>
    __device__ T HeadSegmentedSum(T value, Flag flag) {
        return HeadSegmentedReduce(value, flag, cub::Sum());
    }
    template <typename Flag>
    __device__ T TailSegmentedSum(T value, Flag flag) {
        return TailSegmentedReduce(value, flag, cub::Sum());
    }
};

} // namespace cub
