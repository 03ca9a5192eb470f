// Matrix product by Hopper's warpgroup instructions, which read tiles from shared memory: sizes, alpha and beta as in
// matmul.cu. A float is split into two float16, and three float16 products replace one, as in matmul_halves.cu, which
// also computes the largest values. For float16 input one product is enough. Requires compute capability 9.0, compiled
// for sm_90a.
//
// variant             idea                                               what still limits it
// matmul_split_tiles  two float16 per float, in tile order               as many bytes written as read
// matmul_wgmma        warpgroups multiply tiles in shared memory         three products instead of one
//
// for float16         idea                                               what still limits it
// matmul_whole_rows   pad rows for 16-byte copies                        as many bytes written as read
// matmul_fp16         copies during products, in the rows' layout        the rate and power of tensor cores
// matmul_fp16_add     for few elements: sum over parts of k              a second launch

#include <cuda_fp16.h>
#include <cuda_pipeline_primitives.h>

#include "matmul_finish.cuh"
#include "matmul_scale.cuh"

// A block computes ROWS x COLUMNS elements, a warpgroup 64 rows of them. It has STAGES pipeline stages in shared
// memory. BLOCKS is the number of resident blocks per multiprocessor of matmul_fp16, which has at least three stages.
#ifndef ROWS
#define ROWS 64
#define COLUMNS 16
#define STAGES 3
#endif
#ifndef BLOCKS
#define BLOCKS 1
#endif

// A step has as many elements along k as 128 bytes of a row of A or a column of B; a tensor core instruction uses a
// quarter of them. A and B have two consecutive tiles each, for the first and second parts of the factors.
#define DEPTH 64
#define AT_ONCE 16
#define A_TILE (ROWS * DEPTH)
#define B_TILE (COLUMNS * DEPTH)
#define STAGE (2 * (A_TILE + B_TILE))

// For matmul_fp16: rows are copied in parts of 16 bytes, eight per line of shared memory. A line of B's tile is a row,
// and a wider tile has several lines next to each other. Two stages are being multiplied, the others filled.
#define PART 8
#define LINE (8 * PART)
#define LINES_ACROSS ((COLUMNS + LINE - 1) / LINE)
#define FP16_STAGE (A_TILE + LINES_ACROSS * DEPTH * LINE)
#define AHEAD (STAGES - 2)

// Warps that multiply, in warpgroups, followed by one that copies.
#define MULTIPLYING (ROWS / 16)
#define THREADS (MULTIPLYING * 32 + 32)
// In matmul_fp16 the multiplying warps copy too, half of them at a time.
#define FP16_THREADS (MULTIPLYING * 32)
#define COPYING (FP16_THREADS / 2)

// Rows of tiles that run at the same time and read the same columns of B.
#define BAND 8

__device__ unsigned int pair_of(__half low, __half high) {
    return static_cast<unsigned int>(__half_as_ushort(high)) << 16 | __half_as_ushort(low);
}

// Idea: tiles are stored in the layout that tensor cores require, so that whole tiles can be copied unchanged. A line
// is a row of A or a column of B; its eight parts of 16 bytes are swizzled by the line's number, so that the same part
// of eight lines is in different banks. Elements outside are zero.
extern "C" __global__ void __launch_bounds__(256)
    matmul_split_tiles(const float *matrix, const unsigned int *largest, __half *tiles, int rows, int columns,
                       int by_rows) {
    int in_tile = by_rows ? ROWS : COLUMNS;
    int lines = by_rows ? rows : columns;
    int depth = by_rows ? columns : rows;
    // Lanes read neighbors, which are in one line or in as many lines.
    int part = by_rows ? threadIdx.x % 8 : threadIdx.x / 32;
    int line = blockIdx.y * 32 + (by_rows ? threadIdx.x / 8 : threadIdx.x % 32);
    if (line >= (lines + in_tile - 1) / in_tile * in_tile) return;
    // phase: split
    int scale = line < lines ? scale_of(largest[line]) : 0;
    unsigned int first[4], second[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        float values[2];
        for (int j = 0; j < 2; ++j) {
            int deep = blockIdx.x * DEPTH + part * 8 + i * 2 + j;
            bool inside = line < lines && deep < depth;
            float value = inside ? matrix[by_rows ? line * columns + deep : deep * columns + line] : 0.0f;
            values[j] = scaled(value, scale);
        }
        __half low = __float2half_rn(values[0]);
        __half high = __float2half_rn(values[1]);
        first[i] = pair_of(low, high);
        second[i] =
            pair_of(__float2half_rn(values[0] - __half2float(low)), __float2half_rn(values[1] - __half2float(high)));
    }
    size_t tile = (size_t)(line / in_tile) * gridDim.x + blockIdx.x;
    int place = line % in_tile * DEPTH + (part ^ line % 8) * 8;
    __half *to = tiles + tile * (2 * in_tile * DEPTH) + place;
    *reinterpret_cast<uint4 *>(to) = make_uint4(first[0], first[1], first[2], first[3]);
    *reinterpret_cast<uint4 *>(to + in_tile * DEPTH) = make_uint4(second[0], second[1], second[2], second[3]);
}

__device__ unsigned int shared_address(const void *pointer) {
    return static_cast<unsigned int>(__cvta_generic_to_shared(pointer));
}

// A barrier's phase ends when all expected arrivals and all expected bytes have arrived.
__device__ void make_barrier(unsigned int barrier, int arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}

__device__ void arrive(unsigned int barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

__device__ void arrive_and_expect(unsigned int barrier, int bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}

// Phases alternate between even and odd; the one before the first is odd, and complete.
__device__ void wait(unsigned int barrier, int parity) {
    asm volatile(
        "{ .reg .pred over;\n"
        "again: mbarrier.try_wait.parity.shared::cta.b64 over, [%0], %1;\n"
        "@over bra go_on;\n"
        "bra again;\n"
        "go_on: }" ::"r"(barrier),
        "r"(parity)
        : "memory");
}

// Copy a tile by a bulk copy, which signals the barrier on completion.
__device__ void copy(unsigned int to, const __half *from, int bytes, unsigned int barrier) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
                 "l"(from), "r"(bytes), "r"(barrier)
                 : "memory");
}

// The descriptor of a tile for tensor cores: its address, the 128-byte swizzle, and the distance of eight lines, 1024
// bytes. If k runs across the lines, a tile of more than one 128-byte line consists of several neighboring tiles,
// `apart` bytes from each other. All in units of 16 bytes.
__device__ unsigned long long tile_at(unsigned int address, int apart = 16) {
    return 1ull << 62 | 1024ull / 16 << 32 | static_cast<unsigned long long>(apart / 16) << 16 |
           (address & 0x3ffff) / 16;
}

#define SUMS_4(i) "+f"(sums[i]), "+f"(sums[i + 1]), "+f"(sums[i + 2]), "+f"(sums[i + 3])
#define SUMS_16(i) SUMS_4(i), SUMS_4(i + 4), SUMS_4(i + 8), SUMS_4(i + 12)
#define SUMS_64(i) SUMS_16(i), SUMS_16(i + 16), SUMS_16(i + 32), SUMS_16(i + 48)

// Add the product of 64 x 16 and 16 x COLUMNS float16 elements to sums, or set them: 4 of 8 columns per
// lane.
template <int B_TURNED>
__device__ void multiply_add(float (&sums)[COLUMNS / 2], unsigned long long a, unsigned long long b, int adds) {
#if COLUMNS == 128
    asm volatile(
        "{ .reg .pred adds; setp.ne.b32 adds, %66, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, "
        "%20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, "
        "%38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, "
        "%56, %57, %58, %59, %60, %61, %62, %63}, %64, %65, adds, 1, 1, 0, %67; }"
        : SUMS_64(0)
        : "l"(a), "l"(b), "r"(adds), "n"(B_TURNED));
#elif COLUMNS == 64
    asm volatile(
        "{ .reg .pred adds; setp.ne.b32 adds, %34, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, "
        "%20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, %32, %33, adds, 1, 1, 0, %35; }"
        : SUMS_16(0), SUMS_16(16)
        : "l"(a), "l"(b), "r"(adds), "n"(B_TURNED));
#elif COLUMNS == 32
    asm volatile(
        "{ .reg .pred adds; setp.ne.b32 adds, %18, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n32k16.f32.f16.f16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15}, %16, %17, adds, 1, 1, 0, %19; }"
        : SUMS_16(0)
        : "l"(a), "l"(b), "r"(adds), "n"(B_TURNED));
#elif COLUMNS == 16
    asm volatile(
        "{ .reg .pred adds; setp.ne.b32 adds, %10, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7}, %8, %9, adds, 1, 1, 0, %11; }"
        : SUMS_4(0), SUMS_4(4)
        : "l"(a), "l"(b), "r"(adds), "n"(B_TURNED));
#else
    asm volatile(
        "{ .reg .pred adds; setp.ne.b32 adds, %6, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 "
        "{%0, %1, %2, %3}, %4, %5, adds, 1, 1, 0, %7; }"
        : SUMS_4(0)
        : "l"(a), "l"(b), "r"(adds), "n"(B_TURNED));
#endif
}

// Tiles of C are ordered in bands: top to bottom first, then left to right.
__device__ void place_of(int tile, int down, int across, int &y, int &x) {
    int first = tile / (BAND * across) * BAND;
    int rows = min(BAND, down - first);
    int in_band = tile - first * across;
    y = (first + in_band % rows) * ROWS;
    x = in_band / rows * COLUMNS;
}

// Idea: one thread issues bulk copies of whole tiles into free stages, and warpgroups multiply completed stages
// directly from shared memory; no data passes through registers. The copying thread runs ahead, into the next tile of C
// even while this one is written. Tensor cores truncate sums where float32 arithmetic rounds; so they sum only one
// step, its small products first, and float32 additions sum the steps. Limit: three products instead of one, at the
// rate of tensor cores.
extern "C" __global__ void __launch_bounds__(THREADS, 1)
    matmul_wgmma(const __half *a, const __half *b, const unsigned int *a_largest, const unsigned int *b_largest,
                 float *c, int m, int n, int k, float alpha, float beta) {
    extern __shared__ __align__(1024) __half stages[];
    // Barriers for full and free stages.
    unsigned int full = shared_address(stages + STAGES * STAGE);
    unsigned int empty = full + STAGES * 8;
    int down = (m + ROWS - 1) / ROWS;
    int across = (n + COLUMNS - 1) / COLUMNS;
    int steps = (k + DEPTH - 1) / DEPTH;
    int warp = threadIdx.x / 32;
    int lane = threadIdx.x % 32;
    if (threadIdx.x == 0) {
        for (int i = 0; i < STAGES; ++i) {
            make_barrier(full + i * 8, 1);
            make_barrier(empty + i * 8, MULTIPLYING);
        }
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    }
    __syncthreads();

    int stage = 0;
    int parity = 0;
    if (warp == MULTIPLYING) {
        if (lane > 0) return;
        for (int tile = blockIdx.x; tile < down * across; tile += gridDim.x) {
            int y, x;
            place_of(tile, down, across, y, x);
            const __half *a_tile = a + (size_t)(y / ROWS) * steps * (2 * A_TILE);
            const __half *b_tile = b + (size_t)(x / COLUMNS) * steps * (2 * B_TILE);
            for (int ahead = 0; ahead < steps; ++ahead) {
                // phase: copy tiles of step {ahead}
                unsigned int to = shared_address(stages + stage * STAGE);
                wait(empty + stage * 8, parity ^ 1);
                arrive_and_expect(full + stage * 8, STAGE * 2);
                copy(to, a_tile + (size_t)ahead * (2 * A_TILE), A_TILE * 4, full + stage * 8);
                copy(to + A_TILE * 4, b_tile + (size_t)ahead * (2 * B_TILE), B_TILE * 4, full + stage * 8);
                stage = stage + 1 == STAGES ? 0 : stage + 1;
                parity ^= stage == 0;
            }
        }
        return;
    }
    for (int tile = blockIdx.x; tile < down * across; tile += gridDim.x) {
        int y, x;
        place_of(tile, down, across, y, x);
        float sums[COLUMNS / 2] = {};
        for (int step = 0; step < steps; ++step) {
            // phase: multiply tiles of step {step}
            unsigned int at = shared_address(stages + stage * STAGE);
            unsigned int a_first = at + warp / 4 * (64 * DEPTH * 2);
            unsigned int a_second = a_first + A_TILE * 2;
            unsigned int b_first = at + A_TILE * 4;
            unsigned int b_second = b_first + B_TILE * 2;
            float of_step[COLUMNS / 2];
            wait(full + stage * 8, parity);
            asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
            for (int deep = 0; deep < DEPTH * 2; deep += AT_ONCE * 2) {
                multiply_add<0>(of_step, tile_at(a_second + deep), tile_at(b_first + deep), deep > 0);
                multiply_add<0>(of_step, tile_at(a_first + deep), tile_at(b_second + deep), 1);
            }
#pragma unroll
            for (int deep = 0; deep < DEPTH * 2; deep += AT_ONCE * 2)
                multiply_add<0>(of_step, tile_at(a_first + deep), tile_at(b_first + deep), 1);
            asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
            asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
            if (lane == 0) arrive(empty + stage * 8);
#pragma unroll
            for (int i = 0; i < COLUMNS / 2; ++i) sums[i] += of_step[i];
            stage = stage + 1 == STAGES ? 0 : stage + 1;
            parity ^= stage == 0;
        }
        // phase: write
#pragma unroll
        for (int i = 0; i < COLUMNS / 2; ++i) {
            int row = y + warp * 16 + i / 2 % 2 * 8 + lane / 4;
            int column = x + i / 4 * 8 + lane % 4 * 2 + i % 2;
            if (row >= m || column >= n) continue;
            int scale = scale_of(a_largest[row]) + scale_of(b_largest[column]);
            finish(c, row * n + column, scaled(sums[i], -scale), alpha, beta);
        }
    }
}

// Idea: rows are copied to a pitch of whole 16-byte parts, padded with zeros: one part per thread. Limit: as many bytes
// written as read, which are then read again.
extern "C" __global__ void matmul_whole_rows(const __half *matrix, __half *whole, int rows, int columns, int parts) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= rows * parts) return;
    int column = i % parts * PART;
    const __half *from = matrix + i / parts * columns + column;
    unsigned int pairs[PART / 2];
#pragma unroll
    for (int j = 0; j < PART; j += 2)
        pairs[j / 2] = pair_of(column + j < columns ? from[j] : __half(0.0f),
                               column + j + 1 < columns ? from[j + 1] : __half(0.0f));
    *reinterpret_cast<uint4 *>(whole + i * PART) = make_uint4(pairs[0], pairs[1], pairs[2], pairs[3]);
}

// Start an asynchronous copy of a part of a row, or of zeros outside.
__device__ void copy_part(unsigned int to, const __half *from, bool inside) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(inside ? 16 : 0) : "memory");
}

// Start asynchronous copies of a tile of LINES rows with PARTS parts each; `rows` and `columns` remain in the
// matrix. A line's parts are swizzled by the line's number, so that the same part of eight lines is in different
// banks.
template <int LINES, int PARTS>
__device__ void copy_rows(unsigned int tile, const __half *from, int pitch, int rows, int columns) {
    constexpr int AT_A_TIME = COPYING / PARTS;
    int part = threadIdx.x % PARTS;
    int row = threadIdx.x % COPYING / PARTS;
    from += row * pitch + part * PART;
    if (part * PART >= columns) rows = 0;
#pragma unroll
    for (int turn = 0; turn < LINES; turn += AT_A_TIME) {
        if (LINES % AT_A_TIME != 0 && row + turn >= LINES) break;
        bool inside = row + turn < rows;
        int place = part / 8 * (LINES * LINE) + (row + turn) * LINE + (part % 8 ^ (row + turn) % 8) * PART;
        copy_part(tile + place * 2, from, inside);
        from += AT_A_TIME * pitch;
    }
}

// The next step to copy: `deep` along k, of the tile of C at row `y` and column `x`; k begins at
// `first`.
struct Next {
    int tile, y, x, first, deep, stage, turn;
};

// The half of the block whose turn it is starts the copies of the next step, if there is one, and then advances to the
// step after it, possibly of the block's next tile of C.
__device__ void copy_next(Next &next, __half *stages, const __half *a, const __half *b, int m, int n, int k,
                          int a_pitch, int b_pitch, int down, int across) {
    if (next.tile < down * across) {
        if (next.turn == threadIdx.x / COPYING) {
            unsigned int stage = shared_address(stages + next.stage * FP16_STAGE);
            const __half *a_tile = a + (size_t)next.y * a_pitch + next.deep;
            const __half *b_tile = b + (size_t)next.deep * b_pitch + next.x;
            copy_rows<ROWS, DEPTH / PART>(stage, a_tile, a_pitch, m - next.y, k - next.deep);
            copy_rows<DEPTH, COLUMNS / PART>(stage + A_TILE * 2, b_tile, b_pitch, k - next.deep, n - next.x);
        }
        next.turn ^= 1;
        next.stage = next.stage + 1 == STAGES ? 0 : next.stage + 1;
        next.deep += DEPTH;
        if (next.deep >= k) {
            next.deep = next.first;
            next.tile += gridDim.x;
            place_of(next.tile, down, across, next.y, next.x);
        }
    }
    __pipeline_commit();
}

// Exchange registers with the lane whose number differs in `bit`: lanes with that bit send their first, the others
// their second. Applied for 1 and for 2, this transposes four registers of four lanes.
__device__ void exchange(unsigned int &first, unsigned int &second, int bit) {
    bool upper = threadIdx.x & bit;
    unsigned int taken = __shfl_xor_sync(0xffffffff, upper ? first : second, bit);
    if (upper)
        first = taken;
    else
        second = taken;
}

// Write a warp's 16 rows of C if rows are whole parts: four lanes have pairs of four neighboring parts, and exchange
// them so that each has a whole part.
__device__ void write_parts(__half *c, const float (&sums)[COLUMNS / 2], int y, int x, int m, int n, float alpha) {
    int lane = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i + 16 <= COLUMNS / 2; i += 16) {
#pragma unroll
        for (int below = 0; below < 4; below += 2) {
            unsigned int pairs[4];
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                const float *two = sums + i + j * 4 + below;
                __half2 rounded = __floats2half2_rn(alpha * two[0], alpha * two[1]);
                pairs[j] = *reinterpret_cast<unsigned int *>(&rounded);
            }
            exchange(pairs[0], pairs[1], 1);
            exchange(pairs[2], pairs[3], 1);
            exchange(pairs[0], pairs[2], 2);
            exchange(pairs[1], pairs[3], 2);
            int row = y + below * 4 + lane / 4;
            int column = x + i * 2 + lane % 4 * PART;
            if (row < m && column < n)
                *reinterpret_cast<uint4 *>(c + row * n + column) = make_uint4(pairs[0], pairs[1], pairs[2], pairs[3]);
        }
    }
}

// Write the rows element by element.
template <typename Element>
__device__ void write_elements(Element *c, const float (&sums)[COLUMNS / 2], int y, int x, int m, int n, float alpha,
                               float beta) {
    int lane = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < COLUMNS / 2; ++i) {
        int row = y + i / 2 % 2 * 8 + lane / 4;
        int column = x + i / 4 * 8 + lane % 4 * 2 + i % 2;
        if (row < m && column < n) finish(c, row * n + column, sums[i], alpha, beta);
    }
}

// Idea: the multiplying warps also copy: while tensor cores work on one step, they load the data of two steps later,
// possibly of their next tile of C. The halves of the block alternate: the fence that makes copies visible to tensor
// cores waits for all copies of a thread, so it must have no others in flight. Tiles keep the layout of rows, so B's k
// runs across lines, which tensor cores support by transposing. They sum all of k; the truncation error is smaller than
// that of rounding to float16. For few tiles, k is divided into gridDim.y parts, each with a separate matrix of float
// sums. Limit: the rate of tensor cores, and 16-byte copies.
extern "C" __global__ void __launch_bounds__(FP16_THREADS, BLOCKS)
    matmul_fp16(const __half *a, const __half *b, __half *c, float *parts, int m, int n, int k, int a_pitch,
                int b_pitch, float alpha, float beta) {
    extern __shared__ __align__(1024) __half stages[];
    int down = (m + ROWS - 1) / ROWS;
    int across = (n + COLUMNS - 1) / COLUMNS;
    int shares = DEPTH * gridDim.y;
    int share = (k + shares - 1) / shares * DEPTH;
    int first = min(blockIdx.y * share, k);
    k = min(k, first + share);
    int steps = (k - first + DEPTH - 1) / DEPTH;
    int warp = threadIdx.x / 32;
    // phase: copy the first tiles
    Next next = {static_cast<int>(blockIdx.x), 0, 0, first, first, 0, 0};
    place_of(next.tile, down, across, next.y, next.x);
    for (int i = 0; i < AHEAD; ++i) copy_next(next, stages, a, b, m, n, k, a_pitch, b_pitch, down, across);
    int stage = 0;
    int turn = 0;
    for (int tile = blockIdx.x; tile < down * across; tile += gridDim.x) {
        int y, x;
        place_of(tile, down, across, y, x);
        float sums[COLUMNS / 2] = {};
        for (int step = 0; step < steps; ++step) {
            // phase: multiply tiles of step {step}
            __pipeline_wait_prior(AHEAD - 1);
            if (turn == threadIdx.x / COPYING) asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
            turn ^= 1;
            // After this barrier, all warps have finished the step before the last one, so its stage is free.
            __syncthreads();
            unsigned int a_tile = shared_address(stages + stage * FP16_STAGE + warp / 4 * (64 * LINE));
            unsigned int b_tile = shared_address(stages + stage * FP16_STAGE + A_TILE);
            asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
            for (int deep = 0; deep < DEPTH; deep += AT_ONCE)
                multiply_add<1>(sums, tile_at(a_tile + deep * 2), tile_at(b_tile + deep * LINE * 2, DEPTH * LINE * 2),
                                1);
            asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
            copy_next(next, stages, a, b, m, n, k, a_pitch, b_pitch, down, across);
            asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
            stage = stage + 1 == STAGES ? 0 : stage + 1;
        }
        asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
        // phase: write
        if (gridDim.y > 1)
            write_elements(parts + (size_t)blockIdx.y * m * n, sums, y + warp * 16, x, m, n, 1.0f, 0.0f);
        else if (COLUMNS % (4 * PART) == 0 && n % PART == 0 && beta == 0.0f)
            write_parts(c, sums, y + warp * 16, x, m, n, alpha);
        else
            write_elements(c, sums, y + warp * 16, x, m, n, alpha, beta);
    }
}

// Sum the parts of k, one element per thread.
extern "C" __global__ void matmul_fp16_add(const float *sums, __half *c, int elements, int parts, float alpha,
                                           float beta) {
    finish_parts(sums, c, elements, parts, alpha, beta);
}
