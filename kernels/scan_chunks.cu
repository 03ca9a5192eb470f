// Scan over several devices, one level above the blocks of scan.cu: devices reduce their chunks, and each scans its own
// from what the chunks before come to. scan_look_back begins with that by itself; after the other kernels of scan.cu it is
// combined with each element. Least traffic of that: 8 bytes an element, read once and written once.
//
// kernel          idea
// scan_chunk_end  what a chunk comes to with all before it, out of its scan: where the next one begins
// scan_carry      what the chunks before come to, combined with each element

#include "operators.cuh"

#ifndef BLOCK_SIZE
#define BLOCK_SIZE 256
#endif

// Idea: an inclusive scan ends with it; an exclusive one lacks the last element. One thread has it all to do.
extern "C" __global__ void scan_chunk_end(const VALUE *in, const VALUE *scanned, VALUE *end, int n, int exclusive) {
    VALUE last = scanned[n - 1];
    end[0] = exclusive ? COMBINE(last, in[n - 1]) : last;
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
