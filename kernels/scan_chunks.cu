// Scan on several devices, one level above the blocks of scan.cu: devices reduce their chunks, and each scans its own
// from the total of the chunks before. scan_look_back starts from that value; for the other kernels of scan.cu, it is
// combined with each element afterwards. Minimum traffic of that: 8 bytes per element, read once and written once.
//
// kernel          idea
// scan_chunk_end  the total up to a chunk's end, from its scan: where the next chunk starts
// scan_carry      combines the total of the chunks before with each element

#include "operators.cuh"

#ifndef BLOCK_SIZE
#define BLOCK_SIZE 256
#endif

// Idea: an inclusive scan ends with that total; an exclusive one lacks the last element. One thread.
extern "C" __global__ void scan_chunk_end(const VALUE *in, const VALUE *scanned, VALUE *end, int n, int exclusive) {
    VALUE last = scanned[n - 1];
    end[0] = exclusive ? COMBINE(last, in[n - 1]) : last;
}

// Idea: scan_add_back between devices, four elements per thread. It writes to another array, so that it can be repeated
// if a device is lost. Limit: memory bandwidth.
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
