// What the benchmark of several devices fills their memory with, and what it knows a result by. An element is made of its
// place among all, so that no memory but the devices' ever holds all of them, and anybody can say what stands where.
//
// kernel         idea
// made_elements  an element is the highest BITS bits of its place, mixed
// made_window    some of many
// made_facts     sums that tell two results apart, and in how many places the order falls

#ifndef VALUE
#define VALUE int
#endif
#ifndef BITS
#define BITS 32
#endif

// Of 32 bits each stands for another 32: the last step of MurmurHash3 (Austin Appleby, public domain).
__device__ unsigned int mixed(unsigned int bits) {
    bits = (bits ^ bits >> 16) * 0x85ebca6bu;
    bits = (bits ^ bits >> 13) * 0xc2b2ae35u;
    return bits ^ bits >> 16;
}

extern "C" __global__ void made_elements(VALUE *out, unsigned int first, unsigned int n) {
    unsigned int stride = gridDim.x * blockDim.x;
    for (unsigned int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride)
        out[i] = (VALUE)(mixed(first + i) >> (32 - BITS));
}

extern "C" __global__ void made_window(const VALUE *in, unsigned long long first, VALUE *out, unsigned int n) {
    unsigned int stride = gridDim.x * blockDim.x;
    for (unsigned int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) out[i] = in[first + i];
}

// `facts` holds the sum of all, that of each times its place, and how often an element is less than the one before.
extern "C" __global__ void made_facts(const VALUE *values, unsigned long long begin, unsigned int n,
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
