// Inputs of the benchmark of several devices, generated in device memory, and properties that identify a result. An
// element is a hash of its index among all elements, so that the host never holds all of them and can compute any of them.
//
// kernel             purpose
// generate_elements  each element is the highest BITS bits of the hash of its index
// copy_window        copy a range of elements
// compute_summary    sums that identify a result, and the number of descents

#ifndef VALUE
#define VALUE int
#endif
#ifndef BITS
#define BITS 32
#endif

// A bijection of 32-bit numbers: the last step of MurmurHash3 (Austin Appleby, public domain).
__device__ unsigned int mixed(unsigned int bits) {
    bits = (bits ^ bits >> 16) * 0x85ebca6bu;
    bits = (bits ^ bits >> 13) * 0xc2b2ae35u;
    return bits ^ bits >> 16;
}

extern "C" __global__ void generate_elements(VALUE *out, unsigned int first, unsigned int n) {
    unsigned int stride = gridDim.x * blockDim.x;
    for (unsigned int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride)
        out[i] = (VALUE)(mixed(first + i) >> (32 - BITS));
}

extern "C" __global__ void copy_window(const VALUE *in, unsigned long long first, VALUE *out, unsigned int n) {
    unsigned int stride = gridDim.x * blockDim.x;
    for (unsigned int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) out[i] = in[first + i];
}

// `facts`: the sum of all elements, the sum of each multiplied by its index, and the number of elements less than the one
// before.
extern "C" __global__ void compute_summary(const VALUE *values, unsigned long long begin, unsigned int n,
                                           unsigned long long *facts) {
    unsigned long long sum = 0, placed = 0, falls = 0;
    unsigned int stride = gridDim.x * blockDim.x;
    for (unsigned int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) {
        VALUE value = values[begin + i];
        sum += (unsigned int)value;
        placed += (unsigned long long)(unsigned int)value * i;
        if (i && value < values[begin + i - 1]) falls += 1;
    }
    atomicAdd(&facts[0], sum);
    atomicAdd(&facts[1], placed);
    atomicAdd(&facts[2], falls);
}
