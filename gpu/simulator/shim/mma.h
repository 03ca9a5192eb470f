// Products of whole tiles by tensor cores, declared so that they are refused by name.
#pragma once
#include "cuda_fp16.h"

__device__ void __lockstep_fragment();

namespace nvcuda {
namespace wmma {
struct matrix_a;
struct matrix_b;
struct accumulator;
struct row_major;
struct col_major;
enum layout_t { mem_row_major, mem_col_major };
template <typename Use, int M, int N, int K, typename LockstepT, typename Layout = void>
struct fragment {
    LockstepT x[M * N / 32];
    static const int num_elements = M * N / 32;
};
template <typename... Given>
__device__ void fill_fragment(Given &&...) {
    __lockstep_fragment();
}
template <typename... Given>
__device__ void load_matrix_sync(Given &&...) {
    __lockstep_fragment();
}
template <typename... Given>
__device__ void store_matrix_sync(Given &&...) {
    __lockstep_fragment();
}
template <typename... Given>
__device__ void mma_sync(Given &&...) {
    __lockstep_fragment();
}
} // namespace wmma
} // namespace nvcuda
