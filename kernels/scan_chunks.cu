// Scan over several devices: each has scanned its chunk by a kernel of scan.cu, as a block scans a section there. What a
// chunk comes to is scanned with what the others come to, and goes back to each: the three-kernel scan one level up.
// Least traffic of the last step: 8 bytes an element, read once and written once.
//
// kernel            idea
// scan_chunk_total  what all of a chunk come to, out of its scan
// scan_carry        what the chunks before come to, combined with each element

#include "operators.cuh"

#ifndef BLOCK_SIZE
#define BLOCK_SIZE 256
#endif

// Idea: the last element of an inclusive scan is the total; of an exclusive one it lacks the last element. One thread has
// it all to do.
extern "C" __global__ void scan_chunk_total(const VALUE *in, const VALUE *scanned, VALUE *total, int n, int exclusive) {
    VALUE last = scanned[n - 1];
    total[0] = exclusive ? COMBINE(last, in[n - 1]) : last;
}

// Idea: scan_add_back between devices, four elements at a time. It writes elsewhere, so that it can be done again when a
// device is lost. Limit: memory's bandwidth.
extern "C" __global__ void scan_carry(const VALUE *scanned, VALUE *out, VALUE before, int n) {
    int first = blockIdx.x * BLOCK_SIZE + threadIdx.x;
    int stride = gridDim.x * BLOCK_SIZE;
    for (int i = first; i < n / 4; i += stride) {
        VECTOR values = ((const VECTOR *)scanned)[i];
        VALUE x = COMBINE(before, values.x);
        VALUE y = COMBINE(before, values.y);
        VALUE z = COMBINE(before, values.z);
        VALUE w = COMBINE(before, values.w);
        ((VECTOR *)out)[i] = MAKE_VECTOR(x, y, z, w);
    }
    for (int i = n / 4 * 4 + first; i < n; i += stride) out[i] = COMBINE(before, scanned[i]);
}
