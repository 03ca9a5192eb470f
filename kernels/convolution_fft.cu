// Convolution by Fourier transforms: the transform of a filtered image is the product of both transforms, for any
// filter size. The image is cut into tiles of SIDE x SIDE that overlap by the filter's radius, and each is transformed,
// multiplied and transformed back within one block ("overlap and save", Oppenheim and Schafer, Discrete-Time Signal
// Processing, ch. 8). Image, filter and border are those of convolution.cu.
//
// variant           idea                                                what still limits it
// convolve_fft      a block filters two tiles as one complex tile       shared memory, and the tiles' overlap
// transform_filter  the filter's transform, computed by one block
//
// A line of SIDE = RADIX * REST elements is transformed in two passes, by threads with several elements in registers
// (the four-step transform: Bailey, FFTs in External or Hierarchical Memory, 1990). Frequencies stay in permuted order:
// the filter's transform has the same order, and the inverse transform restores it.

// The side of the filter, or of a part of it if the whole filter would leave few valid pixels per tile; the
// results of parts are added.
#ifndef SIZE
#define SIZE 3
#endif

#define BORDER_ZERO 1

// The side of a tile, a power of two, and the elements per thread in the first pass: as many as the threads of a line
// or twice as many.
#ifndef SIDE
#define SIDE 16
#define RADIX 4
#endif
#define REST (SIDE / RADIX)
// Threads per block: SIDE * REST, or a fraction of them.
#ifndef FFT_BLOCK
#define FFT_BLOCK (SIDE * REST)
#endif
// Valid pixels per side of a tile: the others are affected by wraparound.
#define VALID (SIDE - SIZE + 1)

// Cosines of sixteenths of a turn; a sine is the cosine of the angle minus a quarter turn.
__constant__ float COSINES[9] = {1.0f,          0.923879533f,  0.707106781f,  0.382683432f, 0.0f,
                                 -0.382683432f, -0.707106781f, -0.923879533f, -1.0f};

__device__ float2 plus(float2 a, float2 b) { return make_float2(a.x + b.x, a.y + b.y); }
__device__ float2 minus(float2 a, float2 b) { return make_float2(a.x - b.x, a.y - b.y); }
__device__ float2 times(float2 a, float2 b) { return make_float2(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x); }
__device__ float2 conjugate(float2 a) { return make_float2(a.x, -a.y); }

// Rotate a complex number clockwise by 0 to 7 sixteenths of a turn.
__device__ float2 turned(float2 a, int sixteenths) {
    if (sixteenths == 0) return a;
    if (sixteenths == 4) return make_float2(a.y, -a.x);
    return times(a, make_float2(COSINES[sixteenths], -COSINES[sixteenths < 4 ? 4 - sixteenths : sixteenths - 4]));
}

// Rotate a complex number counterclockwise.
__device__ float2 turned_back(float2 a, int sixteenths) {
    if (sixteenths == 0) return a;
    if (sixteenths == 4) return make_float2(-a.y, a.x);
    return times(a, make_float2(COSINES[sixteenths], COSINES[sixteenths < 4 ? 4 - sixteenths : sixteenths - 4]));
}

// The frequency at an index of `transform`'s result: the bit-reversed index.
template <int COUNT>
__device__ int frequency_at(int place) {
    int mirrored = 0;
#pragma unroll
    for (int bit = 1; bit < COUNT; bit *= 2) mirrored = 2 * mirrored + (place / bit & 1);
    return mirrored;
}

// Transform up to 16 numbers by radix-2 steps (Cooley and Tukey, 1965).
template <int COUNT>
__device__ void transform(float2 *v) {
#pragma unroll
    for (int half = COUNT / 2; half > 0; half /= 2)
#pragma unroll
        for (int i = 0; i < COUNT / 2; ++i) {
            int upper = i / half * 2 * half + i % half;
            float2 sum = plus(v[upper], v[upper + half]);
            float2 difference = minus(v[upper], v[upper + half]);
            v[upper] = sum;
            v[upper + half] = turned(difference, i % half * (8 / half));
        }
}

// Inverse of `transform`, except for a factor of COUNT.
template <int COUNT>
__device__ void transform_back(float2 *v) {
#pragma unroll
    for (int half = 1; half < COUNT; half *= 2)
#pragma unroll
        for (int i = 0; i < COUNT / 2; ++i) {
            int upper = i / half * 2 * half + i % half;
            float2 sum = v[upper];
            float2 difference = turned_back(v[upper + half], i % half * (8 / half));
            v[upper] = plus(sum, difference);
            v[upper + half] = minus(sum, difference);
        }
}

// The powers 0 to RADIX - 1 of a root: short chains of roundings; loading each power was 7 % slower on an H200.
__device__ void powers(float2 *w, float2 root) {
    w[0] = make_float2(1.0f, 0.0f);
    w[1] = root;
#pragma unroll
    for (int i = 2; i < RADIX; ++i) w[i] = times(w[i / 2], w[i - i / 2]);
}

// The index of an element in the tile. One of RADIX + 1 elements is padding, so that lanes whose elements are REST
// apart have no bank conflicts.
#define PITCH (SIDE + REST)
__device__ unsigned int place(unsigned int row, unsigned int column) { return row * PITCH + column + column / RADIX; }

// The second pass, along rows: transform the runs of REST elements that the first pass left.
__device__ void finish_rows(float2 *tile) {
    for (unsigned int i = threadIdx.x; i < SIDE * RADIX; i += FFT_BLOCK) {
        float2 *run = tile + place(i / RADIX, i % RADIX * REST);
        float2 v[REST];
#pragma unroll
        for (int k = 0; k < REST; ++k) v[k] = run[k];
        transform<REST>(v);
#pragma unroll
        for (int k = 0; k < REST; ++k) run[k] = v[k];
    }
}

// The first pass, along columns: transform elements that are REST apart, and multiply them by the twiddle factors.
__device__ void begin_columns(float2 *tile, const float2 *roots) {
    for (unsigned int i = threadIdx.x; i < SIDE * REST; i += FFT_BLOCK) {
        unsigned int column = i % SIDE;
        unsigned int part = i / SIDE;
        float2 v[RADIX];
        float2 w[RADIX];
        powers(w, roots[part]);
#pragma unroll
        for (int j = 0; j < RADIX; ++j) v[j] = tile[place(REST * j + part, column)];
        transform<RADIX>(v);
#pragma unroll
        for (int j = 0; j < RADIX; ++j) tile[place(REST * j + part, column)] = times(v[j], w[frequency_at<RADIX>(j)]);
    }
}

// The filter's transform, by which tiles are multiplied: its conjugate, because the filter is applied as a correlation,
// divided by the factor of the inverse transform.
extern "C" __global__ void __launch_bounds__(FFT_BLOCK)
    transform_filter(const float *filter, const float2 *roots, float2 *spectrum) {
    extern __shared__ float2 tile[];
    // phase: filter, rows
    for (unsigned int i = threadIdx.x; i < SIDE * REST; i += FFT_BLOCK) {
        unsigned int row = i / REST;
        unsigned int part = i % REST;
        float2 v[RADIX];
        float2 w[RADIX];
        powers(w, roots[part]);
#pragma unroll
        for (int j = 0; j < RADIX; ++j) {
            int column = REST * j + part;
            v[j] = make_float2(row < SIZE && column < SIZE ? filter[row * SIZE + column] : 0.0f, 0.0f);
        }
        transform<RADIX>(v);
#pragma unroll
        for (int j = 0; j < RADIX; ++j) tile[place(row, REST * j + part)] = times(v[j], w[frequency_at<RADIX>(j)]);
    }
    __syncthreads();
    finish_rows(tile);
    __syncthreads();
    // phase: filter, columns
    begin_columns(tile, roots);
    __syncthreads();
    for (unsigned int i = threadIdx.x; i < SIDE * RADIX; i += FFT_BLOCK) {
        unsigned int column = i % SIDE;
        unsigned int run = i / SIDE * REST;
        float2 v[REST];
#pragma unroll
        for (int k = 0; k < REST; ++k) v[k] = tile[place(run + k, column)];
        transform<REST>(v);
#pragma unroll
        for (int k = 0; k < REST; ++k)
            spectrum[(run + k) * SIDE + column] = make_float2(v[k].x / (SIDE * SIDE), -v[k].y / (SIDE * SIDE));
    }
}

// The pixel at (x, y); outside the image, the nearest pixel or zero.
__device__ float pixel(const float *plane, int x, int y, int width, int height, int border) {
    int inside_x = min(max(x, 0), width - 1);
    int inside_y = min(max(y, 0), height - 1);
    float value = plane[inside_y * width + inside_x];
    bool outside = inside_x != x || inside_y != y;
    return outside && border == BORDER_ZERO ? 0.0f : value;
}

// Idea: filter and image are real, so two neighboring tiles are filtered as the real and imaginary parts of one. All
// data between reading and writing pixels stays in registers and shared memory. The 2 * K * K operations per pixel
// become about 10 * log2(SIDE) * (SIDE / VALID)^2. Limit: shared memory, which each element passes six times; and a
// small filter costs as much as a large one. (across, down) is the offset of a pixel's first coefficient.
extern "C" __global__ void __launch_bounds__(FFT_BLOCK)
    convolve_fft(const float *image, const float2 *spectrum, const float2 *roots, float *out, int width, int height,
                 int across, int down, int add, int border) {
    extern __shared__ float2 tile[];
    const float *plane = image + blockIdx.z * width * height;
    int left = blockIdx.x * 2 * VALID + across;
    int top = blockIdx.y * VALID + down;
    bool within = left >= 0 && left + VALID + SIDE <= width && top >= 0 && top + SIDE <= height;
    // phase: load, rows
    for (unsigned int i = threadIdx.x; i < SIDE * REST; i += FFT_BLOCK) {
        int y = top + i / REST;
        int x = left + i % REST;
        float2 v[RADIX];
        float2 w[RADIX];
        powers(w, roots[i % REST]);
        if (within) {
            const float *first = plane + y * width + x;
#pragma unroll
            for (int j = 0; j < RADIX; ++j) v[j] = make_float2(first[REST * j], first[REST * j + VALID]);
        } else {
#pragma unroll
            for (int j = 0; j < RADIX; ++j)
                v[j] = make_float2(pixel(plane, x + REST * j, y, width, height, border),
                                   pixel(plane, x + REST * j + VALID, y, width, height, border));
        }
        transform<RADIX>(v);
#pragma unroll
        for (int j = 0; j < RADIX; ++j)
            tile[place(i / REST, REST * j + i % REST)] = times(v[j], w[frequency_at<RADIX>(j)]);
    }
    __syncthreads();
    finish_rows(tile);
    __syncthreads();
    // phase: columns
    begin_columns(tile, roots);
    __syncthreads();
    // phase: multiply
    for (unsigned int i = threadIdx.x; i < SIDE * RADIX; i += FFT_BLOCK) {
        unsigned int column = i % SIDE;
        unsigned int run = i / SIDE * REST;
        float2 v[REST];
#pragma unroll
        for (int k = 0; k < REST; ++k) v[k] = tile[place(run + k, column)];
        transform<REST>(v);
#pragma unroll
        for (int k = 0; k < REST; ++k) v[k] = times(v[k], spectrum[(run + k) * SIDE + column]);
        transform_back<REST>(v);
#pragma unroll
        for (int k = 0; k < REST; ++k) tile[place(run + k, column)] = v[k];
    }
    __syncthreads();
    // phase: columns back
    for (unsigned int i = threadIdx.x; i < SIDE * REST; i += FFT_BLOCK) {
        unsigned int column = i % SIDE;
        unsigned int part = i / SIDE;
        float2 v[RADIX];
        float2 w[RADIX];
        powers(w, roots[part]);
#pragma unroll
        for (int j = 0; j < RADIX; ++j)
            v[j] = times(tile[place(REST * j + part, column)], conjugate(w[frequency_at<RADIX>(j)]));
        transform_back<RADIX>(v);
#pragma unroll
        for (int j = 0; j < RADIX; ++j)
            if (REST * j + part < VALID) tile[place(REST * j + part, column)] = v[j];
    }
    __syncthreads();
    // phase: rows back
    for (unsigned int i = threadIdx.x; i < VALID * RADIX; i += FFT_BLOCK) {
        float2 *run = tile + place(i / RADIX, i % RADIX * REST);
        float2 v[REST];
#pragma unroll
        for (int k = 0; k < REST; ++k) v[k] = run[k];
        transform_back<REST>(v);
#pragma unroll
        for (int k = 0; k < REST; ++k) run[k] = v[k];
    }
    __syncthreads();
    // phase: write
    for (unsigned int i = threadIdx.x; i < VALID * REST; i += FFT_BLOCK) {
        int y = top - down + i / REST;
        float2 v[RADIX];
        float2 w[RADIX];
        powers(w, roots[i % REST]);
#pragma unroll
        for (int j = 0; j < RADIX; ++j)
            v[j] = times(tile[place(i / REST, REST * j + i % REST)], conjugate(w[frequency_at<RADIX>(j)]));
        transform_back<RADIX>(v);
        if (y >= height) continue;
        float *row = out + blockIdx.z * width * height + y * width;
#pragma unroll
        for (int j = 0; j < RADIX; ++j) {
            int column = REST * j + i % REST;
            int x = left - across + column;
            if (column < VALID && x < width) row[x] = v[j].x + (add ? row[x] : 0.0f);
            if (column < VALID && x + VALID < width) row[x + VALID] = v[j].y + (add ? row[x + VALID] : 0.0f);
        }
    }
}
