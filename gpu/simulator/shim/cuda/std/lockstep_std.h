// cuda::std: the names of std, of which device code can use all.
#pragma once

namespace cuda {
namespace std {
using namespace ::std;
#ifdef __CUDA_ARCH__
#define LOCKSTEP_STD LOCKSTEP_API
#include "lockstep_functions.h"
#undef LOCKSTEP_STD
#endif
}  // namespace std
}  // namespace cuda
