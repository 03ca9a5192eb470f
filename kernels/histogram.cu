// Histogram: the number of `n` pixels in each of `bin_count` bins. Pixels are of type PIXEL with values from 0 to
// LEVELS - 1; the channels of an image are consecutive planes, selected by blockIdx.y. `bins` starts as zeros. Minimum
// traffic: each pixel read once. With LETTERS the pixels are the characters of a text, and LETTERS letters of the
// alphabet share a bin; with RANGES they are floats, and EDGES has the start of each range. The last bin then counts
// all others. With FRACTIONS they are floats too, and bins are equal ranges from 0 to 1; the first and last bins
// include values outside.
//
// variant                     idea                                        what still limits it
// histogram_one_thread        a loop over the pixels, no atomics          one pixel after the other
// histogram_block_partition   a contiguous section per thread             uncoalesced loads, contention
// histogram_interleaved       grid stride: coalesced loads                one global atomic per pixel
// histogram_privatized        a copy of the bins in each block            contention of equal pixels in shared memory
// histogram_aggregated        one atomic for a run of equal pixels        faster only with long runs; 1-pixel loads
// histogram_written_out and   each block writes its bins to a row, and    a second launch; contention within a block
// histogram_merge             a second kernel adds the rows
// histogram_texture           pixels read through a texture               one fetch and one shared atomic per pixel
// histogram_peak              16-byte loads, counters per lane and level  memory bandwidth; parts of bins, if many
//
// histogram_racy              no atomics: a lesson on races, wrong        lost updates

#ifndef PIXEL
#define PIXEL unsigned char
#endif
#ifndef LEVELS
#define LEVELS 256
#endif

#define FEW_LEVELS 256  // up to this number, 32 counters per level fit in shared memory
#define PEAK_BLOCK 1024
#ifndef PARTS
#define PARTS 1  // number of parts of the bins, if a block cannot hold them all
#endif
#ifndef MOVED
#define MOVED 1  // whether the last block of the peak variant moves the sums to the bins
#endif
#ifndef LOADS
#define LOADS 4  // in flight per thread
#endif

#define MERGE_BINS 32
#define MERGE_ROWS 8

#if defined(RANGES) || defined(FRACTIONS)
#define AS_PIXEL(bits) __uint_as_float(bits)
#else
#define AS_PIXEL(bits) ((PIXEL)(bits))
#endif

#ifdef RANGES
// The start of each range, and the end of the last one, which is inclusive.
__constant__ float EDGES[RANGES + 1];

__device__ unsigned int bin_of(PIXEL value, unsigned int bin_count) {
    if (!(value >= EDGES[0] && value <= EDGES[RANGES])) return RANGES;  // NaN too
    int low = 0;
    int high = RANGES;
    while (high - low > 1) {
        int middle = (low + high) / 2;
        if (value >= EDGES[middle])
            low = middle;
        else
            high = middle;
    }
    return low;
}
#elif defined(FRACTIONS)
__device__ unsigned int bin_of(PIXEL value, unsigned int bin_count) {
    return (unsigned int)fminf(fmaxf(value * bin_count, 0.0f), bin_count - 1.0f);  // NaN: the first bin
}
#elif defined(LETTERS)
// In ASCII, upper and lower case differ in one bit.
__device__ unsigned int bin_of(PIXEL character, unsigned int bin_count) {
    unsigned int letter = (character | 0x20u) - 'a';
    return letter < 26 ? letter / LETTERS : bin_count - 1;
}
#else
__device__ unsigned int bin_of(PIXEL value, unsigned int bin_count) {
#if LEVELS > 65536
    return (unsigned long long)value * bin_count / LEVELS;
#else
    return value * bin_count / LEVELS;
#endif
}
#endif

// Idea: sequential. With a single thread, reading, adding and writing need not be indivisible (Kirk and Hwu,
// Programming Massively Parallel Processors, fig. 9.2). Limit: one pixel after the other.
extern "C" __global__ void histogram_one_thread(const PIXEL *image, unsigned int *bins, int n, int bin_count,
                                                int channels) {
    for (int channel = 0; channel < channels; ++channel)
        for (int i = 0; i < n; ++i) bins[channel * bin_count + bin_of(image[channel * n + i], bin_count)]++;
}

// Idea: one contiguous section per thread. Limit: uncoalesced, as each load of a warp moves a sector per pixel; and
// contention of atomics on a few global addresses.
extern "C" __global__ void histogram_block_partition(const PIXEL *image, unsigned int *bins, int n, int bin_count) {
    const PIXEL *plane = image + blockIdx.y * n;
    int threads = gridDim.x * blockDim.x;
    int section = (n + threads - 1) / threads;
    int start = (blockIdx.x * blockDim.x + threadIdx.x) * section;
    int end = min(start + section, n);
    for (int i = start; i < end; ++i) atomicAdd(&bins[blockIdx.y * bin_count + bin_of(plane[i], bin_count)], 1u);
}

// Idea: a warp reads neighboring pixels, with a grid stride. Limit: one global atomic per
// pixel.
extern "C" __global__ void histogram_interleaved(const PIXEL *image, unsigned int *bins, int n, int bin_count) {
    const PIXEL *plane = image + blockIdx.y * n;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&bins[blockIdx.y * bin_count + bin_of(plane[i], bin_count)], 1u);
}

// Idea: privatization. Atomics on shared memory take tens of cycles and affect one block only; a block adds to the global
// bins once, at its end. Loops over bins allow more bins than threads. Limit: contention: atomics of a warp's lanes on
// equal pixels are serialized.
extern "C" __global__ void histogram_privatized(const PIXEL *image, unsigned int *bins, int n, int bin_count) {
    extern __shared__ unsigned int block_bins[];
    // phase: clear
    for (int bin = threadIdx.x; bin < bin_count; bin += blockDim.x) block_bins[bin] = 0;
    __syncthreads();

    // phase: count
    const PIXEL *plane = image + blockIdx.y * n;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&block_bins[bin_of(plane[i], bin_count)], 1u);
    __syncthreads();

    // phase: merge
    for (int bin = threadIdx.x; bin < bin_count; bin += blockDim.x)
        if (block_bins[bin] > 0) atomicAdd(&bins[blockIdx.y * bin_count + bin], block_bins[bin]);
}

// Idea: aggregation. A thread counts while its next pixel falls into the same bin, and adds the whole run at once, the
// last run after the loop. Limit: faster for long runs, slightly slower for noise; and a load fetches only one pixel.
extern "C" __global__ void histogram_aggregated(const PIXEL *image, unsigned int *bins, int n, int bin_count) {
    extern __shared__ unsigned int block_bins[];
    // phase: clear
    for (int bin = threadIdx.x; bin < bin_count; bin += blockDim.x) block_bins[bin] = 0;
    __syncthreads();

    // phase: count
    const PIXEL *plane = image + blockIdx.y * n;
    unsigned int run = 0;
    unsigned int run_bin = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        unsigned int bin = bin_of(plane[i], bin_count);
        if (bin != run_bin) {
            if (run > 0) atomicAdd(&block_bins[run_bin], run);
            run_bin = bin;
            run = 0;
        }
        ++run;
    }
    if (run > 0) atomicAdd(&block_bins[run_bin], run);
    __syncthreads();

    // phase: merge
    for (int bin = threadIdx.x; bin < bin_count; bin += blockDim.x)
        if (block_bins[bin] > 0) atomicAdd(&bins[blockIdx.y * bin_count + bin], block_bins[bin]);
}

// Idea: a block writes its bins to its own row of `partial`, without contention between blocks, and histogram_merge
// adds the rows. Limit: a second launch; and contention within a block.
extern "C" __global__ void histogram_written_out(const PIXEL *image, unsigned int *partial, int n, int bin_count) {
    extern __shared__ unsigned int block_bins[];
    // phase: clear
    for (int bin = threadIdx.x; bin < bin_count; bin += blockDim.x) block_bins[bin] = 0;
    __syncthreads();

    // phase: count
    const PIXEL *plane = image + blockIdx.y * n;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&block_bins[bin_of(plane[i], bin_count)], 1u);
    __syncthreads();

    // phase: write
    unsigned int *row = partial + (blockIdx.y * gridDim.x + blockIdx.x) * bin_count;
    for (int bin = threadIdx.x; bin < bin_count; bin += blockDim.x) row[bin] = block_bins[bin];
}

// Add `rows` histograms of each channel. The threads of a warp have neighboring bins, and the MERGE_ROWS warps of a
// block alternate rows.
extern "C" __global__ void histogram_merge(const unsigned int *partial, unsigned int *bins, int rows, int bin_count) {
    __shared__ unsigned int of_warp[MERGE_ROWS][MERGE_BINS];
    int bin = blockIdx.x * MERGE_BINS + threadIdx.x;
    // phase: add rows
    unsigned int sum = 0;
    if (bin < bin_count)
        for (int row = threadIdx.y; row < rows; row += MERGE_ROWS)
            sum += partial[(blockIdx.y * rows + row) * bin_count + bin];
    of_warp[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y > 0 || bin >= bin_count) return;
    // phase: add warps' sums
    for (int warp = 1; warp < MERGE_ROWS; ++warp) sum += of_warp[warp][threadIdx.x];
    bins[blockIdx.y * bin_count + bin] = sum;
}

// Idea: the texture unit reads the pixels. Before Fermi only textures were cached; since Volta they share the L1 cache
// with loads, so this variant is for comparison. Limit: one fetch and one shared atomic per pixel.
extern "C" __global__ void histogram_texture(cudaTextureObject_t image, unsigned int *bins, int n, int bin_count) {
    extern __shared__ unsigned int block_bins[];
    // phase: clear
    for (int bin = threadIdx.x; bin < bin_count; bin += blockDim.x) block_bins[bin] = 0;
    __syncthreads();

    // phase: count
    int first = blockIdx.y * n;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&block_bins[bin_of(tex1Dfetch<PIXEL>(image, first + i), bin_count)], 1u);
    __syncthreads();

    // phase: merge
    for (int bin = threadIdx.x; bin < bin_count; bin += blockDim.x)
        if (block_bins[bin] > 0) atomicAdd(&bins[blockIdx.y * bin_count + bin], block_bins[bin]);
}

// A block's counters: `own` is this lane's counter of slot `low`, the first of `slots`. A slot is a level, or a bin if
// shared memory cannot hold all levels. Counters of neighboring slots are `pitch` bytes apart.
struct Counters {
    unsigned int *own;
    unsigned int low;
    unsigned int slots;
    unsigned int pitch;
    unsigned int bin_count;
};

// Increment this lane's counter of a pixel. A byte address with a runtime pitch is one multiply-add; a compile-time
// pitch becomes an OR and a shift-and-add, and a multiprocessor issues too few of these per cycle to keep up with
// memory.
__device__ void count(const Counters &to, unsigned int bits) {
    unsigned int slot = LEVELS <= FEW_LEVELS ? bits : bin_of(AS_PIXEL(bits), to.bin_count);
#if PARTS > 1
    slot -= to.low;
    if (slot >= to.slots) return;  // counted by another block
#endif
    atomicAdd(reinterpret_cast<unsigned int *>(reinterpret_cast<char *>(to.own) + slot * to.pitch), 1u);
}

// Count the pixels of a 4-byte word.
__device__ void count_word(const Counters &to, unsigned int word) {
    const int bits = 8 * sizeof(PIXEL);
#pragma unroll
    for (int shift = 0; shift < 32; shift += bits) count(to, word >> shift & (~0u >> (32 - bits)));
}

__device__ void count_vector(const Counters &to, uint4 loaded) {
    count_word(to, loaded.x);
    count_word(to, loaded.y);
    count_word(to, loaded.z);
    count_word(to, loaded.w);
}

__device__ unsigned int bits_of(PIXEL value) {
#if defined(RANGES) || defined(FRACTIONS)
    return __float_as_uint(value);
#else
    return value;
#endif
}

// The last block to finish moves the `count` sums of all blocks to the bins and resets them for the next launch. The
// fence makes a block's sums visible before its ticket, and tickets wrap around to 0.
__device__ void move_sums(unsigned int *sums, unsigned int *bins, int count, unsigned int *tickets) {
    __shared__ bool last;
    unsigned int blocks = gridDim.x * gridDim.y * gridDim.z;
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        last = atomicInc(tickets, blocks - 1) == blocks - 1;
    }
    __syncthreads();
    if (!last) return;
    __threadfence();
    for (int i = threadIdx.x; i < count; i += blockDim.x) {
        bins[i] = __ldcg(&sums[i]);
        sums[i] = 0;
    }
}

// Idea: 16-byte loads, LOADS in flight per thread, that bypass the cache since no data is reused; and several copies of
// each level's counter, a power of two of them in `pitch` bytes: with 32, each lane has its own bank, so neither equal
// nor different pixels cause conflicts. Levels are mapped to bins when counters are added up. If a block cannot hold
// all bins, they are divided into PARTS of `most_slots`, selected by blockIdx.z, and each pixel is read PARTS times, by
// blocks that run together, so that only one of the reads is from memory. Blocks add to `sums`; with MOVED these and
// `tickets` are zeroed only once, and the last block moves the sums, all in one launch; without MOVED they are the
// bins. `image` is 16-byte aligned, but planes may not be: pixels before the first and after the last whole load are
// loaded one by one. Limit: memory bandwidth, closely followed by the rate of shared atomics.
extern "C" __global__ void __launch_bounds__(PEAK_BLOCK)
    histogram_peak(const PIXEL *image, [[maybe_unused]] unsigned int *bins, unsigned int *sums,
                   [[maybe_unused]] unsigned int *tickets, int n, int bin_count, int most_slots, unsigned int pitch) {
    extern __shared__ unsigned int counters[];
    __shared__ unsigned int merged[FEW_LEVELS];
    const bool merging = LEVELS <= FEW_LEVELS && bin_count < LEVELS;  // several levels per bin
    int copies = pitch / sizeof(unsigned int);
    Counters to;
    to.own = counters + (threadIdx.x & (copies - 1));
    to.low = blockIdx.z * most_slots;
    to.slots = min(most_slots, (LEVELS <= FEW_LEVELS ? (int)LEVELS : bin_count) - (int)to.low);
    to.pitch = pitch;
    to.bin_count = bin_count;
    const int pixels = 16 / sizeof(PIXEL);
    const PIXEL *plane = image + blockIdx.y * n;
    int thread = blockIdx.x * blockDim.x + threadIdx.x;
    int threads = gridDim.x * blockDim.x;
    int head = min((pixels - blockIdx.y * n % pixels) % pixels, n);
    int loads = (n - head) / pixels;
    const uint4 *vectors = (const uint4 *)(plane + head);
    // phase: clear
    uint4 first = make_uint4(0, 0, 0, 0);
    if (thread < loads) first = vectors[thread];  // in flight while the counters are cleared
    for (int i = threadIdx.x; i < to.slots * copies; i += blockDim.x) counters[i] = 0;
    if (merging && threadIdx.x < bin_count) merged[threadIdx.x] = 0;
    __syncthreads();

    // phase: count
    if (thread < loads) count_vector(to, first);
    int i = thread + threads;
    for (; i + (LOADS - 1) * threads < loads; i += LOADS * threads) {
        uint4 loaded[LOADS];
#pragma unroll
        for (int j = 0; j < LOADS; ++j)
            loaded[j] = PARTS > 1 ? vectors[i + j * threads] : __ldcs(&vectors[i + j * threads]);
#pragma unroll
        for (int j = 0; j < LOADS; ++j) count_vector(to, loaded[j]);
    }
    for (; i < loads; i += threads) count_vector(to, vectors[i]);
    int rest = n - loads * pixels;
    for (int j = thread; j < rest; j += threads) count(to, bits_of(plane[j < head ? j : j + loads * pixels]));
    __syncthreads();

    // phase: merge
    for (int slot = threadIdx.x; slot < to.slots; slot += blockDim.x) {
        unsigned int sum = 0;
#pragma unroll 8
        for (int copy = 0; copy < copies; ++copy) sum += counters[slot * copies + ((copy + slot) & (copies - 1))];
        int bin = LEVELS <= FEW_LEVELS ? bin_of(slot, bin_count) : to.low + slot;
        if (sum > 0) atomicAdd(merging ? &merged[bin] : &sums[blockIdx.y * bin_count + bin], sum);
    }
    if (merging) {
        __syncthreads();
        if (threadIdx.x < bin_count) atomicAdd(&sums[blockIdx.y * bin_count + threadIdx.x], merged[threadIdx.x]);
    }
#if MOVED
    // phase: move
    move_sums(sums, bins, gridDim.y * bin_count, tickets);
#endif
}

// A lesson on atomics: read, add one and write are separate steps here. The last write wins, and the updates of all
// other threads that read the same value are lost.
extern "C" __global__ void histogram_racy(const PIXEL *image, unsigned int *bins, int n, int bin_count) {
    const PIXEL *plane = image + blockIdx.y * n;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        bins[blockIdx.y * bin_count + bin_of(plane[i], bin_count)]++;
}
