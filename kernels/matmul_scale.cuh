// Scaling of floats to the range in which float16 has full precision, and back.

// float16 has full precision from 2^-14 to 65504. Each row of A and each column of B is therefore scaled by the power
// of two that brings its largest magnitude below 2^15: this is the exponent.
__device__ int scale_of(unsigned int largest) { return min(14 + 127 - static_cast<int>(largest >> 23), 126); }

// Multiply a value by a power of two in two steps, as its exponent may exceed that of a float.
__device__ float scaled(float value, int exponent) {
    int first = exponent / 2;
    return value * __int_as_float((first + 127) << 23) * __int_as_float((exponent - first + 127) << 23);
}
