// Functions that kernels translated from Python by cupyx.jit call.
#pragma once
#include <cupy/complex.cuh>
#include <cupy/carray.cuh>

// The element at one index per axis.
template <typename T, int _ndim, bool _contiguous, typename... _Index>
LOCKSTEP_API T &jit_element(const CArray<T, _ndim, _contiguous> &array, _Index... indices) {
    const long long values[] = {(long long)indices...};
    return array[values];
}

// The array without its first axis, at an index of that axis.
template <typename T, int _ndim, bool _contiguous>
LOCKSTEP_API CArray<T, _ndim - 1, _contiguous> jit_row(const CArray<T, _ndim, _contiguous> &array, long long index) {
    CArray<T, _ndim - 1, _contiguous> row;
    row.data_ = (T *)((char *)array.data_ + index * array.strides_[0]);
    row.size_ = 1;
    for (int axis = 1; axis < _ndim; ++axis) {
        row.shape_[axis - 1] = array.shape_[axis];
        row.strides_[axis - 1] = array.strides_[axis];
        row.size_ *= array.shape_[axis];
    }
    return row;
}

// Python's //: rounded down. CuPy's quotient of integers by 0 is 0.
template <typename T>
LOCKSTEP_API T jit_floor_divide(T a, T b) {
    if (b == 0) return 0;
    T quotient = a / b;
    return quotient - (quotient * b != a && (a < 0) != (b < 0));
}
LOCKSTEP_API float jit_floor_divide(float a, float b) { return floorf(a / b); }
LOCKSTEP_API double jit_floor_divide(double a, double b) { return floor(a / b); }

// Python's %: the sign of the divisor.
template <typename T>
LOCKSTEP_API T jit_remainder(T a, T b) {
    return b == 0 ? 0 : a - jit_floor_divide(a, b) * b;
}
LOCKSTEP_API float jit_remainder(float a, float b) { return a - floorf(a / b) * b; }
LOCKSTEP_API double jit_remainder(double a, double b) { return a - floor(a / b) * b; }

// Integer powers; 0 for negative exponents of bases other than 1 and -1.
template <typename T>
LOCKSTEP_API T jit_power(T base, T exponent) {
    if (exponent < 0) return base == 1 ? 1 : base == T(-1) ? (exponent & 1 ? -1 : 1) : 0;
    T result = 1;
    for (; exponent > 0; exponent >>= 1) {
        if (exponent & 1) result *= base;
        base *= base;
    }
    return result;
}

// The smaller and the larger number; NaN if one of them is NaN.
template <typename T>
LOCKSTEP_API T jit_minimum(T a, T b) {
    return a != a ? a : b != b ? b : a < b ? a : b;
}
template <typename T>
LOCKSTEP_API T jit_maximum(T a, T b) {
    return a != a ? a : b != b ? b : a > b ? a : b;
}
template <typename T>
LOCKSTEP_API T jit_absolute(T a) {
    return a < 0 ? T(-a) : a;
}
