// Sort keys, in place unless stated otherwise; key types, order and the positions that are sorted with the keys are
// defined in sort_keys.cuh. BLOCK_SIZE is a power of two from 8, and a multiple of 32 for the radix sorts. Minimum
// traffic: 4 bytes read and 4 written per key, and the same per position.
//
// A stable sort keeps equal keys in their input order. A bitonic network is not stable: there the positions decide
// between equal keys.
//
// variant              idea                                            what still limits it
// sort_one_thread      select the smallest remaining key               n * (n - 1) / 2 comparisons, one by one
// sort_odd_even        order alternating neighbors, n times            n * n / 2 comparisons
// sort_bitonic         merge two sorted halves by a network            n * log2(n)^2 / 4 comparisons for any keys
// sort_bitonic_step    (its strides beyond a section)                  each is a pass over memory
// sort_bitonic_merge   (its strides within a section)
// sort_warp_radix      one bit per pass, ranks by warp ballots         only 32 keys; the rest needs merges
// sort_block_radix     the ballots of all warps of a block             one bit per pass, and still merges
// sort_radix_count     any n: a tile's number of keys per digit        (the first of the kernels around a scan)
// sort_radix_scatter   four bits per pass, stable                      8 passes, scattered writes
// sort_merge           binary search in the other run                  one key per thread, log2(n) reads for each
// sort_merge_path      any n: merge path divides the work              log2(n / section) passes over memory

#include "sort_keys.cuh"

// Order two keys. If `stable`, only the keys decide; otherwise the positions decide between equal keys.
__device__ void compare_exchange(KEY *keys, int *places, int i, int j, bool stable) {
    KEY a = keys[i];
    KEY b = keys[j];
    bool exchanged = before(b, a);
    if (PAIRS) {
        int place_a = places[i];
        int place_b = places[j];
        if (!stable && !before(a, b)) exchanged = exchanged || place_b < place_a;
        places[i] = exchanged ? place_b : place_a;
        places[j] = exchanged ? place_a : place_b;
    }
    keys[i] = exchanged ? b : a;
    keys[j] = exchanged ? a : b;
}

// Idea: sequential selection sort: the smallest remaining key moves to the first remaining position (it also ends the
// quicksort of the CUDA samples, cdpSimpleQuicksort). Positions decide between equal keys. Limit: n * (n - 1) / 2
// comparisons, one after the other.
extern "C" __global__ void sort_one_thread(KEY *keys, int *places, int n) {
    for (int i = 0; i < n - 1; ++i) {
        int least = i;
        for (int j = i + 1; j < n; ++j) {
            if (before(keys[j], keys[least])) {
                least = j;
            } else if (PAIRS && !before(keys[least], keys[j])) {
                if (places[j] < places[least]) least = j;
            }
        }
        KEY key = keys[i];
        keys[i] = keys[least];
        keys[least] = key;
        if (PAIRS) {
            int place = places[i];
            places[i] = places[least];
            places[least] = place;
        }
    }
}

// Idea: even phases order the pairs 0-1, 2-3, ..., odd phases the pairs 1-2, 3-4, ...; after n phases all keys are
// sorted (Habermann, Parallel Neighbor-sort, 1972). Many keys are sorted by the same rule one level up: half sections
// replace keys, `shift` selects the phase, and a launch sorts pairs of neighboring half sections (Baudet and Stevenson,
// Optimal Sorting Algorithms for Parallel Computers, IEEE Trans. Computers, 1978). Limit: a key moves one position per
// phase, hence n * n / 2 comparisons.
extern "C" __global__ void sort_odd_even(KEY *keys, int *places, int n, int shift) {
    __shared__ KEY s[2 * BLOCK_SIZE];
    __shared__ int p[CARRIED(2 * BLOCK_SIZE)];
    int t = threadIdx.x;
    int begin = (int)blockIdx.x * 2 * BLOCK_SIZE - shift;
    int start = max(begin, 0);
    int count = min(begin + 2 * BLOCK_SIZE, n) - start;
    // phase: load
    for (int i = t; i < count; i += BLOCK_SIZE) {
        s[i] = keys[start + i];
        if (PAIRS) p[i] = places[start + i];
    }
    for (int phase = 0; phase < count; ++phase) {
        __syncthreads();
        // phase: round {phase}
        int i = 2 * t + phase % 2;
        if (i + 1 < count) compare_exchange(s, p, i, i + 1, true);
    }
    __syncthreads();
    // phase: write
    for (int i = t; i < count; i += BLOCK_SIZE) {
        keys[start + i] = s[i];
        if (PAIRS) places[start + i] = p[i];
    }
}

// The lower index of a thread's comparison: all indices whose bit `stride` is 0, in order.
__device__ int lower_place(int t, int stride) { return 2 * (t & ~(stride - 1)) | (t & (stride - 1)); }

// Idea: the first sorted half is compared with the second in reverse, which leaves two halves that need no exchange
// between them, and so on within these (Batcher, Sorting Networks and Their Applications, AFIPS 1968). All comparisons
// put the smaller key first, so that elements beyond the end would stay there and are left out. Limit: n * log2(n) *
// (log2(n) + 1) / 4 comparisons, with log2(n) * (log2(n) + 1) / 2 barriers.
extern "C" __global__ void sort_bitonic(KEY *keys, int *places, int n) {
    __shared__ KEY s[2 * BLOCK_SIZE];
    __shared__ int p[CARRIED(2 * BLOCK_SIZE)];
    int t = threadIdx.x;
    int start = blockIdx.x * 2 * BLOCK_SIZE;
    int count = min(2 * BLOCK_SIZE, n - start);
    // phase: load
    for (int i = t; i < count; i += BLOCK_SIZE) {
        s[i] = keys[start + i];
        if (PAIRS) p[i] = places[start + i];
    }
    for (int half = 1; half < count; half *= 2) {
        // phase: merge halves of {half}
        for (int stride = half; stride > 0; stride /= 2) {
            __syncthreads();
            int i = lower_place(t, stride);
            int j = i ^ (stride == half ? 2 * half - 1 : stride);
            if (j < count) compare_exchange(s, p, i, j, false);
        }
    }
    __syncthreads();
    // phase: write
    for (int i = t; i < count; i += BLOCK_SIZE) {
        keys[start + i] = s[i];
        if (PAIRS) places[start + i] = p[i];
    }
}

// One stride of the network over all keys, in global memory: `mask` is the XOR of a comparison's two indices.
extern "C" __global__ void sort_bitonic_step(KEY *keys, int *places, int n, int stride, int mask) {
    int i = lower_place(blockIdx.x * BLOCK_SIZE + threadIdx.x, stride);
    int j = i ^ mask;
    if (i < n && j < n) compare_exchange(keys, places, i, j, false);
}

// All strides of the network within a section.
extern "C" __global__ void sort_bitonic_merge(KEY *keys, int *places, int n) {
    __shared__ KEY s[2 * BLOCK_SIZE];
    __shared__ int p[CARRIED(2 * BLOCK_SIZE)];
    int t = threadIdx.x;
    int start = blockIdx.x * 2 * BLOCK_SIZE;
    int count = min(2 * BLOCK_SIZE, n - start);
    // phase: load
    for (int i = t; i < count; i += BLOCK_SIZE) {
        s[i] = keys[start + i];
        if (PAIRS) p[i] = places[start + i];
    }
    // phase: merge
    for (int stride = BLOCK_SIZE; stride > 0; stride /= 2) {
        __syncthreads();
        int i = lower_place(t, stride);
        if (i + stride < count) compare_exchange(s, p, i, i + stride, false);
    }
    __syncthreads();
    // phase: write
    for (int i = t; i < count; i += BLOCK_SIZE) {
        keys[start + i] = s[i];
        if (PAIRS) places[start + i] = p[i];
    }
}

// Idea: each pass splits by one bit, the lowest first: keys with a 0 come before the others, in stable order; the warp
// ballot gives the count and each lane's rank (Harris and Garland, Optimizing Parallel Prefix Operations for the Fermi
// Architecture, GPU Computing Gems, 2012, for the ballot). Keys move through shared memory. Limit: 32 keys; sections of
// 32 are merged by sort_merge_path.
extern "C" __global__ void sort_warp_radix(KEY *keys, int *places, int n, int bits) {
    __shared__ KEY s[2][BLOCK_SIZE];
    __shared__ int p[2][CARRIED(BLOCK_SIZE)];
    int i = blockIdx.x * BLOCK_SIZE + threadIdx.x;
    int lane = threadIdx.x % WARP;
    int first = threadIdx.x - lane;
    unsigned int below = (1u << lane) - 1;
    // phase: load
    bool has = i < n;
    KEY key = has ? keys[i] : (KEY)0;
    int place = PAIRS && has ? places[i] : 0;
    int to = 0;
    for (int bit = 0; bit < bits; ++bit) {
        // phase: pass over bit {bit}
        bool one = ordered(key) >> bit & 1;
        unsigned int ones = __ballot_sync(ALL_LANES, has && one);
        unsigned int zeros = __ballot_sync(ALL_LANES, has && !one);
        int rank = one ? __popc(zeros) + __popc(ones & below) : __popc(zeros & below);
        if (has) {
            s[to][first + rank] = key;
            if (PAIRS) p[to][first + rank] = place;
        }
        __syncwarp();
        if (has) {
            key = s[to][threadIdx.x];
            if (PAIRS) place = p[to][threadIdx.x];
        }
        to = 1 - to;
    }
    // phase: write
    if (has) {
        keys[i] = key;
        if (PAIRS) places[i] = place;
    }
}

// Idea: the same for a block, whose warps store their counts in shared memory: the keys with a 0 in all warps before,
// and in all warps, give the start of each half. Limit: one bit per pass, with two barriers; sections are merged.
extern "C" __global__ void sort_block_radix(KEY *keys, int *places, int n, int bits) {
    __shared__ KEY s[BLOCK_SIZE];
    __shared__ int p[CARRIED(BLOCK_SIZE)];
    __shared__ int zeros_of_warp[WARPS];
    int t = threadIdx.x;
    int i = blockIdx.x * BLOCK_SIZE + t;
    int lane = t % WARP;
    int warp = t / WARP;
    // phase: load
    bool has = i < n;
    KEY key = has ? keys[i] : (KEY)0;
    int place = PAIRS && has ? places[i] : 0;
    for (int bit = 0; bit < bits; ++bit) {
        // phase: pass over bit {bit}
        bool one = ordered(key) >> bit & 1;
        unsigned int zeros = __ballot_sync(ALL_LANES, has && !one);
        if (lane == 0) zeros_of_warp[warp] = __popc(zeros);
        __syncthreads();
        int zeros_before = __popc(zeros & ((1u << lane) - 1));
        int all_zeros = 0;
        for (int w = 0; w < WARPS; ++w) {
            if (w < warp) zeros_before += zeros_of_warp[w];
            all_zeros += zeros_of_warp[w];
        }
        int rank = one ? all_zeros + t - zeros_before : zeros_before;
        if (has) {
            s[rank] = key;
            if (PAIRS) p[rank] = place;
        }
        __syncthreads();
        if (has) {
            key = s[t];
            if (PAIRS) place = p[t];
        }
    }
    // phase: write
    if (has) {
        keys[i] = key;
        if (PAIRS) places[i] = place;
    }
}

#ifndef DIGIT_BITS
#define DIGIT_BITS 4
#endif
#define DIGITS (1 << DIGIT_BITS)

// Rounds in which a tile's keys are read.
#define ROUNDS 8

// Idea: a digit of four bits has 16 values, and a tile counts its keys of each. Counts are ordered by digit, then by
// tile, so that their scan (kernels/scan.cu) gives the start of each digit and tile. Limit: one atomic per key.
extern "C" __global__ void sort_radix_count(const KEY *keys, int *counts, int n, int shift) {
    __shared__ int bins[DIGITS];
    int t = threadIdx.x;
    // phase: clear
    for (int digit = t; digit < DIGITS; digit += BLOCK_SIZE) bins[digit] = 0;
    __syncthreads();
    // phase: count
    int start = blockIdx.x * ROUNDS * BLOCK_SIZE;
    int end = min(start + ROUNDS * BLOCK_SIZE, n);
    for (int i = start + t; i < end; i += BLOCK_SIZE) atomicAdd(&bins[ordered(keys[i]) >> shift & (DIGITS - 1)], 1);
    __syncthreads();
    // phase: write
    for (int digit = t; digit < DIGITS; digit += BLOCK_SIZE) counts[digit * gridDim.x + blockIdx.x] = bins[digit];
}

// Idea: a key's new position is the start of its digit and tile, plus the number of keys of that digit before it in the
// tile: in earlier rounds, earlier warps, and lower lanes, by warp ballots on the four bits. So the sort is stable, and
// eight passes sort 32 bits (Satish, Harris and Garland, Designing Efficient Sorting Algorithms for Manycore GPUs,
// IPDPS 2009). Limit: a warp writes to up to 16 regions of memory, and three kernels per pass.
extern "C" __global__ void sort_radix_scatter(const KEY *keys, const int *places, KEY *keys_out, int *places_out,
                                              const int *starts, int n, int shift) {
    __shared__ int next[DIGITS];
    __shared__ int of_warp[WARPS][DIGITS];
    int t = threadIdx.x;
    int lane = t % WARP;
    int warp = t / WARP;
    // phase: load starts
    for (int digit = t; digit < DIGITS; digit += BLOCK_SIZE) next[digit] = starts[digit * gridDim.x + blockIdx.x];
    for (int round = 0; round < ROUNDS; ++round) {
        // phase: round {round}
        int i = (blockIdx.x * ROUNDS + round) * BLOCK_SIZE + t;
        bool has = i < n;
        KEY key = has ? keys[i] : (KEY)0;
        unsigned int digit = ordered(key) >> shift & (DIGITS - 1);
        unsigned int same = __ballot_sync(ALL_LANES, has);
        for (int bit = 0; bit < DIGIT_BITS; ++bit) {
            unsigned int ones = __ballot_sync(ALL_LANES, digit >> bit & 1);
            same &= digit >> bit & 1 ? ones : ~ones;
        }
        int rank = __popc(same & ((1u << lane) - 1));
        for (int other = lane; other < DIGITS; other += WARP) of_warp[warp][other] = 0;
        __syncwarp();
        if (has && rank == 0) of_warp[warp][digit] = __popc(same);
        __syncthreads();
        for (int other = t; other < DIGITS; other += BLOCK_SIZE) {
            int start = next[other];
            for (int w = 0; w < WARPS; ++w) {
                int count = of_warp[w][other];
                of_warp[w][other] = start;
                start += count;
            }
            next[other] = start;
        }
        __syncthreads();
        if (has) {
            int to = of_warp[warp][digit] + rank;
            keys_out[to] = key;
            if (PAIRS) places_out[to] = places[i];
        }
        __syncwarp();
    }
}

// Idea: runs of 1, 2, 4, ... keys are merged in pairs. A key's new position is its index in its own run plus the number
// of keys before it in the other run, by binary search; of equal keys, those of the left run come first. Limit: a
// search for every key, whose reads are not shared.
extern "C" __global__ void sort_merge(KEY *keys, int *places, int n) {
    __shared__ KEY s[2][BLOCK_SIZE];
    __shared__ int p[2][CARRIED(BLOCK_SIZE)];
    int t = threadIdx.x;
    int start = blockIdx.x * BLOCK_SIZE;
    int count = min(BLOCK_SIZE, n - start);
    int from = 0;
    // phase: load
    if (t < count) {
        s[0][t] = keys[start + t];
        if (PAIRS) p[0][t] = places[start + t];
    }
    for (int run = 1; run < count; run *= 2) {
        __syncthreads();
        // phase: merge runs of {run}
        if (t < count) {
            KEY key = s[from][t];
            bool left = (t & run) == 0;
            int own = t & ~(run - 1);
            int other = min(own ^ run, count);
            int low = other;
            int high = min(other + run, count);
            while (low < high) {
                int middle = (low + high) / 2;
                KEY met = s[from][middle];
                if (left ? before(met, key) : !before(key, met))
                    low = middle + 1;
                else
                    high = middle;
            }
            int place = min(own, other) + (t - own) + (low - other);
            s[1 - from][place] = key;
            if (PAIRS) p[1 - from][place] = p[from][t];
        }
        from = 1 - from;
    }
    __syncthreads();
    // phase: write
    if (t < count) {
        keys[start + t] = s[from][t];
        if (PAIRS) places[start + t] = p[from][t];
    }
}

// Keys of the result per thread.
#define OUTPUTS 8

// Idea: two runs of `run` keys are merged from `keys` to `keys_out`. The result is divided equally among threads; a
// search along a diagonal of the merge grid finds the number of keys of the left run before a thread's part (Green,
// McColl and Bader, GPU Merge Path, ICS 2012), which the thread then merges sequentially. Limit: neighboring threads
// access memory eight keys apart; each doubling of the runs is a pass over memory.
extern "C" __global__ void sort_merge_path(const KEY *keys, const int *places, KEY *keys_out, int *places_out, int n,
                                           int run) {
    int first = OUTPUTS * (blockIdx.x * BLOCK_SIZE + threadIdx.x);
    if (first >= n) return;
    int start = first & ~(2 * run - 1);
    int middle = min(start + run, n);
    int end = min(start + 2 * run, n);
    int diagonal = first - start;
    // phase: search
    int low = max(diagonal - (end - middle), 0);
    int high = min(diagonal, middle - start);
    while (low < high) {
        int of_left = (low + high) / 2;
        if (before(keys[middle + diagonal - 1 - of_left], keys[start + of_left]))
            high = of_left;
        else
            low = of_left + 1;
    }
    // phase: merge
    int left = start + low;
    int right = middle + diagonal - low;
    for (int out = first; out < min(first + OUTPUTS, end); ++out) {
        bool from_right = left == middle || (right < end && before(keys[right], keys[left]));
        int in = from_right ? right++ : left++;
        keys_out[out] = keys[in];
        if (PAIRS) places_out[out] = places[in];
    }
}
