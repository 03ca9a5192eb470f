// Replacement of Thrust's header: its policies for a GPU run on this CPU, after the work of the stream.
#pragma once
#include <thrust/system/cpp/execution_policy.h>

THRUST_NAMESPACE_BEGIN
namespace system {
namespace cuda {

struct lockstep_policy : cpp::detail::execution_policy<lockstep_policy>,
                         thrust::detail::allocator_aware_execution_policy<cpp::detail::execution_policy> {
    lockstep_policy on(cudaStream_t stream) const {
        cudaStreamSynchronize(stream);
        return *this;
    }
};
static const lockstep_policy par, par_nosync;

} // namespace cuda
} // namespace system
namespace cuda {

using system::cuda::par;
using system::cuda::par_nosync;

} // namespace cuda
THRUST_NAMESPACE_END
