// Microbenchmarks of a GPU: a latency by a chain in which each step depends on the one before, a rate by as many
// independent steps as fit. KIND selects the step, WIDE how many of them each thread has in flight.
#ifndef KIND
#define KIND 0
#endif
#ifndef WIDE
#define WIDE 1
#endif
#define STEPS 64
#define ALL 0xffffffffu

#if KIND == 7
typedef double Value;
#elif KIND >= 3 && KIND <= 6 || KIND >= 11 && KIND <= 15 || KIND == 18 || KIND == 19
typedef unsigned int Value;
#else
typedef float Value;
#endif

__device__ __forceinline__ Value step(Value x, Value a, Value b) {
#if KIND == 0
    return x * a + b;
#elif KIND == 1
    return x + a;
#elif KIND == 2
    return x * a;
#elif KIND == 3
    asm volatile("add.u32 %0, %0, %1;" : "+r"(x) : "r"(a));
    return x;
#elif KIND == 4
    asm volatile("mad.lo.u32 %0, %0, %1, %2;" : "+r"(x) : "r"(a), "r"(b));
    return x;
#elif KIND == 5
    asm volatile("xor.b32 %0, %0, %1;" : "+r"(x) : "r"(a));
    return x;
#elif KIND == 6
    asm volatile("shf.l.wrap.b32 %0, %0, %1, %2;" : "+r"(x) : "r"(a), "r"(b));
    return x;
#elif KIND == 7
    return x * a + b;
#elif KIND == 8
    asm volatile("rsqrt.approx.ftz.f32 %0, %0;" : "+f"(x));
    return x;
#elif KIND == 9
    asm volatile("ex2.approx.ftz.f32 %0, %0;" : "+f"(x));
    return x;
#elif KIND == 10
    return __shfl_xor_sync(ALL, x, 1);
#elif KIND == 11
    return __ballot_sync(ALL, x > a) + x;
#elif KIND == 12
    asm volatile("popc.b32 %0, %0;" : "+r"(x));
    return x;
#elif KIND == 13
    return __reduce_add_sync(ALL, x);
#elif KIND == 14
    return __match_any_sync(ALL, x);
#elif KIND == 15
    return x / (a | 1) + b;
#elif KIND == 16
    return x / a + b;
#elif KIND == 17
    return sqrtf(x) + a;
#elif KIND == 18
    asm volatile("{.reg .f32 f; cvt.rn.f32.u32 f, %0; cvt.rzi.u32.f32 %0, f;}" : "+r"(x));
    return x;
#elif KIND == 19
    asm volatile("max.u32 %0, %0, %1;" : "+r"(x) : "r"(a));
    return x;
#else
    return __expf(x) * a;
#endif
}

// Writes each warp's first and last cycle; `ends` keeps the values alive.
extern "C" __global__ void chain(long long *cycles, float *ends, float a, float b, int rounds) {
    Value values[WIDE];
    for (int w = 0; w < WIDE; ++w) values[w] = (Value)(threadIdx.x + w);
    Value own_a = (Value)a, own_b = (Value)b;
    __syncthreads();
    long long start = clock64();
    for (int round = 0; round < rounds; ++round) {
#pragma unroll
        for (int s = 0; s < STEPS; ++s) {
#pragma unroll
            for (int w = 0; w < WIDE; ++w) values[w] = step(values[w], own_a, own_b);
        }
    }
    long long end = clock64();
    Value sum = 0;
    for (int w = 0; w < WIDE; ++w) sum += values[w];
    int warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    if (sum == (Value)12345) ends[warp] = sum;
    if (threadIdx.x % 32 == 0) cycles[2 * warp] = start, cycles[2 * warp + 1] = end;
}

// One thread follows a linked list through memory, `warm` steps before the clock starts.
extern "C" __global__ void follow_cached(const unsigned int *next, unsigned int *ends, long long *cycles, int warm,
                                         int steps) {
    unsigned int place = 0;
    for (int s = 0; s < warm; ++s) place = next[place];
    long long start = clock64();
    for (int s = 0; s < steps; ++s) place = next[place];
    ends[0] = place;
    long long end = clock64();
    cycles[0] = start, cycles[1] = end;
}

__device__ unsigned int past_first_cache(const unsigned int *address) {
    unsigned int value;
    asm volatile("ld.global.cg.u32 %0, [%1];" : "=r"(value) : "l"(address));
    return value;
}

extern "C" __global__ void follow_past_first_cache(const unsigned int *next, unsigned int *ends, long long *cycles,
                                                   int warm, int steps) {
    unsigned int place = 0;
    for (int s = 0; s < warm; ++s) place = past_first_cache(next + place);
    long long start = clock64();
    for (int s = 0; s < steps; ++s) place = past_first_cache(next + place);
    ends[0] = place;
    long long end = clock64();
    cycles[0] = start, cycles[1] = end;
}

extern "C" __global__ void follow_shared(unsigned int *ends, long long *cycles, int steps) {
    __shared__ unsigned int next[1024];
    for (int i = threadIdx.x; i < 1024; i += blockDim.x) next[i] = (i + 33) % 1024;
    __syncthreads();
    unsigned int place = threadIdx.x;
    long long start = clock64();
    for (int s = 0; s < steps; ++s) place = next[place];
    ends[threadIdx.x] = place;
    long long end = clock64();
    cycles[0] = start, cycles[1] = end;
}

// The lanes of a warp access words `stride` apart: that is also the number of lanes per bank.
extern "C" __global__ void shared_loads(unsigned int *ends, long long *cycles, int stride, int rounds) {
    __shared__ unsigned int words[4096];
    for (int i = threadIdx.x; i < 4096; i += blockDim.x) words[i] = 0;
    __syncthreads();
    unsigned int sum = 0, at = threadIdx.x * stride % 4096;
    long long start = clock64();
    for (int round = 0; round < rounds; ++round) {
#pragma unroll
        for (int s = 0; s < 16; ++s) sum += *(volatile unsigned int *)&words[at ^ (s * 32)];
    }
    long long end = clock64();
    ends[blockIdx.x * blockDim.x + threadIdx.x] = sum;
    int warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    if (threadIdx.x % 32 == 0) cycles[2 * warp] = start, cycles[2 * warp + 1] = end;
}

extern "C" __global__ void shared_vectors(unsigned int *ends, long long *cycles, int rounds) {
    __shared__ uint4 words[1024];
    words[threadIdx.x] = make_uint4(0, 0, 0, 0);
    __syncthreads();
    unsigned int sum = 0;
    unsigned int at = (unsigned int)__cvta_generic_to_shared(&words[threadIdx.x]);
    long long start = clock64();
    for (int round = 0; round < rounds; ++round) {
#pragma unroll
        for (int s = 0; s < 16; ++s) {
            uint4 v;
            asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                         : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                         : "r"(at));
            sum += v.x ^ v.y ^ v.z ^ v.w;
        }
    }
    long long end = clock64();
    ends[blockIdx.x * blockDim.x + threadIdx.x] = sum;
    int warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    if (threadIdx.x % 32 == 0) cycles[2 * warp] = start, cycles[2 * warp + 1] = end;
}

__device__ unsigned int mixed(unsigned int x) {
    x = (x ^ (x >> 16)) * 0x7feb352du;
    x = (x ^ (x >> 15)) * 0x846ca68bu;
    return x ^ (x >> 16);
}

// The address of a thread's next atomic: one word for all, neighboring words, one word per warp, or any word below
// `words`.
__device__ unsigned int place_of(int kind, unsigned int thread, int round, unsigned int words) {
    if (kind == 0) return 0;
    if (kind == 1) return (thread + 32 * round) % words;
    if (kind == 2) return (thread / 32 + round) * 32 % words;
    return mixed(thread * 977 + round) % words;
}

extern "C" __global__ void atomics_shared(unsigned int *ends, long long *cycles, int kind, int words, int rounds) {
    extern __shared__ unsigned int counts[];
    for (int i = threadIdx.x; i < words; i += blockDim.x) counts[i] = 0;
    __syncthreads();
    unsigned int thread = blockIdx.x * blockDim.x + threadIdx.x;
    long long start = clock64();
    for (int round = 0; round < rounds; ++round) {
        unsigned int at = (unsigned int)__cvta_generic_to_shared(&counts[place_of(kind, thread, round, words)]);
        asm volatile("red.shared.add.u32 [%0], %1;" ::"r"(at), "r"(thread) : "memory");
    }
    __syncthreads();
    long long end = clock64();
    ends[thread] = counts[threadIdx.x % words];
    if (threadIdx.x % 32 == 0) cycles[2 * (thread / 32)] = start, cycles[2 * (thread / 32) + 1] = end;
}

extern "C" __global__ void atomics_global(unsigned int *counts, int kind, unsigned int words, int rounds,
                                          int returning) {
    unsigned int thread = blockIdx.x * blockDim.x + threadIdx.x, sum = 0;
    for (int round = 0; round < rounds; ++round) {
        unsigned int *at = counts + place_of(kind, thread, round, words), before;
        if (returning) {
            asm volatile("atom.global.add.u32 %0, [%1], %2;" : "=r"(before) : "l"(at), "r"(thread) : "memory");
            sum += before;
        } else {
            asm volatile("red.global.add.u32 [%0], %1;" ::"l"(at), "r"(thread) : "memory");
        }
    }
    if (sum == 12345) counts[0] = sum;
}

extern "C" __global__ void atomics_global_float(float *counts, int kind, unsigned int words, int rounds) {
    unsigned int thread = blockIdx.x * blockDim.x + threadIdx.x;
    for (int round = 0; round < rounds; ++round) {
        float *at = counts + place_of(kind, thread, round, words);
        asm volatile("red.global.add.f32 [%0], %1;" ::"l"(at), "f"(1.0f) : "memory");
    }
}

// One thread repeats an atomic addition and waits for its result each time.
extern "C" __global__ void follow_atomic(unsigned int *word, long long *cycles, int steps) {
    unsigned int before = 0;
    long long start = clock64();
    for (int s = 0; s < steps; ++s) before = atomicAdd(word + (before & 1024), before | 1);
    word[1] = before;
    long long end = clock64();
    cycles[0] = start, cycles[1] = end;
}

extern "C" __global__ void follow_atomic_shared(unsigned int *ends, long long *cycles, int steps) {
    __shared__ unsigned int word[2];
    word[0] = word[1] = 0;
    unsigned int before = 0;
    long long start = clock64();
    for (int s = 0; s < steps; ++s) before = atomicAdd(word + (before >> 31), 1);
    ends[0] = before;
    long long end = clock64();
    cycles[0] = start, cycles[1] = end;
}

extern "C" __global__ void barriers(long long *cycles, int rounds) {
    __syncthreads();
    long long start = clock64();
    for (int round = 0; round < rounds; ++round) __syncthreads();
    long long end = clock64();
    int warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    if (threadIdx.x % 32 == 0) cycles[2 * warp] = start, cycles[2 * warp + 1] = end;
}

extern "C" __global__ void nothing() {}

extern "C" __global__ void read_words(const unsigned int *from, unsigned int *nowhere, size_t count, int rounds) {
    unsigned int found = 0;
    for (int round = 0; round < rounds; ++round)
        for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < count; i += gridDim.x * (size_t)blockDim.x)
            found |= past_first_cache(from + i);
    if (found) *nowhere = found;
}

extern "C" __global__ void read_vectors(const uint4 *from, unsigned int *nowhere, size_t count, int rounds) {
    unsigned int found = 0;
    size_t stride = gridDim.x * (size_t)blockDim.x;
    for (int round = 0; round < rounds; ++round) {
        for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < count; i += 4 * stride) {
#pragma unroll
            for (int k = 0; k < 4; ++k) {
                uint4 v = make_uint4(0, 0, 0, 0);
                if (i + k * stride < count)
                    asm volatile("ld.global.cg.v4.u32 {%0, %1, %2, %3}, [%4];"
                                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                                 : "l"(from + i + k * stride));
                found |= v.x | v.y | v.z | v.w;
            }
        }
    }
    if (found) *nowhere = found;
}

extern "C" __global__ void write_vectors(uint4 *to, size_t count) {
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < count; i += gridDim.x * (size_t)blockDim.x)
        to[i] = make_uint4(1, 2, 3, 4);
}

extern "C" __global__ void copy_vectors(const uint4 *from, uint4 *to, size_t count) {
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < count; i += gridDim.x * (size_t)blockDim.x)
        to[i] = from[i];
}

// Each lane reads a sector at a random position below `sectors`.
extern "C" __global__ void read_sectors(const unsigned int *from, unsigned int *nowhere, unsigned int sectors,
                                        int rounds) {
    unsigned int found = 0, thread = blockIdx.x * blockDim.x + threadIdx.x;
#pragma unroll 8
    for (int round = 0; round < rounds; ++round)
        found |= past_first_cache(from + 8 * (size_t)(mixed(thread + round * 0x9e3779b9u) % sectors));
    if (found) *nowhere = found;
}

// Words that stay in the first cache: each block reads its own words repeatedly.
extern "C" __global__ void read_first_cache(const unsigned int *from, unsigned int *ends, long long *cycles, int stride,
                                            int rounds) {
    unsigned int sum = 0;
    const unsigned int *own = from + threadIdx.x * stride % 4096;
    for (int s = 0; s < 4; ++s) sum += own[s * 4096 / 4];
    __syncthreads();
    long long start = clock64();
    for (int round = 0; round < rounds; ++round) {
#pragma unroll
        for (int s = 0; s < 16; ++s) {
            unsigned int value;
            asm volatile("ld.global.ca.u32 %0, [%1];" : "=r"(value) : "l"(own + (s & 3) * 1024));
            sum += value;
        }
    }
    long long end = clock64();
    ends[blockIdx.x * blockDim.x + threadIdx.x] = sum;
    int warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    if (threadIdx.x % 32 == 0) cycles[2 * warp] = start, cycles[2 * warp + 1] = end;
}

// Cycles and nanoseconds of the same interval.
extern "C" __global__ void clock_rate(long long *cycles, float *ends, int rounds) {
    unsigned long long before, after;
    float x = threadIdx.x;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(before));
    long long start = clock64();
    for (int round = 0; round < rounds; ++round) x = x * 0.5f + 1.0f;
    ends[blockIdx.x * blockDim.x + threadIdx.x] = x;
    long long end = clock64();
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(after));
    if (blockIdx.x == 0 && threadIdx.x == 0) cycles[0] = end - start, cycles[1] = after - before;
}
