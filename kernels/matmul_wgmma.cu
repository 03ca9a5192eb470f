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
// matmul_fp16         tensor maps: boxes of the matrices as they are     the rate and power of tensor cores

#include <cooperative_groups.h>
#include <cuda_fp16.h>

#include "matmul_finish.cuh"
#include "matmul_scale.cuh"

// A block computes ROWS x COLUMNS elements, a warpgroup 64 rows of them. It has STAGES pipeline stages in shared
// memory. For matmul_fp16, BLOCKS is the number of resident blocks per multiprocessor, and SPLITS the number of blocks
// of a cluster that share the steps of one tile, at least one each. Or SHARING is the number of blocks of a cluster
// whose tiles are below each other and share their tiles of B. With ONE_TILE, which SPLITS require, each block computes
// one tile, at its place in the grid.
#ifndef ROWS
#define ROWS 64
#define COLUMNS 16
#define STAGES 2
#endif
#ifndef BLOCKS
#define BLOCKS 1
#endif
#ifndef SPLITS
#define SPLITS 1
#endif
#ifndef SHARING
#define SHARING 1
#endif
#ifndef ONE_TILE
#define ONE_TILE 0
#endif
#if SPLITS > 1
#define CLUSTER __cluster_dims__(SPLITS, 1, 1)
#elif SHARING > 1
#define CLUSTER __cluster_dims__(SHARING, 1, 1)
#else
#define CLUSTER
#endif

// A step has as many elements along k as 128 bytes of a row of A or a column of B; a tensor core instruction uses a
// quarter of them. A and B have two consecutive tiles each, for the first and second parts of the factors.
#define DEPTH 64
#define AT_ONCE 16
#define A_TILE (ROWS * DEPTH)
#define B_TILE (COLUMNS * DEPTH)
#define STAGE (2 * (A_TILE + B_TILE))

// For matmul_fp16: a line of shared memory has eight parts of 16 bytes. A line of B's tile is a row, and a wider tile
// has several boxes next to each other.
#define PART 8
#define LINE (8 * PART)
#define B_BOX (DEPTH * LINE)
#define B_BOXES ((COLUMNS + LINE - 1) / LINE)
#define FP16_STAGE (A_TILE + B_BOXES * B_BOX)

// Rows of B's tile that a block copies.
#define COPIED_ROWS (DEPTH / SHARING)

// Warps that multiply, in warpgroups, followed by one that copies.
#define MULTIPLYING (ROWS / 16)
#define THREADS (MULTIPLYING * 32 + 32)

// Rows of tiles, or of the tiles of clusters, that run at the same time and read the same columns of B.
#define BAND (1024 / ROWS / SHARING)

// With SPLITS > 1, the sums of a thread that each block of the cluster finishes, and of a vector that it copies.
#define PART_SUMS (COLUMNS / 2 / SPLITS)
#define VECTOR_SUMS (PART_SUMS < 4 ? 2 : 4)

// CUtensorMap of cuda.h: a matrix, and the box that a copy takes from it.
struct __align__(64) TensorMap {
    unsigned long long opaque[16];
};

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

// The warp's number, from one lane: so the compiler knows that it is the same in all lanes, and computes the addresses of
// tiles once per warp. This halves the instructions of a step.
__device__ int warp_number() { return __shfl_sync(0xffffffff, threadIdx.x / 32, 0); }

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

// Copy a box of a matrix, which begins at a row and a column, and signal the barrier. Lines are swizzled as in
// matmul_split_tiles, and elements outside of the matrix are zeros.
__device__ void copy_box(unsigned int to, const TensorMap *matrix, int row, int column, unsigned int barrier) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], "
        "[%4];" ::"r"(to),
        "l"(matrix), "r"(column), "r"(row), "r"(barrier)
        : "memory");
}

// Copy a box of B: if blocks share it, to the same place in each of them, where it also signals the barrier.
__device__ void copy_box_of_b(unsigned int to, const TensorMap *b, int row, int column, unsigned int barrier) {
#if SHARING > 1
    unsigned short blocks = (1 << SHARING) - 1;
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%0], "
        "[%1, {%2, %3}], [%4], %5;" ::"r"(to),
        "l"(b), "r"(column), "r"(row), "r"(barrier), "h"(blocks)
        : "memory");
#else
    copy_box(to, b, row, column, barrier);
#endif
}

// A warp releases a stage: each block that copies to it waits for all warps of all blocks that share B. The arrival has
// the scope of a block, as in CUTLASS: the warp has only read, and these reads are complete.
__device__ void release(unsigned int empty) {
    int lane = threadIdx.x % 32;
    if (lane >= SHARING) return;
#if SHARING > 1
    asm volatile(
        "{ .reg .b32 there; mapa.shared::cluster.u32 there, %0, %1;\n"
        "mbarrier.arrive.shared::cluster.b64 _, [there]; }" ::"r"(empty),
        "r"(lane)
        : "memory");
#else
    arrive(empty);
#endif
}

// The descriptor of a tile for tensor cores: its address, the 128-byte swizzle, and the distance of eight lines, 1024
// bytes. If k runs across the lines, a tile of more than one 128-byte line consists of several neighboring tiles,
// `apart` bytes from each other. All in units of 16 bytes, so adding to a descriptor moves the tile. The address in a
// cluster has the block's number above its 18 lowest bits.
__device__ unsigned long long tile_at(unsigned int address, int apart = 16) {
    return 1ull << 62 | 1024ull / 16 << 32 | ((apart / 16 << 16) + (address & 0x3ffff) / 16);
}

#define SUMS_4(i) "+f"(sums[i]), "+f"(sums[i + 1]), "+f"(sums[i + 2]), "+f"(sums[i + 3])
#define SUMS_16(i) SUMS_4(i), SUMS_4(i + 4), SUMS_4(i + 8), SUMS_4(i + 12)
#define SUMS_64(i) SUMS_16(i), SUMS_16(i + 16), SUMS_16(i + 32), SUMS_16(i + 48)

// Add the product of 64 x 16 and 16 x COLUMNS float16 elements to sums, or set them: 4 of 8 columns per
// lane.
template <int B_TURNED>
__device__ void multiply_add(float (&sums)[COLUMNS / 2], unsigned long long a, unsigned long long b, int adds) {
#if COLUMNS == 256
    asm volatile(
        "{ .reg .pred adds; setp.ne.b32 adds, %130, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, "
        "%19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, "
        "%36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, "
        "%53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, %64, %65, %66, %67, %68, %69, "
        "%70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, %83, %84, %85, %86, "
        "%87, %88, %89, %90, %91, %92, %93, %94, %95, %96, %97, %98, %99, %100, %101, %102, "
        "%103, %104, %105, %106, %107, %108, %109, %110, %111, %112, %113, %114, %115, %116, "
        "%117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127}, %128, %129, adds, 1, 1, 0, %131; }"
        : SUMS_64(0), SUMS_64(64)
        : "l"(a), "l"(b), "r"(adds), "n"(B_TURNED));
#elif COLUMNS == 192
    asm volatile(
        "{ .reg .pred adds; setp.ne.b32 adds, %98, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n192k16.f32.f16.f16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, "
        "%18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, "
        "%34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, "
        "%50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, %64, %65, "
        "%66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, "
        "%82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95}, %96, %97, adds, 1, 1, 0, %99; }"
        : SUMS_64(0), SUMS_16(64), SUMS_16(80)
        : "l"(a), "l"(b), "r"(adds), "n"(B_TURNED));
#elif COLUMNS == 128
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

// The copying warp makes the barriers of full and free stages: it needs them first. The fence shows them to asynchronous
// copies. Blocks that share B signal each other's barriers, so they wait for each other.
__device__ void make_stage_barriers(unsigned int full, unsigned int empty) {
    if (threadIdx.x == MULTIPLYING * 32) {
        for (int i = 0; i < STAGES; ++i) {
            make_barrier(full + i * 8, 1);
            make_barrier(empty + i * 8, MULTIPLYING * SHARING);
        }
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    }
#if SHARING > 1
    cooperative_groups::this_cluster().sync();
#else
    __syncthreads();
#endif
}

// Tiles of C are ordered in bands: top to bottom first, then left to right. The tiles of a cluster that shares B count
// as one tile. The only tile of a block has the block's place in the grid, without divisions.
__device__ void place_of(int tile, int down, int across, int &y, int &x) {
#if ONE_TILE
    y = blockIdx.x / (SPLITS * SHARING) * (ROWS * SHARING) + blockIdx.x % SHARING * ROWS;
    x = blockIdx.y * COLUMNS;
#else
    int first = tile / (BAND * across) * BAND;
    int rows = min(BAND, down - first);
    int in_band = tile - first * across;
    y = (first + in_band % rows) * (ROWS * SHARING) + blockIdx.x % SHARING * ROWS;
    x = in_band / rows * COLUMNS;
#endif
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
    int warp = warp_number();
    int lane = threadIdx.x % 32;
    make_stage_barriers(full, empty);

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
            unsigned long long a_first = tile_at(at + warp / 4 * (64 * DEPTH * 2));
            unsigned long long a_second = a_first + A_TILE * 2 / 16;
            unsigned long long b_first = tile_at(at + A_TILE * 4);
            unsigned long long b_second = b_first + B_TILE * 2 / 16;
            float of_step[COLUMNS / 2];
            wait(full + stage * 8, parity);
            asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
            for (int deep = 0; deep < DEPTH * 2 / 16; deep += AT_ONCE * 2 / 16) {
                multiply_add<0>(of_step, a_second + deep, b_first + deep, deep > 0);
                multiply_add<0>(of_step, a_first + deep, b_second + deep, 1);
            }
#pragma unroll
            for (int deep = 0; deep < DEPTH * 2 / 16; deep += AT_ONCE * 2 / 16)
                multiply_add<0>(of_step, a_first + deep, b_first + deep, 1);
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
                *reinterpret_cast<uint4 *>(c + (size_t)row * n + column) =
                    make_uint4(pairs[0], pairs[1], pairs[2], pairs[3]);
        }
    }
}

// Write the rows element by element.
__device__ void write_elements(__half *c, const float (&sums)[COLUMNS / 2], int y, int x, int m, int n, float alpha,
                               float beta) {
    int lane = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < COLUMNS / 2; ++i) {
        int row = y + i / 2 % 2 * 8 + lane / 4;
        int column = x + i / 4 * 8 + lane % 4 * 2 + i % 2;
        if (row < m && column < n) finish(c, row * n + column, sums[i], alpha, beta);
    }
}

// Some of a thread's sums. Neighboring threads store neighboring vectors, so that they use different banks.
struct alignas(VECTOR_SUMS * 4) SumVector {
    float sums[VECTOR_SUMS];
};

// Store a thread's sums in the block's shared memory, for the other blocks of the cluster.
__device__ void store_sums(SumVector *block_sums, const float (&sums)[COLUMNS / 2]) {
#pragma unroll
    for (int i = 0; i < COLUMNS / 2; i += VECTOR_SUMS) {
        SumVector vector;
        for (int j = 0; j < VECTOR_SUMS; ++j) vector.sums[j] = sums[i + j];
        block_sums[i / VECTOR_SUMS * (MULTIPLYING * 32) + threadIdx.x] = vector;
    }
}

// Add the sums of the cluster's blocks, each block for an equal part of each thread's sums, and write them.
__device__ void finish_cluster(SumVector *block_sums, __half *c, int y, int x, int m, int n, float alpha, float beta) {
    cooperative_groups::cluster_group cluster = cooperative_groups::this_cluster();
    bool multiplies = threadIdx.x < MULTIPLYING * 32;
    int rank = cluster.block_rank();
    int lane = threadIdx.x % 32;
    float sums[PART_SUMS] = {};
    cluster.sync();
    if (multiplies) {
#pragma unroll
        for (int block = 0; block < SPLITS; ++block) {
            // Each block begins with its own sums, so that no two read from the same block.
            SumVector *other = cluster.map_shared_rank(block_sums, (rank + block) % SPLITS);
#pragma unroll
            for (int i = 0; i < PART_SUMS; i += VECTOR_SUMS) {
                SumVector vector = other[(rank * PART_SUMS + i) / VECTOR_SUMS * (MULTIPLYING * 32) + threadIdx.x];
                for (int j = 0; j < VECTOR_SUMS; ++j) sums[i + j] += vector.sums[j];
            }
        }
    }
    // The block's shared memory exists until the other blocks have read its sums, while this one writes.
    cluster.barrier_arrive();
    if (multiplies) {
#pragma unroll
        for (int i = 0; i < PART_SUMS; i += 2) {
            int of_thread = rank * PART_SUMS + i;
            int row = y + threadIdx.x / 32 * 16 + of_thread / 2 % 2 * 8 + lane / 4;
            int column = x + of_thread / 4 * 8 + lane % 4 * 2;
            if (row >= m || column >= n) continue;
            if (n % 2 == 0 && beta == 0.0f) {
                *reinterpret_cast<__half2 *>(c + (size_t)row * n + column) =
                    __floats2half2_rn(alpha * sums[i], alpha * sums[i + 1]);
            } else {
                finish(c, row * n + column, sums[i], alpha, beta);
                if (column + 1 < n) finish(c, row * n + column + 1, sums[i + 1], alpha, beta);
            }
        }
    }
    cluster.barrier_wait();
}

// Idea: tensor maps describe A and B as they are, and one thread issues copies of boxes into free stages: no tiles have
// to be written first, and no thread computes addresses. Tiles keep the layout of rows, so B's k runs across lines,
// which tensor cores support by transposing. They sum all of k; the truncation error is smaller than that of rounding
// to float16. While one step is multiplied, the stage of the step before it is released. For few tiles, the blocks of a
// cluster share the steps, and add their sums through each other's shared memory. Where rows do not begin at lines, so
// that a box takes more time, the blocks of a cluster share B: each copies a part of its boxes to all of them. Limit:
// the rate and power of tensor cores.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) CLUSTER
    matmul_fp16(const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b, __half *c, int m, int n,
                int k, float alpha, float beta) {
    extern __shared__ __align__(1024) __half stages[];
    // Barriers for full and free stages.
    unsigned int full = shared_address(stages + STAGES * FP16_STAGE);
    unsigned int empty = full + STAGES * 8;
    int down = (m + ROWS * SHARING - 1) / (ROWS * SHARING);
    int across = (n + COLUMNS - 1) / COLUMNS;
    int steps = (k + DEPTH - 1) / DEPTH;
    int warp = warp_number();
    int lane = threadIdx.x % 32;
    int rank = blockIdx.x % SPLITS;
    int first_row = blockIdx.x % SHARING * COPIED_ROWS;
    int begin = steps * rank / SPLITS;
    int end = steps * (rank + 1) / SPLITS;
    int tiles = ONE_TILE ? 1 : down * across;
    int first_tile = ONE_TILE ? 0 : blockIdx.x / SHARING;
    int tile_stride = ONE_TILE ? 1 : gridDim.x / SHARING;
    make_stage_barriers(full, empty);

    int stage = 0;
    int parity = 0;
    if (warp == MULTIPLYING) {
        for (int tile = first_tile; lane == 0 && tile < tiles; tile += tile_stride) {
            int y, x;
            place_of(tile, down, across, y, x);
            for (int step = begin; step < end; ++step) {
                // phase: copy boxes of step {step}
                unsigned int to = shared_address(stages + stage * FP16_STAGE);
                wait(empty + stage * 8, parity ^ 1);
                arrive_and_expect(full + stage * 8, FP16_STAGE * 2);
                copy_box(to, &a, y, step * DEPTH, full + stage * 8);
                for (int i = 0; i < B_BOXES; ++i)
                    copy_box_of_b(to + (A_TILE + i * B_BOX + first_row * LINE) * 2, &b, step * DEPTH + first_row,
                                  x + i * LINE, full + stage * 8);
                stage = stage + 1 == STAGES ? 0 : stage + 1;
                parity ^= stage == 0;
            }
        }
        // A block's barriers and stages exist until the other blocks have released them.
        for (int i = 0; SHARING > 1 && lane == 0 && i < STAGES; ++i) {
            wait(empty + stage * 8, parity ^ 1);
            stage = stage + 1 == STAGES ? 0 : stage + 1;
            parity ^= stage == 0;
        }
        __syncwarp();
    } else {
        for (int tile = first_tile; tile < tiles; tile += tile_stride) {
            int y, x;
            place_of(tile, down, across, y, x);
            float sums[COLUMNS / 2];
            int last = 0;
            for (int step = begin; step < end; ++step) {
                // phase: multiply boxes of step {step}
                unsigned int at = shared_address(stages + stage * FP16_STAGE);
                unsigned long long a_tile = tile_at(at + warp / 4 * (64 * DEPTH * 2));
                unsigned long long b_tile = tile_at(at + A_TILE * 2, B_BOX * 2);
                wait(full + stage * 8, parity);
                asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
                for (int deep = 0; deep < DEPTH; deep += AT_ONCE)
                    multiply_add<1>(sums, a_tile + deep * 2 / 16, b_tile + deep * LINE * 2 / 16,
                                    step > begin || deep > 0);
                asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
                asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
                if (step > begin) release(empty + last * 8);
                last = stage;
                stage = stage + 1 == STAGES ? 0 : stage + 1;
                parity ^= stage == 0;
            }
            asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
            if (end > begin) release(empty + last * 8);
            // phase: write
            if (SPLITS > 1) {
                // All warps have finished reading the stages, where the sums are stored.
                asm volatile("bar.sync 1, %0;" ::"n"(MULTIPLYING * 32) : "memory");
                store_sums(reinterpret_cast<SumVector *>(stages), sums);
            } else if (COLUMNS % (4 * PART) == 0 && n % PART == 0 && beta == 0.0f) {
                write_parts(c, sums, y + warp * 16, x, m, n, alpha);
            } else {
                write_elements(c, sums, y + warp * 16, x, m, n, alpha, beta);
            }
        }
    }
#if SPLITS > 1
    int y, x;
    place_of(0, down, across, y, x);
    finish_cluster(reinterpret_cast<SumVector *>(stages), c, y, x, m, n, alpha, beta);
#endif
}
