// Products of tiles by a whole warp, in the layouts of PTX's mma.sync. With g = lane / 4 and t = lane % 4, a register of
// A holds p elements of row g, or g + 8, one of B as many of column g, of the k from p * t on: p is 1, 2 or 4. A lane's
// results are those of columns 2t and 2t + 1.
#pragma once

// Ends the launch where not all lanes of a warp are here.
__device__ int __lockstep_whole_warp();

// One result: `column`, 0 or 1, says which, and c is what is added to. The a are what each lane has of a row, the b what
// it has of its column. Whole numbers wrap. Products of floats are exact in double, in which they are added up, and the
// sum is rounded once. Of a GPU it is only documented that it adds with single precision at least, in any order: with n
// products its sum is within (n + 1) * 2^-23 of the sum of all magnitudes.
__device__ double __lockstep_mma(int column, double c, double a0, double b0);
__device__ float __lockstep_mma(int column, float c, float a0, float b0);
__device__ float __lockstep_mma(int column, float c, float a0, float a1, float b0, float b1);
__device__ float __lockstep_mma(int column, float c, float a0, float a1, float a2, float a3, float b0, float b1,
                                float b2, float b3);
__device__ int __lockstep_mma(int column, int c, int a0, int a1, int a2, int a3, int b0, int b1, int b2, int b3);

// TF32 is a float whose last 13 bits do not count.
LOCKSTEP_API inline float __lockstep_tf32(float value) { return __uint_as_float(__float_as_uint(value) & 0xffffe000u); }
// To the nearest, ties away from zero.
LOCKSTEP_API inline float __lockstep_to_tf32(float value) {
    return isfinite(value) ? __lockstep_tf32(__uint_as_float(__float_as_uint(value) + 0x1000u)) : value;
}
