// What CUB's collectives of a block have in common: a thread's rank, and their memory where none is given.
#pragma once
#include <cub/thread/thread_operators.cuh>

namespace cub {

__device__ inline unsigned int __lockstep_rank() {
    return (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
}

#define LOCKSTEP_COLLECTIVE(name)                                                                                      \
  private:                                                                                                             \
    TempStorage & kept;                                                                                                \
    const int rank;                                                                                                    \
    __device__ static TempStorage &own() {                                                                             \
        __shared__ TempStorage storage;                                                                                \
        return storage;                                                                                                \
    }                                                                                                                  \
                                                                                                                       \
  public:                                                                                                              \
    __device__ name() : kept(own()), rank(__lockstep_rank()) {}                                                        \
    __device__ name(TempStorage &kept) : kept(kept), rank(__lockstep_rank()) {}

} // namespace cub
