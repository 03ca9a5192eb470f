// CuPy's complex numbers.
#pragma once
#include <thrust/complex.h>

using thrust::complex;
