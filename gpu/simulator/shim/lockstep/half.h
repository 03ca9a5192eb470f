// __half and __nv_bfloat16, for storage: arithmetic happens in float.
#pragma once

__device__ float __lockstep_from_half(unsigned short bits);
__device__ unsigned short __lockstep_to_half(float value);

struct __half {
    unsigned short bits;
    __half() = default;
    __host__ __device__ __half(float value) : bits(__lockstep_to_half(value)) {}
    __host__ __device__ operator float() const { return __lockstep_from_half(bits); }
};
typedef __half half;
__device__ inline __half __float2half(float value) { return __half(value); }
__device__ inline __half __float2half_rn(float value) { return __half(value); }
__device__ inline float __half2float(__half value) { return (float)value; }

__device__ int __float_as_int(float x);
__device__ float __int_as_float(int x);

struct __nv_bfloat16 {
    unsigned short bits;
    __nv_bfloat16() = default;
    __host__ __device__ __nv_bfloat16(float value) {
        unsigned int word = (unsigned int)__float_as_int(value);
        bits = (unsigned short)((word + 0x7fffu + ((word >> 16) & 1u)) >> 16);
    }
    __host__ __device__ operator float() const { return __int_as_float((int)((unsigned int)bits << 16)); }
};
__device__ inline __nv_bfloat16 __float2bfloat16(float value) { return __nv_bfloat16(value); }
__device__ inline float __bfloat162float(__nv_bfloat16 value) { return (float)value; }
