// Prefix sums, and the like, over the lanes of a warp, or of a part of one.
#pragma once
#include <cub/warp/lockstep_warp.cuh>

namespace cub {

template <typename T, int Lanes = 32, int Unused = 0>
class WarpScan {
    __lockstep_lanes<Lanes> lanes;

    __device__ T of_lane(T value, int lane) {
        return __shfl_sync(lanes.members(), value, lanes.physical - lanes.lane + lane);
    }
    __device__ T before(T value) { return __shfl_up_sync(lanes.members(), value, 1); }

  public:
    struct TempStorage {
        T unused;
    };
    __device__ WarpScan(TempStorage &) : lanes() {}
    template <typename Op>
    __device__ void InclusiveScan(T value, T &out, Op op) {
        out = lanes.scanned(value, op);
    }
    template <typename Op>
    __device__ void InclusiveScan(T value, T &out, Op op, T &all) {
        out = lanes.scanned(value, op);
        all = of_lane(out, Lanes - 1);
    }
    // Without an initial value the first lane's is not said.
    template <typename Op>
    __device__ void ExclusiveScan(T value, T &out, Op op) {
        out = before(lanes.scanned(value, op));
    }
    template <typename Op>
    __device__ void ExclusiveScan(T value, T &out, Op op, T &all) {
        T with = lanes.scanned(value, op);
        out = before(with);
        all = of_lane(with, Lanes - 1);
    }
    template <typename Op>
    __device__ void ExclusiveScan(T value, T &out, T initial, Op op) {
        T with;
        Scan(value, with, out, initial, op);
    }
    template <typename Op>
    __device__ void ExclusiveScan(T value, T &out, T initial, Op op, T &all) {
        T with = lanes.scanned(value, op), left = before(with);
        all = of_lane(with, Lanes - 1);
        out = initial;
        if (lanes.lane > 0) out = op(initial, left);
    }
    template <typename Op>
    __device__ void Scan(T value, T &with, T &without, Op op) {
        with = lanes.scanned(value, op);
        without = before(with);
    }
    template <typename Op>
    __device__ void Scan(T value, T &with, T &without, T initial, Op op) {
        T found = lanes.scanned(value, op), left = before(found);
        with = op(initial, found);
        without = initial;
        if (lanes.lane > 0) without = op(initial, left);
    }
    __device__ void InclusiveSum(T value, T &out) { InclusiveScan(value, out, cub::Sum()); }
    __device__ void InclusiveSum(T value, T &out, T &all) { InclusiveScan(value, out, cub::Sum(), all); }
    __device__ void ExclusiveSum(T value, T &out) { ExclusiveScan(value, out, T(), cub::Sum()); }
    __device__ void ExclusiveSum(T value, T &out, T &all) { ExclusiveScan(value, out, T(), cub::Sum(), all); }
    __device__ T Broadcast(T value, unsigned int lane) { return of_lane(value, lane); }
};

} // namespace cub
