// Reduction: combine n values into one, by an associative and commutative operator. The elements are of type VALUE, int
// or float; int wraps around. OPERATOR is SUM, PRODUCT, MIN or MAX. BLOCK_SIZE is the number of threads per block, a
// power of two. Minimum traffic: 4 bytes read per element; n - 1 operations, in log2(n) steps at best.
//
// variant                    idea                                          what still limits it
// reduce_one_thread          a loop that halves the array                  n - 1 operations, one after the other
// reduce_neighbored          neighboring partners, the stride doubles      divergence: 1/2, 3/4, 7/8 of each warp idle
// reduce_neighbored_less     thread t has element 2 * stride * t           strided global accesses in every step
// reduce_shared              two loads per thread, tree in shared memory   divergence again, in every warp
// reduce_interleaved         the stride halves, the first threads work     half of all threads only load
// reduce_two_blocks          two elements combined during the load         a block processes two elements per thread
// reduce_grid_stride         grid stride: many elements per thread         a barrier in every step of the tree
// reduce_last_warp           the last 32 threads need only __syncwarp      loop and index arithmetic between steps
// reduce_unrolled            compile-time block size, unrolled tree        shared memory between lanes of one warp
// reduce_shuffle             warp shuffles exchange registers              a second launch for the partial results
// reduce_atomic              one atomic per block, one launch              the order, and so the rounding, varies
// reduce_last_block          the last block combines all results           one 4-byte load in flight per thread
// reduce_peak                16-byte loads, several in flight              memory bandwidth
//
// reduce_volatile            a last warp without __syncwarp: a lesson      wrong since Volta: lanes may diverge

#include "operators.cuh"

#ifndef BLOCK_SIZE
#define BLOCK_SIZE 256
#endif
#ifndef LOADS
#define LOADS 4
#endif

// The lanes of a warp, or the block's threads if it is smaller than a warp.
#define WARP (BLOCK_SIZE < 32 ? BLOCK_SIZE : 32)
#define ALL_LANES (0xffffffffu >> (32 - WARP))
#define WARPS (BLOCK_SIZE / WARP)

// Idea: sequential. The second half is combined with the first, element by element, an odd last element with the first
// of all, then again with half as many (recursiveReduce in Cheng, Grossman, McKercher, Professional CUDA C
// Programming, ch. 3, whose tail recursion is a loop here). Limit: one operation after the other, although many are
// independent.
extern "C" __global__ void reduce_one_thread(VALUE *data, VALUE *result, int n) {
    for (int size = n; size > 1; size /= 2) {
        int half = size / 2;
        for (int i = 0; i < half; ++i) data[i] = COMBINE(data[i], data[i + half]);
        if (size % 2 == 1) data[0] = COMBINE(data[0], data[size - 1]);
    }
    *result = n > 0 ? data[0] : IDENTITY;
}

// Idea: as in a tournament, combine neighbors first, then results twice as far apart; in place, so a block leaves its
// partial result in its first element (Cheng, Grossman, McKercher, Professional CUDA C Programming, ch. 3). Every
// thread reaches every barrier, and the bounds check uses the index in the whole array. Limit: divergence: working
// threads are spread over all warps, and each warp takes as long as if all lanes worked.
extern "C" __global__ void reduce_neighbored(VALUE *data, VALUE *partial, int n) {
    int t = threadIdx.x;
    int i = blockIdx.x * blockDim.x + t;
    // phase: tree
    for (int stride = 1; stride < blockDim.x; stride *= 2) {
        if (t % (2 * stride) == 0 && i + stride < n) data[i] = COMBINE(data[i], data[i + stride]);
        __syncthreads();
    }
    // phase: write
    if (t == 0) partial[blockIdx.x] = i < n ? data[i] : IDENTITY;
}

// Idea: the first threads do all the work, so that whole warps finish early. Limit: the distance between neighboring
// threads' elements doubles in every step, and global memory moves a whole sector for each.
extern "C" __global__ void reduce_neighbored_less(VALUE *data, VALUE *partial, int n) {
    int t = threadIdx.x;
    int start = blockIdx.x * blockDim.x;
    // phase: tree
    for (int stride = 1; stride < blockDim.x; stride *= 2) {
        int i = 2 * stride * t;
        if (i < blockDim.x && start + i + stride < n)
            data[start + i] = COMBINE(data[start + i], data[start + i + stride]);
        __syncthreads();
    }
    // phase: write
    if (t == 0) partial[blockIdx.x] = start < n ? data[start] : IDENTITY;
}

// Idea: a block reads each of its 2 * blockDim elements once, coalesced, and continues in shared memory (Kirk and Hwu,
// Programming Massively Parallel Processors, ch. 10). Limit: t % stride selects the working threads again, so every
// warp has idle lanes.
extern "C" __global__ void reduce_shared(const VALUE *data, VALUE *partial, int n) {
    __shared__ VALUE s[2 * BLOCK_SIZE];
    int t = threadIdx.x;
    int i = blockIdx.x * 2 * blockDim.x + t;
    // phase: load
    s[t] = i < n ? data[i] : IDENTITY;
    s[t + blockDim.x] = i + (int)blockDim.x < n ? data[i + blockDim.x] : IDENTITY;
    // phase: tree
    for (int stride = 1; stride <= blockDim.x; stride *= 2) {
        __syncthreads();
        if (t % stride == 0) s[2 * t] = COMBINE(s[2 * t], s[2 * t + stride]);
    }
    // phase: write
    if (t == 0) partial[blockIdx.x] = s[0];
}

// Idea: the stride halves, so the working threads and their elements are consecutive: no warp diverges until fewer than
// 32 threads work, and there are no bank conflicts. Limit: half of the threads only load, and few loads per thread are
// in flight.
extern "C" __global__ void reduce_interleaved(const VALUE *data, VALUE *partial, int n) {
    __shared__ VALUE s[2 * BLOCK_SIZE];
    int t = threadIdx.x;
    int i = blockIdx.x * 2 * blockDim.x + t;
    // phase: load
    s[t] = i < n ? data[i] : IDENTITY;
    s[t + blockDim.x] = i + (int)blockDim.x < n ? data[i + blockDim.x] : IDENTITY;
    // phase: tree
    for (int stride = blockDim.x; stride > 0; stride /= 2) {
        __syncthreads();
        if (t < stride) s[t] = COMBINE(s[t], s[t + stride]);
    }
    // phase: write
    if (t == 0) partial[blockIdx.x] = s[0];
}

// Idea: a thread combines its element with that of the next block during the load, which halves the number of blocks,
// and no thread only loads (unrolling by two blocks in Cheng, ch. 3; the first add during the load in Harris,
// Optimizing Parallel Reduction in CUDA). Limit: a block processes only two elements per thread.
extern "C" __global__ void reduce_two_blocks(const VALUE *data, VALUE *partial, int n) {
    __shared__ VALUE s[BLOCK_SIZE];
    int t = threadIdx.x;
    int i = blockIdx.x * 2 * blockDim.x + t;
    VALUE value = i < n ? data[i] : IDENTITY;
    if (i + (int)blockDim.x < n) value = COMBINE(value, data[i + blockDim.x]);
    s[t] = value;
    for (int stride = blockDim.x / 2; stride > 0; stride /= 2) {
        __syncthreads();
        if (t < stride) s[t] = COMBINE(s[t], s[t + stride]);
    }
    if (t == 0) partial[blockIdx.x] = s[0];
}

// Idea: grid stride. With a grid of any size, a thread adds many elements before the tree begins; a second launch of
// one block reduces the partial results by the same kernel. Shared memory is dynamic. Limit: a barrier in every step of
// the tree, even when only one warp works.
extern "C" __global__ void reduce_grid_stride(const VALUE *data, VALUE *partial, int n) {
    extern __shared__ VALUE s[];
    int t = threadIdx.x;
    // phase: add on the way
    VALUE value = IDENTITY;
    for (int i = blockIdx.x * blockDim.x + t; i < n; i += gridDim.x * blockDim.x) value = COMBINE(value, data[i]);
    s[t] = value;
    __syncthreads();
    // phase: tree
    for (int stride = blockDim.x / 2; stride > 0; stride /= 2) {
        if (t < stride) s[t] = COMBINE(s[t], s[t + stride]);
        __syncthreads();
    }
    // phase: write
    if (t == 0) partial[blockIdx.x] = s[0];
}

// Idea: the last 32 threads are one warp, which __syncwarp synchronizes, cheaper than a block barrier (Harris,
// Optimizing Parallel Reduction in CUDA, made safe for independent lanes). Limit: loop overhead: a counter and a
// comparison in the other steps.
extern "C" __global__ void reduce_last_warp(const VALUE *data, VALUE *partial, int n) {
    extern __shared__ VALUE s[];
    int t = threadIdx.x;
    // phase: add on the way
    VALUE value = IDENTITY;
    for (int i = blockIdx.x * blockDim.x + t; i < n; i += gridDim.x * blockDim.x) value = COMBINE(value, data[i]);
    s[t] = value;
    __syncthreads();
    // phase: tree
    for (int stride = blockDim.x / 2; stride >= WARP; stride /= 2) {
        if (t < stride) s[t] = COMBINE(s[t], s[t + stride]);
        __syncthreads();
    }
    // phase: last warp
    if (t < WARP) {
#pragma unroll
        for (int stride = WARP / 2; stride > 0; stride /= 2) {
            if (t < stride) s[t] = COMBINE(s[t], s[t + stride]);
            __syncwarp();
        }
    }
    // phase: write
    if (t == 0) partial[blockIdx.x] = s[0];
}

// Idea: with a compile-time block size no loop remains: comparisons with BLOCK_SIZE cost nothing (Harris). Limit: the
// lanes of a warp still communicate through shared memory.
extern "C" __global__ void reduce_unrolled(const VALUE *data, VALUE *partial, int n) {
    __shared__ VALUE s[BLOCK_SIZE];
    int t = threadIdx.x;
    // phase: add on the way
    VALUE value = IDENTITY;
    for (int i = blockIdx.x * BLOCK_SIZE + t; i < n; i += gridDim.x * BLOCK_SIZE) value = COMBINE(value, data[i]);
    s[t] = value;
    __syncthreads();
    // phase: tree
    if (BLOCK_SIZE >= 1024) {
        if (t < 512) s[t] = COMBINE(s[t], s[t + 512]);
        __syncthreads();
    }
    if (BLOCK_SIZE >= 512) {
        if (t < 256) s[t] = COMBINE(s[t], s[t + 256]);
        __syncthreads();
    }
    if (BLOCK_SIZE >= 256) {
        if (t < 128) s[t] = COMBINE(s[t], s[t + 128]);
        __syncthreads();
    }
    if (BLOCK_SIZE >= 128) {
        if (t < 64) s[t] = COMBINE(s[t], s[t + 64]);
        __syncthreads();
    }
    // phase: last warp
    if (t < WARP) {
        if (BLOCK_SIZE >= 64) s[t] = COMBINE(s[t], s[t + 32]);
        __syncwarp();
        if (BLOCK_SIZE >= 32 && t < 16) s[t] = COMBINE(s[t], s[t + 16]);
        __syncwarp();
        if (BLOCK_SIZE >= 16 && t < 8) s[t] = COMBINE(s[t], s[t + 8]);
        __syncwarp();
        if (BLOCK_SIZE >= 8 && t < 4) s[t] = COMBINE(s[t], s[t + 4]);
        __syncwarp();
        if (BLOCK_SIZE >= 4 && t < 2) s[t] = COMBINE(s[t], s[t + 2]);
        __syncwarp();
        if (BLOCK_SIZE >= 2 && t < 1) s[t] = COMBINE(s[t], s[t + 1]);
    }
    // phase: write
    if (t == 0) partial[blockIdx.x] = s[0];
}

// Reduce the values of a warp's first lanes, a power of two; lane 0 has the result. All lanes of the warp take part.
__device__ VALUE fold_lanes(VALUE value, int lanes) {
    for (int distance = lanes / 2; distance > 0; distance /= 2) {
        VALUE partner = __shfl_down_sync(ALL_LANES, value, distance, WARP);
        value = COMBINE(value, partner);
    }
    return value;
}

// Reduce the values of a block's threads; thread 0 has the result. May be called again after a barrier.
__device__ VALUE fold_block(VALUE value) {
    __shared__ VALUE of_warp[WARPS];
    int lane = threadIdx.x % WARP;
    int warp = threadIdx.x / WARP;
    // phase: fold each warp
    value = fold_lanes(value, WARP);
    if (lane == 0) of_warp[warp] = value;
    __syncthreads();
    // phase: fold the warps' values
    if (warp == 0) {
        value = lane < WARPS ? of_warp[lane] : IDENTITY;
        value = fold_lanes(value, WARPS);
    }
    return value;
}

// Idea: warp shuffles read other lanes' registers, so shared memory has one value per warp, and one barrier remains
// (Luitjens, Faster Parallel Reductions on Kepler). Limit: the partial results need a second launch.
extern "C" __global__ void reduce_shuffle(const VALUE *data, VALUE *partial, int n) {
    // phase: add on the way
    VALUE value = IDENTITY;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        value = COMBINE(value, data[i]);
    value = fold_block(value);
    // phase: write
    if (threadIdx.x == 0) partial[blockIdx.x] = value;
}

// Atomically combine a value with one in memory. Operators without an atomic instruction use a compare-and-swap loop,
// which retries until no other thread has changed the value.
__device__ void combine_atomically(VALUE *address, VALUE value) {
#if OPERATOR == SUM
    atomicAdd(address, value);
#else
    unsigned int found = TO_BITS(IDENTITY);
    unsigned int expected;
    do {
        expected = found;
        found = atomicCAS((unsigned int *)address, expected, TO_BITS(COMBINE(FROM_BITS(expected), value)));
    } while (found != expected);
#endif
}

// Idea: each block adds its partial result to the total by an atomic, so one launch suffices; `total` starts as the
// identity. Limit: blocks finish in any order, so the last digits of a float sum differ from run to run.
extern "C" __global__ void reduce_atomic(const VALUE *data, VALUE *total, int n) {
    // phase: add on the way
    VALUE value = IDENTITY;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        value = COMBINE(value, data[i]);
    value = fold_block(value);
    // phase: add to the total
    if (threadIdx.x == 0) combine_atomically(total, value);
}

// Write a block's value to `partial`; the last block to finish reduces all values, in the order of blocks. The fence
// makes the value visible before the ticket, and the counter wraps around to 0 for the next launch (CUDA samples,
// threadFenceReduction): `tickets` is zeroed only once. A single block writes the total directly.
__device__ void finish(VALUE value, VALUE *partial, VALUE *total, unsigned int *tickets) {
    __shared__ bool last;
    if (gridDim.x == 1) {
        // phase: write
        if (threadIdx.x == 0) *total = value;
        return;
    }
    // phase: take a ticket
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = value;
        __threadfence();
        last = atomicInc(tickets, gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();
    // phase: last block
    if (last) {
        __threadfence();
        value = IDENTITY;
        for (int i = threadIdx.x; i < gridDim.x; i += blockDim.x) value = COMBINE(value, __ldcg(&partial[i]));
        value = fold_block(value);
        // phase: write
        if (threadIdx.x == 0) *total = value;
    }
}

// Idea: one launch, and a fixed order: the last block to finish reduces the partial results. Limit: a thread waits for
// each load before it issues the next.
extern "C" __global__ void reduce_last_block(const VALUE *data, VALUE *partial, VALUE *total, unsigned int *tickets,
                                             int n) {
    // phase: add on the way
    VALUE value = IDENTITY;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        value = COMBINE(value, data[i]);
    finish(fold_block(value), partial, total, tickets);
}

// Idea: 16-byte loads, LOADS of them in flight per thread, keep memory busy with few threads; then as before, in one
// launch. `data` is 16-byte aligned. Data that fit one block are processed by one block, without communication. Limit:
// memory bandwidth.
extern "C" __global__ void reduce_peak(const VALUE *data, VALUE *partial, VALUE *total, unsigned int *tickets, int n) {
    const VECTOR *vectors = (const VECTOR *)data;
    const VECTOR none = MAKE_VECTOR(IDENTITY, IDENTITY, IDENTITY, IDENTITY);
    int whole = n / 4;
    // phase: add on the way
    VALUE value = IDENTITY;
    for (int first = blockIdx.x * LOADS * BLOCK_SIZE; first < whole; first += gridDim.x * LOADS * BLOCK_SIZE) {
        VECTOR loaded[LOADS];
#pragma unroll
        for (int k = 0; k < LOADS; ++k) {
            int i = first + k * BLOCK_SIZE + threadIdx.x;
            loaded[k] = i < whole ? vectors[i] : none;
        }
#pragma unroll
        for (int k = 0; k < LOADS; ++k) {
            VALUE pair = COMBINE(loaded[k].x, loaded[k].y);
            VALUE other = COMBINE(loaded[k].z, loaded[k].w);
            value = COMBINE(value, COMBINE(pair, other));
        }
    }
    if (blockIdx.x == 0 && threadIdx.x < n % 4) value = COMBINE(value, data[4 * whole + threadIdx.x]);
    finish(fold_block(value), partial, total, tickets);
}

// A lesson on lane synchronization, which is missing here. This code assumes that the lanes of a warp run in lockstep,
// with only `volatile` to keep accesses in order. Lanes may diverge, and one may read a value that another has already
// changed (CUDA C++ Programming Guide, Independent Thread Scheduling). The upper half of `s` exists so that a block of
// fewer than two warps reads only its own memory.
extern "C" __global__ void reduce_volatile(const VALUE *data, VALUE *partial, int n) {
    extern __shared__ VALUE s[];
    int t = threadIdx.x;
    // phase: add on the way
    VALUE value = IDENTITY;
    for (int i = blockIdx.x * blockDim.x + t; i < n; i += gridDim.x * blockDim.x) value = COMBINE(value, data[i]);
    s[t] = value;
    s[t + blockDim.x] = IDENTITY;
    __syncthreads();
    // phase: tree
    for (int stride = blockDim.x / 2; stride > WARP; stride /= 2) {
        if (t < stride) s[t] = COMBINE(s[t], s[t + stride]);
        __syncthreads();
    }
    // phase: last warp
    if (t < WARP) {
        volatile VALUE *w = s;
        if (blockDim.x >= 64) w[t] = COMBINE(w[t], w[t + 32]);
        if (blockDim.x >= 32) w[t] = COMBINE(w[t], w[t + 16]);
        if (blockDim.x >= 16) w[t] = COMBINE(w[t], w[t + 8]);
        if (blockDim.x >= 8) w[t] = COMBINE(w[t], w[t + 4]);
        w[t] = COMBINE(w[t], w[t + 2]);
        w[t] = COMBINE(w[t], w[t + 1]);
    }
    // phase: write
    if (t == 0) partial[blockIdx.x] = s[0];
}
