// Histogram: how many of `n` pixels fall into each of `bin_count` bins. Pixels are of type PIXEL with values from 0 to
// LEVELS - 1; an image of several channels is one plane after the other, and blockIdx.y says which. `bins` starts as
// zeros. Least traffic: each pixel read once.
//
// rung                        idea                                        what still limits it
// histogram_block_partition   a contiguous section a thread               loads not coalesced, all wait for few addresses
// histogram_interleaved       neighbouring threads, neighbouring pixels   one global atomic a pixel
// histogram_privatized        a copy of the bins in each block            equal pixels still queue at one shared address
// histogram_aggregated        a run of equal pixels counts at once        only runs help; pixels are loaded one by one
//
// histogram_racy              no atomics: a lesson, and wrong             lost updates

#ifndef PIXEL
#define PIXEL unsigned char
#endif
#ifndef LEVELS
#define LEVELS 256
#endif

__device__ unsigned int bin_of(PIXEL value, unsigned int bin_count) { return value * bin_count / LEVELS; }

// Idea: split the pixels as one would among people, a section each. Limit: the threads of a warp read far apart, so
// each load moves a sector for a pixel; and atomics on a few global addresses queue up.
extern "C" __global__ void histogram_block_partition(const PIXEL *image, unsigned int *bins, int n, int bin_count) {
    const PIXEL *plane = image + blockIdx.y * n;
    int threads = gridDim.x * blockDim.x;
    int section = (n + threads - 1) / threads;
    int start = (blockIdx.x * blockDim.x + threadIdx.x) * section;
    int end = min(start + section, n);
    for (int i = start; i < end; ++i) atomicAdd(&bins[blockIdx.y * bin_count + bin_of(plane[i], bin_count)], 1u);
}

// Idea: a warp reads neighbouring pixels, then all threads stride on by the whole grid. Limit: one global atomic for
// every pixel.
extern "C" __global__ void histogram_interleaved(const PIXEL *image, unsigned int *bins, int n, int bin_count) {
    const PIXEL *plane = image + blockIdx.y * n;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&bins[blockIdx.y * bin_count + bin_of(plane[i], bin_count)], 1u);
}

// Idea: atomics on shared memory cost a few cycles and disturb one block only; a block adds to the global bins once, at
// its end. The bins are strided over, so there may be more of them than threads. Limit: where many pixels are equal,
// the lanes of a warp queue at one shared address.
extern "C" __global__ void histogram_privatized(const PIXEL *image, unsigned int *bins, int n, int bin_count) {
    extern __shared__ unsigned int block_bins[];
    for (int bin = threadIdx.x; bin < bin_count; bin += blockDim.x) block_bins[bin] = 0;
    __syncthreads();

    const PIXEL *plane = image + blockIdx.y * n;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&block_bins[bin_of(plane[i], bin_count)], 1u);
    __syncthreads();

    for (int bin = threadIdx.x; bin < bin_count; bin += blockDim.x)
        if (block_bins[bin] > 0) atomicAdd(&bins[blockIdx.y * bin_count + bin], block_bins[bin]);
}

// Idea: a thread keeps counting while its next pixel falls into the same bin and adds the whole run at once, the last
// run after the loop. Limit: gains on skies, loses a little on noise; and a load fetches one pixel only.
extern "C" __global__ void histogram_aggregated(const PIXEL *image, unsigned int *bins, int n, int bin_count) {
    extern __shared__ unsigned int block_bins[];
    for (int bin = threadIdx.x; bin < bin_count; bin += blockDim.x) block_bins[bin] = 0;
    __syncthreads();

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

    for (int bin = threadIdx.x; bin < bin_count; bin += blockDim.x)
        if (block_bins[bin] > 0) atomicAdd(&bins[blockIdx.y * bin_count + bin], block_bins[bin]);
}

// A lesson in what atomics are for: read, add one, write, with nothing to hold the three together. Whoever writes last
// wins, and the updates of all who read the same value before are lost.
extern "C" __global__ void histogram_racy(const PIXEL *image, unsigned int *bins, int n, int bin_count) {
    const PIXEL *plane = image + blockIdx.y * n;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        bins[blockIdx.y * bin_count + bin_of(plane[i], bin_count)]++;
}
