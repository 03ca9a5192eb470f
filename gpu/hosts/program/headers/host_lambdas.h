// Device lambdas as kernel arguments of host code: the captures, in a type with the lambda's line and index.
#pragma once

namespace lockstep_host {

template <int Line, int Number, typename F>
struct Closure : F {};
template <int Line, int Number, typename F>
inline Closure<Line, Number, F> closure(F f) {
    return {f};
}

} // namespace lockstep_host

// Device functions used in bodies of device lambdas, which the host compiler parses but never instantiates.
#define LOCKSTEP_ATOMIC(name)                                                                                          \
    template <typename T, typename... A>                                                                               \
    T name(T *, A...);                                                                                                 \
    template <typename T, typename... A>                                                                               \
    T name##_block(T *, A...);                                                                                         \
    template <typename T, typename... A>                                                                               \
    T name##_system(T *, A...);
LOCKSTEP_ATOMIC(atomicAdd)
LOCKSTEP_ATOMIC(atomicSub)
LOCKSTEP_ATOMIC(atomicMin)
LOCKSTEP_ATOMIC(atomicMax)
LOCKSTEP_ATOMIC(atomicExch)
LOCKSTEP_ATOMIC(atomicCAS)
LOCKSTEP_ATOMIC(atomicAnd)
LOCKSTEP_ATOMIC(atomicOr)
LOCKSTEP_ATOMIC(atomicXor)
LOCKSTEP_ATOMIC(atomicInc)
LOCKSTEP_ATOMIC(atomicDec)
#undef LOCKSTEP_ATOMIC
#define LOCKSTEP_OF_WARP(name)                                                                                         \
    template <typename T, typename... A>                                                                               \
    T name(unsigned, T, A...);
LOCKSTEP_OF_WARP(__shfl_sync)
LOCKSTEP_OF_WARP(__shfl_up_sync)
LOCKSTEP_OF_WARP(__shfl_down_sync)
LOCKSTEP_OF_WARP(__shfl_xor_sync)
LOCKSTEP_OF_WARP(__reduce_add_sync)
LOCKSTEP_OF_WARP(__reduce_min_sync)
LOCKSTEP_OF_WARP(__reduce_max_sync)
LOCKSTEP_OF_WARP(__match_any_sync)
#undef LOCKSTEP_OF_WARP
unsigned __ballot_sync(unsigned, int);
int __any_sync(unsigned, int);
int __all_sync(unsigned, int);
unsigned __activemask();
int __ffs(int);
int __ffsll(long long);
int __popcll(unsigned long long);
int __clzll(long long);
unsigned __brev(unsigned);
void __syncwarp(unsigned = ~0u);
void __syncthreads();
void __threadfence();
void __threadfence_block();
void __threadfence_system();
