// How floats are brought to where halves have all their bits, and back.

// Halves are 2^-14 to 65504 where they have all their bits. So each row of A and each column of B is scaled by the
// power of two that brings its largest magnitude below 2^15: this is the exponent.
__device__ int scale_of(unsigned int largest) { return min(14 + 127 - static_cast<int>(largest >> 23), 126); }

// A value times a power of two, whose exponent may be that of no float, in two steps.
__device__ float scaled(float value, int exponent) {
    int first = exponent / 2;
    return value * __int_as_float((first + 127) << 23) * __int_as_float((exponent - first + 127) << 23);
}
