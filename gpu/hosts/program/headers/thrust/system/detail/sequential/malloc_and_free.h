// Replacement of Thrust's header: thrust::device_malloc allocates managed memory, which kernels can access too.
#pragma once
#include <thrust/detail/config.h>
#include <thrust/detail/raw_pointer_cast.h>
#include <thrust/system/detail/sequential/execution_policy.h>

THRUST_NAMESPACE_BEGIN
namespace system {
namespace detail {
namespace sequential {

template <typename Policy>
void *malloc(execution_policy<Policy> &, std::size_t bytes) {
    void *memory = nullptr;
    return cudaMallocManaged(&memory, bytes) == cudaSuccess ? memory : nullptr;  // null raises std::bad_alloc in Thrust
}

template <typename Policy, typename Pointer>
void free(execution_policy<Policy> &, Pointer memory) {
    cudaFree(thrust::raw_pointer_cast(memory));
}

}  // namespace sequential
}  // namespace detail
}  // namespace system
THRUST_NAMESPACE_END
