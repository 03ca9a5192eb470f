// Arrays with strides, index spaces and half precision, as CuPy's elementwise and reduction kernels use them.
#pragma once
#include <cuda_fp16.h>

// Half precision that computes in float.
struct float16 {
    __half data;

    float16() = default;
    LOCKSTEP_API float16(float value) : data(__float2half(value)) {}
    LOCKSTEP_API float16(__half value) : data(value) {}
    LOCKSTEP_API operator float() const { return __half2float(data); }
    LOCKSTEP_API float16 &operator+=(float other) { return *this = float16(float(*this) + other); }
    LOCKSTEP_API float16 &operator-=(float other) { return *this = float16(float(*this) - other); }
    LOCKSTEP_API float16 &operator*=(float other) { return *this = float16(float(*this) * other); }
    LOCKSTEP_API float16 &operator/=(float other) { return *this = float16(float(*this) / other); }
};

// An array of `_ndim` axes; strides are in bytes. One index counts the elements in row-major order.
template <typename T, int _ndim, bool IsContiguous = false>
struct CArray {
    static const int ndim = _ndim;

    T *data_;
    long long size_;
    long long shape_[_ndim > 0 ? _ndim : 1];
    long long strides_[_ndim > 0 ? _ndim : 1];

    LOCKSTEP_API long long size() const { return size_; }
    LOCKSTEP_API const long long *shape() const { return shape_; }
    LOCKSTEP_API const long long *strides() const { return strides_; }
    LOCKSTEP_API T &operator[](long long index) const {
        if (IsContiguous || _ndim == 0) return data_[index];
        char *element = (char *)data_;
        for (int axis = _ndim - 1; axis > 0; --axis) {
            element += index % shape_[axis] * strides_[axis];
            index /= shape_[axis];
        }
        return *(T *)(element + index * strides_[0]);
    }
    template <typename _Index>
    LOCKSTEP_API T &operator[](const _Index *indices) const {
        char *element = (char *)data_;
        for (int axis = 0; axis < _ndim; ++axis) element += indices[axis] * strides_[axis];
        return *(T *)element;
    }
};

// The index space of a loop; `get` returns the indices of the element that `set` selected.
template <int _ndim>
struct CIndexer {
    static const int ndim = _ndim;

    long long size_;
    long long shape_[_ndim > 0 ? _ndim : 1];
    long long index_[_ndim > 0 ? _ndim : 1];

    LOCKSTEP_API long long size() const { return size_; }
    LOCKSTEP_API const long long *shape() const { return shape_; }
    LOCKSTEP_API const long long *get() const { return index_; }
    LOCKSTEP_API void set(long long index) {
        for (int axis = _ndim - 1; axis >= 0; --axis) {
            index_[axis] = index % shape_[axis];
            index /= shape_[axis];
        }
    }
};
