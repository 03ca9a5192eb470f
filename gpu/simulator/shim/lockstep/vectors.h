// CUDA's vector types, aligned as nvcc aligns them, and what makes them.
#pragma once

#define LOCKSTEP_VECTORS(name, scalar, align2, align4)                                                                 \
    struct name##1 { scalar x; };                                                                                      \
    struct alignas(align2) name##2 { scalar x, y; };                                                                   \
    struct name##3 { scalar x, y, z; };                                                                                \
    struct alignas(align4) name##4 { scalar x, y, z, w; };                                                             \
    __host__ __device__ inline name##1 make_##name##1(scalar x) { return {x}; }                                        \
    __host__ __device__ inline name##2 make_##name##2(scalar x, scalar y) { return {x, y}; }                           \
    __host__ __device__ inline name##3 make_##name##3(scalar x, scalar y, scalar z) { return {x, y, z}; }              \
    __host__ __device__ inline name##4 make_##name##4(scalar x, scalar y, scalar z, scalar w) { return {x, y, z, w}; }

LOCKSTEP_VECTORS(char, signed char, 2, 4)
LOCKSTEP_VECTORS(uchar, unsigned char, 2, 4)
LOCKSTEP_VECTORS(short, short, 4, 8)
LOCKSTEP_VECTORS(ushort, unsigned short, 4, 8)
LOCKSTEP_VECTORS(int, int, 8, 16)
LOCKSTEP_VECTORS(uint, unsigned int, 8, 16)
LOCKSTEP_VECTORS(long, long, 16, 16)
LOCKSTEP_VECTORS(ulong, unsigned long, 16, 16)
LOCKSTEP_VECTORS(longlong, long long, 16, 16)
LOCKSTEP_VECTORS(ulonglong, unsigned long long, 16, 16)
LOCKSTEP_VECTORS(float, float, 8, 16)
LOCKSTEP_VECTORS(double, double, 16, 16)

// Four words of 8 bytes, whose alignment CUDA 13 has in their name.
#define LOCKSTEP_WIDE_VECTOR(name, scalar, alignment)                                                                  \
    struct alignas(alignment) name {                                                                                   \
        scalar x, y, z, w;                                                                                             \
    };                                                                                                                 \
    __host__ __device__ inline name make_##name(scalar x, scalar y, scalar z, scalar w) { return {x, y, z, w}; }
#define LOCKSTEP_WIDE_VECTORS(name, scalar)                                                                            \
    LOCKSTEP_WIDE_VECTOR(name##_16a, scalar, 16)                                                                       \
    LOCKSTEP_WIDE_VECTOR(name##_32a, scalar, 32)
LOCKSTEP_WIDE_VECTORS(long4, long)
LOCKSTEP_WIDE_VECTORS(ulong4, unsigned long)
LOCKSTEP_WIDE_VECTORS(longlong4, long long)
LOCKSTEP_WIDE_VECTORS(ulonglong4, unsigned long long)
LOCKSTEP_WIDE_VECTORS(double4, double)
#undef LOCKSTEP_WIDE_VECTORS
#undef LOCKSTEP_WIDE_VECTOR

struct dim3 {
    unsigned int x, y, z;
    __host__ __device__ constexpr dim3(unsigned int x = 1, unsigned int y = 1, unsigned int z = 1) : x(x), y(y), z(z) {}
    __host__ __device__ constexpr dim3(uint3 from) : x(from.x), y(from.y), z(from.z) {}
    __host__ __device__ constexpr operator uint3() const { return uint3{x, y, z}; }
};
