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

// An array of N axes; strides are in bytes. One index counts the elements in row-major order.
template <typename T, int N, bool IsContiguous = false>
struct CArray {
    static const int ndim = N;

    T *data_;
    long long size_;
    long long shape_[N > 0 ? N : 1];
    long long strides_[N > 0 ? N : 1];

    LOCKSTEP_API long long size() const { return size_; }
    LOCKSTEP_API const long long *shape() const { return shape_; }
    LOCKSTEP_API const long long *strides() const { return strides_; }
    LOCKSTEP_API T &operator[](long long index) const {
        if (IsContiguous || N == 0) return data_[index];
        char *element = (char *)data_;
        for (int axis = N - 1; axis > 0; --axis) {
            element += index % shape_[axis] * strides_[axis];
            index /= shape_[axis];
        }
        return *(T *)(element + index * strides_[0]);
    }
    template <typename I>
    LOCKSTEP_API T &operator[](const I *indices) const {
        char *element = (char *)data_;
        for (int axis = 0; axis < N; ++axis) element += indices[axis] * strides_[axis];
        return *(T *)element;
    }
};

// The index space of a loop; `get` returns the indices of the element that `set` selected.
template <int N>
struct CIndexer {
    static const int ndim = N;

    long long size_;
    long long shape_[N > 0 ? N : 1];
    long long index_[N > 0 ? N : 1];

    LOCKSTEP_API long long size() const { return size_; }
    LOCKSTEP_API const long long *shape() const { return shape_; }
    LOCKSTEP_API const long long *get() const { return index_; }
    LOCKSTEP_API void set(long long index) {
        for (int axis = N - 1; axis >= 0; --axis) {
            index_[axis] = index % shape_[axis];
            index /= shape_[axis];
        }
    }
};
