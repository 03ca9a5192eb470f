// Instructions of PTX as functions, which the front end calls for what stands in asm: mad.lo.s32 is
// __lockstep_ptx_mad_lo_s32. What only hints, such as .approx and .ftz, has no part in a name. Most are declared as host
// functions, since device code does not call them by name, and clang loads device functions with bodies for each file.
#pragma once

LOCKSTEP_API size_t __cvta_generic_to_shared(const void *pointer);
LOCKSTEP_API void *__cvta_shared_to_generic(size_t number);
LOCKSTEP_API inline size_t __cvta_generic_to_global(const void *pointer) { return (size_t)pointer; }
LOCKSTEP_API inline void *__cvta_global_to_generic(size_t address) { return (void *)address; }

#define LOCKSTEP_PTX(name, T) inline T __lockstep_ptx_##name

#define LOCKSTEP_PTX_ARITHMETIC(t, T)                                                                                  \
    LOCKSTEP_PTX(add_##t, T)(T a, T b) { return a + b; }                                                               \
    LOCKSTEP_PTX(sub_##t, T)(T a, T b) { return a - b; }                                                               \
    LOCKSTEP_PTX(min_##t, T)(T a, T b) { return min(a, b); }                                                           \
    LOCKSTEP_PTX(max_##t, T)(T a, T b) { return max(a, b); }                                                           \
    LOCKSTEP_PTX(div_##t, T)(T a, T b) { return a / b; }
LOCKSTEP_PTX_ARITHMETIC(s32, int)
LOCKSTEP_PTX_ARITHMETIC(u32, unsigned int)
LOCKSTEP_PTX_ARITHMETIC(s64, long long)
LOCKSTEP_PTX_ARITHMETIC(u64, unsigned long long)
LOCKSTEP_PTX_ARITHMETIC(f32, float)
LOCKSTEP_PTX_ARITHMETIC(f64, double)

#define LOCKSTEP_PTX_INTEGERS(t, T, high)                                                                              \
    LOCKSTEP_PTX(rem_##t, T)(T a, T b) { return a % b; }                                                               \
    LOCKSTEP_PTX(mul_lo_##t, T)(T a, T b) { return a * b; }                                                            \
    LOCKSTEP_PTX(mul_hi_##t, T)(T a, T b) { return high(a, b); }                                                       \
    LOCKSTEP_PTX(mad_lo_##t, T)(T a, T b, T c) { return a * b + c; }                                                   \
    LOCKSTEP_PTX(mad_hi_##t, T)(T a, T b, T c) { return high(a, b) + c; }
LOCKSTEP_PTX_INTEGERS(s32, int, __mulhi)
LOCKSTEP_PTX_INTEGERS(u32, unsigned int, __umulhi)
LOCKSTEP_PTX_INTEGERS(s64, long long, __mul64hi)
LOCKSTEP_PTX_INTEGERS(u64, unsigned long long, __umul64hi)

#define LOCKSTEP_PTX_WIDE(t, T, Wide)                                                                                  \
    LOCKSTEP_PTX(mul_wide_##t, Wide)(T a, T b) { return (Wide)a * (Wide)b; }                                           \
    LOCKSTEP_PTX(mad_wide_##t, Wide)(T a, T b, Wide c) { return (Wide)a * (Wide)b + c; }
LOCKSTEP_PTX_WIDE(s16, short, int)
LOCKSTEP_PTX_WIDE(u16, unsigned short, unsigned int)
LOCKSTEP_PTX_WIDE(s32, int, long long)
LOCKSTEP_PTX_WIDE(u32, unsigned int, unsigned long long)

#define LOCKSTEP_PTX_SIGNED(t, T)                                                                                      \
    LOCKSTEP_PTX(abs_##t, T)(T a) { return abs(a); }                                                                   \
    LOCKSTEP_PTX(neg_##t, T)(T a) { return -a; }
LOCKSTEP_PTX_SIGNED(s32, int)
LOCKSTEP_PTX_SIGNED(s64, long long)
LOCKSTEP_PTX_SIGNED(f32, float)
LOCKSTEP_PTX_SIGNED(f64, double)

LOCKSTEP_PTX(vabsdiff4_add_u32_u32_u32, unsigned int)(unsigned int a, unsigned int b, unsigned int c) {
    return __vsadu4(a, b) + c;
}

// A shift by as many bits as there are, or more, leaves none, or those of the sign.
#define LOCKSTEP_PTX_BITS(t, T, bits)                                                                                  \
    LOCKSTEP_PTX(and_##t, T)(T a, T b) { return a & b; }                                                               \
    LOCKSTEP_PTX(or_##t, T)(T a, T b) { return a | b; }                                                                \
    LOCKSTEP_PTX(xor_##t, T)(T a, T b) { return a ^ b; }                                                               \
    LOCKSTEP_PTX(not_##t, T)(T a) { return ~a; }                                                                       \
    LOCKSTEP_PTX(shl_##t, T)(T a, unsigned int n) { return n < bits ? a << n : 0; }                                    \
    LOCKSTEP_PTX(shr_##t, T)(T a, unsigned int n) { return n < bits ? a >> n : 0; }
LOCKSTEP_PTX_BITS(b32, unsigned int, 32)
LOCKSTEP_PTX_BITS(b64, unsigned long long, 64)
LOCKSTEP_PTX(and_pred, bool)(bool a, bool b) { return a && b; }
LOCKSTEP_PTX(or_pred, bool)(bool a, bool b) { return a || b; }
LOCKSTEP_PTX(xor_pred, bool)(bool a, bool b) { return a != b; }
LOCKSTEP_PTX(not_pred, bool)(bool a) { return !a; }
LOCKSTEP_PTX(shr_u32, unsigned int)(unsigned int a, unsigned int n) { return n < 32 ? a >> n : 0; }
LOCKSTEP_PTX(shr_u64, unsigned long long)(unsigned long long a, unsigned int n) { return n < 64 ? a >> n : 0; }
LOCKSTEP_PTX(shr_s32, int)(int a, unsigned int n) { return a >> (n < 32 ? n : 31); }
LOCKSTEP_PTX(shr_s64, long long)(long long a, unsigned int n) { return a >> (n < 64 ? n : 63); }

LOCKSTEP_PTX(popc_b32, unsigned int)(unsigned int a) { return __popc(a); }
LOCKSTEP_PTX(popc_b64, unsigned int)(unsigned long long a) { return __popcll(a); }
LOCKSTEP_PTX(clz_b32, unsigned int)(unsigned int a) { return __clz((int)a); }
LOCKSTEP_PTX(clz_b64, unsigned int)(unsigned long long a) { return __clzll((long long)a); }
LOCKSTEP_PTX(brev_b32, unsigned int)(unsigned int a) { return __brev(a); }
LOCKSTEP_PTX(brev_b64, unsigned long long)(unsigned long long a) { return __brevll(a); }
LOCKSTEP_PTX(bfind_u32, unsigned int)(unsigned int a) { return 31 - __clz((int)a); }
LOCKSTEP_PTX(bfind_u64, unsigned int)(unsigned long long a) { return 63 - __clzll((long long)a); }
LOCKSTEP_PTX(bfind_s32, unsigned int)(int a) { return 31 - __clz(a < 0 ? ~a : a); }
LOCKSTEP_PTX(prmt_b32, unsigned int)(unsigned int a, unsigned int b, unsigned int how) {
    return __byte_perm(a, b, how);
}
LOCKSTEP_PTX(lop3_b32, unsigned int)(unsigned int a, unsigned int b, unsigned int c, unsigned int table) {
    unsigned int result = 0;
    if (table & 0x01) result |= ~a & ~b & ~c;
    if (table & 0x02) result |= ~a & ~b & c;
    if (table & 0x04) result |= ~a & b & ~c;
    if (table & 0x08) result |= ~a & b & c;
    if (table & 0x10) result |= a & ~b & ~c;
    if (table & 0x20) result |= a & ~b & c;
    if (table & 0x40) result |= a & b & ~c;
    if (table & 0x80) result |= a & b & c;
    return result;
}
// Only the low byte of a place and of a length counts; what lies beyond the word is the sign's, or zero.
#define LOCKSTEP_PTX_FIELDS(t, T, Unsigned, bits)                                                                      \
    LOCKSTEP_PTX(bfe_##t, T)(T a, unsigned int place, unsigned int length) {                                           \
        place &= 0xff;                                                                                                 \
        length &= 0xff;                                                                                                \
        if (length == 0) return 0;                                                                                     \
        unsigned int last = min(place + length - 1, bits - 1u);                                                        \
        T shifted = a >> min(place, bits - 1u);                                                                        \
        if ((T) - 1 < (T)0) {                                                                                          \
            T sign = a >> last & 1;                                                                                    \
            if (place >= bits) return -sign;                                                                           \
            return length >= bits - place ? shifted                                                                    \
                                          : (shifted & (((T)1 << length) - 1)) | (sign ? -((T)1 << length) : 0);       \
        }                                                                                                              \
        if (place >= bits) return 0;                                                                                   \
        return length >= bits ? shifted : shifted & (((T)1 << length) - 1);                                            \
    }
LOCKSTEP_PTX_FIELDS(u32, unsigned int, unsigned int, 32)
LOCKSTEP_PTX_FIELDS(s32, int, unsigned int, 32)
LOCKSTEP_PTX_FIELDS(u64, unsigned long long, unsigned long long, 64)
LOCKSTEP_PTX_FIELDS(s64, long long, unsigned long long, 64)
#define LOCKSTEP_PTX_INSERTIONS(t, T, bits)                                                                            \
    LOCKSTEP_PTX(bfi_##t, T)(T a, T b, unsigned int place, unsigned int length) {                                      \
        place &= 0xff;                                                                                                 \
        length &= 0xff;                                                                                                \
        if (place >= bits) return b;                                                                                   \
        T mask = (length >= bits ? (T) - 1 : ((T)1 << length) - 1) << place;                                           \
        return (b & ~mask) | ((a << place) & mask);                                                                    \
    }
LOCKSTEP_PTX_INSERTIONS(b32, unsigned int, 32)
LOCKSTEP_PTX_INSERTIONS(b64, unsigned long long, 64)
LOCKSTEP_PTX(shf_l_wrap_b32, unsigned int)(unsigned int low, unsigned int high, unsigned int n) {
    return __funnelshift_l(low, high, n);
}
LOCKSTEP_PTX(shf_r_wrap_b32, unsigned int)(unsigned int low, unsigned int high, unsigned int n) {
    return __funnelshift_r(low, high, n);
}
LOCKSTEP_PTX(shf_l_clamp_b32, unsigned int)(unsigned int low, unsigned int high, unsigned int n) {
    return n >= 32 ? low : __funnelshift_l(low, high, n);
}
LOCKSTEP_PTX(shf_r_clamp_b32, unsigned int)(unsigned int low, unsigned int high, unsigned int n) {
    return n >= 32 ? high : __funnelshift_r(low, high, n);
}
LOCKSTEP_PTX(sad_s32, unsigned int)(int a, int b, unsigned int c) { return __sad(a, b, c); }
LOCKSTEP_PTX(sad_u32, unsigned int)(unsigned int a, unsigned int b, unsigned int c) { return __usad(a, b, c); }
LOCKSTEP_PTX(dp4a_s32_s32, int)(int a, int b, int c) { return __dp4a(a, b, c); }
LOCKSTEP_PTX(dp4a_u32_u32, unsigned int)(unsigned int a, unsigned int b, unsigned int c) { return __dp4a(a, b, c); }

// With a carry, which the front end keeps: what comes of it, and the next one.
#define LOCKSTEP_PTX_CARRY(t, T)                                                                                       \
    LOCKSTEP_PTX(addc_##t, T)(T a, T b, unsigned int carry) { return a + b + carry; }                                  \
    LOCKSTEP_PTX(addc_carry_##t, unsigned int)(T a, T b, unsigned int carry) {                                         \
        return (T)(a + b) < a || (T)(a + b + carry) < (T)(a + b);                                                      \
    }                                                                                                                  \
    LOCKSTEP_PTX(subc_##t, T)(T a, T b, unsigned int carry) { return a - b - carry; }                                  \
    LOCKSTEP_PTX(subc_carry_##t, unsigned int)(T a, T b, unsigned int carry) { return a < b || (T)(a - b) < carry; }
LOCKSTEP_PTX_CARRY(u32, unsigned int)
LOCKSTEP_PTX_CARRY(u64, unsigned long long)

#define LOCKSTEP_PTX_FLOATS(t, T, f)                                                                                   \
    LOCKSTEP_PTX(mul_##t, T)(T a, T b) { return a * b; }                                                               \
    LOCKSTEP_PTX(fma_##t, T)(T a, T b, T c) { return fma(a, b, c); }                                                   \
    LOCKSTEP_PTX(mad_##t, T)(T a, T b, T c) { return fma(a, b, c); }                                                   \
    LOCKSTEP_PTX(sqrt_##t, T)(T a) { return sqrt(a); }                                                                 \
    LOCKSTEP_PTX(rcp_##t, T)(T a) { return 1 / a; }                                                                    \
    LOCKSTEP_PTX(rsqrt_##t, T)(T a) { return rsqrt(a); }                                                               \
    LOCKSTEP_PTX(copysign_##t, T)(T a, T b) { return copysign(b, a); }
LOCKSTEP_PTX_FLOATS(f32, float, f)
LOCKSTEP_PTX_FLOATS(f64, double, )
LOCKSTEP_PTX(ex2_f32, float)(float a) { return exp2f(a); }
LOCKSTEP_PTX(lg2_f32, float)(float a) { return log2f(a); }
LOCKSTEP_PTX(sin_f32, float)(float a) { return sinf(a); }
LOCKSTEP_PTX(cos_f32, float)(float a) { return cosf(a); }
LOCKSTEP_PTX(tanh_f32, float)(float a) { return tanhf(a); }

// What registers hold of the operands of a product of tiles, and what they take of its results.
LOCKSTEP_PTX(half_at, float)(unsigned int a, unsigned int place) {
    return __lockstep_from_half((unsigned short)(a >> 16 * place));
}
LOCKSTEP_PTX(bf16_at, float)(unsigned int a, unsigned int place) {
    return __uint_as_float(place ? a & 0xffff0000u : a << 16);
}
LOCKSTEP_PTX(tf32_at, float)(unsigned int a, unsigned int) { return __lockstep_tf32(__uint_as_float(a)); }
LOCKSTEP_PTX(s8_at, int)(unsigned int a, unsigned int place) { return (signed char)(a >> 8 * place); }
LOCKSTEP_PTX(u8_at, int)(unsigned int a, unsigned int place) { return (unsigned char)(a >> 8 * place); }
LOCKSTEP_PTX(two_halves, unsigned int)(float low, float high) {
    return (unsigned int)__lockstep_to_half(high) << 16 | __lockstep_to_half(low);
}
LOCKSTEP_PTX(to_tf32, unsigned int)(float a) { return __float_as_uint(__lockstep_to_tf32(a)); }

LOCKSTEP_API LOCKSTEP_PTX(laneid, unsigned int)() {
    return ((threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x) & 31;
}
LOCKSTEP_PTX(warpid, unsigned int)() {
    return ((threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x) >> 5;
}
LOCKSTEP_PTX(nwarpid, unsigned int)() { return (blockDim.x * blockDim.y * blockDim.z + 31) >> 5; }
LOCKSTEP_PTX(lanemask_eq, unsigned int)() { return 1u << __lockstep_ptx_laneid(); }
LOCKSTEP_PTX(lanemask_lt, unsigned int)() { return __lockstep_ptx_lanemask_eq() - 1; }
LOCKSTEP_PTX(lanemask_le, unsigned int)() { return __lockstep_ptx_lanemask_lt() | __lockstep_ptx_lanemask_eq(); }
LOCKSTEP_PTX(lanemask_gt, unsigned int)() { return ~__lockstep_ptx_lanemask_le(); }
LOCKSTEP_PTX(lanemask_ge, unsigned int)() { return ~__lockstep_ptx_lanemask_lt(); }

// Of the 8 rows of a matrix of halves lane 8 * matrix + i of a warp gives the address of row i; a lane has two elements
// of a row, or, transposed, of a column.
__device__ inline unsigned char *__lockstep_row(unsigned long long own, unsigned int matrix, unsigned int row) {
    unsigned long long address = __shfl_sync(0xffffffffu, own, 8 * matrix + row);
    __lockstep_assert(address % 16 == 0, "rows of ldmatrix and stmatrix begin at multiples of 16 bytes");
    return (unsigned char *)address;
}
__device__ LOCKSTEP_PTX(ldmatrix, unsigned int)(unsigned long long own, unsigned int matrix) {
    unsigned int lane = __lockstep_ptx_laneid();
    return ((const unsigned int *)__lockstep_row(own, matrix, lane / 4))[lane % 4];
}
__device__ LOCKSTEP_PTX(ldmatrix_trans, unsigned int)(unsigned long long own, unsigned int matrix) {
    unsigned int lane = __lockstep_ptx_laneid();
    const unsigned short *low = (const unsigned short *)__lockstep_row(own, matrix, lane % 4 * 2);
    const unsigned short *high = (const unsigned short *)__lockstep_row(own, matrix, lane % 4 * 2 + 1);
    return (unsigned int)high[lane / 4] << 16 | low[lane / 4];
}
__device__ LOCKSTEP_PTX(stmatrix, void)(unsigned long long own, unsigned int matrix, unsigned int value) {
    unsigned int lane = __lockstep_ptx_laneid();
    ((unsigned int *)__lockstep_row(own, matrix, lane / 4))[lane % 4] = value;
}
__device__ LOCKSTEP_PTX(stmatrix_trans, void)(unsigned long long own, unsigned int matrix, unsigned int value) {
    unsigned int lane = __lockstep_ptx_laneid();
    unsigned short *low = (unsigned short *)__lockstep_row(own, matrix, lane % 4 * 2);
    unsigned short *high = (unsigned short *)__lockstep_row(own, matrix, lane % 4 * 2 + 1);
    low[lane / 4] = (unsigned short)value;
    high[lane / 4] = (unsigned short)(value >> 16);
}
// Four warps multiply tiles in shared memory. A descriptor says where one begins, how its lines lie, which are rows of A
// or columns of B, and how far apart groups of 8 are, in 16 bytes: within rows of 128, 64 or 32 bytes parts of 16 change
// places by the address's own bits. Turned, it is along lines that neighbors lie.
LOCKSTEP_PTX(warpgroup, void)() {
    unsigned int threads = blockDim.x * blockDim.y * blockDim.z;
    __lockstep_assert(__lockstep_ptx_warpid() / 4 * 128 + 128 <= threads, "wgmma has whole warpgroups of 128 threads");
}
LOCKSTEP_PTX(wgmma_tile, void)(unsigned long long tile) {
    __lockstep_assert((tile >> 49 & 7) == 0, "the places of a tile change by the bits of addresses alone");
}
// Not turned, a lane's first 4 bytes of a line are in the first 8 lines, or in those that its warp's rows begin with;
// others are whole strides away, and in the second half of 32 bytes.
LOCKSTEP_PTX(wgmma_bits, unsigned int)(unsigned long long tile) {
    return tile >> 62 ? 8 - (unsigned int)(tile >> 62) : 4;
}
LOCKSTEP_PTX(wgmma_changing, unsigned int)(unsigned long long tile) {
    return tile >> 62 ? (16u >> (unsigned int)(tile >> 62)) - 1 : 0;
}
LOCKSTEP_PTX(wgmma_leading, unsigned int)(unsigned long long tile) { return (unsigned int)(tile >> 16 & 0x3fff) * 16; }
LOCKSTEP_PTX(wgmma_stride, unsigned int)(unsigned long long tile) { return (unsigned int)(tile >> 32 & 0x3fff) * 16; }
LOCKSTEP_PTX(wgmma_far, unsigned int)(unsigned long long tile) {
    return tile >> 62 ? 16 : __lockstep_ptx_wgmma_leading(tile);
}
LOCKSTEP_PTX(wgmma_first_b, unsigned int)(unsigned long long tile) {
    unsigned int lane = __lockstep_ptx_laneid();
    return (unsigned int)(tile & 0x3fff) * 16 + (lane / 4 << __lockstep_ptx_wgmma_bits(tile)) + lane % 4 * 4;
}
LOCKSTEP_PTX(wgmma_first_a, unsigned int)(unsigned long long tile) {
    return __lockstep_ptx_wgmma_first_b(tile) + __lockstep_ptx_warpid() % 4 * 2 * __lockstep_ptx_wgmma_stride(tile);
}
// Turned, what a lane has of a column of A, or of a row of B, is two bytes for each.
inline const unsigned short *__lockstep_wgmma_turned(unsigned long long tile, unsigned int line, unsigned int half,
                                                     unsigned int place) {
    unsigned int bits = __lockstep_ptx_wgmma_bits(tile), along = line * 2;
    unsigned int across = half * 8 + __lockstep_ptx_laneid() % 4 * 2 + place;
    unsigned int leading = __lockstep_ptx_wgmma_leading(tile), stride = __lockstep_ptx_wgmma_stride(tile);
    bool plain = tile >> 62 == 0;
    unsigned int at = (unsigned int)(tile & 0x3fff) * 16 + (along >> bits) * (plain ? stride : leading) +
                      (along & (1u << bits) - 1) + across / 8 * (plain ? leading : stride) + (across % 8 << bits);
    at ^= (at >> 7 & __lockstep_ptx_wgmma_changing(tile)) << 4;
    return (const unsigned short *)__cvta_shared_to_generic(at);
}
LOCKSTEP_PTX(wgmma_a_turned, const unsigned short *)(unsigned long long tile, unsigned int part, unsigned int half,
                                                     unsigned int place) {
    unsigned int line = __lockstep_ptx_warpid() % 4 * 16 + part * 8 + __lockstep_ptx_laneid() / 4;
    return __lockstep_wgmma_turned(tile, line, half, place);
}
LOCKSTEP_PTX(wgmma_b_turned, const unsigned short *)(unsigned long long tile, unsigned int eight, unsigned int half,
                                                     unsigned int place) {
    return __lockstep_wgmma_turned(tile, eight * 8 + __lockstep_ptx_laneid() / 4, half, place);
}
// As cuda.h declares it.
struct __align__(64) CUtensorMap {
    unsigned long long opaque[16];
};
// Copy a box of rows of 128 bytes. A tensor map begins with the matrix's address, rows, bytes per row, pitch in bytes,
// bytes per element, and the box's rows.
LOCKSTEP_PTX(tensor_copy, void)(void *to, const unsigned long long *map, int x, int y, void *barrier) {
    unsigned int at = (unsigned int)__cvta_generic_to_shared(to);
    long long first = x * (long long)map[4];
    __lockstep_assert(map[5] > 0, "the bulk tensor copy has a tensor map");
    __lockstep_assert(at % 128 == 0, "a box in shared memory is aligned to 128 bytes");
    __lockstep_assert(first % 16 == 0, "the simulator supports boxes that begin at a multiple of 16 bytes in a row");
    __lockstep_tensor_copy(to, (const void *)map[0], (long long)map[1], (long long)map[2], (long long)map[3], first, y,
                           (long long)map[5], at / 128, barrier);
}
// A cluster's blocks are those of a box of the grid.
LOCKSTEP_API void __lockstep_cluster_arrive();
LOCKSTEP_API void __lockstep_cluster_wait();
LOCKSTEP_API void *__lockstep_cluster_map(void *pointer, unsigned int rank);
// Copy a box to the same place in each block whose rank is set in the mask, and signal the barrier of each.
LOCKSTEP_PTX(tensor_copy_multicast, void)(void *to, const unsigned long long *map, int x, int y, void *barrier,
                                          unsigned short blocks) {
    for (unsigned int rank = 0; blocks >> rank; ++rank)
        if (blocks >> rank & 1)
            __lockstep_ptx_tensor_copy(__lockstep_cluster_map(to, rank), map, x, y,
                                       __lockstep_cluster_map(barrier, rank));
}
#define LOCKSTEP_PTX_CLUSTER(axis)                                                                                     \
    LOCKSTEP_PTX(cluster_nctaid_##axis, unsigned int)() { return __lockstep_clusterDim.axis; }                         \
    LOCKSTEP_API LOCKSTEP_PTX(cluster_ctaid_##axis, unsigned int)() {                                                  \
        return blockIdx.axis % __lockstep_clusterDim.axis;                                                             \
    }                                                                                                                  \
    LOCKSTEP_PTX(clusterid_##axis, unsigned int)() { return blockIdx.axis / __lockstep_clusterDim.axis; }              \
    LOCKSTEP_PTX(nclusterid_##axis, unsigned int)() { return gridDim.axis / __lockstep_clusterDim.axis; }
LOCKSTEP_PTX_CLUSTER(x)
LOCKSTEP_PTX_CLUSTER(y)
LOCKSTEP_PTX_CLUSTER(z)
LOCKSTEP_API LOCKSTEP_PTX(cluster_nctarank, unsigned int)() {
    return __lockstep_clusterDim.x * __lockstep_clusterDim.y * __lockstep_clusterDim.z;
}
LOCKSTEP_API LOCKSTEP_PTX(cluster_ctarank, unsigned int)() {
    return (__lockstep_ptx_cluster_ctaid_z() * __lockstep_clusterDim.y + __lockstep_ptx_cluster_ctaid_y()) *
               __lockstep_clusterDim.x +
           __lockstep_ptx_cluster_ctaid_x();
}
// Blocks are dealt out to the multiprocessors in turn.
LOCKSTEP_PTX(nsmid, unsigned int)() { return 132; }
LOCKSTEP_PTX(smid, unsigned int)() {
    return ((blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x) % __lockstep_ptx_nsmid();
}
