// Convolution: each pixel becomes the weighted sum of the K x K pixels around it, K = 2 * RADIUS + 1. The filter is
// applied as a correlation; a mathematical convolution mirrors it first, which is the same for symmetric filters.
// Images are planes of float32, one per channel, selected by blockIdx.z; the last two variants also support bytes as in
// files, with interleaved channels. Minimum traffic: 8 bytes per pixel and channel, read once and written once, or 2
// bytes; 2 * K * K operations.
//
// variant                   idea                                       what still limits it
// convolve_naive            one thread per pixel, global memory only   a filter load for every pixel load
// convolve_constant         the filter in constant memory              pixels are loaded K * K times, if from cache
// convolve_tiled            pixels and their halo in shared memory     one shared load per tap
// convolve_rows and         a filter of rank one: along the rows,      the image goes through memory twice
// convolve_columns          then the columns; 2 * K taps per pixel
// convolve_register_tiled   sixteen pixels per thread, in registers    arithmetic; for small filters, the tile
// convolve_peak             small filters: all loads issue first       memory bandwidth

#ifndef RADIUS
#define RADIUS 1
#endif

// The element type of images: float, or unsigned char with CHANNELS interleaved channels, each filtered separately. The
// next value of a channel in a row is CHANNELS elements further. A vector has PIXELS elements, one load.
#ifndef PIXEL
#define PIXEL float
#define VECTOR float4
#define CHANNELS 1
#endif

#define BORDER_CLAMP 0
#define BORDER_ZERO 1

#define DIAMETER (2 * RADIUS + 1)
#ifndef TILE_WIDTH
#define TILE_WIDTH 32
#define TILE_HEIGHT 8
#endif
#define HALO_WIDTH (TILE_WIDTH + 2 * RADIUS)
#define HALO_HEIGHT (TILE_HEIGHT + 2 * RADIUS)

// Neighboring pixels per thread in the later variants, fetched by one load.
#define PIXELS 4
// The radius in elements, rounded up to whole loads; and the elements of a row that a thread needs.
#define REACH ((RADIUS * CHANNELS + PIXELS - 1) / PIXELS * PIXELS)
#define WINDOW (PIXELS + 2 * REACH)
// Elements per store; twice as many for bytes.
#define STORED (sizeof(PIXEL) == 1 ? 2 * PIXELS : PIXELS)

// The register-tiled variant: RUN neighboring pixels per thread. Lanes form 8 rows of 4 runs, with warps below each
// other. The tile's row pitch is an odd multiple of 16 bytes, so that the loads of 8 lanes have no bank conflicts.
#define RUN 16
#define RUN_LANES_Y 8
#define RUN_LANES_X 4
#ifndef RUN_WARPS
#define RUN_WARPS 8
#endif
#define RUN_BLOCK (32 * RUN_WARPS)
// Resident blocks per multiprocessor to limit registers for, if shared memory allows them; else 0.
#define RUN_RESIDENT (RADIUS <= 7 ? 8 : 0)
#define RUN_WIDTH (RUN * RUN_LANES_X)
#define RUN_HEIGHT (RUN_LANES_Y * RUN_WARPS)
#define RUN_TILE_WIDTH (RUN_WIDTH + 2 * REACH)
#define RUN_TILE_HEIGHT (RUN_HEIGHT + 2 * RADIUS)
#define RUN_PITCH (RUN_TILE_WIDTH + 4)

// The peak variant: elements of a row and rows of the image per thread, threads per block, and the largest radius for
// which registers suffice.
#ifndef AT_ONCE
#define ACROSS PIXELS
#define AT_ONCE 4
#endif
#define AT_ONCE_BLOCK 128
// Resident blocks per multiprocessor, if the compiler would use too many registers; else 0.
#ifndef AT_ONCE_RESIDENT
#define AT_ONCE_RESIDENT (RADIUS == 2 ? 7 : 0)
#endif
#define WIDEST_AT_ONCE 3
// The largest radius of the variants that unroll over a row of the filter, or whose tile has to fit.
#define WIDEST_UNROLLED 15

__constant__ float FILTER[DIAMETER * DIAMETER];
// A filter of rank one is a column of coefficients times a row of them.
__constant__ float FILTER_ROW[DIAMETER];
__constant__ float FILTER_COLUMN[DIAMETER];
// For byte results: the level of zero, and white.
__constant__ float LEVELS[2];

// The pixel at (x, y); outside the image, the nearest pixel or zero.
__device__ float pixel(const float *plane, int x, int y, int width, int height, int border) {
    int inside_x = min(max(x, 0), width - 1);
    int inside_y = min(max(y, 0), height - 1);
    float value = plane[inside_y * width + inside_x];
    bool outside = inside_x != x || inside_y != y;
    return outside && border == BORDER_ZERO ? 0.0f : value;
}

// The same for bytes: element `i` of row y, which is one channel of one pixel.
__device__ float pixel(const unsigned char *image, int i, int y, int width, int height, int border) {
    int x = (i + REACH * CHANNELS) / CHANNELS - REACH;
    int inside_x = min(max(x, 0), width - 1);
    int inside_y = min(max(y, 0), height - 1);
    unsigned char value = image[(inside_y * width + inside_x) * CHANNELS + i - x * CHANNELS];
    bool outside = inside_x != x || inside_y != y;
    return outside && border == BORDER_ZERO ? 0.0f : value;
}

// Idea: one thread per pixel, without optimization. Limit: half of all loads read the same few filter coefficients.
extern "C" __global__ void convolve_naive(const float *image, const float *filter, float *out, int width, int height,
                                          int radius, int border) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    const float *plane = image + blockIdx.z * width * height;
    // phase: weigh
    float sum = 0.0f;
    for (int dy = -radius; dy <= radius; ++dy)
        for (int dx = -radius; dx <= radius; ++dx)
            sum += filter[(dy + radius) * (2 * radius + 1) + dx + radius] *
                   pixel(plane, x + dx, y + dy, width, height, border);
    // phase: write
    out[blockIdx.z * width * height + y * width + x] = sum;
}

// Idea: all lanes of a warp use the same coefficient at once, which constant memory broadcasts; and the compile-time
// radius unrolls the loops. Limit: neighboring threads load nearly the same pixels again and again, and every load
// checks the border.
extern "C" __global__ void convolve_constant(const float *image, float *out, int width, int height, int border) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    const float *plane = image + blockIdx.z * width * height;
    // phase: weigh
    float sum = 0.0f;
    for (int dy = 0; dy < DIAMETER; ++dy)
        for (int dx = 0; dx < DIAMETER; ++dx)
            sum += FILTER[dy * DIAMETER + dx] * pixel(plane, x + dx - RADIUS, y + dy - RADIUS, width, height, border);
    // phase: write
    out[blockIdx.z * width * height + y * width + x] = sum;
}

// Idea: shared-memory tiling. The block loads its tile and a halo of RADIUS pixels once, including the border, and
// every tap then reads shared memory (Kirk and Hwu, Programming Massively Parallel Processors, ch. 7). It loads in
// rounds of its own size, across and then down: a 6 x 6 block loads an 8 x 8 tile in four. All threads load and
// reach the barrier, also those whose pixel is outside the image. Limit: each tap is one shared load for one
// multiply-add.
extern "C" __global__ void convolve_tiled(const float *image, float *out, int width, int height, int border) {
    __shared__ float tile[HALO_HEIGHT][HALO_WIDTH];
    const float *plane = image + blockIdx.z * width * height;
    int left = blockIdx.x * TILE_WIDTH - RADIUS;
    int top = blockIdx.y * TILE_HEIGHT - RADIUS;
    // phase: load tile and halo
    for (int down = 0; down < HALO_HEIGHT; down += TILE_HEIGHT)
        for (int across = 0; across < HALO_WIDTH; across += TILE_WIDTH) {
            int row = down + threadIdx.y;
            int column = across + threadIdx.x;
            if (row < HALO_HEIGHT && column < HALO_WIDTH)
                tile[row][column] = pixel(plane, left + column, top + row, width, height, border);
        }
    __syncthreads();

    int x = blockIdx.x * TILE_WIDTH + threadIdx.x;
    int y = blockIdx.y * TILE_HEIGHT + threadIdx.y;
    if (x >= width || y >= height) return;
    // phase: weigh
    float sum = 0.0f;
    for (int dy = 0; dy < DIAMETER; ++dy)
        for (int dx = 0; dx < DIAMETER; ++dx)
            sum += FILTER[dy * DIAMETER + dx] * tile[threadIdx.y + dy][threadIdx.x + dx];
    // phase: write
    out[blockIdx.z * width * height + y * width + x] = sum;
}

// The PIXELS values of a vector. A byte becomes the lowest bits of a float whose other bits are 2^23, which is
// subtracted: a conversion instruction would use a slower unit.
__device__ float4 values_of(float4 vector) { return vector; }
__device__ float4 values_of(unsigned int bytes) {
    return make_float4(__uint_as_float(__byte_perm(bytes, 0x4b000000, 0x7440)) - 8388608.0f,
                       __uint_as_float(__byte_perm(bytes, 0x4b000000, 0x7441)) - 8388608.0f,
                       __uint_as_float(__byte_perm(bytes, 0x4b000000, 0x7442)) - 8388608.0f,
                       __uint_as_float(__byte_perm(bytes, 0x4b000000, 0x7443)) - 8388608.0f);
}

// Store the elements of a loaded vector in an array.
__device__ void spread(float *values, float4 loaded) {
    values[0] = loaded.x;
    values[1] = loaded.y;
    values[2] = loaded.z;
    values[3] = loaded.w;
}
__device__ void spread(float *values, unsigned int loaded) { spread(values, values_of(loaded)); }

// Gather PIXELS elements from arbitrary positions into a vector.
__device__ float4 gathered(const float *a, const float *b, const float *c, const float *d) {
    return make_float4(*a, *b, *c, *d);
}
__device__ unsigned int gathered(const unsigned char *a, const unsigned char *b, const unsigned char *c,
                                 const unsigned char *d) {
    return *a | *b << 8 | *c << 16 | *d << 24;
}

// Load `count` neighboring pixels of row y from column `left` on, both multiples of PIXELS: by 16-byte loads if all are
// inside and rows are 16-byte aligned, which holds if the width is a multiple of PIXELS.
__device__ void load_row(float *pixels, int count, const float *plane, int left, int y, int width, int height,
                         int border) {
    int row = min(max(y, 0), height - 1);
    if (width % PIXELS == 0 && left >= 0 && left + count <= width) {
        const float4 *vectors = (const float4 *)(plane + row * width + left);
        bool zero = row != y && border == BORDER_ZERO;
#pragma unroll
        for (int i = 0; i < count / PIXELS; ++i)
            spread(pixels + PIXELS * i, zero ? make_float4(0.0f, 0.0f, 0.0f, 0.0f) : vectors[i]);
    } else {
#pragma unroll
        for (int i = 0; i < count; ++i) pixels[i] = pixel(plane, left + i, y, width, height, border);
    }
}

// The nearest level of a sum, rounding ties to even; the conversion to unsigned clamps negative sums to 0.
__device__ unsigned int level(float sum) { return min(__float2uint_rn(sum + LEVELS[0]), (unsigned int)LEVELS[1]); }

__device__ void store_value(float *out, float sum) { *out = sum; }
__device__ void store_value(unsigned char *out, float sum) { *out = level(sum); }

// Write PIXELS sums to row y from element x on, up to the end of the row.
__device__ void store_row(float *plane, const float *sums, int x, int y, int width) {
    float *out = plane + y * width + x;
    if (width % PIXELS == 0) {
        *(float4 *)out = make_float4(sums[0], sums[1], sums[2], sums[3]);
    } else {
#pragma unroll
        for (int p = 0; p < PIXELS; ++p)
            if (x + p < width) out[p] = sums[p];
    }
}

// The same for STORED levels.
__device__ void store_row(unsigned char *image, const float *sums, int x, int y, int width) {
    int length = width * CHANNELS;
    unsigned char *out = image + y * length + x;
    unsigned int levels[2 * PIXELS];
#pragma unroll
    for (int p = 0; p < 2 * PIXELS; ++p) levels[p] = level(sums[p]);
    unsigned int low = levels[0] | levels[1] << 8 | levels[2] << 16 | levels[3] << 24;
    unsigned int high = levels[4] | levels[5] << 8 | levels[6] << 16 | levels[7] << 24;
    if (length % (2 * PIXELS) == 0) {
        *(uint2 *)out = make_uint2(low, high);
    } else if (length % PIXELS == 0) {
        *(unsigned int *)out = low;
        if (x + PIXELS < length) *(unsigned int *)(out + PIXELS) = high;
    } else {
#pragma unroll
        for (int p = 0; p < 2 * PIXELS; ++p)
            if (x + p < length) out[p] = levels[p];
    }
}

#if RADIUS <= WIDEST_UNROLLED

// Idea: a filter of rank one is separable, so 2 * K operations per pixel replace K * K. First along the rows: a
// thread's loads serve its PIXELS neighboring pixels.
extern "C" __global__ void convolve_rows(const float *image, float *out, int width, int height, int border) {
    int x = (blockIdx.x * blockDim.x + threadIdx.x) * PIXELS;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    const float *plane = image + blockIdx.z * width * height;
    // phase: load
    float window[WINDOW];
    load_row(window, WINDOW, plane, x - REACH, y, width, height, border);
    // phase: weigh along the row
    float sums[PIXELS];
#pragma unroll
    for (int p = 0; p < PIXELS; ++p) {
        sums[p] = 0.0f;
#pragma unroll
        for (int dx = 0; dx < DIAMETER; ++dx) sums[p] += FILTER_ROW[dx] * window[REACH - RADIUS + p + dx];
    }
    // phase: write
    store_row(out + blockIdx.z * width * height, sums, x, y, width);
}

// Then along the columns: a thread loops down `rows` rows, loads each pixel once, and keeps the sums of the DIAMETER
// rows that it contributes to; the topmost is complete and written. Limit: the image passes through memory twice.
extern "C" __global__ void convolve_columns(const float *image, float *out, int width, int height, int rows,
                                            int border) {
    int x = (blockIdx.x * blockDim.x + threadIdx.x) * PIXELS;
    int top = (blockIdx.y * blockDim.y + threadIdx.y) * rows;
    if (x >= width || top >= height) return;
    const float *plane = image + blockIdx.z * width * height;
    int bottom = min(top + rows, height);
    float sums[DIAMETER][PIXELS];
#pragma unroll
    for (int j = 0; j < DIAMETER; ++j)
#pragma unroll
        for (int p = 0; p < PIXELS; ++p) sums[j][p] = 0.0f;
    float next[PIXELS];
    load_row(next, PIXELS, plane, x, top - RADIUS, width, height, border);
    for (int y = top - RADIUS; y < bottom + RADIUS; ++y) {
        float four[PIXELS];
#pragma unroll
        for (int p = 0; p < PIXELS; ++p) four[p] = next[p];
        load_row(next, PIXELS, plane, x, y + 1, width, height, border);
#pragma unroll
        for (int j = 0; j < DIAMETER; ++j)
#pragma unroll
            for (int p = 0; p < PIXELS; ++p)
                sums[j][p] = (j + 1 < DIAMETER ? sums[j + 1][p] : 0.0f) + FILTER_COLUMN[DIAMETER - 1 - j] * four[p];
        if (y - RADIUS >= top) store_row(out + blockIdx.z * width * height, sums[0], x, y - RADIUS, width);
    }
}

// Idea: register tiling. A thread reuses its shared loads for many taps: from RUN + 2 * RADIUS pixels in registers it
// adds a row of coefficients to RUN neighboring sums, so that a 16-byte load feeds dozens of multiply-adds. The loop
// over rows is not unrolled, so the code fits the instruction cache for all sizes. Most tiles are inside the image:
// their pixels are loaded without border checks. (Three runs per thread, which share rows of the tile, were faster at
// 15 x 15 by 6 %, and slower at 9 x 9 and 31 x 31.) Limit: arithmetic; for small filters, the detour through shared
// memory.
extern "C" __global__ void __launch_bounds__(RUN_BLOCK, RUN_RESIDENT)
    convolve_register_tiled(const PIXEL *image, PIXEL *out, int width, int height, int border) {
    __shared__ float4 tile[RUN_TILE_HEIGHT][RUN_PITCH / PIXELS];
    const PIXEL *plane = image + blockIdx.z * width * height;
    int length = width * CHANNELS;
    int left = blockIdx.x * RUN_WIDTH - REACH;
    int top = blockIdx.y * RUN_HEIGHT - RADIUS;
    // phase: load tile and halo
    const int COLUMNS = RUN_TILE_WIDTH / PIXELS;
    bool whole_vectors = length % PIXELS == 0;
    if (!whole_vectors) {
        // Lanes load consecutive elements, as rows are not aligned.
        for (int i = threadIdx.x; i < RUN_TILE_WIDTH * RUN_TILE_HEIGHT; i += RUN_BLOCK) {
            int column = i % RUN_TILE_WIDTH;
            float *values = (float *)tile[i / RUN_TILE_WIDTH];
            values[column] = pixel(plane, left + column, top + i / RUN_TILE_WIDTH, width, height, border);
        }
    } else if (left >= 0 && left + RUN_TILE_WIDTH <= length && top >= 0 && top + RUN_TILE_HEIGHT <= height) {
        const PIXEL *corner = plane + top * length + left;
#pragma unroll 4
        for (int i = threadIdx.x; i < COLUMNS * RUN_TILE_HEIGHT; i += RUN_BLOCK)
            tile[i / COLUMNS][i % COLUMNS] =
                values_of(*(const VECTOR *)(corner + i / COLUMNS * length + i % COLUMNS * PIXELS));
    } else {
        for (int i = threadIdx.x; i < COLUMNS * RUN_TILE_HEIGHT; i += RUN_BLOCK) {
            int x = left + i % COLUMNS * PIXELS;
            int y = top + i / COLUMNS;
            bool inside = x >= 0 && x + PIXELS <= length && y >= 0 && y < height;
            tile[i / COLUMNS][i % COLUMNS] = inside ? values_of(*(const VECTOR *)(plane + y * length + x))
                                                    : make_float4(pixel(plane, x, y, width, height, border),
                                                                  pixel(plane, x + 1, y, width, height, border),
                                                                  pixel(plane, x + 2, y, width, height, border),
                                                                  pixel(plane, x + 3, y, width, height, border));
        }
    }
    __syncthreads();

    int lane = threadIdx.x % 32;
    int row = threadIdx.x / 32 * RUN_LANES_Y + lane % RUN_LANES_Y;
    int run = lane / RUN_LANES_Y;
    float sums[RUN];
#pragma unroll
    for (int p = 0; p < RUN; ++p) sums[p] = 0.0f;
#pragma unroll 1
    for (int dy = 0; dy < DIAMETER; ++dy) {
        // phase: row {dy} of the filter
        float window[RUN + 2 * REACH];
#pragma unroll
        for (int i = 0; i < (RUN + 2 * REACH) / PIXELS; ++i)
            spread(window + PIXELS * i, tile[row + dy][run * (RUN / PIXELS) + i]);
#pragma unroll
        for (int dx = 0; dx < DIAMETER; ++dx)
#pragma unroll
            for (int p = 0; p < RUN; ++p)
                sums[p] += FILTER[dy * DIAMETER + dx] * window[REACH + (dx - RADIUS) * CHANNELS + p];
    }

    int x = blockIdx.x * RUN_WIDTH + run * RUN;
    int y = blockIdx.y * RUN_HEIGHT + row;
    PIXEL *to = out + blockIdx.z * width * height;
    if (whole_vectors) {
        // phase: write
#pragma unroll
        for (int p = 0; p < RUN; p += STORED)
            if (y < height && x + p < length) store_row(to, sums + p, x + p, y, width);
        return;
    }
    __syncthreads();
    // phase: hand over, so that lanes write what lies beside each other
#pragma unroll
    for (int p = 0; p < RUN; p += PIXELS)
        tile[row][(run * RUN + p) / PIXELS] = make_float4(sums[p], sums[p + 1], sums[p + 2], sums[p + 3]);
    __syncthreads();
    // phase: write
    for (int i = threadIdx.x; i < RUN_WIDTH * RUN_HEIGHT; i += RUN_BLOCK) {
        int column = blockIdx.x * RUN_WIDTH + i % RUN_WIDTH;
        int line = blockIdx.y * RUN_HEIGHT + i / RUN_WIDTH;
        const float *values = (const float *)tile[i / RUN_WIDTH];
        if (column < length && line < height) store_value(to + line * length + column, values[i % RUN_WIDTH]);
    }
}

#endif

#if RADIUS <= WIDEST_AT_ONCE

// Replace window elements outside the image by zero or by the nearest value of the channel. At least one element of the
// window's row is inside.
__device__ void put_border(float *window, int left, int y, int width, int height, int border) {
    bool zero = border == BORDER_ZERO;
    if (left < 0) {
#pragma unroll
        for (int i = REACH - 1; i >= 0; --i)
            if (left + i < 0) window[i] = zero ? 0.0f : window[i + CHANNELS];
    }
    if (left + ACROSS + 2 * REACH > width * CHANNELS) {
#pragma unroll
        for (int i = REACH + CHANNELS; i < ACROSS + 2 * REACH; ++i)
            if (left + i >= width * CHANNELS) window[i] = zero ? 0.0f : window[i - CHANNELS];
    }
    if (zero && (y < 0 || y >= height)) {
#pragma unroll
        for (int i = 0; i < ACROSS + 2 * REACH; ++i) window[i] = 0.0f;
    }
}

// Idea: a thread computes AT_ONCE rows of ACROSS neighboring pixels, and issues all loads for them before the first
// multiplication, since performance depends on the bytes in flight. There is no loop, no barrier and no shared memory:
// the cache serves neighbors' common loads, and a coefficient is a constant-memory operand of a multiply-add. (Looping
// down a strip, with sums in registers and loads one row ahead, had 0.83 to 0.95 of this speed; passing pixels between
// lanes by shuffles instead of loading them twice, 0.95 to 0.99.) Limit: memory bandwidth, or for bytes the conversion
// instructions; registers suffice only for small filters.
extern "C" __global__ void __launch_bounds__(AT_ONCE_BLOCK, AT_ONCE_RESIDENT)
    convolve_peak(const PIXEL *image, PIXEL *out, int width, int height, int border) {
    int x = (blockIdx.x * blockDim.x + threadIdx.x) * ACROSS;
    int top = (blockIdx.y * blockDim.y + threadIdx.y) * AT_ONCE;
    if (x >= width * CHANNELS || top >= height) return;
    const PIXEL *plane = image + blockIdx.z * width * height;
    int length = width * CHANNELS;
    int left = x - REACH;
    bool whole_vectors = length % PIXELS == 0;
    bool inside = whole_vectors && left >= 0 && left + ACROSS + 2 * REACH <= length && top >= RADIUS &&
                  top + AT_ONCE + RADIUS <= height;
    // phase: load
    VECTOR vectors[AT_ONCE + 2 * RADIUS][(ACROSS + 2 * REACH) / PIXELS];
    if (inside) {
        const PIXEL *first = plane + (top - RADIUS) * length + left;
#pragma unroll
        for (int r = 0; r < AT_ONCE + 2 * RADIUS; ++r)
#pragma unroll
            for (int i = 0; i < ACROSS + 2 * REACH; i += PIXELS)
                vectors[r][i / PIXELS] = *(const VECTOR *)(first + r * length + i);
    } else if (whole_vectors) {
#pragma unroll
        for (int r = 0; r < AT_ONCE + 2 * RADIUS; ++r) {
            const PIXEL *row = plane + min(max(top - RADIUS + r, 0), height - 1) * length;
#pragma unroll
            for (int i = 0; i < ACROSS + 2 * REACH; i += PIXELS)
                vectors[r][i / PIXELS] = *(const VECTOR *)(row + min(max(left + i, 0), length - PIXELS));
        }
    } else {
#pragma unroll
        for (int r = 0; r < AT_ONCE + 2 * RADIUS; ++r) {
            const PIXEL *row = plane + min(max(top - RADIUS + r, 0), height - 1) * length;
#pragma unroll
            for (int i = 0; i < ACROSS + 2 * REACH; i += PIXELS)
                vectors[r][i / PIXELS] =
                    gathered(row + min(max(left + i, 0), length - 1), row + min(max(left + i + 1, 0), length - 1),
                             row + min(max(left + i + 2, 0), length - 1), row + min(max(left + i + 3, 0), length - 1));
        }
    }
    float sums[AT_ONCE][ACROSS];
#pragma unroll
    for (int j = 0; j < AT_ONCE; ++j)
#pragma unroll
        for (int p = 0; p < ACROSS; ++p) sums[j][p] = 0.0f;
    // phase: weigh
#pragma unroll
    for (int r = 0; r < AT_ONCE + 2 * RADIUS; ++r) {
        float window[ACROSS + 2 * REACH];
#pragma unroll
        for (int i = 0; i < ACROSS + 2 * REACH; i += PIXELS) spread(window + i, vectors[r][i / PIXELS]);
        if (!inside) put_border(window, left, top - RADIUS + r, width, height, border);
#pragma unroll
        for (int j = 0; j < AT_ONCE; ++j) {
            int dy = r - j;
            if (dy >= 0 && dy < DIAMETER) {
#pragma unroll
                for (int p = 0; p < ACROSS; ++p)
#pragma unroll
                    for (int dx = 0; dx < DIAMETER; ++dx)
                        sums[j][p] += FILTER[dy * DIAMETER + dx] * window[REACH + (dx - RADIUS) * CHANNELS + p];
            }
        }
    }
    // phase: write
#pragma unroll
    for (int j = 0; j < AT_ONCE; ++j)
#pragma unroll
        for (int p = 0; p < ACROSS; p += STORED)
            if (top + j < height && x + p < length)
                store_row(out + blockIdx.z * width * height, sums[j] + p, x + p, top + j, width);
}

#endif
