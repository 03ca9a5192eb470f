"""Elementwise and reduction kernels of CuPy scripts, against NumPy."""

from __future__ import annotations

import pytest


def test_elements_of_every_type_and_layout(script):
    ended = script(
        """
square = cp.ElementwiseKernel("T x, T y", "T z", "z = (x - y) * (x - y)", "square")
for code in "bhilqBHILQefdFD":
    host = np.arange(35).reshape(5, 7).astype(code)
    for view in (np.s_[:], np.s_[::2, 1:], np.s_[3], np.s_[::-1, ::-3], np.s_[2:2]):
        x = cp.asarray(host)[view]
        z = square(x, 2)
        assert (z.dtype, z.shape) == (x.dtype, x.shape)
        assert (z.get() == (host[view] - host.dtype.type(2)) ** 2).all(), (code, view, z)
column, row = cp.arange(5.0)[:, None], cp.arange(7.0)
assert (square(column, row).get() == (np.arange(5)[:, None] - np.arange(7.0)) ** 2).all()
target = cp.zeros((7, 5)).T
assert square(column, row, target) is target
assert (target.get() == (np.arange(5)[:, None] - np.arange(7.0)) ** 2).all()
either = cp.ElementwiseKernel("bool a, bool b", "bool c", "c = a != b")
assert either(cp.array([True, False]), True).get().tolist() == [False, True]
"""
    )
    assert ended.code == 0, ended.stderr


def test_complex_operations_round_as_in_kernels(script):
    ended = script(
        """
rng = np.random.default_rng(2)
for dtype in (cp.complex64, cp.complex128):
    x, y = cp.asarray((rng.normal(size=(2, 1000)) + 1j * rng.normal(size=(2, 1000))).astype(dtype))
    divide = cp.ElementwiseKernel("T x, T y", "T z", "z = x / y", "divide")
    size = cp.ElementwiseKernel("complex64 x", "float32 z", "z = abs(x)", "size")
    assert (divide(x, y) == x / y).all() and (divide(x, y) == cp.divide(x, y)).all()
    assert np.allclose((x / y).get(), x.get() / y.get(), rtol=1e-5)
assert (size(x.astype(cp.complex64)) == abs(x.astype(cp.complex64))).all()
"""
    )
    assert ended.code == 0, ended.stderr


def test_raw_arrays_and_the_index_space(script):
    ended = script(
        """
x = cp.arange(24, dtype=cp.int32).reshape(2, 3, 4)
turn = cp.ElementwiseKernel("raw T x", "T y", "y = x[_ind.size() - 1 - i]", "turn")
assert (turn(x, cp.empty_like(x)).get() == x.get()[::-1, ::-1, ::-1]).all()
assert (turn(x[:, ::2].T, size=16).get() == x.get()[:, ::2].T.ravel()[::-1]).all()
where = cp.ElementwiseKernel("raw T x", "T y", "int at[] = {1, _ind.get()[0] % 3, _ind.get()[1]}; y = x[at]", "where")
assert (where(x, cp.empty((6, 4), cp.int32)).get() == np.tile(x.get()[1], (2, 1))).all()
counts = cp.zeros(5, cp.int32)
count = cp.ElementwiseKernel("int32 v", "raw int32 counts", "atomicAdd(&counts[v % 5], 1)", "count")
count(cp.arange(17, dtype=cp.int32), counts)
assert counts.get().tolist() == [4, 4, 3, 3, 3]
several = cp.ElementwiseKernel("T x", "T plus, float64 minus", "plus = x + one(); minus = x - one()",
                         preamble="__device__ T one() { return 1; }")
plus, minus = several(cp.arange(9, dtype=cp.float32), block_size=4)
assert plus.dtype == cp.float32 and minus.dtype == cp.float64
assert plus.get().tolist() == list(range(1, 10)) and minus.get().tolist() == list(range(-1, 8))
"""
    )
    assert ended.code == 0, ended.stderr


def test_reductions_along_axes(script):
    ended = script(
        '''
norm = cp.ReductionKernel("T x", "T y", "x * x", "a + b", "y = sqrt(a)", "0", "norm")
largest = cp.ReductionKernel("T x", "T y", "x", "max(a, b)", "y = a", None, "largest")
mean = cp.ReductionKernel("T x", "float64 y", "x", "a + b", "y = a * _out_ind.size() / _in_ind.size()", "0", "mean",
                          reduce_type="float64")
host = np.random.default_rng(1).normal(size=(33, 1, 65)).astype(np.float32)
for x, x_host in ((cp.asarray(host), host), (cp.asarray(host).T[::-1, :, ::2], host.T[::-1, :, ::2])):
    for axis in (None, 0, 1, -1, (0, 2), (2, 0), (0, 1, 2), ()):
        for keepdims in (False, True):
            for kernel, expected in (
                (norm, np.sqrt((x_host.astype(float) ** 2).sum(axis, keepdims=keepdims))),
                (largest, x_host.max(axis, keepdims=keepdims)),
                (mean, x_host.mean(axis, dtype=float, keepdims=keepdims)),
            ):
                result = kernel(x, axis=axis, keepdims=keepdims)
                assert result.shape == expected.shape
                assert np.allclose(result.get(), expected, rtol=1e-5, atol=1e-6), (axis, keepdims, kernel.name)
out = cp.empty(33, cp.float32)
assert largest(cp.asarray(host), axis=(1, 2), out=out) is out and (out.get() == host.max((1, 2))).all()
assert norm(cp.empty((0, 3), cp.float64), axis=0).get().tolist() == [0, 0, 0]
assert norm(cp.empty((0, 3), cp.float64), axis=1).shape == (0,)
dot = cp.ReductionKernel("T x, raw T y", "T z", "x * y[_j]", "a + b", "z = a", "0", "dot")
a, b = cp.arange(100, dtype=cp.complex64) * 1j, cp.arange(100, dtype=cp.complex64)
assert abs(dot(a, b) - (a.get() * b.get()).sum()) < 1
place = cp.ReductionKernel(
    "T x", "int32 y", "Place(x, _j)", "a.value < b.value ? b : a", "y = a.index", "Place()", "place",
    reduce_type="Place", preamble="""
    struct Place {
        double value; int index;
        __device__ Place() : value(-1e300), index(-1) {}
        __device__ Place(double value, int index) : value(value), index(index) {}
    };""")
assert place(cp.asarray(host)) == host.argmax()
''',
        "--check",
    )
    assert ended.code == 0, ended.stderr
    assert "no findings" in ended.stderr


ERRORS = [
    ("add(x)", "TypeError", "Wrong number of arguments for add"),
    ("add(x, x.astype(int))", "TypeError", "Type is mismatched"),
    ("add(x, np.ones(3))", "TypeError", "Unsupported type <class 'numpy.ndarray'>"),
    ("add(x, 'text')", "TypeError", "Unsupported type <class 'str'>"),
    ("add(x, x, cp.ones(1))", "ValueError", "Out shape is mismatched"),
    ("add(x, cp.ones(4))", "ValueError", "shape mismatch"),
    ("add(1, 2)", "ValueError", "Loop size is undecided."),
    ("add(x, x, size=3)", "ValueError", "Specified 'size' can be used only"),
    ("add(x, x, block_size=0)", "ValueError", "block_size"),
    ("add(x, x, nonsense=1)", "TypeError", "Wrong arguments"),
    ("add(cp.array([1], np.int8), 300)", "OverflowError", "300"),
    ("cp.ElementwiseKernel('T x', 'T y', '', '1')", "ValueError", "Invalid kernel name"),
    ("cp.ElementwiseKernel('T', 'T y', '')", "ValueError", "Invalid parameter 'T'"),
    ("cp.ElementwiseKernel('T i', 'T y', '')", "ValueError", "reserved"),
    ("cp.ElementwiseKernel('', 'T y', '')(size=3)", "TypeError", "decides the type T"),
    (
        "cp.ElementwiseKernel('T x', 'T y', 'y = nonsense')(x)",
        "CompileException",
        "undeclared identifier 'nonsense'",
    ),
    ("largest(x[:0])", "ValueError", "which has no identity"),
    ("largest(x, axis=1)", "AxisError", "out of bounds"),
    ("largest(x, axis=(0, 0))", "ValueError", "repeated axis"),
    ("largest(x, out=cp.ones(2))", "ValueError", "Out shape is mismatched"),
]
"""Statements, and the type and a part of the message of what each raises."""


@pytest.fixture(scope="module")
def raised(catch_errors):
    return catch_errors(
        "add = cp.ElementwiseKernel('T x, T y', 'T z', 'z = x + y', 'add')\n"
        "largest = cp.ReductionKernel('T x', 'T y', 'x', 'max(a, b)', 'y = a', None)\n"
        "x = cp.ones(3)\n",
        [call for call, _, _ in ERRORS],
    )


@pytest.mark.parametrize(("call", "error", "message"), ERRORS)
def test_errors_are_cupys(raised, call, error, message):
    assert raised[call].startswith(f"{error}: ")
    assert message in raised[call]


def test_findings_name_the_array(script):
    ended = script(
        """
shift = cp.ElementwiseKernel("raw T x", "T y", "y = x[i + 1]", "shift")
shift(cp.ones(4), size=4)
"""
    )
    assert ended.code == 1
    assert "CUDA_ERROR_ILLEGAL_ADDRESS" in ended.stderr
    assert "1. out-of-bounds" in ended.stderr
    assert "shift, launched at script.py:6:" in ended.stderr


def test_kernel_classes_name_cupy_as_their_module(script):
    ended = script("print(*(kind.__module__ for kind in (cp.ElementwiseKernel, cp.ReductionKernel)))")
    assert ended.stdout == "cupy cupy\n", ended.stderr


def test_macros_with_the_names_that_sources_use(script):
    """`-DN=4` changes no header."""
    ended = script(
        """
options = ("-DN=4", "-DM=2", "-DI=3", "-DC=1", "-DK=8")
total = cp.ElementwiseKernel("float32 x", "float32 y", "y = x * N + M", "total", options=options)
assert total(cp.arange(3, dtype=cp.float32)).tolist() == [2, 6, 10]
"""
    )
    assert ended.code == 0, ended.stderr
