"""Complex numbers of Thrust and libcu++ against NumPy's."""

from __future__ import annotations

import numpy as np
import pytest

from tests.gpu.simulator.kernel_runner import run_kernel

FUNCTIONS = ("exp", "log", "log10", "sqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh", "conj")
KERNEL = """
#include <%(header)s>
using %(space)s::complex;
extern "C" __global__ void k(const complex<%(real)s> *in, complex<%(real)s> *out, %(real)s *reals, int n) {
    int i = threadIdx.x;
    if (i >= n) return;
    complex<%(real)s> a = in[i], b = in[n - 1 - i], c(1, -2);
    complex<%(real)s> all[] = {%(calls)s, a + b, a - b, a * b, a / b, a * 2, 3 - a, 2.f / a, -a, pow(a, b), pow(a, 2),
                               %(space)s::polar(abs(a), arg(a)), a.real() * c, complex<float>(1.5f) + a};
    const int count = sizeof(all) / sizeof(all[0]);
    c += a, c *= b, c -= 1, c /= a;
    for (int each = 0; each < count; ++each) out[each * n + i] = all[each];
    out[count * n + i] = c;
    reals[i] = abs(a), reals[n + i] = arg(a), reals[2 * n + i] = %(space)s::norm(a), reals[3 * n + i] = imag(a);
    reals[4 * n + i] = (a == b) + 2 * (a != b) + 4 * (sizeof(a) == 2 * alignof(%(real)s) && alignof(a) == sizeof(a));
}
"""


@pytest.mark.parametrize(("header", "space"), [("thrust/complex.h", "thrust"), ("cuda/std/complex", "cuda::std")])
@pytest.mark.parametrize(("real", "dtype", "rtol"), [("float", np.complex64, 3e-6), ("double", np.complex128, 1e-14)])
def test_operators_and_functions_do_what_numpy_does(header, space, real, dtype, rtol):
    rng = np.random.default_rng(5)
    values = rng.normal(size=(30, 2)) @ [1, 1j]
    values = np.append(values, [1, -1, 1j, -1j, -2 - 0.001j, 3]).astype(dtype)
    n = len(values)
    calls = ", ".join(f"{name}(a)" for name in FUNCTIONS)
    source = KERNEL % {"header": header, "space": space, "real": real, "calls": calls}
    results, reals = np.zeros((len(FUNCTIONS) + 14, n), dtype), np.zeros((5, n), values.real.dtype)
    _, results, reals = run_kernel(source, "k", values, results, reals, np.int32(n), block=64)
    a, b = values.astype(np.complex128), values[::-1].astype(np.complex128)
    expected = [getattr(np, name)(a) for name in FUNCTIONS]
    expected += [a + b, a - b, a * b, a / b, a * 2, 3 - a, 2 / a, -a, a**b, a**2, a, a.real * (1 - 2j), 1.5 + a]
    expected += [((1 - 2j + a) * b - 1) / a]
    for result, reference in zip(results, expected, strict=True):
        assert np.all(np.abs(result - reference) <= rtol * (1 + np.abs(reference)) * 4)
    parts = [np.abs(a), np.angle(a), np.abs(a) ** 2, a.imag, np.where(a == b, 1, 2) + 4]
    for result, reference in zip(reals, parts, strict=True):
        assert np.all(np.abs(result - reference) <= rtol * (1 + np.abs(reference)))
