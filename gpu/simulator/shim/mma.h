// Products of whole tiles by tensor cores. Which lane holds which element is left open by CUDA; here it is as mma.sync
// has it, which is also how a GPU since Turing computes them. A half operand of 16 elements a lane holds each twice.
#pragma once
#include "cuda_bf16.h"
#include "cuda_fp16.h"

namespace nvcuda {
namespace wmma {
struct matrix_a;
struct matrix_b;
struct accumulator;
struct row_major;
struct col_major;
enum layout_t { mem_row_major, mem_col_major };
namespace precision {
struct tf32;
}

// What an element is stored as, how many of them are a register, and what a product is computed in.
template <typename LockstepT>
struct lockstep_element {
    using storage = LockstepT;
    static const int packed = 4 / sizeof(LockstepT);
    static const int depth = 16;
};
template <>
struct lockstep_element<precision::tf32> {
    using storage = float;
    static const int packed = 1;
    static const int depth = 8;
};
template <>
struct lockstep_element<double> {
    using storage = double;
    static const int packed = 1;
    static const int depth = 4;
};
template <typename LockstepT>
constexpr bool lockstep_is_operand =
    std::is_same_v<LockstepT, __half> || std::is_same_v<LockstepT, __nv_bfloat16> ||
    std::is_same_v<LockstepT, signed char> || std::is_same_v<LockstepT, unsigned char> ||
    std::is_same_v<LockstepT, precision::tf32> || std::is_same_v<LockstepT, double>;
template <typename LockstepT>
constexpr bool lockstep_is_sum = std::is_same_v<LockstepT, float> || std::is_same_v<LockstepT, int> ||
                                 std::is_same_v<LockstepT, __half> || std::is_same_v<LockstepT, double>;
// The three shapes; tf32 and double have one each.
constexpr bool lockstep_is_shape(int m, int n, int k) {
    return (k == 16 && ((m == 16 && n == 16) || (m == 32 && n == 8) || (m == 8 && n == 32))) ||
           (k == 8 && m == 16 && n == 16) || (k == 4 && m == 8 && n == 8);
}

__device__ inline int lockstep_lane() {
    return ((threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x) & 31;
}

// A matrix operand of `Length` rows of A, or columns of B, by K. Along is where an element is among them, and deep
// which k it has. What has 8 beside a whole of 16 or 32 is mma.sync's B, or the one of two tiles of it.
template <int Length, bool IsLong, int K, int Packed>
struct lockstep_operand {
    static const int tile = IsLong ? 16 : 8, in_tile = tile * K / 32;
    __device__ static int along(int i) {
        i %= Length * K / 32;
        int half = IsLong ? i % in_tile / Packed % 2 : 0;
        return tile * (i / in_tile) + 8 * half + lockstep_lane() / 4;
    }
    __device__ static int deep(int i) {
        int within = i % in_tile, number = within / Packed / (IsLong ? 2 : 1);
        return Packed * (lockstep_lane() % 4) + within % Packed + 4 * Packed * number;
    }
};

template <typename Use, int M, int N, int K, typename LockstepT, typename Layout = void>
struct fragment;

// What matrix_a and matrix_b have in common.
template <int M, int N, int K, typename LockstepT, typename Layout>
struct lockstep_factor {
    static_assert(
        lockstep_is_operand<LockstepT> && lockstep_is_shape(M, N, K) && K == lockstep_element<LockstepT>::depth,
        "there is no such fragment of matrix_a or matrix_b: half, __nv_bfloat16, signed or unsigned char have "
        "16x16x16, 32x8x16 and 8x32x16, precision::tf32 has 16x16x8, double has 8x8x4");
    static_assert(std::is_same_v<Layout, row_major> || std::is_same_v<Layout, col_major>,
                  "matrix_a and matrix_b are row_major or col_major");
    static const bool is_row_major = std::is_same_v<Layout, row_major>;
};

template <int M, int N, int K, typename LockstepT, typename Layout>
struct fragment<matrix_a, M, N, K, LockstepT, Layout> : lockstep_factor<M, N, K, LockstepT, Layout> {
    using element = lockstep_element<LockstepT>;
    static const bool is_long = M > 8;
    static const int num_elements = std::is_same_v<LockstepT, __half> ? 16 : M * K / 32;
    using place = lockstep_operand<M, is_long, K, element::packed>;
    typename element::storage x[num_elements];
    __device__ static int row(int i) { return place::along(i); }
    __device__ static int col(int i) { return place::deep(i); }
};
template <int M, int N, int K, typename LockstepT, typename Layout>
struct fragment<matrix_b, M, N, K, LockstepT, Layout> : lockstep_factor<M, N, K, LockstepT, Layout> {
    using element = lockstep_element<LockstepT>;
    static const bool is_long = M == 8 && N == 32;
    static const int num_elements = std::is_same_v<LockstepT, __half> ? 16 : N * K / 32;
    using place = lockstep_operand<N, is_long, K, element::packed>;
    typename element::storage x[num_elements];
    __device__ static int row(int i) { return place::deep(i); }
    __device__ static int col(int i) { return place::along(i); }
};
template <int M, int N, int K, typename LockstepT>
struct fragment<accumulator, M, N, K, LockstepT, void> {
    static_assert(lockstep_is_sum<LockstepT> && lockstep_is_shape(M, N, K),
                  "there is no such fragment of accumulator: float, half and int have 16x16x16, 32x8x16 and 8x32x16, "
                  "float has 16x16x8 too, double has 8x8x4");
    static const int num_elements = M * N / 32;
    // Where M is 8 and N 32 the product is that of the transposed ones.
    static const bool is_turned = M == 8 && N == 32;
    LockstepT x[num_elements];
    __device__ static int among_rows(int i) {
        int tile = M == 32 || is_turned ? i / 4 : 0;
        return 16 * tile + 8 * (i / 2 % 2) + lockstep_lane() / 4;
    }
    __device__ static int among_columns(int i) {
        int tile = M == 16 ? i / 4 : 0;
        return 8 * tile + 2 * (lockstep_lane() % 4) + i % 2;
    }
    __device__ static int row(int i) { return is_turned ? among_columns(i) : among_rows(i); }
    __device__ static int col(int i) { return is_turned ? among_rows(i) : among_columns(i); }
};

template <typename Fragment, typename LockstepT>
__device__ inline void fill_fragment(Fragment &tile, const LockstepT &value) {
    for (int i = 0; i < Fragment::num_elements; ++i) tile.x[i] = value;
}

template <typename LockstepT>
__device__ inline void lockstep_check_stride(unsigned ldm) {
    __lockstep_whole_warp();
    __lockstep_assert(ldm * sizeof(LockstepT) % 16 == 0, "ldm is a multiple of 16 bytes");
}
template <typename Use, int M, int N, int K, typename LockstepT, typename Layout, typename Stored>
__device__ inline void load_matrix_sync(fragment<Use, M, N, K, LockstepT, Layout> &tile, const Stored *from,
                                        unsigned ldm) {
    using Tile = fragment<Use, M, N, K, LockstepT, Layout>;
    lockstep_check_stride<Stored>(ldm);
    for (int i = 0; i < Tile::num_elements; ++i) {
        tile.x[i] =
            Tile::is_row_major ? from[Tile::row(i) * ldm + Tile::col(i)] : from[Tile::col(i) * ldm + Tile::row(i)];
    }
}
template <int M, int N, int K, typename LockstepT>
__device__ inline void load_matrix_sync(fragment<accumulator, M, N, K, LockstepT> &tile, const LockstepT *from,
                                        unsigned ldm, layout_t layout) {
    using Tile = fragment<accumulator, M, N, K, LockstepT>;
    lockstep_check_stride<LockstepT>(ldm);
    for (int i = 0; i < Tile::num_elements; ++i) {
        int row = Tile::row(i), col = Tile::col(i);
        tile.x[i] = from[layout == mem_row_major ? row * ldm + col : col * ldm + row];
    }
}
template <int M, int N, int K, typename LockstepT>
__device__ inline void store_matrix_sync(LockstepT *to, const fragment<accumulator, M, N, K, LockstepT> &tile,
                                         unsigned ldm, layout_t layout) {
    using Tile = fragment<accumulator, M, N, K, LockstepT>;
    lockstep_check_stride<LockstepT>(ldm);
    for (int i = 0; i < Tile::num_elements; ++i) {
        int row = Tile::row(i), col = Tile::col(i);
        to[layout == mem_row_major ? row * ldm + col : col * ldm + row] = tile.x[i];
    }
}

template <typename LockstepT>
__device__ inline LockstepT __float_to_tf32(LockstepT value) {
    return __lockstep_to_tf32(value);
}

// One result from the elements of a row, `a`, and of a column, `b`, that each lane holds.
template <typename LockstepT, typename Sum, typename A, typename B>
__device__ inline Sum lockstep_product(int column, Sum c, const A *a, int step, const B *b) {
    if constexpr (std::is_same_v<LockstepT, double>) {
        return __lockstep_mma(column, c, a[0], b[0]);
    } else if constexpr (std::is_same_v<LockstepT, precision::tf32>) {
        return __lockstep_mma(column, c, __lockstep_tf32(a[0]), __lockstep_tf32(a[step]), __lockstep_tf32(b[0]),
                              __lockstep_tf32(b[1]));
    } else if constexpr (sizeof(LockstepT) == 1) {
        return __lockstep_mma(column, c, (int)a[0], (int)a[1], (int)a[2], (int)a[3], (int)b[0], (int)b[1], (int)b[2],
                              (int)b[3]);
    } else {
        // An object is made of what has been exchanged, and not meanwhile.
        float sum = __lockstep_mma(column, (float)c, (float)a[0], (float)a[1], (float)a[step], (float)a[step + 1],
                                   (float)b[0], (float)b[1], (float)b[2], (float)b[3]);
        return Sum(sum);
    }
}
template <int M, int N, int K, typename Result, typename LockstepT, typename RowsOrColumns, typename Other,
          typename Sum>
__device__ inline void mma_sync(fragment<accumulator, M, N, K, Result> &d,
                                const fragment<matrix_a, M, N, K, LockstepT, RowsOrColumns> &a,
                                const fragment<matrix_b, M, N, K, LockstepT, Other> &b,
                                const fragment<accumulator, M, N, K, Sum> &c) {
    using element = lockstep_element<LockstepT>;
    __lockstep_whole_warp();
    const int packed = element::packed, of_long = K / 2, of_short = K / 4;
    for (int i = 0; i < M * N / 32; ++i) {
        const int half = M == 8 && N == 8 ? 0 : i / 2 % 2, tile = i / 4;
        if constexpr (M == 8 && N == 32) {
            d.x[i] = lockstep_product<LockstepT>(i % 2, Result(c.x[i]), b.x + of_long * tile + packed * half,
                                                 2 * packed, a.x);
        } else {
            const int down = M == 32 ? tile : 0, across = M == 16 ? tile : 0;
            d.x[i] = lockstep_product<LockstepT>(i % 2, Result(c.x[i]), a.x + of_long * down + packed * half,
                                                 2 * packed, b.x + of_short * across);
        }
    }
}
} // namespace wmma
} // namespace nvcuda
